"""Calls of public functions on arrays: one look-up and one run.

The types of its operands and its static arguments alone determine which operations a call such as
`sum(x, axis=0)` means.  So a `dispatched` function has a table, from types of arrays and static
arguments to the compiled program of the whole call.  Its body, in Python, runs when an entry is
made, and whenever a transformation is under way.  A higher layer compiles the programs
(`GROUND.plan_with`).

Invariant: a call returns the result of its body.  A call whose meaning may depend on anything else
(values, its surroundings) has no plan, and runs the body each time.  Each set of settings has a
table of its own.
"""

# pyright: reportPrivateUsage=false
# (for speed, arrays are taken apart and put together here without a call; see `array.wrap`)

import functools
from collections.abc import Callable
from enum import Enum
from types import NoneType
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from .._base import code_memory
from .._base.config import config
from .._base.jaxlib_api import RuntimeFailure
from .._base.lazy import later
from .._base.tracebacks import leaving
from .._base.wrapping import copy_names
from .array import Array, failure
from .interpreter import GROUND, current

F = TypeVar("F", bound=Callable[..., Any])

_MOST = 4096
"""The largest size of a table: one that is full, as under ever-changing shapes, is emptied."""


class Plan(NamedTuple):
    """A plan: the way to execute calls with arguments of some types.

    Attributes:
      run: the executable, a function of buffers; None if the body must run each time.
      handlers: receive its results.
      aval: the type of the result, if the result is one array.
      build: makes the results from their buffers in all other cases.
    """

    run: Callable[[list[Any]], Any] | None = None
    handlers: Any = None
    aval: Any = None
    build: Callable[[list[Any]], Any] | None = None


_ASKED = Plan()
"""The plan of calls that run the body each time."""


class _StaticKinds(dict[type, bool]):
    """{class: True} for classes of static arguments: those whose class and equality identify
    them."""

    def __missing__(self, kind: type) -> bool:
        if issubclass(kind, type | np.dtype | Enum):
            self[kind] = True
            return True
        return False


_static_kinds = _StaticKinds({int: True, bool: True, str: True, NoneType: True})


@overload
def dispatched(
    f: F,
    *,
    body: Callable[..., Any] | None = ...,
    numbers: str = ...,
    floats: bool = ...,
    arrays: frozenset[str] = ...,
) -> F: ...
@overload
def dispatched(
    f: None = None,
    *,
    body: Callable[..., Any] | None = ...,
    numbers: str = ...,
    floats: bool = ...,
    arrays: frozenset[str] = ...,
) -> Callable[[F], F]: ...
def dispatched(
    f: Callable[..., Any] | None = None,
    *,
    body: Callable[..., Any] | None = None,
    numbers: str = "static",
    floats: bool = False,
    arrays: frozenset[str] = frozenset(),
) -> Any:
    """Decorate `f` so that its calls on arrays are found in a table, where an entry can be made.

    Args:
      f: a function of arrays, or lists of them, and static arguments, by position or by name.  Its
        operations must follow from the types of the arrays and the values of the static arguments.
        It must not look at values of arrays, even to check them.
      body: the function to compile entries from, if not `f` itself.
      numbers: the role of Python numbers given by position.  "static": static arguments, as all
        that are given by name.  "operands": arrays, whose values must not matter to the operations.
        "asked": `f` is called each time.
      floats: True if floats that are given by name are static too, by their bits, for functions
        that are compiled for each of them; otherwise `f` is called each time.
      arrays: names of arguments that are arrays, even where a number is given for one.  `f` is
        called each time that one of them is given by name.
    """
    if f is None:
        return functools.partial(
            dispatched, body=body, numbers=numbers, floats=floats, arrays=arrays
        )
    tables: dict[Any, dict[tuple[Any, ...], Plan]] = {}
    """A table for each set of settings: restoring earlier settings restores their plans."""
    table = tables.setdefault(config.state, {})
    number = GROUND.number if numbers == "operands" else None
    excluded = () if numbers == "static" else (int, float)
    of_static = _static_kinds

    # Public functions are borders (`plait._base.tracebacks`); this one is the border of `f`, too.
    def function(*args: Any, **kwargs: Any) -> Any:
        if current() is not GROUND:
            try:
                return f(*args, **kwargs)
            except BaseException as e:
                out = later("_base.overriding").overridden(e, function, args, kwargs)
                if out is not NotImplemented:
                    return out
                leaving(e)
                raise
        key: list[Any] = []
        bufs: list[Any] = []
        found: Plan = _ASKED
        try:
            for a in args:
                kind = a.__class__
                if kind is Array:
                    bufs.append(a._buf)
                    key.append(a.key)
                elif kind is tuple or kind is list:
                    key += kind, len(a)
                    for x in a:
                        if x.__class__ is Array:
                            bufs.append(x._buf)
                            key.append(x.key)
                        elif of_static[x.__class__]:
                            key += x.__class__, x
                        else:
                            raise TypeError
                elif kind in excluded:
                    bufs.append(number(a))  # type: ignore[misc]  # None raises TypeError: no plan
                    key.append(kind)
                elif of_static[kind]:
                    key += kind, a
                else:
                    raise TypeError
            for name, a in kwargs.items():
                kind = a.__class__
                if name in arrays:
                    raise TypeError
                if kind is tuple:
                    key += name, kind, len(a)
                    for x in a:
                        if not of_static[x.__class__]:
                            raise TypeError
                        key += x.__class__, x
                elif floats and kind is float:
                    key += name, kind, a.hex()  # 0.0 equals -0.0, and no nan equals one
                elif of_static[kind]:
                    key += name, kind, a
                else:
                    raise TypeError
            found = table[tuple(key)]
        except KeyError:
            if bufs:
                if len(table) >= _MOST:
                    table.clear()
                found = GROUND.plan(body or f, args, kwargs, number is not None)
                table[tuple(key)] = found
        except (TypeError, AttributeError, OverflowError):
            pass  # not an argument of these kinds, a deleted array, or too large a number
        run, handlers, out, build = found
        if run is None:
            try:
                return f(*args, **kwargs)
            except BaseException as e:
                out = later("_base.overriding").overridden(e, function, args, kwargs)
                if out is not NotImplemented:
                    return out
                leaving(e)
                raise
        try:
            outs = run(bufs).consume_with_handlers(handlers)
        except RuntimeFailure as e:
            raise failure(e, bufs) from None
        if build is not None:
            return build(outs)
        r = Array()
        r._buf = outs[0]
        r.aval = r.key = out  # type: ignore[assignment]  # `out` is the type of one array
        return r

    def changed() -> None:
        nonlocal table
        table = tables.setdefault(config.state, {})

    def forget() -> None:
        for one in list(tables.values()):
            one.clear()

    # They are held weakly, and die with the function.
    function.changed, function.forget = changed, forget  # type: ignore[attr-defined]
    config.watch(changed)
    code_memory.emptied_by(forget)
    return copy_names(function, f)
