"""A small program that works where this package does: `python -m plait doctor --check` runs it.

Invariant: it needs the core alone, and one device.
"""

import plait

__all__ = ["check"]


def check() -> None:
    """Show a program, and count its operations by line."""

    def f(x):
        return plait.lax.sin(x)

    assert "core.sin" in plait.show(f)(1.0).html
    assert plait.profiler.by_line(f)(1.0).flops == 1
