"""A small program that works where this package does: `python -m plait doctor --check` runs it.

Invariant: it needs the core and the distributions that this package requires, and one device.
"""

import numpy as np

import plait
import plait.numpy as pnp

__all__ = ["check"]


def check() -> None:
    """Solve equations and draw random numbers; compare with numpy's solution."""
    a = np.array([[2.0, 1.0], [1.0, 3.0]], np.float32)
    x = plait.jit(pnp.linalg.solve)(a, np.ones(2, np.float32))
    np.testing.assert_allclose(a @ np.asarray(x), np.ones(2), rtol=1e-5)
    drawn = np.asarray(plait.random.uniform(plait.random.key(0), (64,)))
    assert ((drawn >= 0) & (drawn < 1)).all(), drawn
