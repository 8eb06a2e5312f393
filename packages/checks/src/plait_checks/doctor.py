"""A small program that works where this package does: `python -m plait doctor --check` runs it.

Invariant: it needs the core and the distributions that this package requires, and one device.
"""

import plait
from plait import checks

__all__ = ["check"]


def check() -> None:
    """Run a function whose check fails in a compiled program, and one whose check does not."""

    def f(x):
        checks.check(x > 0, "not positive")
        return x

    checked = plait.jit(checks.checkify(f))
    assert checked(1.0)[0].get() is None
    assert "not positive" in str(checked(-1.0)[0].get())
