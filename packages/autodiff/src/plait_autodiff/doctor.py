"""A small program that works where this package does: `python -m plait doctor --check` runs it.

Invariant: it needs the core and the distributions that this package requires, and one device.
"""

import math

import plait
from plait import lax

__all__ = ["check"]


def check() -> None:
    """Differentiate a compiled loop, forwards over reverse."""

    def f(x):
        return lax.fori_loop(0, 3, lambda _, y: lax.mul(y, x), lax.sin(x))

    x = 0.5
    first = 3 * x**2 * math.sin(x) + x**3 * math.cos(x)
    second = 6 * x * math.sin(x) + 6 * x**2 * math.cos(x) - x**3 * math.sin(x)
    slope = plait.grad(plait.jit(f))
    value, tangent = plait.jvp(slope, (x,), (1.0,))
    assert math.isclose(float(value), first, rel_tol=1e-4), (value, first)
    assert math.isclose(float(tangent), second, rel_tol=1e-4), (tangent, second)
