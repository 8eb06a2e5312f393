"""Lengths of piles: checked, shared, and bounded by capacities.

Invariant: equal known lengths are one array, so that piles made with them share a size where
lengths are compared by identity.
"""

import operator
from collections.abc import Hashable, Sequence
from functools import reduce
from threading import RLock
from typing import Any
from weakref import ReferenceType, ref

import numpy as np

import plait.numpy as pnp
from plait.ext.errors import ArgumentError
from plait.ext.sizes import is_symbolic
from plait.ext.trace import GROUND, Tracer, Value, current
from plait.ext.values import Array, as_argument, as_value
from plait.typing import Array as AnyArray

from .capacities import TILE, Size, rounded, size_of_lengths, sums_of
from .layouts import fit
from .on_host import is_on_host
from .policy import Capacities, bounded

__all__ = [
    "are_examples", "array_of", "checked", "filled_up", "one_of", "size_of", "with_count",
    "with_empty",
]  # fmt: skip

_vectors: "dict[Hashable, ReferenceType[Array]]" = {}
"""The canonical arrays of lengths, held weakly.  Each batch makes one, and `WeakValueDictionary`
would call Python four times for it."""
_keeping = RLock()  # a collection in the same thread may forget an array while another is kept


def _kept(key: Hashable) -> Array | None:
    """Return the array that is kept by a key, unless it was deleted."""
    found = _vectors.get(key)
    n = None if found is None else found()
    return None if n is None or n.is_deleted() else n


def _keep(key: Hashable, n: Array) -> Array:
    """Keep an array by a key for as long as it lives, and return it."""

    def forget(dead: "ReferenceType[Array]") -> None:
        with _keeping:
            if _vectors.get(key) is dead:
                del _vectors[key]

    with _keeping:
        _vectors[key] = ref(n, forget)
    return n


def checked(lengths: object) -> tuple[Any, tuple[int, int] | None]:
    """Return lengths as a vector of int32, and their `sums_of` if they are a numpy array.

    They are one if they are known, in no chosen place.  Raises ArgumentError if they are not
    integers, or negative, or more than an int32 holds.  Traced ones are checked when they run."""
    if isinstance(lengths, list | tuple):
        lengths = np.asarray(lengths) if lengths else np.zeros(0, np.int32)
    if type(lengths) is np.ndarray and lengths.ndim == 1 and lengths.dtype.kind in "iu":
        if current() is GROUND:
            sums = _sums_of_lengths(lengths)
            return lengths.astype(np.int32), sums
    n = as_value(lengths)
    if n.aval.dtype.kind == "b":
        raise ArgumentError(
            f"lengths must be integers, got a mask {n.aval!r}",
            fix="put the rows that exist in front, and give their numbers: mask.sum(axis=1)",
        )
    if n.ndim != 1 or n.aval.dtype.kind not in "iu":
        raise ArgumentError(
            f"lengths are {n.aval!r}", fix="give a vector of integers, one for each element"
        )
    if isinstance(n, Tracer):
        found = pnp.asarray(n, "int32")
        if not np.can_cast(n.dtype, np.int32):  # what wraps around would be another length
            found = pnp.where((n < 0) | (n > _MOST), np.int32(-1), found)
        return one_of(found), None
    host = np.asarray(n)
    sums = _sums_of_lengths(host)
    if is_on_host(n):  # a conversion on the device would be compiled for each number of elements
        return host.astype(np.int32), sums
    return one_of(pnp.asarray(n, "int32")), None


def _sums_of_lengths(n: np.ndarray) -> tuple[int, int]:
    """Return the `sums_of` integers; raise ArgumentError if one is negative, or no int32."""
    # Without signs negative ones are the greatest, so one reduction finds both.
    whole = n if n.dtype.isnative else n.astype(n.dtype.newbyteorder("="))
    total, most = sums_of(whole.view(_UNSIGNED[n.dtype.itemsize]))
    if n.dtype.kind == "i" and most >= 1 << (8 * n.dtype.itemsize - 1):
        raise ArgumentError("a length is negative", fix="give lengths that are 0 or more")
    if most > _MOST:
        raise ArgumentError(f"a length is {most}", fix=f"give lengths of at most {_MOST} rows")
    return total, most


_MOST = np.iinfo(np.int32).max
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def one_of(n: AnyArray) -> Any:
    """Return the canonical array of these lengths, if they are known.

    Piles of equal lengths then share a size where lengths are compared by identity, such as among
    the arguments of jit."""
    if not isinstance(n, Array):
        return n
    values = np.asarray(n).tobytes()
    is_plain = n.key is n.aval and n.ndim == 1 and n.dtype == np.int32  # as in `array_of`
    key = values if is_plain else (values, n.key)
    found = _kept(key)
    return _keep(key, n) if found is None else found


def array_of(n: np.ndarray) -> Array:
    """Return the canonical array of known lengths, int32, in no chosen place.

    Nothing is copied to a device if there is one already."""
    key = n.tobytes()
    found = _kept(key)
    return _keep(key, as_argument(n)) if found is None else found


def size_of(
    name: str,
    n: Any,
    rows: Any,
    longest: Any,
    policy: Capacities | None = None,
    sums: tuple[int, int] | None = None,
) -> Size:
    """Return the capacities for lengths; if they are traced, for the greatest possible ones.

    `sums` are those of known lengths (`sums_of`), if they were computed."""
    count = n.shape[0]
    if policy is not None:
        if not isinstance(n, Tracer):
            policy.expect(n, sums)
        return policy.size(name, count)
    if not isinstance(n, Tracer) and longest.__class__ is int:
        return size_of_lengths(name, np.asarray(n), sums)
    rows, longest = rounded(rows, 8, 64), rounded(longest, 1, 8)
    if not is_symbolic((rows, longest, count)):
        return bounded(name, rows, longest, count)
    tiles = -(-longest // TILE)
    return Size(name, rows, longest, count * tiles * tiles + 1)


def with_empty(n: Any, policy: Capacities | None) -> Any:
    """Return lengths as a value, with those of the empty elements that the policy adds."""
    more = 0 if policy is None else policy.missing(n.shape[0])
    if isinstance(n, Tracer):
        return pnp.pad(n, (0, more)) if more else n
    if more:
        n = filled_up(n, more)
    return array_of(n) if n.__class__ is np.ndarray else n


def filled_up(n: Any, more: int) -> np.ndarray:
    """Return known lengths with so many zeros at the end."""
    if not more:
        return np.asarray(n)
    out = np.zeros(len(n) + more, n.dtype)  # numpy's `pad` takes ten times as long
    out[:-more] = n
    return out


def are_examples(spare: Sequence[Any]) -> Any:
    """Return bool[number of elements]: which elements are examples, and which are missing.

    `spare` are the lengths of each size that fills up a capacity; elements are missing behind the
    last one that has rows."""
    filled = reduce(operator.or_, [as_value(n) > 0 for n in spare])
    return pnp.flip(pnp.cumsum(pnp.flip(filled), dtype="int32")) > 0


def with_count(x: Value, policy: Capacities | None) -> Any:
    """Return an array of elements, with the empty ones that the policy adds."""
    more = 0 if policy is None else policy.missing(x.shape[0])
    if more and is_on_host(x):
        return as_value(np.pad(np.asarray(x), [(0, more), *[(0, 0)] * (x.ndim - 1)]))
    return fit(x, 0, x.shape[0] + more) if more else x
