"""Weights: large constants of a function that are not in its module, but beside it.

The module takes them first; what is called gives them, and users see neither.  They have names:
where a function got them from, `params['w1']`, as far as that can be seen from outside.

Invariant: weights are known by name, type and place among the arguments of `main`; a function and
its derivatives share them; only their elements may be replaced.
"""

import functools
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
"""Bytes from which on a constant is a weight, if nothing else is said."""

_DEEPEST, _MOST = 6, 100_000
"""How deep functions and objects in each other are looked through for names, and how many."""

_NO_SCOPE = Scope()


class Weight:
    """An array under a name.

    Attributes:
      name: unique in an artifact.
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
        """The array, which uses the memory of the file it was read from where a device can."""
        if self._array is None:
            if self._host is None:
                raise ArtifactError(f"the artifact is damaged: it has no weight {self.name!r}")
            self._array = wrap(put(self._host, self.aval, share=True), self.aval)
        return self._array

    def numpy(self) -> np.ndarray:
        """Its elements; those of a file are not copied."""
        return self.array().numpy() if self._host is None else self._host

    @property
    def is_here(self) -> bool:
        """Whether there are elements, and not a type alone."""
        return self._host is not None or self._array is not None

    def replaced(self, x: Any) -> "Weight":
        """The weight with other elements.

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
    """An array of the default place."""
    return x if x.key.placement is None else wrap(move(x.buffer(), x.aval), x.aval)


def replacing(held: Sequence[Weight], given: Any, name: str) -> dict[str, Weight]:
    """The weights of a function, by name, of which some are to be replaced.

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
    """Which constants of a function, and of its derivatives, are weights, and what they are called.

    Args:
      least: bytes from which on a constant is one.
      fun: where names are looked for.
    """

    __slots__ = ("least", "_sources", "_found", "_named")

    def __init__(self, least: int, fun: Any):
        self.least = least
        self._sources = list(_arrays_in(fun, "", 0, set()))
        self._found: dict[int, tuple[Array, Weight]] = {}
        self._named: dict[str, Weight] = {}

    def is_inside(self, x: Array) -> bool:
        """Whether a constant stays in the module."""
        a = x.aval
        return a.size * a.dtype.itemsize < self.least or not safetensors.holds(a.dtype)

    def weight(self, x: Array) -> Weight:
        """The weight that a constant is; the same one for the same array of the user's."""
        if id(x) not in self._found:
            name = self._name_of(x)
            known = None if name is None else self._named.get(name)
            if known is None:
                name = name or f"constant_{sum(n.startswith('constant_') for n in self._named)}"
                known = self._named[name] = Weight(name, x.aval, array=_at_home(x))
            self._found[id(x)] = x, known
        return self._found[id(x)][1]

    def _name_of(self, x: Array) -> str | None:
        """How the array is written where the function got it from; None if nobody can see."""
        for path, of in self._sources:
            if of is x:
                return path
        host: np.ndarray | None = None  # of numpy's arrays the program has copies
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
    """Whether two arrays of a type have the same bytes; looked at piece by piece, for most differ
    in the first one."""
    a, b = _bytes(x), _bytes(y)
    cuts = range(0, len(a), _AT_ONCE)
    return all(np.array_equal(a[i : i + _AT_ONCE], b[i : i + _AT_ONCE]) for i in cuts)


def _bytes(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def _arrays_in(x: Any, name: str, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """The arrays that a function can reach, or a value of it, each with how it is written there."""
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


def _inside(x: Any, name: str) -> Iterable[tuple[str, Any]]:
    """What a function, or an object, holds."""
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
    except Exception:  # of a user's class: names are no reason to fail
        return []
    held = getattr(x, "__dict__", None)
    return [(f"{name}.{k}", v) for k, v in held.items()] if isinstance(held, dict) else []


def _of_function(f: types.FunctionType) -> Iterator[tuple[str, Any]]:
    code = f.__code__
    for name, cell in zip(code.co_freevars, f.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it is not bound yet
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
    """What a manifest says of them, in the order in which `main` takes them."""
    return [{"name": w.name, "type": signature.shown(w.aval)} for w in held]


class Read:
    """The weights of a file that is read: those of its function and of its derivatives.

    Args:
      arrays: what the file holds; None: they are elsewhere, and only types are known.
    """

    __slots__ = ("arrays", "_held")

    def __init__(self, arrays: Mapping[str, np.ndarray] | None):
        self.arrays = arrays
        self._held: dict[str, Weight] = {}

    def of(self, said: dict[str, Any]) -> list[Weight]:
        """The weights that a manifest describes.  Raises ArtifactError if they are not there."""
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
        """Raise ArtifactError if the file holds weights that nothing takes."""
        unused = sorted({*(self.arrays or ())} - {*self._held})
        if unused:
            raise ArtifactError(
                f"the artifact is damaged: nothing takes its weights {', '.join(unused)}"
            )
