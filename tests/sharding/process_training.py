"""What each of several processes runs in `test_processes.py`: steps of training, with siblings.

Invariant: nothing is compared here; what was computed is told to the test.
"""

import json

import numpy as np

import plait
import plait.numpy as pn
from plait import P, lax
from plait.experimental import multihost_utils

STEPS = 8


def data():
    """Inputs, targets, and parameters to begin with."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(32, 16)).astype(np.float32)
    y = rng.normal(size=(32, 4)).astype(np.float32)
    return x, y, rng.normal(size=(16, 4)).astype(np.float32)


def loss(w, x, y):
    return pn.mean((pn.tanh(x @ w) - y) ** 2)


def main():
    plait.distributed.initialize()
    n, i = plait.process_count(), plait.process_index()
    mesh = plait.make_mesh((plait.device_count(),), ("data",))
    rows, whole = plait.NamedSharding(mesh, P("data")), plait.NamedSharding(mesh, P())
    x, y, w = data()
    part = slice(i * 32 // n, (i + 1) * 32 // n)
    x = plait.make_array_from_process_local_data(rows, x[part])
    y = plait.make_array_from_process_local_data(rows, y[part])

    def stepped(w, x, y):
        value, g = plait.value_and_grad(loss)(w, x, y)
        return w - 0.1 * g, value

    def on_pieces(w, x, y):
        value, g = plait.value_and_grad(loss)(w, x, y)
        return w - 0.1 * g / mesh.size, lax.pmean(value, "data")  # of what is not divided, a sum

    divided = plait.jit(stepped, out_shardings=(rows, whole), donate_argnums=0)
    manual = plait.jit(
        plait.shard_map(
            on_pieces, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P())
        )
    )
    a, b = plait.device_put(w, rows), plait.device_put(w, whole)
    values = []
    for _ in range(STEPS):
        a, first = divided(a, x, y)
        b, second = manual(b, x, y)
        values.append([float(first), float(second)])
    each = plait.jit(plait.vmap(plait.grad(lambda v: (pn.sin(v) ** 2).sum())))(x)
    told = {
        "divided": multihost_utils.process_allgather(a, tiled=True).tolist(),
        "manual": np.asarray(b).tolist(),
        "values": values,
        "each": multihost_utils.process_allgather(each, tiled=True).tolist(),
        "pieces": [list(s.data.shape) for s in a.addressable_shards],
    }
    print("told " + json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
