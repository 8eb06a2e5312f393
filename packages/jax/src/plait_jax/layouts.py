"""Layouts of arrays in memory (`jax.experimental.layout`): there is none to choose here.

Invariant: a format without a layout is the sharding in it; one with a layout is refused.
"""

from typing import Any

from .requests import missing

__all__ = ["Format", "Layout"]


class Layout:
    """How the elements of an array lie in memory; making one is an error."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise missing("jax.experimental.layout.Layout")


class Format:
    """A layout, which must be None, and a sharding: the sharding itself.

    >>> Format(None, "here")
    'here'
    """

    def __new__(cls, layout: None = None, sharding: Any = None) -> Any:
        if layout is not None:
            raise missing("jax.experimental.layout.Format", "no layout can be chosen")
        return sharding
