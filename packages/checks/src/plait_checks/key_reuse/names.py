"""Names of random keys and numbers of values, for the check of key reuse.

Each key has a name.  A key chosen among several by an unknown condition has its own name, and a
table records which keys it may be.  Each unknown value has a number: equal numbers, equal values.

Invariant: names are only compared, and never reused.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from plait.ext.types import INTEGER, Aval

_SMALL = 64
_fresh = itertools.count(1)
_either: dict[int, frozenset[int]] = {}
"""Name of a key chosen by a condition -> the names that it may be."""
_picked: dict[int, frozenset[int]] = {}
"""Name of a key at a computed index -> the names that it may be."""
_picks: dict[int, set[int]] = {}
"""Name -> names of keys at computed indices that may be it."""


class Names(NamedTuple):
    """The names of the keys in an array, in its shape."""

    at: np.ndarray


class Known(NamedTuple):
    """A known value: a few integers or booleans."""

    value: np.ndarray


class Same(NamedTuple):
    """Unknown integers or booleans, equal to all others with this number."""

    number: int


def unknown() -> Same:
    """Return an unknown value, with a new number."""
    return Same(next(_fresh))


def few(aval: Aval) -> bool:
    """Return whether a type is an array of a few integers or booleans."""
    return aval.category <= INTEGER and aval.size.__class__ is int and aval.size <= _SMALL


def mark(x: Any) -> Any:
    """Return a hashable mark that equal values share; None if equality cannot be decided."""
    if x.__class__ is Same:
        return x
    return None if x is None else (x.__class__, x[0].dtype.str, x[0].shape, x[0].tobytes())


def fresh(shape: Sequence[Any]) -> Names:
    """Return new names for keys in an array of this shape."""
    sizes = [d if d.__class__ is int else 2 for d in shape]  # a symbolic size stands for some keys
    count = int(np.prod(sizes, dtype=np.int64))
    names = np.fromiter(itertools.islice(_fresh, count), np.int32, count)
    return Names(names.reshape(sizes))


def one_of(x: Names, y: Names) -> Names:
    """Return names of keys: each is one of two, by a condition."""
    if np.array_equal(x.at, y.at):
        return x
    out = fresh(x.at.shape)
    for n, a, b in zip(out.at.flat, x.at.flat, y.at.flat):
        _either[int(n)] = meant(int(a)) | meant(int(b))
    return out


def meant(name: int) -> frozenset[int]:
    """Return the keys that a name may stand for, by conditions."""
    return _either.get(name) or frozenset((name,))


def picked(shape: Sequence[Any], sources: Callable[[tuple], Iterable[int]]) -> Names:
    """Return names of keys: each is an unknown one of `sources(place)`."""
    out = fresh(shape)
    for place, n in np.ndenumerate(out.at):
        of = frozenset[int]().union(*[_sources(int(s)) for s in sources(place)])
        if len(of) == 1:
            (out.at[place],) = of
            continue
        _picked[int(n)] = of
        for s in of:
            _picks.setdefault(s, set()).add(int(n))
    return out


def _sources(name: int) -> frozenset[int]:
    return frozenset().union(*[_picked.get(n) or (n,) for n in meant(name)])


def crowded(name: int, is_spent: Callable[[int], Any]) -> Any:
    """Return where a key was spent if the key of this name would then be used twice, else None.

    A key at a computed index is certainly used twice once it and all keys that it may be were used.
    """
    for pick in (name, *_picks.get(name, ())):
        of = _picked.get(pick)
        if of and (pick == name or is_spent(pick)):
            wheres = [name == s or is_spent(s) for s in of]
            if all(wheres):
                return is_spent(pick) if pick != name else wheres[-1]
    return None


__all__ = [
    "Known", "Names", "Same", "crowded", "few", "fresh", "mark", "meant", "one_of", "picked",
    "unknown",
]  # fmt: skip
