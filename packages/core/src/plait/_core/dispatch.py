"""Calls of public functions on arrays: one look-up and one run.

Which operations `sum(x, axis=0)` means follows from the type of `x` and from `axis` alone.  So a
function that is `dispatched` has a table, from types of arrays and static arguments to the compiled
program of the whole call; its body, in Python, runs when an entry is made, and whenever something
is being transformed.  What a program is made by is known to a higher layer (`GROUND.plan_with`).

Invariant: a call gives what the body gives.  What may follow from anything but types and static
arguments (values, what surrounds the call) has no plan, and the body is asked each time; there is a
table for each set of settings.
"""

# pyright: reportPrivateUsage=false
# (arrays are taken apart and put together here without a call: see `plait._core.array`)

import functools
from collections.abc import Callable
from enum import Enum
from types import NoneType
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from .._base.config import config
from .._base.jaxlib_api import RuntimeFailure
from .._base.tracebacks import leaving
from .array import Array, failure
from .interpreter import GROUND, current

F = TypeVar("F", bound=Callable[..., Any])

_MOST = 4096
"""The most entries of a table: shapes that change all the time start again."""


class Plan(NamedTuple):
    """How calls with arguments of some types are done.

    Attributes:
      run: the executable, a function of buffers; None if the body is to be asked each time.
      handlers: receive its results.
      aval: the type of the result, where that is one array.
      build: makes the results from their buffers, where it is not.
    """

    run: Callable[[list[Any]], Any] | None = None
    handlers: Any = None
    aval: Any = None
    build: Callable[[list[Any]], Any] | None = None


_ASKED = Plan()
"""The body is asked each time."""


class _StaticKinds(dict[type, bool]):
    """Whether arguments of a class are static: what class and equality tell apart."""

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
    f: Any = None,
    *,
    body: Callable[..., Any] | None = None,
    numbers: str = "static",
    floats: bool = False,
    arrays: frozenset[str] = frozenset(),
) -> Any:
    """Decorator: calls of `f` on arrays are found in a table, where an entry can be made.

    Args:
      f: a function of arrays, or lists of them, and static arguments, by position or by name.  What
        it does must follow from the types of the former and the values of the latter; it must not
        look at values of arrays, even to check them.
      body: what entries are made of, if not of `f` itself.
      numbers: what Python numbers are that are given by position: "static" arguments, as all that
        is given by name; "operands", as arrays are (their values must not matter to what is done);
        or "asked": with them `f` is called each time.
      floats: whether floats that are given by name are static, too, by their bits: of functions
        that are compiled for each of them; else `f` is called each time.
      arrays: names of arguments that are arrays, also where a number is given for one: `f` is
        called each time that one of them is given by name.
    """
    if f is None:
        return functools.partial(
            dispatched, body=body, numbers=numbers, floats=floats, arrays=arrays
        )
    tables: dict[Any, dict[tuple[Any, ...], Plan]] = {}
    """By settings, whose changes cost no plan: who goes back to others finds what he had."""
    table = tables.setdefault(config.state, {})
    number = GROUND.number if numbers == "operands" else None
    excluded = () if numbers == "static" else (int, float)
    of_static = _static_kinds

    # Public functions are borders (`plait._base.tracebacks`); this one is that of `f`, too.
    def function(*args: Any, **kwargs: Any) -> Any:
        if current() is not GROUND:
            try:
                return f(*args, **kwargs)
            except BaseException as e:
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
                    bufs.append(number(a))  # type: ignore[misc]  # where there is none it is asked
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
            pass  # what is neither, a deleted array, or too large a number
        run, handlers, out, build = found
        if run is None:
            try:
                return f(*args, **kwargs)
            except BaseException as e:
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
        r.aval = r.key = out  # type: ignore[assignment]  # it is one array's
        return r

    def changed() -> None:
        nonlocal table
        table = tables.setdefault(config.state, {})

    function.changed = changed  # type: ignore[attr-defined]  # the settings hold it weakly
    config.watch(changed)
    return functools.update_wrapper(function, f)
