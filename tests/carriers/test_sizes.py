"""A stranger's ragged arrays: padded data and a length, which the user sees as a symbolic size.

The user's type says `f32[n]`; the components are padded, and `n` is one value for all arrays of
that size.  What speaks of `n` without an operand (a mean, an iota, a loop of `n` turns) is seen by
whoever gives `n` its value.
"""

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait.ext.ops.control_flow import scan
from plait.ext.ops.elementwise import lt, select
from plait.ext.ops.reduction import reduce_max, reduce_sum
from plait.ext.ops.shape import dim_, iota_

pnp = plait.numpy
SCOPE = plait.Scope()
N, M = plait.symbolic_dims("n, m", SCOPE)


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def i32(x):
    return pnp.asarray(np.asarray(x, np.int32))


class Masked(ext.Carrier):
    """Arrays one of whose sizes is `dim`, which is at most `capacity`; the length is ambient."""

    rules = ext.RuleTable("carriers_sizes_masked", doc="rule(masked, xs, axes, **params) -> value")
    does = "masked"
    fields = ("dim", "capacity")

    def __init__(self, parent, dim, capacity, ambient=(), of=None):
        super().__init__(parent, dim, capacity, ambient=ambient, of=of)
        self.dims = dim.variables

    def padded(self, x):
        """A shape, or a parameter, with the capacity for the size."""
        if isinstance(x, tuple):
            return tuple([self.padded(v) for v in x])
        return self.capacity if isinstance(x, plait.Dim) and x == self.dim else x

    def axes(self, aval):
        return [i for i, d in enumerate(aval.shape) if isinstance(d, plait.Dim) and d == self.dim]

    def part_avals(self, aval, form):
        return (aval.with_shape(self.padded(aval.shape)),)

    def form_of(self, x):
        """Whatever has the size is ours, a literal too."""
        return "padded" if self.axes(x.aval) else None

    def split(self, x):
        form, parts = super().split(x)
        if form is None and self.axes(x.aval):
            (aval,) = self.part_avals(x.aval, "padded")
            return "padded", (ext.Literal(x.value, aval),)
        return form, parts

    def coerce(self, aval, parts, f, g):
        return parts

    def run(self, prim, rule, args, params):
        want = prim.infer(tuple([a.aval for a in args]), params)
        axes = [self.axes(a.aval) for a in args]
        params = {k: self.padded(v) for k, v in params.items()}
        out = rule(self, [self.split(a)[1][0] for a in args], axes, **params)
        return self.lift(want, "padded", (out,)) if self.axes(want) else out

    def inside(self, shape, axis):
        """Which elements are there."""
        at = iota_.bind(shape=shape, axis=axis, dtype=np.dtype(np.int32))
        return lt(at, self.ambient[0])


rule = Masked.rules.rule


@rule(ext.Elementwise, ext.Structural)
def _(prim, masked, xs, axes, **params):
    return prim.bind(*xs, **params)


rule(iota_)(lambda masked, xs, axes, **params: iota_.bind(**params))
rule(dim_)(lambda masked, xs, axes, *, size: masked.ambient[0] * 1)


def reduction(prim, neutral):
    @rule(prim)
    def _(masked, xs, own, *, axes):
        (x,), (own,) = xs, own
        for axis in own:
            if axis in axes:
                there = masked.inside(x.aval.shape, axis)
                x = select.bind(there, x, ext.Literal(neutral, x.aval))
        return prim.bind(x, axes=axes)


reduction(reduce_sum, 0)
reduction(reduce_max, -np.inf)


@rule(scan)
def _(masked, args, params):
    """A loop of as many turns as there are elements: the rest of the turns change nothing."""
    k, c, body = params["consts"], params["carry"], params["body"]
    if not isinstance(params["length"], plait.Dim):
        return ext.trace.rebuilt(
            masked, scan, args, params, ext.trace.solve(masked, scan, args, params)
        )
    parts = [masked.split(a)[1][0] for a in args]

    def turn(*xs):
        length, fixed = xs[0], xs[1 : 1 + k]
        i, carry, rows = xs[1 + k], xs[2 + k : 2 + k + c], xs[2 + k + c :]
        out = ext.evaluate(body, [*fixed, *carry, *rows])
        going = lt(i, length)
        kept = [
            select.bind(pnp.broadcast_to(going, o.shape), o, old) for o, old in zip(out[:c], carry)
        ]
        return [i + 1, *kept, *out[c:]]

    i = ext.Literal(0, ext.Aval((), np.int32))
    avals = [masked.ambient[0].aval, *body.in_avals[:k], i.aval, *body.in_avals[k:]]
    outs = scan.bind(
        masked.ambient[0], *parts[:k], i, *parts[k:],
        **{**params, "body": ext.staged(turn, avals), "consts": k + 1, "carry": c + 1,
           "length": masked.capacity},
    )[1:]  # fmt: skip
    want = scan.infer(tuple([a.aval for a in args]), params)
    return [masked.lift(w, masked.form_of(_Of(w)), (o,)) for w, o in zip(want, outs)]


class _Of:
    """Something of a type."""

    def __init__(self, aval):
        self.aval = aval


def masked(f, x, length, dim=N):
    """`f` on the first `length` elements of `x`; padded if the result has as many."""
    x, n = ext.as_value(x), ext.as_value(length)
    carrier = Masked(ext.current(), dim, x.shape[0], ambient=(n,), of=f)
    with ext.opened(carrier):
        aval = x.aval.with_shape((dim, *x.shape[1:]))
        out = ext.as_value(f(carrier.lift(aval, "padded", (x,))))
        return ext.materialise_at_ground(carrier.split(out)[1][0])


X, LENGTH = np.float32([1, 2, 3, 9, 9]), np.int32(3)


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    "wrap", [lambda f: f, plait.jit, plait.checkpoint], ids=["now", "jit", "ckpt"]
)
@pytest.mark.parametrize(
    "f,want",
    [
        (lambda v: v.sum(), 6),
        (lambda v: pnp.mean(v), 2),
        (lambda v: v.sum() * v.shape[0], 18),
        (lambda v: (v * v).sum() / v.shape[0], 14 / 3),
        (lambda v: v.max(), 3),
        (lambda v: (v + 1).sum(), 9),
        (lambda v: (v - pnp.mean(v)).sum(), 0),
        (lambda v: pnp.arange(v.shape[0]).sum(), 3),
        (lambda v: (v * pnp.ones(v.shape)).sum(), 6),
        (lambda v: lax.scan(lambda c, r: (c + r, None), f32(0), v)[0], 6),
        (lambda v: lax.scan(lambda c, r: (c * 2 + r, c), f32(0), v)[1].sum(), 0 + 1 + 4),
        (lambda v: lax.scan(lambda c, _: (c * 2.0, None), v, None, length=2)[0].sum(), 24),
        (lambda v: lax.cond(v.sum() > 5, lambda v: v.sum(), lambda v: v.max(), v), 6),
        (lambda v: lax.while_loop(lambda s: s.sum() < 100, lambda s: s * 2, v).sum(), 192),
    ],
    ids=[
        "sum", "mean", "size", "mean square", "max", "literal", "centred", "iota", "ones", "scan",
        "scan results", "carry", "cond", "while",
    ],
)  # fmt: skip
def test_only_what_is_there(f, want, wrap):
    """What is beyond the length counts nowhere, and the size that the user sees is the length."""
    assert masked(wrap(f), X, LENGTH).item() == pytest.approx(want)
    assert masked(wrap(f), X[:3], LENGTH).item() == pytest.approx(want)


def test_user_visible_type():
    """The user sees a symbolic size, not the padded one."""
    seen = []
    masked(lambda v: (seen.append((v.shape, (v * 2).shape, v.sum().shape)), v.sum())[1], X, LENGTH)
    assert seen == [((N,), (N,), ())]
    assert str(seen[0][0][0]) == "n"


def test_sizes_that_differ():
    """Arrays of different lengths do not add up; equal ones do, and it is the size that says so."""

    def both(f, x, n, y, m):
        return masked(lambda v: masked(lambda w: f(v, w), y, m, M), x, n)

    total = both(lambda v, w: v.sum() * w.sum(), X, LENGTH, X, i32(2))
    assert total.item() == 6 * 3
    with pytest.raises(plait.PlaitError):
        both(lambda v, w: (v + w).sum(), X, LENGTH, X, i32(2))


def test_mapped_and_differentiated():
    """Maps over lengths, and derivatives: what is padding has none."""
    square = lambda v: plait.jit(lambda v: (v * v).sum())(v)  # noqa: E731
    both = f32([X, X])
    each = plait.vmap(lambda v, n: masked(square, v, n))(both, i32([3, 2]))
    np.testing.assert_array_equal(each, [14, 5])
    g = plait.grad(lambda v: masked(square, v, LENGTH))(X)
    np.testing.assert_array_equal(g, [2, 4, 6, 0, 0])
    mean = lambda v: masked(lambda v: pnp.mean(v * v), v, LENGTH)  # noqa: E731
    np.testing.assert_allclose(plait.grad(mean)(X), np.array([2, 4, 6, 0, 0]) / 3, rtol=1e-6)
    np.testing.assert_allclose(
        plait.jit(plait.grad(mean))(X), np.array([2, 4, 6, 0, 0]) / 3, rtol=1e-6
    )
    sums = plait.vmap(plait.grad(lambda v, n: masked(square, v, n)))(both, i32([3, 2]))
    np.testing.assert_array_equal(sums, [[2, 4, 6, 0, 0], [2, 4, 0, 0, 0]])
    loop = lambda v: masked(  # noqa: E731
        lambda v: lax.scan(lambda c, r: (c * 0.5 + r, None), f32(0), v)[0], v, LENGTH
    )
    np.testing.assert_allclose(plait.grad(loop)(X), [0.25, 0.5, 1, 0, 0])


def test_transformed_inside():
    """Maps and derivatives of what is inside."""
    rows = f32([[1, 2], [3, 4], [9, 9]])
    out = masked(lambda v: plait.vmap(lambda r: r.sum(), in_axes=1)(v), rows, i32(2))
    np.testing.assert_array_equal(out, [4, 6])
    slope = masked(lambda v: plait.jvp(lambda k: (v * k).sum(), (f32(2),), (1.0,))[1], X, LENGTH)
    assert slope.item() == 6
    slope = masked(lambda v: plait.grad(lambda k: (v * k * k).sum())(f32(2)), X, LENGTH)
    assert slope.item() == 24
    total = masked(lambda v: (plait.grad(lambda w: (w * w).sum())(v)).sum(), X, LENGTH)
    assert total.item() == 12
