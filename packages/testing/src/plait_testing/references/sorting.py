"""Sorting by Python's sort, which is stable.

Invariant: the order is total: nan comes last (first among the greatest), equal elements in order.
"""

from collections.abc import Iterator
from functools import cmp_to_key
from typing import Any

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.types import COMPLEX, FLOATING, category
from plait.typing import ArrayLike

from ..operands import DTYPES, edges
from ..samples import Reference, Sample, ordinary

__all__ = ["REFERENCES"]


def _order(x: ArrayLike, zeros: bool = False) -> Any:
    """Return the sort key of an element; nan is greater than all numbers."""
    if isinstance(x, complex | np.complexfloating):
        return (x.real != x.real, x.imag != x.imag, _order(x.real), _order(x.imag))
    if x != x:
        return (1, 0, 0)
    sign = 0 if not zeros else -1 if np.signbit(np.float64(x)) else 1
    return (0, x, sign if x == 0 else 0)


def _compared(zeros: bool) -> Any:
    """Compare by keys, one after the other."""

    def compare(a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
        for x, y in zip(a[0], b[0]):
            p, q = _order(x, zeros), _order(y, zeros)
            if p != q:
                return -1 if p < q else 1
        return 0

    return cmp_to_key(compare)


def _sort(*xs: np.ndarray, axis: int, num_keys: int, stable: bool) -> list[np.ndarray]:
    outs = [np.moveaxis(x.copy(), axis, -1) for x in xs]
    alone = len(xs) == 1 and category(xs[0].dtype) == FLOATING
    for at in np.ndindex(outs[0].shape[:-1]):
        n = outs[0].shape[-1]
        rows = [([o[at][i] for o in outs[:num_keys]], i) for i in range(n)]
        order = [i for _, i in sorted(rows, key=_compared(alone))]
        for o in outs:
            o[at] = o[at][order]
    return [np.moveaxis(o, -1, axis) for o in outs]


def _argsort(
    x: np.ndarray, axis: int, stable: bool, descending: bool, index_dtype: np.dtype
) -> np.ndarray:
    places = np.moveaxis(np.zeros(x.shape, index_dtype), axis, -1)
    rows = np.moveaxis(x, axis, -1)
    for at in np.ndindex(rows.shape[:-1]):
        row = list(enumerate(rows[at]))
        key = lambda iv: _order(iv[1])  # noqa: E731
        order = sorted(row, key=key, reverse=descending)  # equal elements keep their order
        places[at] = [i for i, _ in order]
    return np.moveaxis(places, -1, axis)


def _top_k(x: np.ndarray, k: int) -> list[np.ndarray]:
    at = _argsort(x, x.ndim - 1, True, True, np.dtype(np.int32))[..., :k]
    return [np.take_along_axis(x, at, -1), at]


# ---- samples -------------------------------------------------------------------------------


def _rows(dtype: np.dtype) -> np.ndarray:
    """Return edges in an arbitrary order, and again reversed, so that there are ties."""
    x = edges(dtype)[:40]
    x = np.concatenate([x, x[::-1]])
    return x[np.random.default_rng(1).permutation(x.size)]


_FEW = tuple(
    [edges(n).dtype for n in ("bool", "int8", "uint64", "bfloat16", "float64", "complex64")]
)


def _sorted(prim: Primitive) -> Iterator[Sample]:
    one = {"axis": 1, "num_keys": 1, "stable": True}
    yield Sample((ordinary("float32"),), one)
    for dtype in (*DTYPES, edges("int4").dtype, edges("float8_e5m2").dtype):
        yield Sample((_rows(dtype),), {**one, "axis": 0})
        yield Sample((_rows(dtype), np.arange(_rows(dtype).size)), {**one, "axis": 0})
    yield Sample((ordinary("float32", (0, 2)),), {**one, "axis": 0})
    keys = np.array([[2, 1, 2], [1, 1, 1]], np.float64)
    yield Sample((keys, -ordinary("int32"), ordinary("complex64")), {**one, "num_keys": 2})


def _argsorted(prim: Primitive) -> Iterator[Sample]:
    how = {"axis": 0, "stable": True, "descending": False, "index_dtype": np.dtype(np.int32)}
    yield Sample((ordinary("float32"),), how)
    for k, dtype in enumerate(_FEW):
        yield Sample((_rows(dtype),), {**how, "descending": k % 2 == 0})
    yield Sample((ordinary("float32", (2, 1)),), {**how, "index_dtype": np.dtype(np.int64)})


def _greatest(prim: Primitive) -> Iterator[Sample]:
    yield Sample((ordinary("float32"),), {"k": 2})
    for dtype in _FEW:
        if category(dtype) != COMPLEX:
            yield Sample((_rows(dtype),), {"k": 4})
    yield Sample((ordinary("int32", (2, 3)),), {"k": 0})
    yield Sample((ordinary("float32", (0, 3)),), {"k": 1})


REFERENCES = {
    "core.sort": Reference(_sort, _sorted),
    "core.argsort": Reference(_argsort, _argsorted),
    "core.top_k": Reference(_top_k, _greatest),
}
"""The Reference of each primitive of the family."""
