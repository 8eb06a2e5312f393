"""Construction of elementwise functions: agreement of operands, accuracy, documentation.

Invariant: operands have one dtype; Python scalars take that of the others if it is of their kind.
Mistakes that numpy's promotion would hide are errors here.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, overload

from plait.typing import Array, ArrayLike

from .._api.surfaces import unary, value, written
from .._base.errors import ArgumentError, OperandTypeError, ShapeError
from .._core.array import as_value
from .._core.interpreter import Value, current
from .._core.primitive import Primitive
from .._ops.accuracy import PLAIN, accurate
from .._ops.shape import fit
from .._types.avals import Aval, broadcast_shapes


def agree(name: str, args: Sequence[Any]) -> Sequence[Value]:
    """Bring operands to one type if permitted: strong dtypes must be equal already."""
    vs = [a if isinstance(a, Value) else as_value(a) for a in args]
    first = vs[0].aval
    if all(v.aval is first for v in vs):
        return vs
    avals = [v.aval for v in vs]
    strong = [a for a in avals if not a.weak_type]
    base = strong[0] if strong else avals[0]
    for a in avals:
        fits = a.category <= base.category if a.weak_type and strong else a.dtype == base.dtype
        if not fits:
            raise OperandTypeError(
                f"lax.{name}: operands must have one dtype, not {', '.join(map(repr, avals))}",
                fix="convert one of them with .astype, or use plait.numpy, which promotes",
            )
    ranks = {a.ndim for a in avals} - {0}
    if len(ranks) > 1:
        raise ShapeError(
            f"lax.{name}: the operands have different numbers of axes: "
            f"{', '.join(map(repr, avals))}",
            fix="broadcast one of them first, or use plait.numpy, which does",
        )
    shape = broadcast_shapes([a.shape for a in avals])
    aval = Aval(shape, base.dtype, not strong)
    return [fit(v, aval) for v in vs]


_RULES = "one dtype; arrays without axes are broadcast"


def example(name: str, says: str) -> str:
    """Return `arguments -> result` as a runnable example."""
    given, result = says.split(" -> ")
    call = f"plait.lax.{name}({given}).item()"
    near = len(result.rpartition(".")[2]) == 3
    shown = f"print(f'{{{call}:.3f}}')" if near else call
    return f">>> import plait\n>>> {shown}\n{result}"


_BINARY = """
def make(cur, prim, agree, Value, name):
    def function({x}: ArrayLike, {y}: ArrayLike) -> Array:
        try:
            same = {x}.aval is {y}.aval
        except AttributeError:
            same = False
        if same and isinstance({x}, Value):
            return cur().apply(prim, ({x}, {y}), {{}})
        return cur().apply(prim, agree(name, ({x}, {y})), {{}})
    return function
"""


class OfOne(Protocol):
    """A function of one array."""

    def __call__(self, x: ArrayLike) -> Array: ...


class OfTwo(Protocol):
    """A function of two arrays."""

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array: ...


class Accurate(Protocol):
    """A function of one array with a choice of accuracy."""

    def __call__(
        self, x: ArrayLike, *, accuracy: "AccuracyMode | Tolerance | None" = None
    ) -> Array: ...


@overload
def binary(name: str, prim: Primitive, doc: str, shows: str) -> OfTwo: ...
@overload
def binary(
    name: str, prim: Primitive, doc: str, shows: str, names: tuple[str, str]
) -> Callable[..., Array]: ...
def binary(
    name: str, prim: Primitive, doc: str, shows: str, names: tuple[str, str] = ("x", "y")
) -> Callable[..., Array]:
    """Make a function of two arrays from one primitive; operands must agree."""
    function = written(_BINARY, x=names[0], y=names[1])(current, prim, agree, Value, name)
    function.__name__ = function.__qualname__ = name
    accepted = f"{', '.join(names)}: {_RULES}.\n\nRaises TypeRule for different dtypes."
    function.__doc__ = f"{doc}\n\n{accepted}\n\n{example(name, shows)}"
    return function


def _about(name: str, prim: Primitive, doc: str, shows: str, more: str = "") -> str:
    accepted = f"x: any shape; the result has it too.{more}\n\nRaises TypeRule where {prim} does."
    return f"{doc}\n\n{accepted}\n\n{example(name, shows)}"


def one(name: str, prim: Primitive, doc: str, shows: str) -> OfOne:
    """Make a function of one array from one primitive."""
    return unary(name, prim, _about(name, prim, doc, shows), strict=True, arg="x")


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


def accurately(name: str, prim: Primitive, doc: str, shows: str) -> Accurate:
    """Make a function of one array with an argument `accuracy`."""
    plain = unary(name, prim, doc, strict=True)

    def function(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
        return plain(x) if accuracy is None else _asked(name, value(x), accuracy)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _about(name, prim, doc, shows, _ACCURACY)
    return function


def _asked(name: str, x: Any, accuracy: Any) -> Any:
    if isinstance(accuracy, AccuracyMode):
        if accuracy is AccuracyMode.DEFAULT:
            return PLAIN[name].bind(x)
        return accurate.bind(x, of=name, mode="highest", tolerance=(0.0, 0.0, 0))
    if isinstance(accuracy, Tolerance):
        absolute, relative, units = accuracy
        if absolute < 0 or relative < 0 or units < 0 or (relative and units):
            raise ArgumentError(
                f"lax.{name}: {accuracy} can not be met",
                fix="tolerances are not negative, and rtol or ulps is left out",
            )
        bound = float(absolute), float(relative), units.__index__()
        return accurate.bind(x, of=name, mode="tolerance", tolerance=bound)
    raise ArgumentError(
        f"lax.{name}: {accuracy!r} is no accuracy",
        fix="pass a plait.lax.AccuracyMode, or plait.lax.Tolerance(atol, rtol, ulps)",
    )
