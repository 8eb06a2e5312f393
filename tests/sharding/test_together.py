"""Everything at once: operands divided, copied and closed over; scan, cond and jit inside;
collectives in loops; under every transformation, as the same model without devices."""

import numpy as np
import pytest

import plait
from plait._ops.collective import psum
from plait.ext.ops.elementwise import sin, tanh
from plait.lax import cond, scan
from plait_sharding import P, device_put, make_mesh, shard_map

R = np.random.default_rng(3)
A = (R.normal(size=(8, 16)) * 0.5).astype(np.float32)
B = (R.normal(size=(16, 4)) * 0.5).astype(np.float32)
K, STEPS, LAST = np.float32(1.3), np.float32([0.5, 0.7]), np.float32([1, 2])
THREE = np.float32([1, 2, -1])


def plain(a, w):
    h = tanh(a @ w * K)
    h, ys = scan(lambda c, r: (sin(c * r) + (c * 0.1).sum(0), c.sum() * 0.1), h, STEPS)
    h = cond(a.sum() > 0, lambda v: v * v, lambda v: v * 3, h)
    return (h * h).sum() + (ys * LAST).sum(), h


def local(a, w):
    h = tanh(plait.jit(lambda a, w: psum(a @ w, "y"))(a, w) * device_put(K))

    def step(c, r):
        return sin(c * r) + psum((c * 0.1).sum(0), "x"), psum(c.sum() * 0.1, "x")

    h, ys = scan(step, h, STEPS)
    h = cond(psum(a.sum(), ("x", "y")) > 0, lambda v: v * v, lambda v: v * 3, h)
    return psum((h * h).sum(), "x") + (ys * LAST).sum(), h


def one(f):
    def g(a, w):
        s, h = f(a, w)
        return s + sin(h).sum()

    return g


def loop(h):
    return lambda a, w: scan(lambda c, r: (c + h(a * r, w), None), 0.0, THREE)[0]


def either(h):
    return lambda a, w: cond(a.sum() > 0, lambda: h(a, w), lambda: h(a * 2, w))


BOTH = np.stack([A, -A])
WORDS = {
    "itself": (lambda h: h, (A, B)),
    "jvp": (lambda h: lambda a, w: plait.jvp(h, (a, w), (w.sum() * a, w)), (A, B)),
    "grad": (lambda h: plait.grad(h, (0, 1)), (A, B)),
    "grad of jit": (lambda h: plait.grad(plait.jit(h)), (A, B)),
    "grad of checkpoint": (lambda h: plait.grad(plait.checkpoint(h), (0, 1)), (A, B)),
    "grad of grad": (lambda h: plait.grad(lambda a, w: plait.grad(h)(a, w).sum()), (A, B)),
    "vmap": (lambda h: plait.vmap(h, (0, None)), (BOTH, B)),
    "vmap elsewhere": (
        lambda h: plait.vmap(h, (1, 2)),
        (BOTH.swapaxes(0, 1), np.stack([B, -B], 2)),
    ),
    "vmap of grad": (
        lambda h: plait.vmap(plait.grad(h, (0, 1)), (2, None)),
        (np.moveaxis(BOTH, 0, 2), B),
    ),
    "grad of vmap": (
        lambda h: plait.grad(lambda a, w: plait.vmap(h, (None, 0))(a, w).sum(), (0, 1)),
        (A, np.stack([B, -B])),
    ),
    "scan": (loop, (A, B)),
    "grad of scan": (lambda h: plait.grad(loop(h), (0, 1)), (A, B)),
    "grad of cond": (lambda h: plait.grad(either(h)), (A, B)),
    "vmap of cond": (lambda h: plait.vmap(either(h), (0, None)), (BOTH, B)),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("word", WORDS)
def test_words(mesh, close, word):
    transform, args = WORDS[word]
    ours = shard_map(local, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=(P(), P("x")))
    got, want = [plait.tree.leaves(plait.jit(transform(one(f)))(*args)) for f in (ours, plain)]
    for g, w in zip(got, want, strict=True):
        close(g, w)


def test_eagerly_and_where_arrays_lie(mesh, lies, close):
    f = one(shard_map(local, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=(P(), P("x"))))
    want = plait.jit(plait.grad(one(plain)))(A, B)
    close(plait.grad(f)(A, B), want)
    out = plait.jit(plait.grad(f))(device_put(A, lies("x", "y")), device_put(B, lies("y")))
    close(out, want)
    assert out.sharding == lies("x", "y")


def test_words_on_some_devices_in_another_order(close):
    grid = plait.Mesh(np.array([[6, 1], [3, 4]]), ("x", "y"))
    ours = shard_map(local, mesh=grid, in_specs=(P("x", "y"), P("y")), out_specs=(P(), P("x")))
    close(plait.jit(plait.grad(one(ours)))(A, B), plait.jit(plait.grad(one(plain)))(A, B))
    line = make_mesh((1, 4), ("x", "y"))
    ours = shard_map(local, mesh=line, in_specs=(P("x", "y"), P("y")), out_specs=(P(), P("x")))
    close(plait.jit(plait.grad(one(ours)))(A, B), plait.jit(plait.grad(one(plain)))(A, B))
