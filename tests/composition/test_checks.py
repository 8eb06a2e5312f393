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


def test_a_check_inside_of_shard_map_is_refused_in_words():
    mesh = plait.make_mesh((1,), ("d",))
    spec = plait.PartitionSpec("d")
    f = plait.shard_map(
        lambda x: (check(x.sum() > 0, "s"), x)[1], mesh=mesh, in_specs=spec, out_specs=spec
    )
    with pytest.raises(plait.errors.MissingRule, match="inside of sharding.shard_map"):
        checkify(f)(A([1, 2]))
    logs = plait.shard_map(pnp.log, mesh=mesh, in_specs=spec, out_specs=spec)
    assert "nan" in checkify(logs, errors=checks.nan_checks)(A([-1, 2]))[0].get()


def test_a_check_inside_of_a_pile_is_refused_in_words():
    pile = plait.Pile(A([1, 2, 3]), [2, 1])
    sums = lambda p: plait.vmap(lambda x: positive(x.sum()), in_axes=plait.pile_axis)(p)
    with pytest.raises(plait.errors.MissingRule, match="inside of piles.map"):
        checkify(sums)(pile)
