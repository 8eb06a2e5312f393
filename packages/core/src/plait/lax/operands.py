"""Construction of elementwise functions: agreement of operands, accuracy, documentation.

Invariant: operands have one dtype; Python scalars take that of the others if it is of their kind.
Mistakes that numpy's promotion would hide are errors here.
"""

import enum
from typing import Any, NamedTuple, Protocol

from plait.typing import Array, ArrayLike

from .._api.strict_functions import about
from .._api.surfaces import unary, value
from .._base.errors import ArgumentError, OperandTypeError
from .._core.interpreter import Value
from .._core.primitive import Primitive
from .._ops.accuracy import PLAIN, accurate
from .._ops.shape import convert
from .._types.avals import FLOATING


class Accurate(Protocol):
    """A function of one array with a choice of accuracy."""

    def __call__(
        self, x: ArrayLike, *, accuracy: "AccuracyMode | Tolerance | None" = None
    ) -> Array: ...


class AccuracyMode(enum.Enum):
    """The accuracy of a function: the platform's highest, or its default."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(NamedTuple):
    """The error allowed in a result: absolute, relative, or in units of the last place.  At most
    the first and one of the others are given."""

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


_ACCURACY = "\n\naccuracy: an `AccuracyMode` or a `Tolerance`, for platforms that have a choice."


def in_dtype_of(x: Value, v: object, name: str) -> Value:
    """Return a number in the dtype of `x`: of that dtype, or a Python number that it can hold."""
    number = value(v)
    have, want = number.aval, x.aval
    lost = have.category > want.category and have.category >= FLOATING
    if have.ndim or lost or (have.dtype != want.dtype and not have.weak_type):
        raise OperandTypeError(
            f"{name} of {want!r} with the number {have!r}",
            fix="give a number without axes, of the same dtype",
        )
    return convert(v if v.__class__ is int else number, want.dtype)


def accurately(name: str, prim: Primitive, doc: str, shows: str) -> Accurate:
    """Make a function of one array with an argument `accuracy`."""
    plain = unary(name, prim, doc, strict=True)

    def function(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
        return plain(x) if accuracy is None else _asked(name, value(x), accuracy)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = about(name, prim, doc, shows, _ACCURACY)
    return function


def _asked(name: str, x: Value, accuracy: object) -> Any:
    if isinstance(accuracy, AccuracyMode):
        if accuracy is AccuracyMode.DEFAULT:
            return PLAIN[name].bind(x)
        return accurate.bind(x, of=name, mode="highest", tolerance=(0.0, 0.0, 0))
    if isinstance(accuracy, Tolerance):
        absolute, relative, units = accuracy
        if absolute < 0 or relative < 0 or units < 0 or (relative and units):
            raise ArgumentError(
                f"lax.{name}: {accuracy} cannot be met",
                fix="tolerances are not negative, and rtol or ulps is left out",
            )
        bound = float(absolute), float(relative), units.__index__()
        return accurate.bind(x, of=name, mode="tolerance", tolerance=bound)
    raise ArgumentError(
        f"lax.{name}: {accuracy!r} is not an accuracy",
        fix="pass a plait.lax.AccuracyMode, or plait.lax.Tolerance(atol, rtol, ulps)",
    )
