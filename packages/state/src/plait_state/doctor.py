"""A small program that works where this package does: `python -m plait doctor --check` runs it.

Invariant: it needs the core and the distributions that this package requires, and one device.
"""

import numpy as np

import plait

__all__ = ["check"]


def check() -> None:
    """Write to a reference in a compiled function."""
    ref = plait.new_ref(np.zeros(3, np.float32))

    def add(x):
        ref[1] = ref[1] + x

    for x in (1.0, 2.0):
        plait.jit(add)(x)
    np.testing.assert_array_equal(np.asarray(plait.freeze(ref)), [0, 3, 0])
