"""Layouts of arrays in memory (`jax.experimental.layout`).

The compiler chooses all layouts.  A wish for one changes no value, so it is recorded for
`plait_jax.report()` and has no further effect.

Invariant: a format is the sharding in it, and a constraint returns its argument.
"""

from typing import Any, NamedTuple, TypeVar

from .requests import remember

__all__ = ["Format", "Layout", "with_layout_constraint"]

T = TypeVar("T")


class Layout(NamedTuple):
    """An order of axes in memory, and tiles."""

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0


class Format:
    """A sharding with a layout: the call returns the sharding itself.

    >>> Format(None, "here")
    'here'
    """

    def __new__(cls, layout: object = None, sharding: Any = None) -> Any:
        if layout is not None:
            remember("jax.experimental.layout.Format", True)
        return sharding


def with_layout_constraint(x: T, layout: object) -> T:
    """Return `x`, whose layout the compiler chooses."""
    remember("jax.experimental.layout.with_layout_constraint", True)
    return x
