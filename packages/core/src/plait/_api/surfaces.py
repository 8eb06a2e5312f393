"""Constructors of the thin functions of the surfaces (`plait.numpy`, `plait.lax`, `plait.nn`).

Invariant: a function of one primitive costs as much as the primitive.  One composed of several is a
single compiled program when it is called on arrays, and its parts while a function is traced.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from .._base.errors import NotAnArrayError
from .._base.freezing import PLAIN, freeze, freeze_params
from .._base.jaxlib_api import RuntimeFailure
from .._base.overriding import overridden
from .._base.tracebacks import leaving
from .._core.array import Array, Literal, as_value, failure
from .._core.dispatch import dispatched
from .._core.interpreter import GROUND, Value, current
from .._core.primitive import Primitive
from .._jit.caches import make_room
from .._jit.jitted import jit
from .._ops.shape import materialise_at_ground
from .._ops.widening import judge_widening
from .._types.avals import WEAK
from ..typing import Array as AnyArray
from ..typing import ArrayLike

F = TypeVar("F", bound=Callable[..., Any])

_NONE: dict[str, Any] = {}


def _named(f: Callable, name: str, doc: str) -> Callable:
    f.__name__ = f.__qualname__ = name
    f.__doc__ = doc
    return f


_UNARY = """
def make(A, cur, ground, compiled, prim, prepare, other, strict, Value, as_value, none):
    def function({x}: ArrayLike{only}) -> Array:
        if {x}.__class__ is A and cur() is ground:
            try:
                run, handlers, key = compiled[{x}.key]
                buf = {x}._buf
            except (AttributeError, KeyError):
                pass
            else:
                r = A()
                try:
                    r._buf = run([buf]).consume_with_handlers(handlers)[0]
                except RuntimeFailure as e:
                    raise failure(e, [buf]) from None
                r.aval = key.aval
                r.key = key
                return r
        try:
            if strict:
                return cur().apply(prim, ({x} if isinstance({x}, Value) else as_value({x}),), none)
            if other is not None:
                return other({x} if isinstance({x}, Value) else as_value({x}))
            return cur().apply(prim, prepare(({x},)), none)
        except BaseException as e:
            out = overridden(e, function, ({x},), {{}})
            if out is not NotImplemented:
                return out
            leaving(e)
            raise
    return function
"""
_BINARY = """
def make(cur, prim, agree, none):
    def function({x}: ArrayLike, {y}: ArrayLike{only}) -> Array:
        try:
            return cur().apply(prim, agree(({x}, {y})), none)
        except BaseException as e:
            out = overridden(e, function, ({x}, {y}), {{}})
            if out is not NotImplemented:
                return out
            leaving(e)
            raise
    return function
"""


@functools.cache
def written(text: str, **names: str) -> Callable[..., Any]:
    """Return the function `make` that a text defines, with names of parameters filled in.

    Callers may write arguments by name where the mathematics gives them one (`gammainc(a, x)`).  A
    wrapper that renames them would be one more Python call, which takes as long as the rest.  So a
    function is compiled for each set of names, once.
    """
    scope: dict[str, Any] = {"Any": Any, "__name__": __name__, "leaving": leaving}
    scope |= {"Array": AnyArray, "ArrayLike": ArrayLike}
    scope |= {"RuntimeFailure": RuntimeFailure, "failure": failure, "overridden": overridden}
    exec(compile(text.format(**names), "<plait function by its parameters>", "exec"), scope)
    return scope["make"]


@overload
def unary(
    name: str,
    prim: Primitive,
    doc: str,
    other: Callable[[Any], Any] | None = ...,
    strict: bool = ...,
) -> Callable[[ArrayLike], AnyArray]: ...
@overload
def unary(
    name: str,
    prim: Primitive,
    doc: str,
    other: Callable[[Any], Any] | None = ...,
    strict: bool = ...,
    *,
    arg: str,
) -> Callable[..., AnyArray]: ...
def unary(
    name: str, prim: Primitive, doc: str, other: Callable[[Any], Any] | None = None,
    strict: bool = False, arg: str = "",
) -> Callable[..., AnyArray]:  # fmt: skip
    """Return a function of one array and one primitive; on an array it is a look-up and a run.

    `other(value)` is called where the primitive may not suffice: for any value except an array of a
    type that it has run on before.  `strict`: nothing is converted, not even integers to floats.
    `arg` is the name by which callers may pass the array; without one it is positional.
    """
    make = written(_UNARY, x=arg or "x", only="" if arg else ", /")
    function = make(
        Array,
        current,
        GROUND,
        prim.compiled,
        prim,
        prim.prepare,
        other,
        strict,
        Value,
        as_value,
        _NONE,
    )
    return _named(function, name, doc)


@overload
def binary(
    name: str,
    prim: Primitive,
    doc: str,
    prepare: Callable[[Any], Any] | None = ...,
) -> Callable[[ArrayLike, ArrayLike], AnyArray]: ...
@overload
def binary(
    name: str,
    prim: Primitive,
    doc: str,
    prepare: Callable[[Any], Any] | None = ...,
    *,
    args: tuple[str, str],
) -> Callable[..., AnyArray]: ...
def binary(
    name: str, prim: Primitive, doc: str, prepare: Callable[[Any], Any] | None = None,
    args: tuple[str, str] | None = None,
) -> Callable[..., AnyArray]:  # fmt: skip
    """Return a function of two arrays and one primitive, whose operands `prepare` brings to agree.

    `args` are the names by which callers may pass them; without any they are positional.
    """
    x, y = args or ("x1", "x2")
    make = written(_BINARY, x=x, y=y, only="" if args else ", /")
    return _named(make(current, prim, prepare or prim.prepare, _NONE), name, doc)


def value(x: object) -> Value:
    """Return an argument as a value for primitives; see `plait._core.array.as_value`."""
    return x if isinstance(x, Value) else as_value(x)


@overload
def fused(f: F, *, numbers: tuple[str, ...] = ...) -> F: ...
@overload
def fused(f: None = None, *, numbers: tuple[str, ...] = ...) -> Callable[[F], F]: ...
def fused(f: Any = None, *, numbers: tuple[str, ...] = ()) -> Any:
    """Decorate a function to run, on arrays, as one compiled program per set of keyword arguments.

    Positional arguments are arrays (or None, or trees of them); keyword arguments are static.
    Python scalars among the former would lose their exact value and weakness as arguments of a
    compiled program.  So with one of them the parts run one by one.  But those named in `numbers`
    become static, since they hardly ever change.
    """
    if f is None:
        return functools.partial(fused, numbers=numbers)
    versions: dict[tuple, Callable] = {}
    signature = inspect.signature(f)
    names = [p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    arrays, fixed = frozenset(names), frozenset([names.index(n) for n in numbers])

    @functools.wraps(f)
    def function(*xs: Any, **static: Any) -> Any:
        if static and not arrays.isdisjoint(static):
            named = signature.bind(*xs, **static)
            xs, static = named.args, named.kwargs
        if current() is not GROUND:
            if current().keeps_fused and not any(x.__class__ in _SCALARS for x in xs):
                return jit(_fixed(f, static, {}))(*xs)  # anew, so that equations have this line
            return f(*xs, **static)
        held: dict[int, Any] = {}
        wide = False
        for i, x in enumerate(xs):
            if x.__class__ is np.ndarray:
                wide = wide or x.dtype.itemsize >= 8
            elif x.__class__ in WEAK or x.__class__ is Literal:
                if i not in fixed or x.__class__ is Literal:
                    return _solid(f(*xs, **static))
                held[i] = x
        key = _key(static, held)
        try:
            version = versions[key]
        except KeyError:
            make_room(versions)
            version = versions[key] = jit(_fixed(f, static, held))
        try:
            out = version(*[x for i, x in enumerate(xs) if i not in held] if held else xs)
        except NotAnArrayError:
            f(*xs, **static)  # refuses it too, where it has its name
            raise
        if wide and out.__class__ is Array:
            judge_widening(xs, out.aval.dtype)
        return out

    values = arrays - frozenset(numbers)
    return dispatched(function, body=f, numbers="asked", floats=True, arrays=values)


_SCALARS = (bool, int, float, complex, Literal)


_EXACT = PLAIN | {bool}


def _key(static: dict[str, Any], held: dict[int, Any]) -> tuple:
    values = tuple(static.values())
    classes = tuple([v.__class__ for v in values])
    key = (*static, *values, *classes) if _EXACT.issuperset(classes) else freeze_params(static)
    return (key, *[(i, freeze(v)) for i, v in held.items()]) if held else key


def _fixed(f: Callable, static: dict[str, Any], held: dict[int, Any]) -> Callable:
    def function(*xs: Value | None) -> Any:
        if not held:
            return f(*xs, **static)
        rest = iter(xs)
        return f(*[held[i] if i in held else next(rest) for i in range(len(xs) + len(held))],
                 **static)  # fmt: skip

    return _named(function, f.__name__, f.__doc__ or "")


def _solid(out: Value | tuple[Value, ...]) -> Any:
    """Return arrays in place of literals, also in a tuple of results."""
    if isinstance(out, tuple):
        return tuple([materialise_at_ground(v) for v in out])
    return materialise_at_ground(out)
