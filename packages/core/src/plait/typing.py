"""Types for annotations.

Invariant: these are for readers and type checkers; they do not affect how programs run.
"""

from typing import Any, Protocol, TypeAlias

import numpy as np

from ._base.errors import ArgumentError
from ._core.array import Array as ConcreteArray
from ._core.handles import Handle
from ._core.interpreter import Value

__all__ = ["Array", "ArrayLike", "DTypeLike", "Shape"]


class _Arrays(type):
    """The metaclass that makes arrays and traced values instances of `Array`."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Value) and not isinstance(x, Handle)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return kind is cls or issubclass(kind, Value)

    def __getattr__(cls, name: str) -> Any:
        """Return a method of arrays as a function of an array: `plait.Array.sum(x)`."""
        if name.startswith("_"):
            raise AttributeError(name)
        for kind in (Value, ConcreteArray):
            if hasattr(kind, name):
                return getattr(kind, name)
        raise AttributeError(f"arrays have no {name!r}")


class Array(metaclass=_Arrays):
    """The class whose instances are arrays and traced values, for annotations and `isinstance`.

    Functions like `plait.numpy.asarray` make arrays.

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
"""Values that functions accept as arrays: arrays, traced values, numpy's, and Python scalars. Lists
are accepted only by `plait.numpy.asarray` and similar functions."""

DTypeLike: TypeAlias = str | type[Any] | np.dtype | _HasDType
"""Names of a dtype: "float32", numpy.float32, float, a dtype, or an object that has one."""

Shape: TypeAlias = tuple[Any, ...]
"""A tuple of sizes: ints, or symbolic ones."""
