"""Operations that call a program, and operations that map one: what transformations add to them.

Invariant: results are those of a Python loop over the elements, or of the same function by vmap.
"""

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait.ext.ops.control_flow import call, cond, scan, while_
from plait.ext.trace import Wiring
from plait_autodiff import SymbolicZero
from plait_autodiff.ext import partial_eval
from plait_autodiff.rematerialisation.checkpointing import checkpoint_p
from plait_sharding import P, shard_map
from plait_sharding.ext import shard_map_p
from plait_sharding.manual import Manual

pnp = plait.numpy
R = np.random.default_rng(3)
X, Y = (R.normal(size=(2, 3)).astype(np.float32) for _ in range(2))
M = R.normal(size=(2, 3, 3)).astype(np.float32)


@pytest.mark.feature("A34")
def test_a_cotangent_that_is_zero_has_the_shape_of_the_whole(close):
    """Of a mapped input whose cotangent inside the map is zero, by itself or by a rule."""
    seen = []
    still = plait.custom_vjp(lambda x, y: x * y)

    def back(kept, ct):
        seen.append(kept.shape)
        return ct * kept, SymbolicZero(kept.aval)

    still.defvjp(lambda x, y: (x.value * y.value, y.value), back, symbolic_zeros=True)
    uses = {
        "not used": (lambda x, y: x * 2.0, 2 + 0 * Y),
        "stopped": (lambda x, y: x * lax.stop_gradient(y), Y),
        "by a rule": (lambda x, y: still(x, y), Y),
        "of one result": (lambda x, y: (x * 2.0, y)[0], 2 + 0 * Y),
    }
    mesh = plait.make_mesh((2,), ("i",))

    def every(x, y):
        found = {}
        for name, (f, _) in uses.items():
            pieces = shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
            for g in (plait.pmap(f), pieces, plait.checkpoint(plait.pmap(f))):
                first = plait.grad(lambda x, y, g=g: g(x, y).sum(), (0, 1))
                found.setdefault(name, []).append((first(x, y), plait.vjp(g, x, y)[1](x)))
        return found

    for name, each in plait.jit(every)(X, Y).items():
        for (gx, gy), (cx, cy) in each:
            close(gx, uses[name][1])
            close(gy, np.zeros_like(Y))
            close(cx, X * uses[name][1])
            close(cy, np.zeros_like(Y))
    assert set(seen) == {(3,), (1, 3)}  # what one device has


@pytest.mark.feature("A35")
def test_maps_of_products(close):
    """A product with a matrix, mapped over devices and elements: as a loop would do it."""
    product = lambda a, v: pnp.tanh(a @ v)  # noqa: E731
    over = plait.pmap(product, in_axes=(0, None))
    many = R.normal(size=(4, 3)).astype(np.float32)
    want = np.stack([[np.tanh(a @ v) for a in M] for v in many])
    each = lambda v: over(M, v)  # noqa: E731
    ways = plait.jit(lambda b: [plait.vmap(each)(b), lax.map(each, b)])(many)
    for got in ways:
        close(got, want)
    slopes = plait.jit(plait.vmap(plait.jacrev(each)))(many)
    plain = [[(1 - np.tanh(a @ v) ** 2)[:, None] * a for a in M] for v in many]
    close(slopes, np.stack(plain))


@pytest.mark.feature("A35")
def test_tangents_and_residuals_of_maps_in_loops(close):
    """A map in the body of a loop, or computed again, that closes over what is differentiated, of
    which every element has a piece or all have the whole."""

    def body(mapped):
        whole = lambda c, k, w: mapped(lambda r: pnp.sin(r * k) + w)(c)  # noqa: E731
        pieces = lambda c, w: mapped(lambda r, p: r * p, in_axes=0)(c, w)  # noqa: E731
        return lambda c, k, w: pieces(whole(c, k, pnp.ones(3)), w)

    def every(mapped):
        f = body(mapped)
        loops = {
            "scan": lambda c, k, w: lax.scan(lambda c, x: (f(c, k, w) * x, k), c, TWO)[0],
            "checkpoint": plait.checkpoint(f),
            "scan of checkpoint": lambda c, k, w: lax.scan(
                lambda c, _: (plait.checkpoint(lambda c: f(c, k, w))(c), None), c, None, 2
            )[0],
        }

        def of(c, k, w):
            found = []
            for g in loops.values():
                loss = lambda c, k, w, g=g: (g(c, k, w) ** 2).sum()  # noqa: E731
                found.append(plait.grad(loss, (0, 1, 2))(c, k, w))
            found.append(plait.jvp(plait.grad(loss, 1), (c, k, w), (c, k, w))[1])
            return found

        return plait.jit(of)(X, np.float32(0.7), Y)

    pairs = zip(*map(plait.tree.leaves, (every(plait.pmap), every(plait.vmap))), strict=True)
    for got, want in pairs:
        close(got, want)


TWO = np.float32([0.5, 2.0])


@pytest.mark.feature("A22", "A35")
def test_partial_evaluation_of_maps(close):
    """A map divides into maps: of what is known, and of what is not, with residuals in pieces."""
    mesh = plait.make_mesh((2,), ("i",))
    body = lambda x, y: (pnp.sin(x) * y, lax.psum(pnp.cos(x), "i"), y * 2)  # noqa: E731
    over = shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=(P("i"), P(), P("i")))
    program = plait.make_program(over)(X, Y)
    want = [np.sin(X) * Y, np.cos(X).sum(0, keepdims=True), Y * 2]
    for policy in (None, plait.checkpoint_policies.nothing_saveable):
        d = partial_eval(program, [False, True], policy=policy)
        assert d.out_unknown == (True, False, True)
        assert [e.prim for e in d.known.eqns] == [shard_map_p]
        assert d.staged.eqns[-1].prim is shard_map_p
        assert d.residuals == 1  # the sine, by device, or what it is computed from
        known = ext.evaluate(d.known, [pnp.asarray(X)])
        late = ext.evaluate(d.staged, [*known[1:], pnp.asarray(Y)])
        for got, w in zip((late[0], known[0], late[1]), want, strict=True):
            close(got, w)


@pytest.mark.feature("A36")
def test_calls_and_maps_are_told_apart_by_their_wiring():
    """What an operation with programs does with its operands is a class, that says which axes its
    programs do not see and which names they may use; nobody asks a flag."""
    calls, maps = (call, checkpoint_p), (shard_map_p,)
    assert all(type(p.higher) is Wiring for p in calls)
    assert all(isinstance(p.higher, Manual) for p in maps)
    kinds = {type(p.higher) for p in (call, cond, while_, scan, shard_map_p)}
    assert len(kinds) == 5 and all(issubclass(k, Wiring) for k in kinds)
    for p in (*calls, *maps, cond, scan):
        flags = [n for n in dir(p) if n.endswith("_primitive") or n.startswith(("call_", "map_"))]
        assert not flags
    mesh = plait.make_mesh((2,), ("i",))
    program = plait.make_program(
        shard_map(lambda x: x, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    )
    (mapped,) = program(X).eqns
    assert mapped.prim is shard_map_p
    assert mapped.prim.higher.binds(mapped.params) == {"i"}
    (called,) = plait.make_program(lambda x: plait.jit(pnp.sin)(x))(X).eqns
    assert called.prim is call and called.prim.higher.binds(called.params) == frozenset()
    looped = plait.make_program(lambda x: lax.scan(lambda c, r: (c, r), 0.0, x))(X).eqns[-1]
    slots = looped.prim.higher.slots(looped.params)
    assert set(slots.mapped.values()) == {(0,)}  # of rows the body does not see the first axis
    assert not called.prim.higher.slots(called.params).mapped
