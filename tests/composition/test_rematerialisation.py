"""Checkpoints with policies, and scans with schedules, under every transformation.

Invariant: values are compared with numpy's, or with those of the function without checkpoint.
"""

import functools

import numpy as np
import pytest

import plait
from plait import lax
from plait_autodiff.ext import partial_eval

keep = plait.checkpoint_policies
X = np.random.default_rng(0).standard_normal((3, 3)) / 2
B = np.random.default_rng(1).standard_normal((4, 3, 3)) / 2


def net(x):
    h = plait.checkpoint_name(lax.sin(x @ x), "h")
    return (lax.sin(h) * x).sum()


def looped(x):
    return lax.scan(lambda c, _: (c + 0.1 * net(c) * c, None), x, None, length=3)[0].sum()


POLICIES = {
    "offloaded": keep.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["h"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
    "some": lambda prim, *avals, **params: prim.name in ("core.cos", "core.mul"),
}
WAYS = {
    "grad": (lambda f: plait.grad(f), X),
    "vmap of grad": (lambda f: plait.vmap(plait.grad(f)), B),
    "grad of vmap": (lambda f: plait.grad(lambda b: plait.vmap(f)(b).sum()), B),
    "jvp of grad": (lambda f: lambda x: plait.jvp(plait.grad(f), (x,), (x,))[1], X),
    "grad of grad": (lambda f: plait.grad(lambda x: (plait.grad(f)(x) * X).sum()), X),
    "vmap of jacfwd of grad": (lambda f: plait.vmap(plait.jacfwd(plait.grad(f))), B[:2]),
}


@functools.cache
def every_way(f):
    """One compiled function of everything."""
    return plait.jit(lambda: [way(f)(plait.numpy.asarray(x)) for way, x in WAYS.values()])()


@pytest.mark.parametrize("policy", POLICIES)
def test_policies(policy):
    """With a checkpoint and without."""
    ready = plait.checkpoint(net, policy=POLICIES[policy])
    for name, got, want in zip(WAYS, every_way(ready), every_way(net), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11, err_msg=name)


def test_policies_in_loops():
    """The body of a loop is a checkpoint; the loop is in one; both."""
    policy = keep.save_only_these_names("h")
    inner = plait.checkpoint(net, policy=policy)

    def inside(x):
        return lax.scan(lambda c, _: (c + 0.1 * inner(c) * c, None), x, None, length=3)[0].sum()

    around, both = (plait.checkpoint(f, policy=policy) for f in (looped, inside))
    every = plait.jit(
        lambda b: [plait.vmap(plait.grad(f))(b) for f in (looped, inside, around, both)]
    )
    want, *found = every(B)
    for got in found:
        np.testing.assert_allclose(got, want, rtol=1e-9)


def test_schedules():
    def everything(scan):
        f = lambda c, xs: scan(lambda c, x: (lax.sin(c * x) + c, c * c), c, xs)  # noqa: E731
        loss = lambda c, xs: f(c, xs)[0].sum() + f(c, xs)[1].sum()  # noqa: E731
        xs = np.linspace(0, 1, 7)
        return plait.jit(
            lambda c, b: [
                plait.grad(loss, (0, 1))(c, xs),
                plait.vmap(plait.grad(loss), (0, None))(b, xs),
                plait.jvp(lambda c: plait.grad(loss)(c, xs), (c,), (c,)),
            ]
        )(X[0], X)

    got = everything(lambda *a: plait.checkpoint_scan(*a, schedule="log"))
    want = everything(lax.scan)
    for g, w in zip(plait.tree.leaves(got), plait.tree.leaves(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9)


def test_partial_evaluation_of_mapped_programs():
    """A program that has been mapped divides as any other."""
    p = plait.make_program(plait.vmap(lambda x, y: plait.checkpoint(net)(x) * y, (0, None)))(B, 2.0)
    d = partial_eval(p, [False, True])
    assert d.residuals == 1 and d.staged.in_avals[0].shape == (4,)
