"""A small program that works where this package does: `python -m plait doctor --check` runs it.

Invariant: it needs the core and the distributions that this package requires, and one device.
"""

import numpy as np

import plait
from plait import P, lax

__all__ = ["check"]


def check() -> None:
    """Sum over all devices of this process, by hand and by the compiler."""
    devices = plait.local_devices()
    mesh = plait.Mesh(devices, ("x",))
    rows = plait.NamedSharding(mesh, P("x"))
    x = plait.device_put(np.arange(2 * len(devices), dtype=np.float32), rows)
    total = plait.shard_map(
        lambda part: lax.psum(part, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()
    )
    want = np.arange(2 * len(devices)).reshape(-1, 2).sum(0)
    np.testing.assert_array_equal(np.asarray(plait.jit(total)(x)), want)
    np.testing.assert_array_equal(np.asarray(plait.jit(lambda y: y * 2)(x)), 2 * np.asarray(x))
