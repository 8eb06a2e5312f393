"""A small program that works where this package does: `python -m plait doctor --check` runs it.

Invariant: it needs the core and the distributions that this package requires, and one device.
"""

import numpy as np

import plait
from plait import lax

__all__ = ["check"]


def check() -> None:
    """Write a function of a symbolic size, read it, and call it."""
    x = np.arange(3, dtype=np.float32)
    types = plait.export.symbolic_args_specs(x, "n")
    data = plait.export.export(lambda y: lax.mul(y, y))(types).serialize()
    np.testing.assert_array_equal(np.asarray(plait.export.deserialize(data).call(x)), x * x)
