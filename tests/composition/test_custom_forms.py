"""Custom rules under vmap: what is not mapped stays as it is, and what a rule closes over counts
only where the rule reads it.

Invariant: values are those of a Python loop over the elements; sizes of Programs are counted.
"""

import itertools
import math

import numpy as np
import pytest

import plait
from plait import ext, lax

pnp = plait.numpy
N = 3


def as_is(f):
    return f


def by_jvp(f):
    g = plait.custom_jvp(f)
    g.defjvp(lambda xs, ts: plait.jvp(f, xs, ts))
    return g


def by_jvp_zeros(f):
    g = plait.custom_jvp(f)

    def rule(xs, ts):
        solid = [t if type(t) is not plait.SymbolicZero else np.zeros(t.shape, t.dtype) for t in ts]
        return plait.jvp(f, xs, tuple(solid))

    g.defjvp(rule, symbolic_zeros=True)
    return g


def by_vjp(f):
    g = plait.custom_vjp(f)
    g.defvjp(lambda *xs: (f(*xs), xs), lambda xs, ct: plait.vjp(f, *xs)[1](ct))
    return g


def by_vjp_zeros(f):
    g = plait.custom_vjp(f)

    def fwd(*ps):
        xs = [p.value for p in ps]
        return f(*xs), tuple(xs)

    def bwd(xs, cts):
        solid = plait.tree.map(
            lambda c: pnp.zeros(c.shape, c.dtype) if type(c) is plait.SymbolicZero else c,
            cts,
            is_leaf=lambda c: type(c) is plait.SymbolicZero,
        )
        return plait.vjp(f, *xs)[1](solid)

    g.defvjp(fwd, bwd, symbolic_zeros=True)
    return g


KINDS = [by_jvp, by_jvp_zeros, by_vjp, by_vjp_zeros]


def layer(x, w, b):
    """Results that depend on all, on some, and on one operand."""
    return pnp.tanh(x @ w) + b, pnp.sin(w), b * b


RNG = np.random.RandomState(0)
ONE = (RNG.randn(2), RNG.randn(2, 4), RNG.randn(4))
MANY = tuple(RNG.randn(N, *a.shape) for a in ONE)
PATTERNS = [p for p in itertools.product([0, None], repeat=3) if any(a == 0 for a in p)]


def given(axes):
    return [pnp.asarray(m if a == 0 else o) for m, o, a in zip(MANY, ONE, axes)]


def looped(f, axes):
    """`f` on each element, stacked."""

    def run(*xs):
        rows = [f(*[x[i] if a == 0 else x for x, a in zip(xs, axes)]) for i in range(N)]
        return plait.tree.map(lambda *vs: np.stack(vs), *rows)

    return run


def total(f):
    """A number that every element of every result of `f` matters to differently."""

    def loss(*xs):
        outs = plait.tree.leaves(f(*xs))
        return sum(
            pnp.sum(o * pnp.asarray(np.cos(np.arange(math.prod(o.shape))).reshape(o.shape)))
            for o in outs
        )

    return loss


def assert_close(got, want):
    for g, w in zip(plait.tree.leaves(got), plait.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-9, atol=1e-12)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("axes", PATTERNS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_derivatives_are_those_of_a_loop(kind, axes):
    f, xs = kind(layer), given(axes)
    mapped = plait.vmap(f, axes)
    assert_close(mapped(*xs), looped(layer, axes)(*xs))
    assert_close(plait.jit(mapped)(*xs), looped(layer, axes)(*xs))
    every = (0, 1, 2)
    want = plait.grad(total(looped_in(layer, axes)), every)(*xs)
    assert_close(plait.grad(total(mapped), every)(*xs), want)
    assert_close(plait.jit(plait.grad(total(plait.jit(mapped)), every))(*xs), want)
    inner = plait.grad(total(layer), every)
    assert_close(plait.vmap(plait.grad(total(f), every), axes)(*xs), looped(inner, axes)(*xs))
    assert_close(
        plait.jit(plait.vmap(plait.grad(plait.jit(total(f)), every), axes))(*xs),
        looped(inner, axes)(*xs),
    )


def looped_in(f, axes):
    """The same as `looped`, which a derivative can be taken of."""

    def run(*xs):
        rows = [f(*[x[i] if a == 0 else x for x, a in zip(xs, axes)]) for i in range(N)]
        return plait.tree.map(lambda *vs: pnp.stack(vs), *rows)

    return run


@pytest.mark.parametrize("kind", [by_jvp, by_vjp])
def test_in_forward_mode_scan_checkpoint_and_twice(kind):
    f, axes = kind(layer), (0, None, None)
    xs, ts = given(axes), [pnp.ones_like(a) for a in given(axes)]
    want = plait.jvp(looped_in(layer, axes), xs, ts)
    mapped = plait.vmap(f, axes)
    assert_close(plait.jvp(mapped, xs, ts), want)
    assert_close(plait.jit(lambda *v: plait.jvp(mapped, v, ts))(*xs), want)
    by_scan = lambda x, w, b: lax.scan(lambda c, x: (c, f(x, w, b)), 0.0, x)[1]  # noqa: E731
    kept = plait.checkpoint(mapped)
    loss = total(looped_in(layer, axes))
    want = plait.grad(loss, (0, 1, 2))(*xs)
    for g in (by_scan, kept, plait.jit(kept)):
        assert_close(plait.grad(total(g), (0, 1, 2))(*xs), want)
    twice = plait.vmap(plait.vmap(f, (None, None, 0)), (0, None, None))
    both = [xs[0], xs[1], pnp.stack([xs[2], xs[2] + 1])]
    slow = lambda x, w, b: plait.tree.map(  # noqa: E731
        lambda *vs: pnp.stack(vs), *[looped_in(layer, (None, None, 0))(*v) for v in rows(x, w, b)]
    )
    rows = lambda x, w, b: [(x[i], w, b[:N]) for i in range(N)]  # noqa: E731
    both[2] = pnp.stack([xs[2] + i for i in range(N)])
    assert_close(twice(*both), slow(*both))
    want = plait.grad(total(slow), (0, 1, 2))(*both)
    assert_close(plait.grad(total(twice), (0, 1, 2))(*both), want)
    assert_close(plait.hessian(total(mapped))(*xs), plait.hessian(loss)(*xs))


@pytest.mark.parametrize("kind", [by_jvp, by_vjp])
def test_unmapped_operands_are_not_copied(kind):
    """No value of the Program is larger than the mapped operand and result."""
    x, w = pnp.ones((100, 3)), pnp.ones((3, 4))
    f = kind(lambda x, w: pnp.tanh(x @ w))
    program = plait.make_program(plait.vmap(f, (0, None)))(x, w)
    assert largest(program) == 400
    program = plait.make_program(plait.grad(total(plait.vmap(f, (0, None))), (0, 1)))(x, w)
    assert largest(program) <= 100 * 3 * 4, "a cotangent of w for each element, at most"
    # a residual that no element changes is one, not one for each
    big = pnp.ones((3, 1000))
    g = plait.custom_vjp(lambda x, w: x.sum())
    g.defvjp(lambda x, w: (x.sum(), (w,)), lambda r, ct: (ct * r[0][:, 0], pnp.zeros((3, 1000))))
    program = plait.make_program(plait.grad(total(plait.vmap(g, (0, None)))))(x, big)
    assert largest(program) == 3000


def largest(program):
    sizes = [math.prod(v.aval.shape) for e in program.eqns for v in e.outputs]
    sizes += [largest(p) for e in program.eqns for p in ext.ir.programs_in(e.params)]
    return max(sizes, default=0)


@pytest.mark.parametrize("kind", [as_is, *KINDS])
def test_what_is_constant_is_given_without_an_axis(kind):
    f, axes = kind(layer), (0, None, None)
    xs = given(axes)
    for run in (as_is, plait.jit):
        outs = run(plait.vmap(f, axes, out_axes=(0, 0, 0)))(*xs)
        assert_close(outs, looped(layer, axes)(*xs))
    if kind in (by_jvp_zeros, by_vjp_zeros):
        return  # rules made for patterns of zeros are not asked what they give
    for run in (as_is, plait.jit):
        _, w, b = run(plait.vmap(f, axes, out_axes=(0, None, None)))(*xs)
        assert_close((w, b), (np.sin(ONE[1]), ONE[2] ** 2))


@pytest.mark.parametrize("kind", [as_is, by_jvp, by_vjp])
def test_what_is_constant_in_loops_and_branches(kind):
    f = kind(lambda x, k: (x * k, k + 1.0))

    def turning(x, k):
        return lax.while_loop(lambda c: c[1] < 5.0, lambda c: f(*c), (x, k))

    def branching(x, k):
        return lax.cond(k > 0, f, lambda x, k: (x, k), x, k)

    def scanning(x, k):
        return lax.scan(lambda c, _: (f(*c), None), (x, k), None, length=3)[0]

    xs = pnp.arange(1.0, 4.0)
    for g in (turning, branching, scanning):
        for run in (as_is, plait.jit):
            out, k = run(plait.vmap(g, (0, None), out_axes=(0, None)))(xs, 2.0)
            want = [g(x, 2.0) for x in xs.tolist()]
            assert_close(out, np.array([np.asarray(w[0]) for w in want]))
            assert k.shape == () and k == want[0][1]


def test_a_derivative_that_varies_though_the_value_does_not():
    """A function that returns a constant, and whose rules say that it varies."""
    f = plait.custom_vjp(lambda x: 0.0)
    f.defvjp(lambda x: (0.0, x), lambda x, ct: (x * ct,))
    g = plait.custom_jvp(lambda x: 0.0)
    g.defjvp(lambda xs, ts: (0.0, xs[0] * ts[0]))
    xs, cs = pnp.arange(1.0, 4.0), pnp.asarray([5.0, 7.0, 11.0])
    for h in (f, g):
        for run in (as_is, plait.jit):
            loss = lambda v: (run(plait.vmap(h))(v) * cs).sum()  # noqa: B023, E731
            assert plait.grad(loss)(xs).tolist() == [5.0, 14.0, 33.0]


def test_a_predicate_that_is_not_mapped_stays_a_branch():
    """Callbacks of the branch not taken do not run."""
    calls = []

    def seen(v):
        calls.append(1)
        return np.asarray(v)

    def inner(x, p):
        shape = plait.ShapeDtypeStruct((), x.dtype)
        told = lambda: plait.pure_callback(seen, shape, x, vmap_method="sequential")  # noqa: E731
        return lax.cond(p, told, lambda: x)

    for kind in (by_jvp, by_vjp):
        f = kind(inner)
        out = plait.jit(lambda p: plait.vmap(lambda x: f(x, p))(pnp.arange(3.0)))(False)  # noqa: B023
        assert out.tolist() == [0.0, 1.0, 2.0] and not calls


# ---- closures --------------------------------------------------------------------------------


def asks_dtype(x):
    @plait.custom_vjp
    def cast(y):
        return y.astype(x.dtype)

    cast.defvjp(lambda y: (cast(y), None), lambda _, g: (g,))
    return cast(pnp.sin(x)).sum()


def asks_shape(x):
    @plait.custom_jvp
    def flat(y):
        return y.reshape(x.shape)

    flat.defjvp(lambda p, t: (flat(*p), t[0].reshape(x.shape)))
    return flat(pnp.sin(x).ravel()).sum()


def asks_length(x):
    @plait.custom_jvp
    def scaled(y):
        return y / len(x)

    scaled.defjvp(lambda p, t: (scaled(*p), t[0] / len(x)))
    return scaled(pnp.sin(x)).sum() * len(x)


def asks_self(x):
    class Layer:
        def __init__(self, w):
            self.w, self.slope = w, 2.0

        def act(self, y):
            @plait.custom_vjp
            def h(y):
                return y * self.slope

            h.defvjp(lambda y: (h(y), None), lambda _, g: (g * self.slope,))
            return h(y)

        def __call__(self, y):
            return self.act(pnp.sin(self.w)) / y

    return Layer(x)(2.0).sum()


def asks_of_strange_keys(x):
    kept = {1: x, "a": x, None: x}

    @plait.custom_jvp
    def half(y):
        return y / len(kept) * 3

    half.defjvp(lambda p, t: (half(*p), t[0] * len(kept) / 3))
    return half(pnp.sin(x)).sum()


STACKS = {
    "grad": plait.grad,
    "jit of grad": lambda f: plait.jit(plait.grad(f)),
    "grad of jit": lambda f: plait.grad(plait.jit(f)),
    "grad of checkpoint": lambda f: plait.grad(plait.checkpoint(f)),
    "grad of scan": lambda f: plait.grad(
        lambda x: lax.scan(lambda c, _: (c + f(x), None), 0.0, None, length=1)[0]
    ),
    "grad of cond": lambda f: plait.grad(lambda x: lax.cond(x[0, 0] < 9, f, lambda x: 0.0, x)),
    "jit of linearize": lambda f: plait.jit(
        lambda x: plait.linear_transpose(plait.linearize(f, x)[1], x)(1.0)[0]
    ),
    "vmap of grad": lambda f: lambda x: plait.vmap(plait.grad(f))(pnp.stack([x, x]))[1],
    "jit of vmap of grad": lambda f: (
        lambda x: plait.jit(plait.vmap(plait.grad(f)))(pnp.stack([x, x]))[1]
    ),
    "grad of vmap": lambda f: (
        lambda x: plait.grad(lambda v: plait.vmap(f)(v).sum())(pnp.stack([x, x]))[1]
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "f", [asks_dtype, asks_shape, asks_length, asks_self, asks_of_strange_keys]
)
@pytest.mark.parametrize("stack", STACKS)
def test_rules_that_close_over_what_they_do_not_read(stack, f):
    x = pnp.asarray([[0.1, 0.2], [0.3, 0.4]])
    assert_close(STACKS[stack](f)(x), np.cos(x))


@pytest.mark.parametrize("stack", ["grad of jit", "grad of checkpoint", "grad of scan"])
def test_rules_that_read_what_is_differentiated(stack):
    def f(x):
        @plait.custom_jvp
        def g(y):
            return y * 2.0

        g.defjvp(lambda p, t: (g(*p), t[0] * x))
        return g(pnp.sin(x)).sum()

    with pytest.raises(plait.errors.MissingRule, match="closes over a value that is being diff"):
        STACKS[stack](f)(pnp.ones((2, 2)))


@pytest.mark.parametrize("run", [as_is, plait.jit])
def test_rules_that_read_what_is_mapped(run):
    xs, ks = pnp.arange(1.0, 4.0), pnp.asarray([2.0, 3.0, 5.0])

    def f(x, k):
        @plait.custom_vjp
        def g(y):
            return y * k

        g.defvjp(lambda y: (y * k, None), lambda _, ct: (ct * k * 10,))

        @plait.custom_jvp
        def h(y):
            return y * k

        h.defjvp(lambda p, t: (h(*p), t[0] * k * 10))
        return g(x), h(x)

    for i in range(2):
        one = lambda x, k: f(x, k)[i]  # noqa: B023, E731
        assert run(plait.vmap(one))(xs, ks).tolist() == [2.0, 6.0, 15.0]
        assert run(plait.vmap(plait.grad(one)))(xs, ks).tolist() == [20.0, 30.0, 50.0]
        loss = lambda x: plait.vmap(one)(x, ks).sum()  # noqa: B023, E731
        assert run(plait.grad(loss))(xs).tolist() == [20.0, 30.0, 50.0]


# ---- linear functions with rules -------------------------------------------------------------


@pytest.mark.parametrize("run", [as_is, plait.jit])
def test_rules_that_apply_their_function_to_the_tangent(run):
    @plait.custom_jvp
    def f(x, k):
        return pnp.cumsum(x) * k

    f.defjvp(lambda p, t: (f(*p), f(t[0], p[1]) + f(p[0], t[1])))
    x, k = pnp.asarray([1.0, 2.0, 3.0]), pnp.asarray(2.0)
    loss = lambda x, k: (f(x, k) * pnp.asarray([1.0, 10.0, 100.0])).sum()  # noqa: E731
    assert run(plait.grad(loss))(x, k).tolist() == [222.0, 220.0, 200.0]
    assert run(plait.grad(loss, 1))(x, k) == 1 + 30 + 600
    both = run(plait.vmap(plait.grad(loss), (0, None)))(pnp.stack([x, x]), k)
    assert both.tolist() == [[222.0, 220.0, 200.0]] * 2
    assert run(plait.hessian(loss, (0, 1)))(x, k)[0][1].tolist() == [111.0, 110.0, 100.0]


@pytest.mark.parametrize("kind", [by_jvp, by_vjp])
def test_linear_functions_with_rules_are_transposed(kind):
    f = kind(lambda x, k: pnp.cumsum(x) * k)
    x = pnp.asarray([1.0, 2.0, 3.0])
    for run in (as_is, plait.jit):
        (got,) = plait.linear_transpose(lambda v: run(f)(v, 2.0), x)(x)  # noqa: B023
        assert got.tolist() == [12.0, 10.0, 6.0]


# ---- what rules keep -------------------------------------------------------------------------


@pytest.mark.parametrize("run", [as_is, plait.jit, plait.checkpoint])
def test_python_numbers_among_residuals_stay_python_numbers(run):
    f = plait.custom_vjp(lambda x: pnp.sin(x))
    kept = []

    def bwd(r, ct):
        kept.append([type(v) for v in r[:4]])
        return (ct * r[4] if r[0] else ct * r[1] * r[2],)

    f.defvjp(lambda x: (pnp.sin(x), (True, 2, 3.0, 1j, pnp.cos(x))), bwd)
    assert run(plait.grad(run(f)))(0.0) == 1.0
    assert plait.vmap(plait.grad(run(f)))(pnp.zeros(2)).tolist() == [1.0, 1.0]
    assert kept and set(map(tuple, kept)) == {(bool, int, float, complex)}


# ---- what functions and rules close over of a transformation further in -----------------------


def _by_jvp(x, in_function, in_rule):
    g = plait.custom_jvp(lambda y: (x if in_function else 3.0) * y)
    g.defjvp(lambda p, t: (g(p[0]), (x if in_rule else 5.0) * t[0]))
    return g


def _by_vjp(x, in_function, in_rule):
    g = plait.custom_vjp(lambda y: (x if in_function else 3.0) * y)
    g.defvjp(lambda y: (g(y), None), lambda _, ct: ((x if in_rule else 5.0) * ct,))
    return g


@pytest.mark.parametrize("made", [_by_jvp, _by_vjp])
@pytest.mark.parametrize("in_function", [True, False])
@pytest.mark.parametrize("in_rule", [True, False])
@pytest.mark.parametrize("staged", [lambda f: f, plait.jit])
def test_custom_functions_close_over_mapped_values(made, in_function, in_rule, staged):
    """The map is inside of the derivative: the slope of element i is what the rule says of it."""
    xs, z = np.float32([1, 2, 4]), np.float32(0.5)
    mapped = staged(lambda z: plait.vmap(lambda x: made(x, in_function, in_rule)(z) + 0 * x)(xs))
    values = (xs if in_function else np.full(3, 3)) * z
    slopes = xs if in_rule else np.full(3, 5.0)
    np.testing.assert_allclose(mapped(z), values)
    out, dot = plait.jvp(mapped, (z,), (np.float32(2),))
    np.testing.assert_allclose((out, dot), (values, 2 * slopes))
    np.testing.assert_allclose(plait.grad(lambda z: mapped(z).sum())(z), slopes.sum())
    zs = np.float32([0.5, 1.5])
    np.testing.assert_allclose(
        plait.vmap(plait.grad(lambda z: mapped(z).sum()))(zs), [slopes.sum()] * 2
    )
    np.testing.assert_allclose(plait.vmap(mapped)(zs)[0], values)
