"""Policies of checkpoint through shard_map: what is kept is kept in pieces, on its device."""

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait_sharding import PartitionSpec as P
from plait_sharding import shard_map

A = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((3, 3)).astype(np.float32)
keep = plait.checkpoint_policies


def piece(a, w):
    return lax.sin(lax.sin(a @ w) @ w) * lax.psum(a.sum(), "x")


def plain(a, w):
    return lax.sin(lax.sin(a @ w) @ w) * a.sum()


def dots(p):
    here = sum(e.prim.name == "core.dot_general" for e in p.eqns)
    return here + sum(dots(q) for e in p.eqns for q in ext.programs_in(e.params))


@pytest.mark.feature("A25")
@pytest.mark.parametrize(
    "policy, products",
    [(None, 8), (keep.dots_saveable, 6), (keep.everything_saveable, 6)],
    ids=["nothing", "dots", "everything"],
)
def test_around_and_inside(mesh, close, policy, products):
    """Two products in the forward pass, four in the backward one, and those done again."""
    specs = {"mesh": mesh, "in_specs": (P("x"), P()), "out_specs": P("x")}
    around = plait.checkpoint(shard_map(piece, **specs), policy=policy)
    inside = shard_map(plait.checkpoint(piece, policy=policy), **specs)
    want = plait.jit(plait.grad(lambda a, w: plain(a, w).sum(), (0, 1)))(A, W)
    for f in (around, inside):
        g = plait.grad(lambda a, w, f=f: f(a, w).sum(), (0, 1))
        assert dots(plait.make_program(g)(A, W)) == products
        for got, w in zip(plait.jit(g)(A, W), want, strict=True):
            close(got, w)


def test_arrays_that_lie_on_the_mesh(mesh, close, lies):
    """The compiler divides what is computed again as it does the rest."""
    a = plait.device_put(A, lies("x", None))
    g = plait.jit(plait.grad(lambda a: plait.checkpoint(lambda a: plain(a, W))(a).sum()))
    close(g(a), plait.jit(plait.grad(lambda a: plain(a, W).sum()))(A))
