"""A small program that works where this package does: `python -m plait doctor --check` runs it.

Invariant: it needs the core and the distributions that this package requires, and one device.
"""

import numpy as np

import plait
from plait import lax, testing

__all__ = ["check"]


def check() -> None:
    """Evaluate a program by numpy, and compare with a compiled call."""

    def f(x):
        return lax.sin(x) + x

    x = np.arange(3, dtype=np.float32)
    (wanted,) = testing.numpy_evaluate(plait.make_program(f)(x), [x])
    np.testing.assert_allclose(np.asarray(plait.jit(f)(x)), wanted, rtol=1e-5)
