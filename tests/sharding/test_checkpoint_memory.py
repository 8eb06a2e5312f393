"""checkpoint over several devices: what each of them holds, sends and computes again.

Invariant: bytes are what the compiler counts per device, operations are counted in what it made,
and the same function without checkpoint says how many there need be; values are those of a loop in
numpy.
"""

import collections
import re

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax

DEPTH = 3
COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter")


def layer(x, w, v):
    return pnp.sin(pnp.tanh(x @ w) @ v)


def gradient(x, ws):
    """The gradient of the sum of squares after all layers, by a loop in numpy."""
    x, kept = x.astype(np.float64), []
    for w, v in ws:
        h = np.tanh(x @ w)
        kept.append((x, h, np.cos(h @ v)))
        x = np.sin(h @ v)
    ct, out = 2 * x, []
    for (w, v), (x, h, c) in zip(ws[::-1], kept[::-1]):
        up = ct * c
        back = (up @ v.T) * (1 - h * h)
        out.append((x.T @ back, h.T @ up))
        ct = back @ w.T
    return out[::-1]


def loss_of(f):
    def loss(ws, x):
        for w, v in ws:
            x = f(x, w, v)
        return (x * x).sum()

    return loss


def counted(f, *args):
    """(bytes of arguments, of results, of temporaries; how often there is each operation; what it
    returns)."""
    c = plait.jit(f).lower(*args).compile()
    m = c.memory_analysis()
    names = re.findall(r"\s([a-z-]+)\(", c.as_text())
    sizes = m.argument_size_in_bytes, m.output_size_in_bytes, m.temp_size_in_bytes
    return sizes, collections.Counter(names), c(*args)


@pytest.mark.parametrize(
    "spec_x, spec_w, spec_v",
    [(("d",), (), ()), (("x",), (None, "y"), ("y",)), ((), (None, "d"), ("d",))],
    ids=["data", "data and tensors", "tensors"],
)
def test_checkpoint_divides_what_it_computes_again(spec_x, spec_w, spec_v):
    mesh = plait.make_mesh((2, 4), ("x", "y"))

    def lies(spec):
        return plait.NamedSharding(mesh, plait.P(*[("x", "y") if n == "d" else n for n in spec]))

    rng = np.random.default_rng(0)
    make = lambda *shape: (rng.standard_normal(shape) / 8).astype(np.float32)  # noqa: E731
    host = make(4096, 32), [(make(32, 64), make(64, 32)) for _ in range(DEPTH)]
    x = plait.device_put(host[0], lies(spec_x))
    ws = [tuple(map(plait.device_put, pair, map(lies, (spec_w, spec_v)))) for pair in host[1]]

    (args, outs, temps), plain, _ = counted(plait.grad(loss_of(layer)), ws, x)
    sizes, again, got = counted(plait.grad(loss_of(plait.checkpoint(layer))), ws, x)
    assert sizes[:2] == (args, outs) and sizes[2] <= temps
    assert (plain["tanh"], again["tanh"]) == (DEPTH, 2 * DEPTH)
    forward = counted(loss_of(layer), ws, x)[1]
    for name in COLLECTIVES:  # what is done again may send again, and nothing else is sent
        assert again[name] <= plain[name] + forward[name]
        if spec_w == ():  # nothing is sent between layers
            assert again[name] == plain[name]
    for pair, want in zip(got, gradient(*host), strict=True):
        for g, w in zip(pair, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-3, atol=1e-4 * np.abs(w).max())


@pytest.mark.parametrize("size", [8, 8 * 4096])
def test_checkpoint_in_loops(size):
    """A small loop would be one kernel of the CPU's, in which nothing can be kept apart."""
    lies = plait.NamedSharding(plait.make_mesh((8,), ("x",)), plait.P("x"))
    ws = np.linspace(0.5, 1.5, 3 * size, dtype=np.float32).reshape(3, size)
    x = np.linspace(0.1, 1.0, size, dtype=np.float32)

    @plait.checkpoint
    def body(c, w):
        return pnp.sin(c * w), None

    def loss(ws, x):
        return lax.scan(body, x, ws)[0].sum()

    text = plait.jit(plait.grad(loss)).lower(ws, plait.device_put(x, lies)).compile().as_text()
    assert "opt-barrier" in text
    got = plait.jit(plait.grad(loss))(ws, plait.device_put(x, lies))
    kept = [x.astype(np.float64)]
    for w in ws:
        kept.append(np.sin(kept[-1] * w))
    ct, want = np.ones(size), []
    for w, c in zip(ws[::-1], kept[-2::-1], strict=True):
        ct = ct * np.cos(c * w)
        want.append(ct * c)
        ct = ct * w
    np.testing.assert_allclose(got, want[::-1], rtol=1e-4, atol=1e-5)
    slope = plait.grad(lambda v: (plait.grad(loss)(v, plait.device_put(x, lies)) ** 2).sum())
    way = np.cos(np.arange(ws.size, dtype=np.float32)).reshape(ws.shape) / 100
    up, down = (
        (np.asarray(plait.grad(loss)(ws + d, x), np.float64) ** 2).sum() for d in (way, -way)
    )
    np.testing.assert_allclose((np.asarray(slope(ws)) * way).sum() * 2, up - down, rtol=1e-2)
