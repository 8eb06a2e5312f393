"""Derivatives of derivatives inside `shard_map`, with loops, branches and custom rules of what all
devices share: reverse over reverse, forward over reverse, and three levels.

The judge is the same program for all devices in numpy, by loops and differences.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import P, lax
from plait.errors import OperandTypeError
from plait_sharding import make_mesh, pmap, shard_map

from .varying_programs import D, V, W, along, check, random_program


def scans(k, w, v):
    """The weight is a constant of a loop in a loop, and of one that stacks."""
    inner = lambda c: k.scan(lambda c, r: k.sin(c * w), c, [v, v])  # noqa: E731
    return k.scan(lambda c, r: inner(c) + r * w, v, [w, v]) + k.kept(lambda c, r: c * w, v, [v, w])


def carries(k, w, v):
    """A weight as the carry itself, and counts that differ from device to device."""
    turned = k.fori(3, lambda c: k.shift(c * w), w)
    return turned * k.until(k.index() % 3, lambda c: k.sin(c * w) + v, w)


def branches(k, w, v):
    """Branches of all devices and of each, in a loop; one does not use the weight."""
    some = lambda c: k.either(True, lambda c: c * w, k.sin, c)  # noqa: E731
    all_ = lambda c: k.either(False, lambda c: k.psum(c * w) + v, lambda c: c, c)  # noqa: E731
    return k.scan(lambda c, r: some(all_(c)) + r, v, [w, v])


def checkpoints(k, w, v):
    """Loops that are done again, and steps that are."""
    step = lambda c, r: k.checkpoint(lambda c, w: k.tanh(c * w + r), c, w)  # noqa: E731
    again = lambda w, v: k.scan(lambda c, r: k.psum(c * w) * r, v, [v, w])  # noqa: E731
    return k.scan(step, v, [w, v]) + k.checkpoint(again, w, v)


def rules(k, w, v):
    """Custom rules of loops, and in loops; the pullback of a sum over devices."""
    loop = lambda w, v: k.scan(lambda c, r: c * w + r, v, [w, v])  # noqa: E731
    step = lambda c, r: k.own_jvp(lambda c, w: k.sin(c * w), c, w) + k.reduced(c * r)  # noqa: E731
    return k.own_vjp(loop, w, v) * k.scan(step, v, [v, w])


def own_turns(k, w, v):
    """Custom rules that take derivatives, where each device has its own branch, and its own number
    of turns: they sum over no devices."""
    rule = lambda c, w: k.own_vjp(lambda c, w: k.sin(c * w), c, w)  # noqa: E731
    turned = k.until(k.index() % 3, lambda c: rule(c, w), v)
    return k.either(True, lambda c: rule(c, w), lambda c: c * w, turned)


def calls(k, w, v):
    """A loop that is called, and one that is mapped."""
    loop = lambda c: k.fori(2, lambda c: k.sin(c * w) + v, c)  # noqa: E731
    return k.jit(lambda w, v: k.scan(lambda c, r: c * w * r, v, [v, w]), w, v) + k.vmap(loop, w)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("program, way", [
    (scans, "inside"), (scans, "outside, alike"), (carries, "outside"), (branches, "in and out"),
    (checkpoints, "outside"), (rules, "inside"), (calls, "in and out"), (own_turns, "outside"),
])  # fmt: skip
def test_loops(program, way):
    check(program, way)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "seed, way",
    [
        (205, "in and out"),
        (207, "outside, alike"),
        (209, "outside"),
    ],
)
def test_random_programs(seed, way):
    check(random_program(seed), way)


# ---- pmap ----------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.feature("S07", "S09")
@pytest.mark.parametrize("out_axes", [None, 1])
def test_pmap(out_axes):
    """Values shared by all examples, and values stacked along either axis."""

    def one(w, v):
        c = lax.scan(lambda c, _: (pnp.sin(c * w), None), v, None, 2)[0]
        c = plait.checkpoint(lambda c, w: lax.fori_loop(0, 2, lambda i, c: c * w, c))(c, w)
        c = lax.psum(c, "i") if out_axes is None else c
        return pnp.stack([c, c * w])

    over = pmap(one, "i", in_axes=(None, 0), out_axes=out_axes)
    total = lambda w, v: over(w, v).sum()  # noqa: E731

    def value(w, v):
        c = np.sin(np.sin(v * w) * w) * w * w
        return (c.sum() + (c * w).sum()) * 1.0

    h = 1e-3
    twice = lambda f, a: (f(a + h) - 2 * f(a) + f(a - h)) / h**2  # noqa: E731
    w, v = np.float32(W), V.astype("f")
    curve = twice(lambda w: value(w, V), W)

    @plait.jit
    def ways(w, v):
        g = plait.grad(lambda w: total(w, v))
        slope = lambda v: (plait.grad(total, 1)(w, v) * D.astype("f")).sum()  # noqa: E731
        return [
            plait.grad(g)(w), along(g, w), plait.grad(lambda w: along(lambda w: total(w, v), w))(w),
            plait.linearize(g, w)[1](pnp.ones_like(w)), (plait.grad(slope)(v) * D).sum(),
        ]  # fmt: skip

    moved = twice(lambda a: value(W, V + a * D), 0.0)
    np.testing.assert_allclose(ways(w, v), [curve, curve, curve, curve, moved], rtol=2e-3)


# ---- custom rules that reduce --------------------------------------------------------------------


def summed(names, back):
    f = plait.custom_vjp(lambda v: lax.psum(v, names))
    f.defvjp(lambda v: (lax.psum(v, names), None), lambda _, ct: (back(ct),))
    return f


@pytest.mark.parametrize("back", [
    lambda ct: ct,
    lambda ct: lax.pcast(ct, ("x", "y"), to="varying"),
], ids=["as it is", "made to vary"])  # fmt: skip
def test_pullbacks_of_sums_over_devices(back):
    """The cotangent of a sum is that of every summand, by every transformation."""
    f = summed(("x", "y"), back)
    mesh = make_mesh((4, 2), ("x", "y"))
    x = np.arange(1.0, 17.0, dtype="f")
    over = shard_map(f, mesh=mesh, in_specs=P(("x", "y")), out_specs=P())
    weigh = np.float32([2, 3])
    total = lambda x: (over(x) ** 2 * weigh).sum()  # noqa: E731
    sums = x.reshape(8, 2).sum(0)
    want = np.tile(2 * sums * weigh, 8)
    near = lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-5)  # noqa: E731
    near(plait.grad(total)(x), want)
    near(plait.jit(plait.grad(total))(x), want)
    near(plait.vmap(plait.grad(total))(np.stack([x, x]))[1], want)
    near(plait.jvp(total, (x,), (np.ones_like(x),))[1], want.sum())
    near(plait.linearize(total, x)[1](np.ones_like(x)), want.sum())
    near(plait.grad(lambda x: plait.grad(total)(x)[0])(x), np.tile(np.float32([4, 0]), 8))
    inside = shard_map(
        plait.grad(lambda v: (f(v) ** 2 * weigh).sum()), mesh=mesh,
        in_specs=P(("x", "y")), out_specs=P(("x", "y")),
    )  # fmt: skip
    near(inside(x), want)
    turn = lambda c, _: (c + f(c) / 8, None)  # noqa: E731
    loop = shard_map(lambda v: lax.scan(turn, v, None, 2)[0], mesh=mesh,
                     in_specs=P(("x", "y")), out_specs=P(("x", "y")))  # fmt: skip
    near(plait.grad(lambda x: loop(x).sum())(x), np.full(16, 4.0))


def test_sums_over_one_of_two_axes():
    """A value that varies along the other axis does so in the linear map, too."""
    mesh = make_mesh((4, 2), ("x", "y"))
    x = np.arange(1.0, 9.0, dtype="f")
    f = summed("y", lambda ct: ct)
    over = shard_map(f, mesh=mesh, in_specs=P(("x", "y")), out_specs=P("x"))
    want = np.repeat(2 * x.reshape(4, 2).sum(1), 2)
    np.testing.assert_allclose(plait.grad(lambda x: (over(x) ** 2).sum())(x), want)
    got = plait.jvp(lambda x: (over(x) ** 2).sum(), (x,), (np.ones_like(x),))[1]
    np.testing.assert_allclose(got, want.sum())


def test_tangents_of_what_all_devices_share_are_refused_if_they_differ():
    f = plait.custom_jvp(lambda v: lax.psum(v, "i"))
    f.defjvp(lambda xs, ts: (f(*xs), ts[0]))
    over = shard_map(f, mesh=make_mesh((8,), "i"), in_specs=P("i"), out_specs=P())
    with pytest.raises(OperandTypeError, match=r"varies along \['i'\]") as e:
        plait.jvp(over, (V.astype("f"),), (V.astype("f"),))
    assert "lax.psum(t, 'i')" in e.value.fix


def test_gradients_in_branches_of_each_device():
    """A gradient that is taken in a branch, or in a turn, is that of the device's own part."""

    def f(w, v):
        v = v[0]
        own = lambda: plait.grad(lambda w: w * w * v)(w)  # noqa: E731
        branch = lax.cond(v > 3, own, lambda: w * 0.0)
        going = lambda s: s[0] < v  # noqa: E731
        turned = lax.while_loop(going, lambda s: (s[0] + 2, s[1] + own()), (0.0, 0.0))[1]
        return pnp.stack([branch, turned])[None]

    over = shard_map(f, mesh=make_mesh((8,), "i"), in_specs=(P(), P("i")), out_specs=P("i"))
    v = np.arange(8, dtype="f")
    got = over(np.float32(3), v)
    np.testing.assert_allclose(got, np.stack([6 * v * (v > 3), 6 * v * np.ceil(v / 2)], 1))


def test_sums_that_not_all_devices_would_make_are_refused():
    w_of = lambda f: shard_map(
        f, mesh=make_mesh((8,), "i"), in_specs=(P(), P("i")), out_specs=P("i")
    )  # noqa: E731
    slope = plait.jit(plait.grad(lambda w, v: w * w * v))

    def f(w, v):
        return lax.cond(v[0] > 3, lambda: slope(w, v[0]), lambda: w * 0.0)[None]

    with pytest.raises(plait.PlaitError, match="a branch or loop that not all of them are in") as e:
        w_of(f)(np.float32(3), np.arange(8, dtype="f"))
    assert "pcast(x, 'i', to='varying')" in e.value.fix


def moved(w):
    return lax.ppermute(w * w, "i", [(k, (k + 1) % 8) for k in range(8)])


def test_rules_are_staged_where_types_say_what_varies():
    """A rule that is staged late, in which a collective of what all devices share differs."""
    f = plait.custom_vjp(moved)
    f.defvjp(lambda w: (moved(w), w), lambda w, ct: plait.vjp(moved, w)[1](ct))
    curve = plait.grad(lambda w: along(lambda w: lax.psum(f(w), "i"), w))
    over = shard_map(curve, mesh=make_mesh((8,), "i"), in_specs=P(), out_specs=P())
    np.testing.assert_allclose(over(np.float32(3)), 16)


def test_traces_of_axes_without_types_are_others():
    """A function is traced anew where types say along an axis of the same name what varies."""
    inner = plait.jit(moved)
    v = np.arange(8, dtype="f")
    mapped = plait.vmap(inner, axis_name="i")(v)
    np.testing.assert_allclose(mapped, np.roll(v * v, 1))
    slope = lambda w, v: plait.grad(lambda w: inner(w) * v[0])(w)  # noqa: E731
    over = shard_map(slope, mesh=make_mesh((8,), "i"), in_specs=(P(), P("i")), out_specs=P())
    np.testing.assert_allclose(over(np.float32(3), v), 6 * v.sum())


# ---- values that are made like others ------------------------------------------------------------

LIKE = {
    "zeros_like": pnp.zeros_like,
    "ones_like": pnp.ones_like,
    "empty_like": pnp.empty_like,
    "full_like": lambda v: pnp.full_like(v, 3),
    "another shape": lambda v: pnp.zeros_like(v, shape=(2, 2)),
    "another dtype": lambda v: pnp.full_like(v, 3, dtype="int32"),
    "lax.full_like": lambda v: lax.full_like(v, 3.0),
    "lax.full_like of another shape": lambda v: lax.full_like(v, 3.0, shape=(2,)),
    "of a sum": lambda v: pnp.zeros_like(v.sum()),
    "isnan of integers": lambda v: pnp.isnan(v.astype(int)),
    "isfinite of integers": lambda v: pnp.isfinite(v.astype(int)),
    "iscomplex": pnp.iscomplex,
    "no rows": lambda v: v[:0].sum(),
    "broadcast": lambda v: pnp.broadcast_to(v, (3, 1)),
}


@pytest.mark.parametrize("name", LIKE)
def test_what_is_made_like_a_value_varies_as_it_does(name):
    seen = []

    def f(w, v):
        seen.extend([plait.typeof(LIKE[name](x)).vma for x in (w, v)])
        return w

    mesh = make_mesh((8,), "i")
    shard_map(f, mesh=mesh, in_specs=(P(), P("i")), out_specs=P())(np.ones(1, "f"), np.ones(8, "f"))
    assert seen == [frozenset(), frozenset(["i"])]


def test_a_carry_that_begins_as_zeros_like_another():
    """Accumulators of both kinds, differentiated twice."""

    def piece(w, v):
        step = lambda c, r: (c * w + r * r * w, None)  # noqa: E731
        return lax.scan(step, pnp.zeros_like(v), pnp.stack([v, v]))[0]

    over = shard_map(piece, mesh=make_mesh((8,), "i"), in_specs=(P(), P("i")), out_specs=P("i"))
    g = plait.grad(lambda w: over(w, V.astype("f")).sum())
    # w**2 v**2 + w v**2
    np.testing.assert_allclose(g(np.float32(W)), (2 * W + 1) * (V**2).sum(), rtol=1e-5)
    np.testing.assert_allclose(plait.grad(g)(np.float32(W)), 2 * (V**2).sum(), rtol=1e-5)
