"""Values that a function read while it was traced, besides its arguments, and what became of them.

A program holds such a value as a constant, which never changes.  A function's code shows the
variables, and the attributes, that it reads; only those with plain data are compared.

Invariant: functions are inspected, never called; no array is kept, and none is read from a device.
"""

import dis
import sys
import types
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from .._base.errors import PurityWarning
from .._base.source import (
    below_hidden,
    hidden,
    of_a_library,
    of_standard_library,
    warn,
    where_defined,
)
from .._core.interpreter import Interpreter, Value, current, open_under, opened
from ..typing import Array
from .calls import LOOKING

__all__ = ["Looking", "Reads", "checking_purity", "look_again", "reads_of"]


class Read(NamedTuple):
    """A value that a function reads: its description, a function that reads it again, and the
    earlier value."""

    what: str
    again: Callable[[], Any]
    was: Any


class Reads:
    """The values that a function read when it was traced."""

    def __init__(self, f: Callable[..., Any], deep: bool):
        self.of, self.deep = where_defined(f), deep
        self.read = [*_reads(f, deep)]
        self.random = [] if f is None else [*_random(f, deep)]

    def __bool__(self) -> bool:
        return bool(self.read or self.random)

    def look(self) -> None:
        """Warn of each value that has changed; compare with the new ones from now on."""
        for i, r in enumerate(self.read):
            now = _plain(r.again())
            if now is _NOT_PLAIN or _same(now, r.was):
                continue
            warn(
                f"{self.of} was traced when {r.what} was {_shown(r.was)}; now it is "
                f"{_shown(now)}, and the compiled function does not see that\n"
                "  pass it as an argument of the function; or make that argument static",
                PurityWarning,
            )
            self.read[i] = r._replace(was=now)
        for name in self.random:
            warn(
                f"{self.of} uses {name}: its numbers were drawn once, when it was traced, and are "
                "the same in each call\n"
                "  use plait.random, and pass a key as an argument",
                PurityWarning,
            )
        self.random = []


def reads_of(f: Callable[..., Any]) -> Reads:
    """Return what a function reads besides its arguments."""
    return Reads(f, bool(LOOKING))


def look_again(seen: "dict[Any, Reads]", f: Callable[..., Any]) -> None:
    """Warn of what changed since `f` was called before; for each call in `checking_purity`."""
    found = seen.get(f)
    if found is None:
        seen[f] = reads_of(f)
    else:
        found.look()


class Looking(Interpreter):
    """An interpreter that applies operations under its parent, so that no call takes a path on
    which nothing is looked at."""

    does = "checking_purity"
    keeps_fused = True

    def __init__(self, parent: Interpreter):
        open_under(self, parent)

    def apply(self, prim: Any, args: Sequence[Array], params: dict[str, Any]) -> Any:
        assert self.parent is not None
        return self.parent.apply(prim, args, params)


@contextmanager
def checking_purity() -> Generator[None, None, None]:
    """Look, at each call of a jitted function in the `with` block, for values that it read while it
    was traced and that have changed since; also for those that functions it calls read.

    Warns of each change with a PurityWarning.  Calls are slower meanwhile.

    >>> import plait, warnings
    >>> rate = 0.1
    >>> step = plait.jit(lambda x: x * rate)
    >>> with warnings.catch_warnings(record=True) as found, plait.debug.checking_purity():
    ...     warnings.simplefilter("always")
    ...     _ = step(1.0)
    ...     rate = 0.2
    ...     _ = step(1.0)
    >>> "the global `rate` was 0.1; now it is 0.2" in str(found[0].message)
    True
    """
    LOOKING.append(WeakKeyDictionary())
    try:
        with opened(Looking(current())):
            yield
    finally:
        LOOKING.pop()


# ---- what code reads -----------------------------------------------------------------------------


class _Names(NamedTuple):
    """Names in a function's code, and in that of functions inside of it."""

    variables: frozenset[str]
    attributes: frozenset[str]


_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF")
_STORES = ("STORE_GLOBAL", "STORE_DEREF", "DELETE_GLOBAL", "DELETE_DEREF", "STORE_NAME")


@lru_cache(256)
def _names(code: CodeType) -> _Names:
    """Return the names that code reads and does not write."""
    read, written, attributes, stored = set[str](), set[str](), set[str](), set[str]()
    todo = [code]
    while todo:
        c = todo.pop()
        todo += [k for k in c.co_consts if isinstance(k, CodeType)]
        for i in dis.get_instructions(c):
            if i.opname in _LOADS:
                read.add(i.argval)
            elif i.opname in _STORES:
                written.add(i.argval)
            elif i.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                attributes.add(i.argval)
            elif i.opname in ("STORE_ATTR", "DELETE_ATTR"):
                stored.add(i.argval)
    return _Names(frozenset(read - written), frozenset(attributes - stored))


def _functions(f: Callable[..., Any], deep: bool) -> Iterator[tuple[FunctionType, Any]]:
    """Yield the user's functions that a call of `f` runs, as far as that is looked at, each with
    the object that it is bound to."""
    todo: list[tuple[Any, Any]] = [(f, None)]
    seen = set[int]()
    while todo:
        g, bound = todo.pop()
        inner = g
        while inner is not None:
            g, inner = inner, inner.func if isinstance(inner, partial) else _inside(inner)
        if isinstance(g, types.MethodType):
            g, bound = g.__func__, g.__self__
        if not isinstance(g, FunctionType):
            called = getattr(type(g), "__call__", None)
            g, bound = (called, g) if isinstance(called, FunctionType) else (None, None)
        if g is None or id(g) in seen or not _of_user(g.__code__.co_filename):
            continue
        seen.add(id(g))
        yield g, bound
        if deep and len(seen) < 100:
            held = [x for _, _, x in _variables(g)]
            todo += [(x, None) for x in held if callable(x) and not isinstance(x, type)]


def _inside(f: Callable[..., Any]) -> Any:
    """Return the function that a decorator wrapped; None if there is none."""
    return getattr(f, "__wrapped__", None)


_TYPED = ("<stdin>", "<console>", "<python-input-", "<ipython-input-", "<doctest ")
"""The names that consoles give to code that is typed into them, and docstrings' examples."""


def _of_user(file: str) -> bool:
    if file.startswith(_TYPED):
        return True
    return not (below_hidden(file) or hidden(file) or of_a_library(file)
                or of_standard_library(file))  # fmt: skip


def _variables(f: FunctionType) -> Iterator[tuple[str, Callable[[], Any], Any]]:
    """Yield (description, how to read it, value) of the variables that a function reads."""
    names = _names(f.__code__).variables
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
        if name in names:
            again = partial(_content, cell)
            yield f"the variable `{name}`", again, again()
    held = f.__globals__
    for name in names.intersection(held):
        yield f"the global `{name}`", partial(held.get, name), held[name]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _reads(f: Callable[..., Any], deep: bool) -> Iterator[Read]:
    for g, bound in _functions(f, deep):
        attributes = _names(g.__code__).attributes
        found = [*_variables(g)]
        if bound is not None and g.__code__.co_argcount:
            found.append((f"`{g.__code__.co_varnames[0]}`", lambda bound=bound: bound, bound))
        for what, again, x in found:
            was = _plain(x)
            if was is not _NOT_PLAIN:
                yield Read(what, again, was)
            for name in attributes.intersection(_own(x)):
                of = what.rpartition(" ")[2].strip("`")
                inner = _plain(_own(x)[name])
                if inner is not _NOT_PLAIN:
                    yield Read(f"`{of}.{name}`", partial(_attribute, again, name), inner)


def _own(x: object) -> dict[str, Any]:
    """Return the attributes of an object of a user's class or module; else an empty dict."""
    if isinstance(x, types.ModuleType):
        return vars(x) if _of_user(getattr(x, "__file__", None) or "<built in>") else {}
    if isinstance(x, (type, FunctionType, types.MethodType, Value, np.ndarray, partial)):
        return {}
    held = getattr(x, "__dict__", None)
    return held if isinstance(held, dict) else {}


def _attribute(again: Callable[[], Any], name: str) -> Any:
    return _own(again()).get(name, _NOT_PLAIN)


def _random(f: Callable[..., Any], deep: bool) -> Iterator[str]:
    """Yield the generators of numpy and Python, with a state of their own, that code names."""
    for g, _ in _functions(f, deep):
        names = _names(g.__code__)
        for name, module in (("np.random", "numpy"), ("random", "random")):
            held = [n for n in names.variables if g.__globals__.get(n) is sys.modules.get(module)]
            if held and (module == "random" or "random" in names.attributes):
                yield name


# ---- values --------------------------------------------------------------------------------------

_NOT_PLAIN: Any = object()
_DATA = (bool, int, float, complex, str, bytes, type(None))
_LARGEST = 1 << 12


class _Array(NamedTuple):
    """Facts kept of an array: its identity, and the elements of a small one of numpy."""

    identity: int
    text: str
    data: bytes


def _plain(x: Any) -> Any:
    """Return the plain data of a value; `_NOT_PLAIN` if it has none."""
    if x.__class__ in _DATA:
        return x
    if isinstance(x, np.generic):
        return x.item()
    if x.__class__ is tuple and len(x) < 20:
        parts = tuple([_plain(v) for v in x])
        return _NOT_PLAIN if _NOT_PLAIN in parts else parts
    if isinstance(x, np.ndarray):
        data = x.tobytes() if x.nbytes <= _LARGEST and not x.dtype.hasobject else b""
        return _Array(0 if data else id(x), f"an array {x.dtype.name}{list(x.shape)}", data)
    return _NOT_PLAIN


def _same(a: "_Array | float", b: "_Array | float") -> bool:
    return a.__class__ is b.__class__ and (a == b or a != a)


def _shown(x: "_Array | float") -> str:
    text = x.text if isinstance(x, _Array) else repr(x)
    return text if len(text) < 60 else text[:57] + "..."
