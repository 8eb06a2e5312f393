"""Checkpoints with policies, and scans with schedules, under every transformation.

Invariant: values are compared with numpy's, or with those of the function without checkpoint.
"""

import functools

import numpy as np
import pytest

import weft as wf
from weft import lax

keep = wf.checkpoint_policies
X = np.random.default_rng(0).standard_normal((3, 3)) / 2
B = np.random.default_rng(1).standard_normal((4, 3, 3)) / 2


def net(x):
    h = wf.checkpoint_name(lax.sin(x @ x), "h")
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
    "grad": (lambda f: wf.grad(f), X),
    "vmap of grad": (lambda f: wf.vmap(wf.grad(f)), B),
    "grad of vmap": (lambda f: wf.grad(lambda b: wf.vmap(f)(b).sum()), B),
    "jvp of grad": (lambda f: lambda x: wf.jvp(wf.grad(f), (x,), (x,))[1], X),
    "grad of grad": (lambda f: wf.grad(lambda x: (wf.grad(f)(x) * X).sum()), X),
    "vmap of jacfwd of grad": (lambda f: wf.vmap(wf.jacfwd(wf.grad(f))), B[:2]),
}


@functools.cache
def every_way(f):
    """One compiled function of everything."""
    return wf.jit(lambda: [way(f)(wf.numpy.asarray(x)) for way, x in WAYS.values()])()


@pytest.mark.parametrize("policy", POLICIES)
def test_policies(policy):
    """With a checkpoint and without."""
    ready = wf.checkpoint(net, policy=POLICIES[policy])
    for name, got, want in zip(WAYS, every_way(ready), every_way(net), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11, err_msg=name)


def test_policies_in_loops():
    """The body of a loop is a checkpoint; the loop is in one; both."""
    policy = keep.save_only_these_names("h")
    inner = wf.checkpoint(net, policy=policy)

    def inside(x):
        return lax.scan(lambda c, _: (c + 0.1 * inner(c) * c, None), x, None, length=3)[0].sum()

    around, both = (wf.checkpoint(f, policy=policy) for f in (looped, inside))
    every = wf.jit(lambda b: [wf.vmap(wf.grad(f))(b) for f in (looped, inside, around, both)])
    want, *found = every(B)
    for got in found:
        np.testing.assert_allclose(got, want, rtol=1e-9)


def test_schedules():
    def everything(scan):
        f = lambda c, xs: scan(lambda c, x: (lax.sin(c * x) + c, c * c), c, xs)  # noqa: E731
        loss = lambda c, xs: f(c, xs)[0].sum() + f(c, xs)[1].sum()  # noqa: E731
        xs = np.linspace(0, 1, 7)
        return wf.jit(
            lambda c, b: [
                wf.grad(loss, (0, 1))(c, xs),
                wf.vmap(wf.grad(loss), (0, None))(b, xs),
                wf.jvp(lambda c: wf.grad(loss)(c, xs), (c,), (c,)),
            ]
        )(X[0], X)

    got = everything(lambda *a: wf.checkpoint_scan(*a, schedule="log"))
    want = everything(lax.scan)
    for g, w in zip(wf.tree.leaves(got), wf.tree.leaves(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9)


def test_partial_evaluation_of_mapped_programs():
    """A program that has been mapped divides as any other."""
    p = wf.make_program(wf.vmap(lambda x, y: wf.checkpoint(net)(x) * y, (0, None)))(B, 2.0)
    d = wf.ext.partial_eval(p, [False, True])
    assert d.residuals == 1 and d.staged.in_avals[0].shape == (4,)
