"""A stranger's mapping, which commutes with differentiation: it keeps custom derivatives.

The operands of a custom rule have forms of their own, and what its residuals are is known only
when it is made; so such a carrier names a form that is valid for every value (`whole`).
"""

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait.ext.ops.elementwise import sub
from plait.ext.ops.reduction import reduce_sum
from plait.ext.ops.shape import broadcast_in_dim, transpose_

pnp = plait.numpy


def f64(x):
    return pnp.asarray(np.asarray(x, np.float64))


class Rows(ext.Carrier):
    """Stacks of `size` values, stacked along an axis that is the form."""

    rules = ext.RuleTable(
        "carriers_commuting_rows", doc="rule(rows, xs, axes, **params) -> (out, axis)"
    )
    does = "rows"
    fields = ("size",)
    commutes = frozenset(("derivative",))

    def part_avals(self, aval, form):
        return (aval.with_shape((*aval.shape[:form], self.size, *aval.shape[form:])),)

    def part_axes(self, aval, form):
        return (tuple(i + (i >= form) for i in range(aval.ndim)),)

    def join(self, aval, f, g):
        return min(f, g)

    def grow(self, form, axis):
        return form + (axis <= form)

    def drop(self, form, axis):
        return form - (axis < form)

    def coerce(self, aval, parts, f, g):
        return (self.move(parts[0], f, g),)

    def move(self, x, f, g):
        if f == g:
            return x
        if f is None:
            shape = (*x.aval.shape[:g], self.size, *x.aval.shape[g:])
            if isinstance(x, ext.Literal):
                return ext.Literal(x.value, x.aval.with_shape(shape))
            dims = tuple(i + (i >= g) for i in range(x.aval.ndim))
            return broadcast_in_dim.bind(x, shape=shape, dims=dims)
        perm = [i for i in range(x.aval.ndim) if i != f]
        perm.insert(g, f)
        return transpose_.bind(x, perm=tuple(perm))

    def run(self, prim, rule, args, params):
        axes, xs = zip(*[self.split(a) for a in args])
        out, axis = rule(self, [x[0] for x in xs], axes, **params)
        shape = out.aval.shape
        return self.lift(out.aval.with_shape((*shape[:axis], *shape[axis + 1 :])), axis, (out,))


class WholeRows(Rows):
    def whole(self, aval):
        return aval.ndim  # the last axis: another number for every rank


class FrontRows(Rows):
    def whole(self, aval):
        return 0


rule = Rows.rules.rule


@rule(ext.Elementwise)
def _(prim, rows, xs, axes, **params):
    to = next(a for a in axes if a is not None)
    return prim.bind(*[rows.move(x, a, to) for x, a in zip(xs, axes)], **params), to


@rule(reduce_sum)
def _(rows, xs, own, *, axes):
    d = own[0]
    axes = tuple(a + (a >= d) for a in axes)
    return reduce_sum.bind(*xs, axes=axes), d - sum(a < d for a in axes)


@rule(broadcast_in_dim)
def _(rows, xs, own, *, shape, dims):
    x = rows.move(xs[0], own[0], 0)
    dims = (0, *(d + 1 for d in dims))
    return broadcast_in_dim.bind(x, shape=(rows.size, *shape), dims=dims), 0


@rule(transpose_)
def _(rows, xs, own, *, perm):
    d = own[0]
    perm = tuple(p + (p >= d) for p in perm)
    return transpose_.bind(*xs, perm=(d, *perm)), 0


def rows(f, axes, kind=FrontRows):
    def mapped(*args):
        args = [ext.as_value(a) for a in args]
        size = next(a.shape[d] for a, d in zip(args, axes) if d is not None)
        carrier = kind(ext.current(), size, of=f)
        with ext.opened(carrier):
            lifted = []
            for a, d in zip(args, axes):
                shape = a.shape if d is None else (*a.shape[:d], *a.shape[d + 1 :])
                lifted.append(carrier.lift(a.aval.with_shape(shape), d, (a,)))
            outs, tree = ext.flatten(f(*lifted))
            return tree.unflatten([carrier.to_form(ext.as_value(o), 0)[0] for o in outs])

    return mapped


def plain(x, y):
    return (x * y).sum(), y * 2


def custom_jvp():
    f = plait.custom_jvp(plain)

    @f.defjvp
    def _(p, t):
        (x, y), (s, u) = p, t
        return plain(x, y), (10 * ((s * y).sum() + (x * u).sum()), u * 20)

    return f


def custom_vjp():
    f = plait.custom_vjp(plain)

    def bwd(r, cts):
        (x, y), (a, b) = r, cts
        return 10 * pnp.broadcast_to(a * y, x.shape), 10 * ((a * x).sum(0) + b * 2)

    f.defvjp(lambda x, y: (plain(x, y), (x, y)), bwd)
    return f


CUSTOM = {"custom_jvp": custom_jvp, "custom_vjp": custom_vjp}
WAYS = {
    "now": lambda f: f,
    "jit": lambda f: plait.jit(lambda x, y: f(x, y)),
    "checkpoint": lambda f: plait.checkpoint(lambda x, y: f(x, y)),
    "scan": lambda f: (
        lambda x, y: tuple(
            o.sum(0) for o in lax.scan(lambda c, _: (c, f(*c)), (x, y), None, length=1)[1]
        )
    ),
}


RNG = np.random.RandomState(0)
X, Y = RNG.randn(2, 4, 3), RNG.randn(2, 3)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("kind", [FrontRows, WholeRows])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("custom", CUSTOM)
def test_keeps_custom_derivatives(custom, way, axis, kind):
    """Values and custom derivatives of operands of several ranks, stacked along any axis."""
    f = WAYS[way](CUSTOM[custom]())
    x, y = f64(np.moveaxis(X, 0, axis)), f64(Y)
    a, b = rows(f, (axis, 0), kind)(x, y)
    np.testing.assert_allclose(a, (X * Y[:, None]).sum((1, 2)))
    np.testing.assert_allclose(b, 2 * Y)

    def total(x, y):
        a, b = rows(f, (axis, 0), kind)(x, y)
        return a.sum() + (b * b).sum()

    gx, gy = plait.grad(total, (0, 1))(x, y)
    np.testing.assert_allclose(gx, np.moveaxis(10 * np.broadcast_to(Y[:, None], X.shape), 0, axis))
    np.testing.assert_allclose(gy, 10 * (X.sum(1) + 8 * Y))
    one = rows(f, (axis, None), kind)
    gx, gy = plait.grad(lambda x, y: one(x, y)[0].sum(), (0, 1))(x, f64(Y[0]))
    np.testing.assert_allclose(gx, np.moveaxis(np.broadcast_to(10 * Y[0], X.shape), 0, axis))
    np.testing.assert_allclose(gy, 10 * X.sum((0, 1)))


@pytest.mark.parametrize("custom", CUSTOM)
def test_mapped_derivatives(custom):
    """The derivative of each, where the mapping is around it."""
    f = CUSTOM[custom]()

    def gradient(x, y):
        return plait.grad(lambda x, y: f(x, y)[0] + f(x, y)[1].sum(), (0, 1))(x, y)

    gx, gy = rows(gradient, (1, 0))(f64(np.moveaxis(X, 0, 1)), f64(Y))
    np.testing.assert_allclose(gx, 10 * np.broadcast_to(Y[:, None], X.shape))
    np.testing.assert_allclose(gy, 10 * (X.sum(1) + 2))


def test_without_a_whole_form():
    """A carrier that says it keeps custom rules, and names no form for all values, is told so."""
    with pytest.raises(plait.PlaitError, match="whole"):
        f = plait.jit(lambda x: custom_vjp()(x, f64(Y[0]))[0])
        plait.grad(lambda x: rows(f, (0,), Rows)(x).sum())(f64(X))


def test_among_others():
    """Beside our own mapping, inside and outside of it."""
    f = custom_jvp()
    both = plait.vmap(lambda x: rows(f, (0, None))(x, f64(Y[0]))[0])(f64(np.stack([X, 2 * X])))
    want = (X * Y[0]).sum((1, 2))
    np.testing.assert_allclose(both, [want, 2 * want])
    inside = rows(lambda x: plait.vmap(lambda r: f(x, r)[0])(f64(Y)), (0,))(f64(X))
    np.testing.assert_allclose(inside, np.einsum("bij,kj->bk", X, Y))
    difference = rows(lambda x, y: sub(x, y), (0, None))(f64(Y), f64(Y[0]))
    np.testing.assert_allclose(difference, Y - Y[0])


# ---- components without derivatives ----------------------------------------------------------


class Noted(ext.Carrier):
    """Values, each with a number of integers beside it that counts operations."""

    rules = ext.RuleTable("carriers_commuting_noted", doc="rule(xs, counts) -> (out, count)")
    does, commutes = "noted", frozenset(("derivative", "mapping"))

    def part_avals(self, aval, form):
        return aval, aval.with_dtype(np.int32)

    def coerce(self, aval, parts, f, g):
        return parts[0], pnp.zeros(aval.shape, np.int32)

    def whole(self, aval):
        return "noted"

    def run(self, prim, rule, args, params):
        parts = [self.to_form(a, "noted") for a in args]
        out = prim.bind(*[p[0] for p in parts], **params)
        most = parts[0][1]
        for p in parts[1:]:
            most = pnp.maximum(most, p[1])
        return self.lift(out.aval, "noted", (out, most + 1))


Noted.rules.rule(ext.Elementwise)(lambda prim, *args, **params: None)


def noted(f):
    def g(x):
        x = ext.as_value(x)
        with ext.opened(Noted(ext.current(), of=f)) as c:
            start = (x, pnp.zeros(x.shape, np.int32))
            out = ext.as_value(f(c.lift(x.aval, "noted", start)))
            return tuple(map(ext.materialise_at_ground, c.to_form(out, "noted")))

    return g


def tripled(kind):
    """tanh, whose derivative is said to be three."""
    f = kind(lambda x: pnp.tanh(x) * 1.5)
    if kind is plait.custom_jvp:
        f.defjvp(lambda xs, ts: (f(*xs), ts[0] * 3.0))
    else:
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * 3.0,))
    return f


INSIDE = {
    "alone": lambda f: f,
    "jit": plait.jit,
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 1)[0],
    "cond": lambda f: lambda x: lax.cond(pnp.array(True), f, f, x),
    "vmap": plait.vmap,
}


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("kind", [plait.custom_jvp, plait.custom_vjp], ids=["jvp", "vjp"])
def test_components_of_integers_have_no_derivative(kind, inside):
    f = noted(INSIDE[inside](tripled(kind)))
    x = f64(X)
    value, count = f(x)
    np.testing.assert_allclose(value, np.tanh(X) * 1.5)
    np.testing.assert_array_equal(count, np.full(X.shape, 2))
    for way in (lambda g: g, plait.jit):
        np.testing.assert_allclose(way(plait.grad(lambda x: f(x)[0].sum()))(x), np.full(X.shape, 3))
    if kind is plait.custom_jvp:
        _, (moved, _) = plait.jvp(f, (x,), (2 * x,))
        np.testing.assert_allclose(moved, 6 * X)
