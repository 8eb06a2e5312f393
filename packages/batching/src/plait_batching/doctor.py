"""A small program that works where this package does: `python -m plait doctor --check` runs it.

Invariant: it needs the core and the distributions that this package requires, and one device.
"""

import numpy as np

import plait
from plait import lax

__all__ = ["check"]


def check() -> None:
    """Map a loop whose length differs between examples, compiled."""
    xs = np.arange(4, dtype=np.int32)
    doubled = plait.jit(plait.vmap(lambda n: lax.fori_loop(0, n, lambda _, y: y + 2, 0)))
    np.testing.assert_array_equal(np.asarray(doubled(xs)), 2 * xs)
