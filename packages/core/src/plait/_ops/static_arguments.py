"""Checks of static arguments, which are numbers, flags, names of axes, but not arrays.

Invariant: an argument of another kind is an error that names the argument.
"""

from typing import Any

from .._base.errors import ArgumentError, ConcretizationError, OperandTypeError
from .._types.dims import Dim


def fixed(what: str, name: str, given: Any) -> int:
    """Return a static number of an operation; TypeRule if it is not an integer."""
    try:
        return given.__index__()
    except ConcretizationError:
        raise
    except (AttributeError, TypeError):
        raise OperandTypeError(
            f"{what}: {name} must be an integer, not {given!r}", fix="write a Python integer"
        ) from None


def size_given(given: Any) -> Any:
    """Return a size: a static integer, or a symbolic size."""
    return given if given.__class__ is Dim else given.__index__()


def fixed_each(what: str, name: str, given: Any) -> tuple[int, ...]:
    """Return several static numbers, as a tuple."""
    try:
        items = tuple(given)
    except TypeError:
        items = None
    if items is None:
        raise OperandTypeError(
            f"{what}: {name} must be integers, not {given!r}", fix="write a tuple of integers"
        )
    return tuple([n if n.__class__ in (int, Dim) else fixed(what, name, n) for n in items])


def flag(what: str, name: str, given: object) -> bool:
    """Return a bool; TypeRule for an array with axes."""
    if getattr(given, "ndim", 0):
        raise ArgumentError(f"{what}: {name} is {given!r}", fix=f"write {name}=True or False")
    return bool(given)


def record(what: str, kind: type, given: Any) -> Any:
    """Return a named tuple of tuples of integers, such as dimension numbers."""
    try:
        if getattr(given, "_fields", kind._fields)[0] != kind._fields[0]:
            raise TypeError
        parts = [tuple([n.__index__() for n in part]) for part in given]
        return kind(*parts)
    except (AttributeError, TypeError):
        raise ArgumentError(
            f"{what}: {given!r} are no {kind.__name__}",
            fix=f"write {kind.__name__}({', '.join(f'{f}=(...)' for f in kind._fields)})",
        ) from None
