"""Executables for several devices are kept on disk, too.

Invariant: what is loaded gives the bits that were computed when it was compiled.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.events import counting
from plait_sharding import NamedSharding, P, device_put, shard_map

X = np.random.RandomState(0).rand(8, 4).astype(np.float32)


def divided(mesh):
    """Arrays in pieces, a collective, a placement that the compiler chooses."""
    x = device_put(X, NamedSharding(mesh, P("x", "y")))
    total = shard_map(
        lambda x: plait.lax.psum(x, "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y")
    )
    return [plait.jit(lambda x: pnp.sin(x) @ x.T)(x), plait.jit(lambda x: total(x) * 2)(x)]


def moved(mesh):
    """One program on each of the devices."""
    return [plait.jit(lambda x: pnp.cos(x) + 1)(device_put(X, d)) for d in plait.devices()]


def donated(mesh):
    x = device_put(X, NamedSharding(mesh, P("x", None)))
    return [plait.jit(lambda x: x * 3, donate_argnums=0)(x)]


WANTED = {
    divided: lambda: [np.sin(X) @ X.T, 2 * (X[:4] + X[4:])],
    moved: lambda: [np.cos(X) + 1] * 8,
    donated: lambda: [X * 3],
}


@pytest.mark.parametrize("f", WANTED, ids=lambda f: f.__name__)
def test_programs_of_several_devices(f, mesh, tmp_path):
    results, counts = [], []
    with plait.config(cache_dir=tmp_path / "kept"):
        for _ in range(2):
            plait.clear_caches()
            with counting() as n:
                results.append(f(mesh))
            counts.append((n["compile"], n["load"]))
    plait.clear_caches()
    (compiled, none), (again, loaded) = counts
    assert compiled >= 1 and again == none == 0 and loaded == compiled
    for a, b, w in zip(*results, WANTED[f](), strict=True):
        assert a.sharding == b.sharding
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, w, rtol=1e-5)
