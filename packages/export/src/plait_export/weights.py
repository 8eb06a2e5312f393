"""Weights: large constants of a function, stored beside its module instead of inside.

The module takes them as its first arguments; calls add them, so users do not see them.  A weight is
named after the place where the function reaches it, such as `params['w1']`, if that can be found.

Invariant: a weight is identified by its name, its type and its place among the arguments of `main`;
a function and its derivatives share weights; only their elements may be replaced.
"""

import functools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from plait.ext.devices import move, put
from plait.ext.errors import ArgumentError, OperandTypeError, ShapeError
from plait.ext.sizes import Scope
from plait.ext.tree import flatten, key_paths
from plait.ext.types import Aval
from plait.ext.values import Array, as_argument, canonical, wrap

from . import safetensors, signature
from .container import field
from .errors import ArtifactError

MEBIBYTE = 1 << 20
"""The default number of bytes from which on a constant is a weight."""

_DEEPEST, _MOST = 6, 100_000
"""Limits of the search for names: nesting of functions and objects, and their number."""

_NO_SCOPE = Scope()


class Weight:
    """A named array.

    Attributes:
      name: its name, unique in an artifact.
      aval: its type.
    """

    __slots__ = ("name", "aval", "_host", "_array")

    def __init__(
        self, name: str, aval: Aval, host: np.ndarray | None = None, array: Array | None = None
    ):
        self.name, self.aval, self._host, self._array = name, aval, host, array

    def __repr__(self) -> str:
        return f"{self.name}: {self.aval!r}"

    def array(self) -> Array:
        """Return the array; it shares the memory of its file if the device can."""
        if self._array is None:
            if self._host is None:
                raise ArtifactError(f"the artifact is damaged: it has no weight {self.name!r}")
            self._array = wrap(put(self._host, self.aval, share=True), self.aval)
        return self._array

    def numpy(self) -> np.ndarray:
        """Return the elements; those of a file are not copied."""
        return self.array().numpy() if self._host is None else self._host

    @property
    def is_here(self) -> bool:
        """True if the weight has elements, not only a type."""
        return self._host is not None or self._array is not None

    def replaced(self, x: object) -> "Weight":
        """Return the weight with other elements.

        Raises OperandTypeError or ShapeError if they are of another type.
        """
        value = as_argument(x)
        a = value.aval
        if a.dtype != self.aval.dtype:
            raise OperandTypeError(
                f"the weight {self.name} is {self.aval!r}, and is replaced by {a!r}",
                fix=f"convert it with .astype({self.aval.dtype.name!r})",
            )
        if a.shape != self.aval.shape:
            raise ShapeError(
                f"the weight {self.name} is {self.aval!r}, and is replaced by {a!r}",
                fix="give an array of that shape, or export the function with the other one",
            )
        return Weight(self.name, self.aval, array=_at_home(value))


def _at_home(x: Array) -> Array:
    """Return an array in the default place."""
    return x if x.key.placement is None else wrap(move(x.buffer(), x.aval), x.aval)


def replacing(held: Sequence[Weight], given: object, name: str) -> dict[str, Weight]:
    """Return the replaced weights of a function, by name.

    Raises ArgumentError for names that it does not have, and what `Weight.replaced` raises.
    """
    known = {w.name: w for w in held}
    listed = ", ".join(known) or "none"
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"weights of {name} are given as a {type(given).__name__}, and not by name",
            fix=f"give a dictionary; its weights are {listed}",
        )
    unknown = [repr(n) for n in given if n not in known]
    if unknown:
        raise ArgumentError(
            f"{name} has no weight {', '.join(unknown)}", fix=f"its weights are {listed}"
        )
    return {n: known[n].replaced(x) for n, x in given.items()}


# ---- taken out of a program ----------------------------------------------------------------


class Weighing:
    """The choice of weights among the constants of a function and its derivatives, with names.

    Args:
      least: the number of bytes from which on a constant is a weight.
      fun: the function that is searched for names.
    """

    __slots__ = ("least", "_sources", "_found", "_named")

    def __init__(self, least: int, fun: Callable[..., Any]):
        self.least = least
        self._sources = list(_arrays_in(fun, "", 0, set()))
        self._found: dict[int, tuple[Array, Weight]] = {}
        self._named: dict[str, Weight] = {}

    def is_inside(self, x: Array) -> bool:
        """Return whether a constant stays in the module."""
        a = x.aval
        return a.size * a.dtype.itemsize < self.least or not safetensors.holds(a.dtype)

    def weight(self, x: Array) -> Weight:
        """Return the weight for a constant; the same one for the same array of the user."""
        if id(x) not in self._found:
            name = self._name_of(x)
            known = None if name is None else self._named.get(name)
            if known is None:
                name = name or f"constant_{sum(n.startswith('constant_') for n in self._named)}"
                known = self._named[name] = Weight(name, x.aval, array=_at_home(x))
            self._found[id(x)] = x, known
        return self._found[id(x)][1]

    def _name_of(self, x: Array) -> str | None:
        """Return the path by which the function reaches an array; None if it was not found."""
        for path, of in self._sources:
            if of is x:
                return path
        # The program holds copies of numpy arrays, so these are found by comparing elements.
        host: np.ndarray | None = None
        for path, of in self._sources:
            if isinstance(of, np.ndarray) and _like(of, x.aval):
                host = x.numpy() if host is None else host
                if _same(of.astype(host.dtype, copy=False), host):
                    return path
        return None


def _like(x: np.ndarray, aval: Aval) -> bool:
    return x.shape == aval.shape and canonical(x.dtype) == aval.dtype


_AT_ONCE = 1 << 20


def _same(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether two arrays of one type have the same bytes.

    They are compared piece by piece, because most pairs differ in the first piece.
    """
    a, b = _bytes(x), _bytes(y)
    cuts = range(0, len(a), _AT_ONCE)
    return all(np.array_equal(a[i : i + _AT_ONCE], b[i : i + _AT_ONCE]) for i in cuts)


def _bytes(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def _arrays_in(x: object, name: str, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield (path, array) for the arrays reachable from a function or a value."""
    if isinstance(x, Array | np.ndarray):
        yield name, x
        return
    if id(x) in seen or depth > _DEEPEST or len(seen) > _MOST:
        return
    if isinstance(x, types.ModuleType | type | str | bytes | int | float | None):
        return
    seen.add(id(x))
    for inner_name, inner in _inside(x, name):
        yield from _arrays_in(inner, inner_name, depth + 1, seen)


def _inside(x: object, name: str) -> Iterable[tuple[str, Any]]:
    """Return (name, value) for the values that a function or an object holds."""
    if isinstance(x, functools.partial):
        given = [(f"arguments[{i}]", a) for i, a in enumerate(x.args)]
        return [("", x.func), *given, *x.keywords.items()]
    if isinstance(x, types.MethodType):
        return [("self", x.__self__), ("", x.__func__)]
    wrapped = getattr(x, "__wrapped__", None) if callable(x) else None
    if wrapped is not None:
        return [("", wrapped)]
    if isinstance(x, types.FunctionType):
        return _of_function(x)
    try:
        leaves, _ = flatten(x)
        if len(leaves) != 1 or leaves[0] is not x:
            return [(name + path, leaf) for path, leaf in zip(key_paths(x), leaves, strict=True)]
    except Exception:  # A user's class may raise anything; a missing name must not fail the export.
        return []
    held = getattr(x, "__dict__", None)
    return [(f"{name}.{k}", v) for k, v in held.items()] if isinstance(held, dict) else []


def _of_function(f: types.FunctionType) -> Iterator[tuple[str, Any]]:
    code = f.__code__
    for name, cell in zip(code.co_freevars, f.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # The variable is not bound yet.
            pass
    yield from (f.__kwdefaults__ or {}).items()
    positional = code.co_varnames[: code.co_argcount]
    defaults = f.__defaults__ or ()
    yield from zip(positional[len(positional) - len(defaults) :], defaults)
    for name in code.co_names:
        if name in f.__globals__:
            yield name, f.__globals__[name]


# ---- in a file -----------------------------------------------------------------------------


def described(held: Sequence[Weight]) -> list[dict[str, str]]:
    """Return the manifest entries of weights, in the order in which `main` takes them."""
    return [{"name": w.name, "type": signature.shown(w.aval)} for w in held]


class Read:
    """The weights of a file, shared by its function and the derivatives.

    Args:
      arrays: the arrays of the file; None if they are elsewhere and only types are known.
    """

    __slots__ = ("arrays", "_held")

    def __init__(self, arrays: Mapping[str, np.ndarray] | None):
        self.arrays = arrays
        self._held: dict[str, Weight] = {}

    def of(self, said: dict[str, Any]) -> list[Weight]:
        """Return the weights that a manifest lists.  Raises ArtifactError if any is missing."""
        entries = field(said, "weights", list) if "weights" in said else []
        return [self._weight(field(e, "name", str), field(e, "type", str)) for e in entries]

    def _weight(self, name: str, text: str) -> Weight:
        aval = signature.read(text, _NO_SCOPE)
        host = None if self.arrays is None else self.arrays.get(name)
        found = self._held.setdefault(name, Weight(name, aval, host))
        fits = host is None or (host.shape, host.dtype) == (aval.shape, aval.dtype)
        if found.aval != aval or not fits or (host is None and self.arrays is not None):
            raise ArtifactError(
                f"the artifact is damaged: it has no weight {name!r} of type {text}"
            )
        return found

    def expect_all_used(self) -> None:
        """Raise ArtifactError if the file holds weights that no function takes."""
        unused = sorted({*(self.arrays or ())} - {*self._held})
        if unused:
            raise ArtifactError(
                f"the artifact is damaged: nothing takes its weights {', '.join(unused)}"
            )
