"""How the thin functions of the surfaces (`weft.numpy`, `weft.lax`, `weft.nn`) are made.

Invariant: a function of one primitive costs what the primitive costs; one composed of several is
a single compiled program when it is called on arrays, and its parts when something is traced.
"""

from collections.abc import Callable
from typing import Any

from .calls import jit
from .interpreter import GROUND, Value, current
from .primitive import Primitive
from .values import Array, as_value

_NONE: dict[str, Any] = {}


def _named(f: Callable, name: str, doc: str) -> Callable:
    f.__name__ = f.__qualname__ = name
    f.__doc__ = doc
    return f


def unary(
    name: str, prim: Primitive, doc: str, other: Callable[[Any], Any] | None = None
) -> Callable[[Any], Any]:
    """A function of one array, said by one primitive; on an array it is a look-up and a run.

    `other(value)` is asked where the primitive may not do: for what is not an array on which it
    has run before.
    """
    compiled, prepare = prim.compiled, prim.prepare
    A, ground, cur = Array, GROUND, current

    def function(x: Any, /) -> Any:
        if x.__class__ is A and cur() is ground:
            try:
                run, handlers, key = compiled[x.key]
                buf = x._buf
            except (AttributeError, KeyError):
                pass
            else:
                r = A()
                r._buf = run([buf]).consume_with_handlers(handlers)[0]
                r.aval = key.aval
                r.key = key
                return r
        if other is not None:
            return other(x if isinstance(x, Value) else as_value(x))
        return cur().apply(prim, prepare((x,)), _NONE)  # type: ignore[misc]

    return _named(function, name, doc)


def binary(
    name: str, prim: Primitive, doc: str, prepare: Callable[[Any], Any] | None = None
) -> Callable[[Any, Any], Any]:
    """A function of two arrays, said by one primitive, on operands that agree by `prepare`."""
    agree: Any = prepare or prim.prepare
    cur = current

    def function(x1: Any, x2: Any, /) -> Any:
        return cur().apply(prim, agree((x1, x2)), _NONE)

    return _named(function, name, doc)


def value(x: Any) -> Any:
    """What primitives take, of what users give; see `weft.values.as_value`."""
    return x if isinstance(x, Value) else as_value(x)


def fused(f: Callable) -> Callable:
    """Decorator: called on arrays, one compiled program for each set of keyword arguments.

    Positional arguments are arrays (or None, or trees of them); keyword arguments are static, and
    values of different types are told apart.
    """
    versions: dict[tuple, Callable] = {}

    def function(*xs: Any, **static: Any) -> Any:
        if current() is not GROUND:
            return f(*xs, **static)
        values = tuple(static.values())
        key = (*static, *values, *[v.__class__ for v in values])
        try:
            version = versions[key]
        except KeyError:
            version = versions[key] = jit(_fixed(f, static))
        return version(*xs)

    return _named(function, f.__name__, f.__doc__ or "")


def _fixed(f: Callable, static: dict[str, Any]) -> Callable:
    def function(*xs: Any) -> Any:
        return f(*xs, **static)

    return _named(function, f.__name__, f.__doc__ or "")
