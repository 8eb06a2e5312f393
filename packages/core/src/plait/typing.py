"""Types for annotations.

Invariant: these are for readers and type checkers; nothing is decided by them when programs run.
"""

from typing import Any, Protocol, TypeAlias

import numpy as np

from ._base.errors import ArgumentError
from ._core.array import Array as ConcreteArray
from ._core.handles import Handle
from ._core.interpreter import Value

__all__ = ["Array", "ArrayLike", "DTypeLike", "Shape"]


class _Arrays(type):
    """The class of a class whose instances are told by what they can do, traced or not."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Value) and not isinstance(x, Handle)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return kind is cls or issubclass(kind, Value)

    def __getattr__(cls, name: str) -> Any:
        """The methods of arrays, as functions of an array: `plait.Array.sum(x)`."""
        if name.startswith("_"):
            raise AttributeError(name)
        for kind in (Value, ConcreteArray):
            if hasattr(kind, name):
                return getattr(kind, name)
        raise AttributeError(f"arrays have no {name!r}")


class Array(metaclass=_Arrays):
    """What arrays and traced values are instances of, and nothing else is: for annotations and
    `isinstance`.  Functions like `plait.numpy.asarray` make arrays.

    >>> import plait
    >>> plait.jit(lambda x: 2 * x if isinstance(x, plait.Array) else 0)(1.5)
    Array(3., dtype=float32, weak_type=True)
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise ArgumentError(
            "plait.Array can not be called", fix="plait.numpy.asarray(x) makes an array of x"
        )


class _HasDType(Protocol):
    @property
    def dtype(self) -> np.dtype: ...


ArrayLike: TypeAlias = Value | np.ndarray | np.generic | bool | int | float | complex
"""What functions take for an array: arrays, traced values, numpy's, and Python scalars; no lists,
which only `plait.numpy.asarray` and its like take."""

DTypeLike: TypeAlias = str | type[Any] | np.dtype | _HasDType
"""What names a dtype: "float32", numpy.float32, float, a dtype, or a thing that has one."""

Shape: TypeAlias = tuple[Any, ...]
"""Sizes: ints, or symbolic ones."""
