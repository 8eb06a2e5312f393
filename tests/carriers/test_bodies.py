"""Strangers' operations whose programs see elements, not arrays.

An operation says in its wiring which axes its programs do not see.  Transformations then move
their own axes and components around these, and need no rule for the operation; the operation
needs none for them.
"""

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait.ext.errors import MissingRule
from plait.ext.ops.control_flow import map_axes
from plait.ext.ops.elementwise import mul

pnp = plait.numpy


def f64(x):
    return pnp.asarray(np.asarray(x, np.float64))


# ---- a program of scalars, for every element -------------------------------------------------


class Elements(ext.Wiring):
    """The program sees what is left of an operand or result without the axes named for it."""

    def slots(self, params):
        axes = (*params["ins"], *params["outs"])
        n, count = len(params["ins"]), len(axes)
        mapped = {s: a for s, a in enumerate(axes) if a is not None}
        bodies = [(params["program"], range(n), range(n, count))]
        return ext.Slots(range(n), range(n, count), bodies, count, mapped)

    def rebuild(self, params, programs, parts, operands, extra):
        axes = (*params["ins"], *params["outs"])
        moved = [
            [None if a is None else tuple(p.at[i] for i in a) for p in ps]
            for ps, a in zip(parts, axes)
        ]
        n = len(params["ins"])
        ins = (*(None for _ in extra), *sum(moved[:n], []))
        outs = tuple(sum(moved[n:], []))
        return [*extra, *operands], {"program": programs[0], "ins": ins, "outs": outs}


def without(shape, axes):
    return tuple(d for i, d in enumerate(shape) if axes is None or i not in axes)


def _each(*xs, program, ins, outs):
    """Apply `program` to every element along the axes named in `ins` for each operand (None: to
    the whole, each time); results are stacked along `outs`."""
    sizes = next(tuple(x.shape[i] for i in a) for x, a in zip(xs, ins) if a is not None)
    for x, a, want in zip(xs, ins, program.in_avals, strict=True):
        shape = x.shape if a is None else without(x.shape, a)
        assert shape == want.shape and x.dtype == want.dtype
    results = []
    for y, a in zip(program.out_avals, outs, strict=True):
        rest, shape = iter(y.shape), []
        for i in range(y.ndim + len(a)):
            shape.append(sizes[a.index(i)] if i in a else next(rest))
        results.append(y.with_shape(shape))
    return results


each_p = ext.Primitive("carriers_bodies.each", _each, many=True, higher=Elements())


@ext.expand_rules.rule(each_p)
def _(*xs, program, ins, outs):
    """One axis after the other."""
    if not any(ins):
        return ext.evaluate(program, xs)
    first = [a[0] if a else None for a in ins]
    last = [a[0] for a in outs]
    drop = lambda axes, at: tuple(a - (a > at) for a in axes[1:])  # noqa: E731
    inner = {
        "program": program,
        "ins": tuple(a if a is None else drop(a, at) for a, at in zip(ins, first)),
        "outs": tuple(drop(a, at) for a, at in zip(outs, last)),
    }
    rows = [
        x.aval if at is None else x.aval.with_shape(without(x.aval.shape, (at,)))
        for x, at in zip(xs, first)
    ]
    body = ext.staged(lambda *vs: each_p.bind(*vs, **inner), rows)
    size = next(x.aval.shape[at] for x, at in zip(xs, first) if at is not None)
    return map_axes.bind(
        *xs, program=body, in_axes=tuple(first), out_axes=tuple(last), size=size, parallel=False
    )


def each(f, *xs):
    """`f` of scalars on every element of arrays of one shape."""
    xs = [ext.as_value(x) for x in xs]
    axes = tuple(range(xs[0].ndim))
    avals = [x.aval.with_shape(()) for x in xs]
    program, captured = ext.stage(lambda *vs: ext.flatten(f(*vs))[0], avals)
    n = len(captured)
    outs = each_p.bind(
        *captured, *xs, program=program, ins=(None,) * n + (axes,) * len(xs),
        outs=(axes,) * len(program.outputs),
    )  # fmt: skip
    return outs[0] if len(outs) == 1 else outs


K = 0.7


def scalar(x, y):
    return lax.sin(x) * y + K * x


def np_scalar(x, y):
    return np.sin(x) * y + K * x


def branchy(x, y):
    return lax.cond(x > 0, lambda: x * x * y, lambda: lax.exp(x) + y)


def np_branchy(x, y):
    return np.where(x > 0, x * x * y, np.exp(x) + y)


RNG = np.random.RandomState(0)
X, Y = RNG.randn(4, 3), RNG.randn(4, 3)
SCALARS = {"arithmetic": (scalar, np_scalar), "branch": (branchy, np_branchy)}


def slopes(f, x, y, h=1e-6):
    return (f(x + h, y) - f(x - h, y)) / (2 * h), (f(x, y + h) - f(x, y - h)) / (2 * h)


@pytest.mark.parametrize("name", SCALARS)
def test_each(name):
    """Values, staged and looped."""
    f, reference = SCALARS[name]
    g = lambda x, y: each(f, x, y)  # noqa: E731
    want = reference(X, Y)
    np.testing.assert_allclose(g(f64(X), f64(Y)), want)
    np.testing.assert_allclose(plait.jit(g)(f64(X), f64(Y)), want)
    np.testing.assert_allclose(plait.checkpoint(g)(f64(X), f64(Y)), want)
    rows = lax.scan(lambda c, r: (c, g(*r)), 0.0, (f64(X), f64(Y)))[1]
    np.testing.assert_allclose(rows, want)


@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["now", "jit"])
@pytest.mark.parametrize("name", SCALARS)
def test_each_mapped(name, wrap):
    """Mapped along any axis of each operand, and along two."""
    f, reference = SCALARS[name]
    g = wrap(lambda x, y: each(f, x, y))
    want = reference(X, Y)
    x, y = f64(X), f64(Y)
    np.testing.assert_allclose(plait.vmap(g)(x, y), want)
    np.testing.assert_allclose(plait.vmap(g, (1, 1), 1)(x, y), want)
    np.testing.assert_allclose(plait.vmap(g, (1, 0), 1)(x, y.T), want)
    one = reference(X, Y[0])
    np.testing.assert_allclose(plait.vmap(g, (0, None))(x, y[0]), one)
    np.testing.assert_allclose(plait.vmap(g, (None, 0))(x[0], y), reference(X[0], Y))
    np.testing.assert_allclose(plait.vmap(plait.vmap(g))(x, y), want)
    np.testing.assert_allclose(plait.vmap(plait.vmap(g, (None, 0)), (0, None))(x[0], y[:, 0]),
                               reference(X[0][:, None], Y[:, 0][None]))  # fmt: skip
    cube = np.stack([X, X + 1, X - 1, X], 1)
    got = plait.vmap(g, (1, None), 2)(f64(cube), y)
    np.testing.assert_allclose(got, reference(np.moveaxis(cube, 1, 2), Y[..., None]))


@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["now", "jit"])
@pytest.mark.parametrize("name", SCALARS)
def test_each_differentiated(name, wrap):
    """Forward, reverse, and mapped derivatives."""
    f, reference = SCALARS[name]
    g = wrap(lambda x, y: each(f, x, y))
    x, y = f64(X), f64(Y)
    dx, dy = slopes(reference, X, Y)
    _, dot = plait.jvp(g, (x, y), (y, x))
    np.testing.assert_allclose(dot, dx * Y + dy * X, rtol=1e-7)
    _, dot = plait.jvp(lambda x: g(x, y), (x,), (y,))
    np.testing.assert_allclose(dot, dx * Y, rtol=1e-7, atol=1e-9)
    gx, gy = plait.grad(lambda x, y: g(x, y).sum(), (0, 1))(x, y)
    np.testing.assert_allclose(gx, dx, rtol=1e-7)
    np.testing.assert_allclose(gy, dy, rtol=1e-7)
    each_row = plait.vmap(plait.grad(lambda x, y: g(x, y).sum()), 1, 1)(x, y)
    np.testing.assert_allclose(each_row, dx, rtol=1e-7)
    over = plait.grad(lambda x: plait.vmap(g, (1, None), 1)(x, y[:, 0]).sum())(x)
    np.testing.assert_allclose(over, slopes(reference, X, Y[:, :1])[0], rtol=1e-7)
    _, dot = plait.jvp(plait.vmap(g, 1, 1), (x, y), (y, x))
    np.testing.assert_allclose(dot, dx * Y + dy * X, rtol=1e-7)


def test_each_closes_over():
    """The program may close over arrays and traced values, which are given whole to each."""
    table = f64([1, 2, 3])
    f = lambda k: each(lambda x: (x * table * k).sum(), f64(X))  # noqa: E731
    np.testing.assert_allclose(plait.jit(f)(f64(2)), 12 * X)
    np.testing.assert_allclose(plait.vmap(f)(f64([1, 2])), [6 * X, 12 * X])
    np.testing.assert_allclose(plait.grad(lambda k: f(k).sum())(f64(2)), 6 * X.sum())


# ---- components of other ranks, and ambient values -------------------------------------------


class Wide(ext.Carrier):
    """Every value comes with two more along a last axis of its own, and a scale for all."""

    rules = ext.RuleTable("carriers_bodies_wide", doc="rule(wide, pairs) -> (value, two more)")
    does = "wide"

    def part_avals(self, aval, form):
        return aval, aval.with_shape((*aval.shape, 2))

    def part_axes(self, aval, form):
        return (tuple(range(aval.ndim)),) * 2

    def coerce(self, aval, parts, f, g):
        return parts[0], ext.Literal(0.0, aval.with_shape((*aval.shape, 2)))

    def run(self, prim, rule, args, params):
        out = rule(self, [self.to_form(a, "wide") for a in args], **params)
        return self.lift(out[0].aval, "wide", out)


@Wide.rules.rule(mul)
def _(wide, pairs):
    (x, u), (y, v) = pairs
    scale = wide.ambient[0]
    return mul.bind(x, y), (u * y[..., None] + x[..., None] * v) * scale


@Wide.rules.rule(ext.Linear)
def _(prim, wide, pairs):
    return prim.bind(*[x for x, _ in pairs]), prim.bind(*[u for _, u in pairs])


def wide(f, x, u, scale):
    carrier = Wide(ext.current(), ambient=(ext.as_value(scale),))
    with ext.opened(carrier):
        return carrier.to_form(f(carrier.lift(x.aval, "wide", (x, u))), "wide")


def test_components_of_other_ranks():
    """A component with an axis of its own: elements see it whole, at every depth."""
    u = RNG.randn(4, 3, 2)
    f = lambda x: each(lambda v: v * v + v, x)  # noqa: E731
    value, more = wide(f, f64(X), f64(u), 10.0)
    np.testing.assert_allclose(value, X * X + X)
    want = 20 * X[..., None] * u + u
    np.testing.assert_allclose(more, want)
    value, more = wide(plait.jit(f), f64(X), f64(u), f64(10))
    np.testing.assert_allclose(more, want)
    mapped = lambda x: plait.vmap(f, 1, 1)(x)  # noqa: E731
    np.testing.assert_allclose(wide(mapped, f64(X), f64(u), 10.0)[1], want)
    outside = plait.vmap(lambda x, u: wide(f, x, u, 10.0)[1], (1, 1), 1)(f64(X), f64(u))
    np.testing.assert_allclose(outside, want)
    by_axis = lambda x: plait.map_axes(lambda r: r * r + r, 1, 1)(x)  # noqa: E731
    np.testing.assert_allclose(wide(by_axis, f64(X), f64(u), 10.0)[1], want)
    slope = plait.grad(lambda s: wide(f, f64(X), f64(u), s)[1].sum())(f64(10))
    np.testing.assert_allclose(slope, (2 * X[..., None] * u).sum())


# ---- a program over another axis than the first ----------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_program_along_an_axis(axis):
    """`map_axes` takes its axis along through maps and derivatives."""
    f = lambda x: plait.map_axes(lambda r: r * r.sum(), axis, axis)(x)  # noqa: E731
    want = X * X.sum(1 - axis % 2, keepdims=True)
    np.testing.assert_allclose(f(f64(X)), want)
    cube = np.stack([X, 2 * X])
    for at in (0, 1, 2):
        got = plait.vmap(f, at, at)(f64(np.moveaxis(cube, 0, at)))
        np.testing.assert_allclose(np.moveaxis(np.asarray(got), at, 0), [want, 4 * want])
    t = RNG.randn(4, 3)
    dot = plait.jvp(f, (f64(X),), (f64(t),))[1]
    other = 1 - axis % 2
    slope = t * X.sum(other, keepdims=True) + X * t.sum(other, keepdims=True)
    np.testing.assert_allclose(dot, slope)
    g = plait.grad(lambda x: (f(x) * f64(t)).sum())(f64(X))
    want = t * X.sum(other, keepdims=True) + (t * X).sum(other, keepdims=True)
    np.testing.assert_allclose(g, want)


# ---- a comparator ----------------------------------------------------------------------------


class Compared(ext.Wiring):
    """The program sees two elements of each operand; operands and results are one slot, and what
    it answers must not be lifted."""

    def slots(self, params):
        n = params["count"]
        each_ = range(n)
        bodies = [(params["program"], (*each_, *each_), (n,))]
        return ext.Slots(each_, each_, bodies, n + 1, dict.fromkeys(each_, (0,)), plain=[n])

    def rebuild(self, params, programs, parts, operands, extra):
        assert not extra
        return operands, {
            "program": programs[0],
            "count": ext.trace.width(parts[: params["count"]]),
        }


def _order(*xs, program, count):
    """Vectors, brought together into the order in which `program(a, b)` says a comes first."""
    return list(xs)


order_p = ext.Primitive("carriers_bodies.order", _order, many=True, higher=Compared())


@ext.expand_rules.rule(order_p)
def _(*xs, program, count):
    """By counting, for each element, how many come before it."""
    n = xs[0].aval.shape[0]

    def row(*a):
        return plait.map_axes(lambda *b: ext.evaluate(program, [*b, *a])[0])(*xs)

    before = plait.map_axes(row)(*xs)  # [i, j]: does element j come before element i?
    tie = ~before & ~before.T & pnp.asarray(np.tri(n, k=-1, dtype=bool))
    place = (before | tie).astype(np.int32).sum(1)
    chosen = place[None, :] == pnp.arange(n)[:, None]
    out = []
    for x in xs:
        rows = x.reshape((1, n, *x.shape[1:]))
        mask = chosen.reshape((n, n) + (1,) * (x.ndim - 1))
        out.append(pnp.where(mask, rows, 0).sum(1).astype(x.dtype))
    return out


def ordered(first, *xs):
    xs = [ext.as_value(x) for x in xs]
    rows = [x.aval.with_shape(x.aval.shape[1:]) for x in xs]
    program = ext.staged(lambda *ab: [ext.as_value(first(*ab))], rows * 2)
    return order_p.bind(*xs, program=program, count=len(xs))


VALUES = np.array([0.3, -2.0, 1.5, -0.4])


def nearer(a, b):
    """The one nearer to zero comes first."""
    return a * a < b * b


def test_comparator():
    """An order that a program decides, with others brought along."""
    at = np.argsort(np.abs(VALUES))
    (got,) = ordered(nearer, f64(VALUES))
    np.testing.assert_allclose(got, VALUES[at])
    a, b = plait.jit(lambda x, y: ordered(lambda a, i, b, j: nearer(a, b), x, y))(
        f64(VALUES), f64(np.arange(4))
    )
    np.testing.assert_allclose(a, VALUES[at])
    np.testing.assert_allclose(b, at)


def test_comparator_and_derivatives():
    """Forward mode lifts the elements that the program compares, and moves tangents along."""
    at = np.argsort(np.abs(VALUES))
    t = np.array([1.0, 10.0, 100.0, 1000.0])
    for f in (lambda x: ordered(nearer, x)[0], plait.jit(lambda x: ordered(nearer, x)[0])):
        primal, dot = plait.jvp(f, (f64(VALUES),), (f64(t),))
        np.testing.assert_allclose(primal, VALUES[at])
        np.testing.assert_allclose(dot, t[at])
        weights = np.array([1.0, 2.0, 3.0, 4.0])
        g = plait.grad(lambda x, f=f: (f(x) * f64(weights)).sum())(f64(VALUES))
        want = np.zeros(4)
        want[at] = weights
        np.testing.assert_allclose(g, want)


def test_comparator_that_varies():
    """A predicate that varies along a mapped axis needs a rule, and the error says so; what is
    merely brought along does not."""
    with pytest.raises(MissingRule, match="predicate of carriers_bodies.order"):
        plait.vmap(lambda x: ordered(nearer, x)[0])(f64([VALUES, VALUES]))
    keys, at = f64(VALUES), np.argsort(np.abs(VALUES))
    along = f64(RNG.randn(2, 4))
    out = plait.vmap(
        lambda y: plait.jit(lambda y: ordered(lambda a, i, b, j: nearer(a, b), keys, y)[1])(y)
    )(along)
    np.testing.assert_allclose(out, np.asarray(along)[:, at])


# ---- the same operations, eagerly and staged ---------------------------------------------------

INDEXINGS = {
    "after": lambda x: x[1:],
    "before": lambda x: x[:-1],
    "one": lambda x: x[1],
    "last": lambda x: x[-1],
    "steps": lambda x: x[::2],
    "reversed": lambda x: x[::-1],
    "new": lambda x: x[None, 1:],
    "some": lambda x: x[np.array([0, 2])],
    "written": lambda x: x.at[1].set(1.0),
    "known": lambda x: x[int(np.int64(2)) :],
}


class Noting(ext.Carrier):
    """Notes each operation and its parameters."""

    rules = ext.RuleTable(
        "carriers_noting", default=lambda prim, *xs, **params: prim.bind(*xs, **params)
    )
    does, fields = "note", ("number",)
    commutes = frozenset(("derivative", "mapping"))
    noted: list = []

    def part_avals(self, aval, form):
        return (aval,)

    def coerce(self, aval, parts, f, g):
        return parts

    def whole(self, aval):
        return "seen"

    def run(self, prim, rule, args, params):
        self.noted.append((prim.name, str(params)))
        out = rule(*[self.split(a)[1][0] for a in args], **params)
        return self.lift(out.aval, "seen", (out,))


def noted(f, x, number):
    del Noting.noted[:]
    x = ext.as_value(x)
    with ext.opened(Noting(ext.current(), number, of=f)) as c:
        out = c.split(f(c.lift(x.aval, "seen", (x,))))[1][0]
    return out


@pytest.mark.parametrize("name", INDEXINGS)
def test_a_carrier_sees_the_same_operations_in_each_way(name):
    f, x = INDEXINGS[name], np.arange(4, dtype=np.float32)
    want = np.asarray(f(plait.numpy.asarray(x)))
    ways = {
        "eager": lambda: noted(f, x, 1),
        "jit": lambda: plait.jit(lambda x: noted(f, x, 2))(x),
        "vmap": lambda: plait.vmap(lambda x: noted(f, x, 3))(x[None])[0],
        "grad": lambda: plait.vjp(lambda x: noted(f, x, 4), x)[0],
        "over jit": lambda: noted(plait.jit(lambda x: f(x)), x, 5),
    }
    seen = {}
    for way, run in ways.items():
        np.testing.assert_array_equal(np.asarray(run()), want)
        seen[way] = list(dict.fromkeys(Noting.noted))  # the body is lifted twice: for forms, too
    assert len({str(v) for v in seen.values()}) == 1, seen
