"""A carrier with one number for the whole array, which no axis of the value belongs to.

Invariant: the number bounds the sizes of the elements; it is combined by the carrier's own rules,
which the tests compare with numpy.
"""

import numpy as np
import pytest

import plait
from plait import P, Pile, ext, lax, pile_axis
from plait.ext.ops.indexing import dynamic_update_slice_, scatter_add_
from plait.ext.ops.shape import pad_

pnp = plait.numpy
X = np.float32([[0.5, -1.0, 2.0], [3.0, 0.25, -0.5]])


class Bounded(ext.Carrier):
    """Carries a bound of all absolute values."""

    rules = ext.RuleTable(
        "carriers_bounded", doc="rule(prim, xs, bounds, **params) -> (out, bound)"
    )
    does = "bounded"
    loses = frozenset(("derivative", "mapping"))

    def part_avals(self, aval, form):
        return aval, ext.Aval((), np.dtype("float32"))

    def part_axes(self, aval, form):
        return tuple(range(aval.ndim)), (None,) * aval.ndim

    def coerce(self, aval, parts, f, g):
        return parts[0], peak(parts[0])

    def run(self, prim, rule, args, params):
        pairs = [self.to_form(a, "bounded") for a in args]
        out, bound = rule([p[0] for p in pairs], [p[1] for p in pairs], **params)
        return self.lift(out.aval, "bounded", (out, bound))


@Bounded.rules.rule(pad_)
def _(xs, bounds, **params):
    return pad_.bind(*xs, **params), pnp.maximum(bounds[0], bounds[1])


@Bounded.rules.rule(scatter_add_)
def _(xs, bounds, **params):
    out = scatter_add_.bind(*xs, **params)
    return out, peak(out)


def peak(x):
    return pnp.asarray(pnp.max(pnp.abs(x)), np.float32)


@Bounded.rules.rule(ext.Elementwise, ext.Reduction)
def _(prim, xs, bounds, **params):
    out = prim.bind(*xs, **params)
    return out, peak(out)


@Bounded.rules.rule(ext.Structural, ext.Indexing)
def _(prim, xs, bounds, **params):
    return prim.bind(*xs, **params), bounds[0]


@Bounded.rules.rule(dynamic_update_slice_)
def _(xs, bounds):
    return dynamic_update_slice_.bind(*xs), pnp.maximum(bounds[0], bounds[1])


def bounded(f):
    def g(x):
        x = ext.as_value(x)
        with ext.opened(Bounded(ext.current(), of=f)) as c:
            out = f(c.lift(x.aval, "bounded", (x, peak(x))))
            return tuple(map(ext.materialise_at_ground, c.to_form(ext.as_value(out), "bounded")))

    return g


def each(f, **how):
    return lambda x: lax.scan(lambda c, r: (c + r.sum(), f(r)), 0.0, x, **how)[1]


PROGRAMS = {
    "carry": (
        lambda x: lax.scan(lambda c, r: (c + r, None), x[0], x)[0], lambda x: x[0] + x.sum(0)
    ),
    "rows": (each(lambda r: r * 2.0), lambda x: x * 2),
    "rows, reverse": (each(lambda r: r * 2.0, reverse=True), lambda x: x * 2),
    "rows, unrolled": (each(lambda r: r * 2.0, unroll=2), lambda x: x * 2),
    "rows of rows": (each(each(lambda v: v * 2.0)), lambda x: x * 2),
    "a plain result beside": (each(lambda r: r * 0.0 + 1.0), np.ones_like),
    "cumsum": (lambda x: pnp.cumsum(x, 1), lambda x: np.cumsum(x, 1)),
    "cumprod, reverse": (
        lambda x: lax.cumprod(x, 0, reverse=True), lambda x: np.cumprod(x[::-1], 0)[::-1]
    ),
    "map": (lambda x: lax.map(lambda r: r * 2.0, x), lambda x: x * 2),
    "cond in rows": (
        each(lambda r: lax.cond(True, lambda r: r * 2.0, lambda r: r, r)), lambda x: x * 2
    ),
}  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("around", ["eager", "jit", "vmap", "grad"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_whose_component_has_no_axis(name, around):
    f, reference = PROGRAMS[name]
    want = reference(X)
    if around == "grad":
        slope = plait.grad(lambda x: bounded(f)(x)[0].sum())(X)
        np.testing.assert_allclose(slope, plait.grad(lambda x: f(x).sum())(X), rtol=1e-5)
        return
    run = {"eager": bounded(f), "jit": plait.jit(bounded(f))}.get(around)
    if run is None:
        out, bound = [a[1] for a in plait.vmap(bounded(f))(np.stack([0 * X, X]))]
    else:
        out, bound = run(X)
    np.testing.assert_allclose(out, want, rtol=1e-6)
    assert np.shape(bound) == () and np.abs(want).max() <= bound * (1 + 1e-6)
    assert bound <= 3 * np.abs(X).sum()


def test_pieces_whose_component_differs_are_refused():
    """One number for all devices would be that of one of them."""
    mesh = plait.make_mesh((2,), ("d",))
    over = lambda f: plait.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    with pytest.raises(plait.errors.MissingRule, match="differs between devices along 'd'"):
        bounded(over(lambda v: v * 2.0))(X)
    out, bound = bounded(over(lambda v: lax.transpose(lax.transpose(v, (1, 0)), (1, 0))))(X)
    np.testing.assert_array_equal(out, X)
    assert bound == np.abs(X).max()


@pytest.mark.parametrize("staged", [False, True])
def test_results_of_examples_whose_component_has_no_axis(staged):
    stage = plait.jit if staged else lambda f: f
    flat, lengths = np.float32([1, -2, 3, 0.5]), np.array([3, 1])
    signs = lambda x: plait.vmap(lambda v: pnp.sign(v).sum(), pile_axis)(Pile(x, lengths))
    twice = lambda x: plait.vmap(lambda v: v * 2.0, pile_axis, pile_axis)(Pile(x, lengths)).data
    sums, bound = bounded(stage(signs))(flat)
    np.testing.assert_array_equal(sums, [1, 1])
    assert bound == 1
    doubled, bound = bounded(stage(twice))(flat)
    np.testing.assert_array_equal(doubled[:4], 2 * flat)
    assert bound == 6
