"""Data-parallel training: eight devices take the steps that one device takes."""

import numpy as np

import plait
from plait._ops.collective import pmean, psum
from plait.events import counting
from plait.ext.ops.elementwise import tanh
from plait_sharding import NamedSharding, P, device_put, make_mesh, shard_map

R = np.random.default_rng(0)
X = R.normal(size=(32, 16)).astype(np.float32)
Y = R.normal(size=(32, 1)).astype(np.float32)
START = {
    "w": (R.normal(size=(16, 8)) * 0.3).astype(np.float32),
    "v": (R.normal(size=(8, 1)) * 0.3).astype(np.float32),
}


def loss(p, x, y):
    return ((tanh(x @ p["w"]) @ p["v"] - y) ** 2).mean()


def descent(value_and_grad, **options):
    @plait.jit(**options)
    def step(p, x, y):
        value, g = value_and_grad(p, x, y)
        return value, plait.tree.map(lambda a, b: a - 0.1 * b, p, g)

    return step


def by_hand(steps):
    """The same steps by numpy."""
    w, v = (START[k].astype(np.float64) for k in "wv")
    for _ in range(steps):
        h = np.tanh(X @ w)
        e = h @ v - Y
        value, d = (e**2).mean(), 2 * e / e.size
        w, v = w - 0.1 * X.T @ ((d @ v.T) * (1 - h * h)), v - 0.1 * h.T @ d
    return value, {"w": w, "v": v}


def test_steps(close):
    mesh = make_mesh((8,), "data")
    divided, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    specs = {"mesh": mesh, "in_specs": (P(), P("data"), P("data")), "out_specs": P()}

    def local(p, x, y):
        value, g = plait.value_and_grad(loss)(p, x, y)
        return pmean(value, "data"), pmean(g, "data")

    mean = plait.value_and_grad(lambda *a: pmean(loss(*a), "data"))

    ways = {
        "one device": descent(plait.value_and_grad(loss)),
        "divided by the compiler": descent(plait.value_and_grad(loss)),
        "told to jit": descent(
            plait.value_and_grad(loss), in_shardings=(whole, divided, divided), out_shardings=whole
        ),
        "gradient of the whole": descent(
            plait.value_and_grad(shard_map(lambda *a: pmean(loss(*a), "data"), **specs))
        ),
        "gradients of pieces": descent(shard_map(local, **specs, check_vma=False)),
        "gradient of the mean": descent(shard_map(mean, **specs)),
        "donated": descent(plait.value_and_grad(loss), donate_argnums=0),
    }
    value, want = by_hand(5)
    for name, step in ways.items():
        alone = name in ("one device", "told to jit")
        x, y = (X, Y) if alone else device_put((X, Y), divided)
        p = START if alone else device_put(START, whole)
        with counting() as n:
            for _ in range(5):
                before, (found, p) = p, step(p, x, y)
        assert n["trace"] <= 3 and n["lower"] == 1, (name, n)
        close(found, value)
        for k in want:
            close(p[k], want[k])
            assert name == "one device" or p[k].sharding == whole
        assert name != "donated" or before["w"].is_deleted()


def test_a_layer_divided_over_columns(close):
    """Weights in pieces too: each device has a part of the batch and of the hidden layer."""
    mesh = make_mesh((4, 2), ("data", "model"))
    specs = {"w": P(None, "model"), "v": P("model")}

    def local(p, x, y):
        out = psum(tanh(x @ p["w"]) @ p["v"], "model")
        return pmean(((out - y) ** 2).mean(), "data")

    f = shard_map(local, mesh=mesh, in_specs=(specs, P("data"), P("data")), out_specs=P())
    step = descent(plait.value_and_grad(f))
    p = {k: device_put(START[k], NamedSharding(mesh, s)) for k, s in specs.items()}
    for _ in range(3):
        found, p = step(p, X, Y)
    value, want = by_hand(3)
    close(found, value)
    for k in want:
        close(p[k], want[k])
        assert p[k].sharding == NamedSharding(mesh, specs[k])
