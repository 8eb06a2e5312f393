"""The type of mutable references, by JAX's name.

Invariant: the types of references of every provider are recognised; nothing is provided here.
"""

from typing import Any

from plait.ext.trace import Handle
from plait.ext.types import Aval

__all__ = ["AbstractRef"]


class _Types(type):
    """The metaclass of a class whose instances are types of Plait."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Aval) and x.dtype in Handle.of_dtype


class AbstractRef(metaclass=_Types):
    """The type of a reference, for `isinstance` only."""
