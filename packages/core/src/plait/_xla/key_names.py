"""Names of keys and numbers of values: what the check of reuse knows of them.

A key has a name.  A key that is one of several, by a choice that is not known, has a name of its
own, and it is written down which it may be.  A value that is not known has a number: equal numbers,
equal values.

Invariant: names are only compared, and never given twice.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._types.avals import INTEGER, Aval

_SMALL = 64
_fresh = itertools.count(1)
_either: dict[int, frozenset[int]] = {}
"""Name of a key that is one of several, by a condition -> their names."""
_picked: dict[int, frozenset[int]] = {}
"""Name of a key at a place that is computed -> the names of all that it may be."""
_picks: dict[int, set[int]] = {}
"""Name -> names of keys at computed places that may be it."""


class Names(NamedTuple):
    """The names of the keys in an array of this shape."""

    at: np.ndarray


class Known(NamedTuple):
    """A value that is known: a few integers or booleans."""

    value: np.ndarray


class Same(NamedTuple):
    """Integers or booleans that are not known, but equal to all others of this number."""

    number: int


def unknown() -> Same:
    """A value of which nothing is known."""
    return Same(next(_fresh))


def few(aval: Aval) -> bool:
    """Whether it is an array of a few integers or booleans."""
    return aval.category <= INTEGER and aval.size.__class__ is int and aval.size <= _SMALL


def mark(x: Any) -> Any:
    """What equal values have in common; None if that is not known."""
    if x.__class__ is Same:
        return x
    return None if x is None else (x.__class__, x[0].dtype.str, x[0].shape, x[0].tobytes())


def fresh(shape: Sequence[Any]) -> Names:
    """Names of keys that nobody has seen."""
    sizes = [d if d.__class__ is int else 2 for d in shape]  # a symbolic size stands for some keys
    count = int(np.prod(sizes, dtype=np.int64))
    names = np.fromiter(itertools.islice(_fresh, count), np.int32, count)
    return Names(names.reshape(sizes))


def one_of(x: Names, y: Names) -> Names:
    """Names of keys each of which is one of two, by a condition."""
    if np.array_equal(x.at, y.at):
        return x
    out = fresh(x.at.shape)
    for n, a, b in zip(out.at.flat, x.at.flat, y.at.flat):
        _either[int(n)] = meant(int(a)) | meant(int(b))
    return out


def meant(name: int) -> frozenset[int]:
    """The keys that a name may stand for, by conditions."""
    return _either.get(name) or frozenset((name,))


def picked(shape: Sequence[Any], sources: Callable[[tuple], Iterable[int]]) -> Names:
    """Names of keys each of which is one of `sources(place)`, which is not known."""
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
    """Where a key was spent that must be the key of this name, or the other one.

    The key at a computed place is surely used twice when it was used, and all that it may be were.
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
