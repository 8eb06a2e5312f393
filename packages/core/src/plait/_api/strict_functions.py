"""Constructors of functions without conversions, such as those of `plait.lax`.

Invariant: operands have one dtype; Python scalars take that of the others if it is of their kind.
Mistakes that numpy's promotion would hide are errors here.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

from .._base.errors import OperandTypeError, ShapeError
from .._core.array import as_value
from .._core.interpreter import Value, current
from .._core.primitive import Primitive
from .._ops.shape import fit
from .._types.avals import Aval, broadcast_shapes
from ..typing import Array, ArrayLike
from .surfaces import unary, written

__all__ = ["about", "agree", "strict_binary", "strict_unary"]


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


_STRICT = """
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


@overload
def strict_binary(name: str, prim: Primitive, doc: str, shows: str) -> OfTwo: ...
@overload
def strict_binary(
    name: str, prim: Primitive, doc: str, shows: str, names: tuple[str, str]
) -> Callable[..., Array]: ...
def strict_binary(
    name: str, prim: Primitive, doc: str, shows: str, names: tuple[str, str] = ("x", "y")
) -> Callable[..., Array]:
    """Make a function of two arrays from one primitive; operands must agree."""
    function = written(_STRICT, x=names[0], y=names[1])(current, prim, agree, Value, name)
    function.__name__ = function.__qualname__ = name
    accepted = f"{', '.join(names)}: {_RULES}.\n\nRaises TypeRule for different dtypes."
    function.__doc__ = f"{doc}\n\n{accepted}\n\n{example(name, shows)}"
    return function


def about(name: str, prim: Primitive, doc: str, shows: str, more: str = "") -> str:
    """Return the docstring of a function of one array, with `more` about its arguments."""
    accepted = f"x: any shape; the result has it too.{more}\n\nRaises TypeRule where {prim} does."
    return f"{doc}\n\n{accepted}\n\n{example(name, shows)}"


def strict_unary(name: str, prim: Primitive, doc: str, shows: str) -> OfOne:
    """Make a function of one array from one primitive."""
    return unary(name, prim, about(name, prim, doc, shows), strict=True, arg="x")
