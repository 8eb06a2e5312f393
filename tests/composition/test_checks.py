"""Errors as values (`plait.checks`) under, over and within other transformations.

Invariant: what is expected was written down from jax 0.10.2's `checkify`, or follows from values
computed by numpy.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import checks, lax
from plait.checks import check, check_error, checkify

A = np.float32


def positive(x):
    check(x > 0, "pos {}", x)
    return x


def steps(x):
    def body(c, t):
        check(c < 3, "c {} t {}", c, t)
        return c + t, c

    return lax.scan(body, x, pnp.arange(3.0))


def until(x):
    def more(c):
        check(c != 5, "five")
        return c < 8

    return lax.while_loop(more, lambda c: (check(c != 6, "six {}", c), c + 1)[1], x)


def either(x):
    return lax.cond(x > 0, positive, lambda x: (check(x < -5, "m {}", x), x)[1], x)


PER_EXAMPLE = [
    (positive, checks.user_checks, A([1, -1, -2]), {1, 2}),
    (positive, checks.user_checks, A([1, 2]), set()),
    (either, checks.user_checks, A([1, -1, -9, 2]), {1}),
    (until, checks.user_checks, np.array([0, 6, 7, 9], "int32"), {0, 1}),
    (steps, checks.user_checks, A([0, 1, 9]), {2}),
    (lambda x: pnp.log(x), checks.nan_checks, A([1, -1, 2, -3]), {1, 3}),
    (plait.grad(lambda x: pnp.sqrt(x)), checks.nan_checks, A([0, 1, -1]), {2}),
    (lambda x: 1 / x, checks.div_checks, A([0, 1]), {0}),
    (lambda i: pnp.array([1.0, 2.0])[i], checks.index_checks, np.array([0, 5, -1, -7]), {1, 3}),
]


@pytest.mark.parametrize("compiled", [False, True], ids=["as it is", "jit"])
@pytest.mark.parametrize("f, errors, xs, failing", PER_EXAMPLE)
def test_each_example_has_its_own_error(f, errors, xs, failing, compiled):
    g = plait.vmap(checkify(f, errors=errors))
    error, _ = (plait.jit(g) if compiled else g)(xs)
    lines = (error.get() or "").splitlines()
    assert {int(line.split()[3].rstrip(":")) for line in lines} == failing
    for i, x in enumerate(xs):
        assert (checkify(f, errors=errors)(x)[0].get() is not None) == (i in failing)
    found = error.get_exception()
    assert (found is None) == (not failing)
    if failing:
        assert f"mapped index {min(failing)}" in found.what


@pytest.mark.parametrize("f, errors, xs, failing", PER_EXAMPLE[:7])
def test_of_mapped_functions_some_failing_example_is_told(f, errors, xs, failing):
    text = plait.jit(checkify(plait.vmap(f), errors=errors))(xs)[0].get()
    assert (text is not None) == bool(failing)


def test_the_first_example_is_told():
    assert checkify(plait.vmap(positive))(A([1, -1, -2]))[0].get() == "pos -1.0, in example 1"
    twice = plait.vmap(plait.vmap(positive))
    assert checkify(twice)(A([[1, 2], [3, -1]]))[0].get() == "pos -1.0, in example 1, 1"
    rows = lambda xs: lax.scan(lambda c, x: (c, plait.vmap(positive)(x)), 0, xs)
    assert checkify(rows)(A([[1, 2], [-3, 1]]))[0].get() == "pos -3.0, in example 0"
    with pytest.raises(checks.FailedCheckError, match="pos -1.0, in example 1"):
        plait.vmap(positive)(A([1, -1]))


def test_of_no_examples_nothing_is_wrong():
    none = np.zeros(0, A)
    for f in (plait.vmap(positive), lambda xs: lax.map(positive, xs),
              lambda xs: check_error(plait.vmap(checkify(positive))(xs)[0])):  # fmt: skip
        assert plait.jit(checkify(f, errors=checks.all_checks))(none)[0].get() is None
    assert plait.vmap(checkify(positive))(none)[0].get() is None


def test_derivatives_have_errors_and_errors_do_not_change_derivatives():
    square = lambda x: positive(x) ** 2
    for x in (1.5, -1.5):
        want = None if x > 0 else "pos -1.5"
        for g in (plait.grad(square), lambda x: plait.jvp(square, (x,), (1.0,))[1],
                  plait.grad(plait.checkpoint(square)), plait.jit(plait.grad(square))):  # fmt: skip
            error, y = plait.jit(checkify(g))(x)
            assert error.get() == want and float(y) == 2 * x
        (slope, error) = plait.grad(lambda x: checkify(square)(x)[::-1], has_aux=True)(x)
        assert float(slope) == 2 * x and error.get() == want
    steep = plait.grad(lambda x: pnp.where(x > 0, pnp.sqrt(x), 0.0))
    assert checkify(steep, errors=checks.nan_checks)(0.0)[0].get() is not None
    assert checkify(steep, errors=checks.nan_checks)(1.0)[0].get() is None


def test_custom_derivatives_are_kept():
    @plait.custom_jvp
    def f(x):
        check(x > 0, "cj {}", x)
        return x * 2

    f.defjvp(lambda p, t: (f(p[0]), t[0] * 3))

    @plait.custom_vjp
    def g(x):
        check(x > 0, "cv {}", x)
        return x * 2

    g.defvjp(lambda x: (g(x), None), lambda _, ct: (ct * 5,))
    for h, name, slope in ((f, "cj", 3.0), (g, "cv", 5.0)):
        assert checkify(h)(-1.0)[0].get() == f"{name} -1.0"
        assert plait.jit(checkify(h))(1.0)[0].get() is None
        got = plait.grad(lambda x, h=h: checkify(h, errors=checks.all_checks)(x)[1])(2.0)
        assert float(got) == slope
        error, got = checkify(plait.grad(h))(2.0)
        assert float(got) == slope and error.get() is None


def test_nans_in_solvers_are_found_in_their_results():
    solve = lambda a, b: pnp.linalg.solve(a, b)
    g = plait.jit(checkify(solve, errors=checks.nan_checks))
    assert g(np.eye(2, dtype=A), A([1, 2]))[0].get() is None
    assert g(np.full((2, 2), np.nan, A), A([1, 2]))[0].get() is not None


def test_errors_of_examples_are_handed_on():
    def f(x):
        check_error(plait.vmap(checkify(positive))(x)[0])
        return x

    assert checkify(f)(A([1, 2]))[0].get() is None
    assert checkify(f)(A([1, -1]))[0].get() == "pos -1.0"
    with pytest.raises(checks.FailedCheckError, match="pos -1.0"):
        f(A([1, -1]))


def on_devices(f, **options):
    """`f` on each of four devices' two elements."""
    mesh, spec = plait.make_mesh((4,), ("d",)), plait.PartitionSpec("d")
    return plait.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, **options)


ON_DEVICES = A([[1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, -5, 6, -7, 8]])


@pytest.mark.parametrize(
    "g, want",
    [
        (lambda f: lambda x: on_devices(f)(x[1]), "pos -5.0, in example 0, on the device at d=2"),
        (plait.vmap, "pos -5.0, in example 1, 0, on the device at d=2"),
        (
            lambda f: plait.grad(lambda x: on_devices(f)(x[1]).sum()),
            "pos -5.0, in example 0, on the device at d=2",
        ),
        (
            lambda f: lambda x: on_devices(plait.grad(lambda v: f(v).sum()))(x[1]),
            "pos -5.0, in example 0, on the device at d=2",
        ),
        (
            lambda f: plait.grad(
                lambda x: on_devices(plait.checkpoint(lambda v: pnp.sin(f(v))))(x[1]).sum()
            ),
            "pos -5.0, in example 0, on the device at d=2",
        ),
    ],
    ids=["itself", "vmap", "grad", "grad inside", "checkpoint"],
)
@pytest.mark.parametrize("compiled", [False, True], ids=["as it is", "jit"])
def test_what_one_device_finds_is_found_around_others(g, want, compiled):
    f = plait.vmap(positive)
    h = checkify(g(on_devices(f)) if g is plait.vmap else g(f))
    h = plait.jit(h) if compiled else h
    assert h(ON_DEVICES)[0].get() == want
    assert h(abs(ON_DEVICES))[0].get() is None


def test_mapped_functions_that_are_checked_say_it_for_each_example():
    f = plait.vmap(checkify(on_devices(lambda v: (check((v > 0).all(), "{}", v.min()), v)[1])))
    error, y = plait.jit(f)(ON_DEVICES)
    assert error.get() == "at mapped index 1: -5.0, on the device at d=2"
    np.testing.assert_array_equal(y, ON_DEVICES)


def test_one_device_in_pmap_and_xmap():
    f = checkify(plait.pmap(positive, axis_name="i"))
    assert f(A([1, -1, -2]))[0].get() == "pos -1.0, on the device at i=1"
    assert f(A([1, 1, 2]))[0].get() is None
    assert (
        "nan, on the device at i=2"
        in checkify(plait.pmap(pnp.log, axis_name="i"), errors=checks.nan_checks)(A([1, 2, -2]))[
            0
        ].get()
    )
    g = checkify(plait.xmap(positive, ["b"], ["b"], axis_resources={"b": "d"}))
    with plait.make_mesh((2,), ("d",)):
        assert g(A([1, 2, -3, 4]))[0].get() == "pos -3.0, in example 0, on the device at d=1"
        assert g(A([1, 2, 3, 4]))[0].get() is None


def test_the_first_example_of_a_pile_that_failed_is_named():
    rows = [A([1, 2]), A([3]), A([-1, 1, -4]), A([-9])]
    pile = plait.Pile(np.concatenate(rows), [len(r) for r in rows])
    sums = plait.vmap(lambda x: positive(x.sum()), in_axes=plait.pile_axis)
    for g in (checkify(sums), plait.jit(checkify(sums))):
        error, y = g(pile)
        assert error.get() == "pos -4.0, in example 2"
        np.testing.assert_array_equal(y, [r.sum() for r in rows])
        assert g(plait.Pile(abs(pile.data), [len(r) for r in rows]))[0].get() is None
    error, slope = checkify(plait.grad(lambda p: sums(p).sum()))(pile)
    assert error.get() == "pos -4.0, in example 2"
    logs = plait.vmap(lambda x: pnp.log(x).sum(), in_axes=plait.pile_axis)
    assert checkify(logs, errors=checks.nan_checks)(pile)[0].get() == (
        "core.log gave a nan, in example 2"
    )
    shown = plait.vmap(lambda x: (check(x[0] > 0, "{}", x), x.sum())[1], in_axes=plait.pile_axis)
    with pytest.raises(plait.PlaitError, match="known by name"):
        checkify(shown)(pile)


def test_a_solver_that_checks():
    a = A([[4, 1], [1, 3]])

    def solve(product, b):
        check(b[0] > 0, "b {}", b[0])
        return pnp.linalg.solve(a, b)

    f = lambda b: lax.custom_linear_solve(lambda x: a @ x, b, solve, solve)
    for b, want in ((A([1, 2]), None), (A([-1, 2]), "b -1.0")):
        error, x = plait.jit(checkify(f))(b)
        assert error.get() == want
        np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-5)
        error, slope = checkify(plait.grad(lambda b: f(b).sum()))(b)
        assert error.get() == want
        np.testing.assert_allclose(slope, np.linalg.solve(a, np.ones(2)), rtol=1e-5)
        slope = plait.grad(lambda b: checkify(f)(b)[1].sum())(b)
        np.testing.assert_allclose(slope, np.linalg.solve(a, np.ones(2)), rtol=1e-5)
    error, _ = plait.vmap(checkify(f))(A([[1, 2], [-1, 2]]))
    assert error.get() == "at mapped index 1: b -1.0"
