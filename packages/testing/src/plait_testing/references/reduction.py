"""Sums, products, extremes and logic over axes, and positions of extremes, in numpy.

Invariant: sums and products of narrow floats are rounded once, at the end.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from plait.dtypes import iinfo
from plait.ext.ir import Primitive
from plait.ext.types import COMPLEX, FLOATING, INTEGER, category

from ..operands import accepted, edges, tuples
from ..samples import Reference, Sample, ordinary
from .elementwise import greater, lesser

__all__ = ["ALIKE", "REFERENCES", "least_of", "most_of", "pairs"]


ALIKE = "uint32 int64 complex64"
"""Dtypes that reduce like others of their kind."""


def pairs(dtype: np.dtype) -> np.ndarray:
    """Return every pair of edge values of a dtype, in rows."""
    return np.stack(tuples(edges(dtype), 2), 1)


def _folded(f: Callable, start: Callable[[np.dtype], Any]) -> Callable:
    """Fold one element after the other, in double precision; `start(dtype)` without elements."""

    def value(x: np.ndarray, axes: tuple) -> np.ndarray:
        narrow = category(x.dtype) == FLOATING
        wide = x.astype(np.float64) if narrow else x
        rest = [i for i in range(x.ndim) if i not in axes]
        shape = tuple([x.shape[i] for i in rest])
        # -1 cannot be resolved next to axes without elements
        count = math.prod([x.shape[i] for i in axes])
        rows = wide.transpose(*axes, *rest).reshape(count, *shape)
        out = np.full(shape, start(x.dtype), wide.dtype)
        with np.errstate(all="ignore"):
            for row in rows:
                out = f(out, row)
            return np.asarray(out).astype(x.dtype)

    return value


def least_of(dtype: np.dtype) -> Any:
    """Return the least value of a real dtype."""
    if dtype.kind == "c":
        return complex(-np.inf, -np.inf)
    if dtype == bool:
        return False
    return int(iinfo(dtype).min) if category(dtype) == INTEGER else -np.inf


def most_of(dtype: np.dtype) -> Any:
    """Return the greatest value of a real dtype."""
    if dtype.kind == "c":
        return complex(np.inf, np.inf)
    if dtype == bool:
        return True
    return int(iinfo(dtype).max) if category(dtype) == INTEGER else np.inf


def _all_bits(dtype: np.dtype) -> Any:
    return True if dtype == bool else dtype.type(-1) if dtype.kind == "i" else iinfo(dtype).max


def _times(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Multiply; 1 is neutral, even for infinite complex numbers."""
    return np.where(x == 1, y, x * y)


def _place(largest: bool) -> Callable:
    """Loop for the position of an extreme: nan first, and the first of equal elements."""

    def value(x: np.ndarray, axis: int, index_dtype: np.dtype) -> np.ndarray:
        rows = np.moveaxis(x, axis, -1)
        out = np.zeros(rows.shape[:-1], index_dtype)
        for at in np.ndindex(out.shape):
            best = 0
            for i, v in enumerate(rows[at]):
                held = rows[at][best]
                if held == held and (v != v or (v > held if largest else v < held)):
                    best = i
            out[at] = best
        return out

    return value


def _reduced(prim: Primitive) -> Iterator[Sample]:
    dtypes = [d for d in accepted(prim, params={"axes": (0,)}) if d.name not in ALIKE]
    first = "float32" if np.dtype(np.float32) in dtypes else "int32"
    yield Sample((ordinary(first),), {"axes": (1,)})
    for dtype in dtypes:
        yield Sample((pairs(dtype),), {"axes": (1,)})
    yield Sample((ordinary(first, (3, 0)),), {"axes": (1,)})
    yield Sample((ordinary(first, (2, 1, 3)),), {"axes": (0, 1, 2)})
    yield Sample((ordinary(first, ()),), {"axes": ()})


def _placed(prim: Primitive) -> Iterator[Sample]:
    how = {"axis": 1, "index_dtype": np.dtype(np.int32)}
    yield Sample((ordinary("float32"),), how)
    for dtype in accepted(prim, params={"axis": 0, "index_dtype": np.dtype(np.int32)}):
        if category(dtype) != COMPLEX:
            yield Sample((pairs(dtype),), how)
    yield Sample((ordinary("int32", (3, 1)),), {"axis": 0, "index_dtype": np.dtype(np.int64)})
    yield Sample((ordinary("float32", (0, 2)),), how)


def _marks(reduced: Callable) -> Callable:
    """Mark the elements that equal the extreme."""

    def value(x: np.ndarray, axes: tuple) -> np.ndarray:
        return x == np.expand_dims(reduced(x, axes=axes), axes)

    return value


REFERENCES = {
    "core.reduce_sum": Reference(
        _folded(np.add, lambda d: 0), _reduced, 1),
    "core.reduce_prod": Reference(
        _folded(_times, lambda d: 1), _reduced, 1, zeros=False),
    "core.reduce_max": Reference(_folded(greater, least_of), _reduced, zeros=False),
    "core.reduce_min": Reference(_folded(lesser, most_of), _reduced, zeros=False),
    "core.reduce_and": Reference(_folded(np.bitwise_and, _all_bits), _reduced),
    "core.reduce_or": Reference(_folded(np.bitwise_or, lambda d: 0), _reduced),
    "core.reduce_xor": Reference(_folded(np.bitwise_xor, lambda d: 0), _reduced),
    "core.argmax": Reference(_place(True), _placed),
    "core.argmin": Reference(_place(False), _placed),
    "core.is_max": Reference(_marks(_folded(greater, least_of)), _reduced),
    "core.is_min": Reference(_marks(_folded(lesser, most_of)), _reduced),
}  # fmt: skip
"""The Reference of each primitive of the family."""
