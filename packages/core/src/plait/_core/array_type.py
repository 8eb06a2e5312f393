"""The class that stands for arrays and traced values: `plait.Array`.

Its stub in `plait-stubs` declares the members of arrays for type checkers.  `docs/stubs.py` writes
it from the members that values have at run time.

Invariant: the class has no members of its own, and no instance is of this class itself.
"""

from typing import Any

from .._base.errors import ArgumentError
from .array import Array as ConcreteArray
from .handles import Handle
from .interpreter import Value

__all__ = ["Array"]


class _Arrays(type):
    """The metaclass that makes arrays and traced values instances of `Array`."""

    def __instancecheck__(cls, x: object) -> bool:
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

    __module__ = "plait.typing"

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        raise ArgumentError(
            "plait.Array cannot be called", fix="plait.numpy.asarray(x) makes an array of x"
        )
