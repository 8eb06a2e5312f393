"""The arguments `where` and `out` of numpy's functions of elements.

Invariant: a call without them costs only the function itself; where the mask is False the result is
zero, since no array exists whose contents could stay.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

from plait.errors import ArgumentError, NotAnArrayError, Unsupported
from plait.ext import Literal, Primitive, current, materialise_at_ground
from plait.ext.ops import elementwise as el
from plait.ext.surface import overridden
from plait.ext.trace import Value
from plait.ext.types import BOOL
from plait.typing import Array, ArrayLike

R = TypeVar("R", covariant=True)

_NONE: dict[str, Any] = {}


class OfOne(Protocol[R]):
    """A function of one array, with `out` and `where`."""

    def __call__(
        self, x: ArrayLike, /, *, out: None = None, where: ArrayLike | None = None
    ) -> R: ...


class OfTwo(Protocol[R]):
    """A function of two arrays, with `out` and `where`."""

    def __call__(
        self, x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: ArrayLike | None = None
    ) -> R: ...


def unwritten(out: object) -> None:
    """Raise Unsupported unless `out` is None."""
    if out is not None:
        raise Unsupported(
            "arrays are never written to, so `out` must be None", fix="use the result"
        )


def kept(x: Value | tuple[Value, ...], where: object, out: object) -> Any:
    """Return `x` (or each of a tuple) where the mask holds, else zero; all of it without a mask."""
    unwritten(out)
    if where is None:
        return x
    if isinstance(x, tuple):
        return tuple([kept(v, where, None) for v in x])
    (mask,) = el.promoted((where,))
    if mask.aval.dtype != BOOL:
        raise ArgumentError(f"`where` is {mask.aval!r}", fix="give booleans")
    zero = False if x.aval.dtype == BOOL else 0
    return materialise_at_ground(el.select(mask, x, Literal(zero, x.aval.with_shape(()))))


@overload
def masked(f: Callable[[Any], R]) -> OfOne[R]: ...
@overload
def masked(f: Callable[[Any, Any], R]) -> OfTwo[R]: ...
def masked(f: Callable[..., Any]) -> Any:
    """Add `where` and `out` to a function of elements (a decorator)."""
    given = list(inspect.signature(f).parameters.values())

    @functools.wraps(f)
    def function(*xs: object, out: None = None, where: object = None) -> Any:
        try:
            return f(*xs) if where is None and out is None else kept(f(*xs), where, out)
        except NotAnArrayError as e:
            got = overridden(e, function, xs, {"out": out, "where": where})
            if got is NotImplemented:
                raise
            return got

    P = inspect.Parameter
    kinds = {"out": None, "where": ArrayLike | None}
    more = [P(n, P.KEYWORD_ONLY, default=None, annotation=kind) for n, kind in kinds.items()]
    arrays = [p.replace(kind=P.POSITIONAL_ONLY) for p in given]
    returns = inspect.signature(f).return_annotation
    signature = inspect.Signature([*arrays, *more], return_annotation=returns)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def binary(
    name: str, prim: Primitive, doc: str, prepare: Callable[[Any], Any] | None = None
) -> OfTwo[Array]:
    """Return `surface.binary` with `where` and `out`."""
    agree: Any = prepare or prim.prepare
    cur = current

    def function(
        x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: ArrayLike | None = None
    ) -> Array:
        try:
            if where is None and out is None:
                return cur().apply(prim, agree((x1, x2)), _NONE)
            return kept(cur().apply(prim, agree((x1, x2)), _NONE), where, out)
        except NotAnArrayError as e:
            got = overridden(e, function, (x1, x2), {"out": out, "where": where})
            if got is NotImplemented:
                raise
            return got

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
