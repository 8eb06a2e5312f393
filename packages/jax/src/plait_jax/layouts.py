"""Layouts of arrays in memory (`jax.experimental.layout`); Plait lets users choose none.

Invariant: a format without a layout is the sharding in it; one with a layout is refused.
"""

from typing import Any

from .requests import missing

__all__ = ["Format", "Layout"]


class Layout:
    """The order of an array's elements in memory; making one raises an error."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise missing("jax.experimental.layout.Layout")


class Format:
    """A sharding with a layout, which must be None: the call returns the sharding itself.

    >>> Format(None, "here")
    'here'
    """

    def __new__(cls, layout: None = None, sharding: Any = None) -> Any:
        if layout is not None:
            raise missing("jax.experimental.layout.Format", "no layout can be chosen")
        return sharding
