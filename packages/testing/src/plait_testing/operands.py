"""Edge values of dtypes, and arrays made of them.

Invariant: an array holds every edge value of its dtype, so that one call of a primitive covers all;
the type rule of a primitive decides which dtypes it accepts.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from plait.dtypes import finfo, iinfo
from plait.ext import Aval, PlaitError, Primitive
from plait.ext.types import BOOLEAN, COMPLEX, FLOATING, category, dtype_of

__all__ = ["DTYPES", "NARROW", "accepted", "edges", "tuples"]

_COMPUTED = """bool int8 uint8 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 complex64
complex128"""
_NARROW = "int4 uint4 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e3m4"

DTYPES = tuple(map(dtype_of, _COMPUTED.split()))
"""The dtypes in which operations compute."""

NARROW = tuple(map(dtype_of, _NARROW.split()))
"""Dtypes that are stored, moved and converted; the compiler computes with only some of them."""


@cache
def edges(dtype: np.dtype | str) -> np.ndarray:
    """Return every edge value of a dtype, and some ordinary ones: a vector.

    >>> edges("bool").tolist()
    [False, True]
    """
    dtype = dtype_of(dtype)
    kind = category(dtype)
    if kind == BOOLEAN:
        return np.array([False, True])
    if kind == FLOATING:
        return _floats(dtype)
    if kind == COMPLEX:
        return _complexes(dtype)
    return _integers(dtype)


def _integers(dtype: np.dtype) -> np.ndarray:
    info = iinfo(dtype)
    low, high, bits = int(info.min), int(info.max), int(info.bits)
    near = [0, 1, 2, 3, 5, 7, -1, -2, -5, 100]
    near += [bits - 1, bits, bits + 1, low, low + 1, high - 1, high]
    held = sorted({n for n in near if low <= n <= high})
    return np.array(held, object).astype(np.dtype(f"{'iu'[low == 0]}8")).astype(dtype)


def _floats(dtype: np.dtype) -> np.ndarray:
    info = finfo(dtype)
    high, tiny, least = (float(v) for v in (info.max, info.tiny, info.smallest_subnormal))
    some = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 7.25, 40.0, 0.0625, high, tiny, least, least * 3, np.inf]
    with np.errstate(all="ignore"):
        x = np.array([*some, *[-v for v in some], np.nan]).astype(dtype)
    return x


_PARTS = (0.0, -0.0, 1.0, -1.5, 0.25, 9.0, np.inf, -np.inf, np.nan)


def _complexes(dtype: np.dtype) -> np.ndarray:
    parts = np.array([(x, y) for x, y in product(_PARTS, repeat=2)])
    return np.ascontiguousarray(parts).view(np.complex128)[:, 0].astype(dtype)


def tuples(xs: np.ndarray, count: int) -> list[np.ndarray]:
    """Return vectors that together hold all `count`-tuples of elements of `xs`."""
    grid = np.meshgrid(*[xs] * count, indexing="ij")
    return [g.ravel() for g in grid]


def accepted(
    prim: Primitive,
    count: int = 1,
    dtypes: Sequence[np.dtype] = DTYPES,
    params: Mapping[str, Any] | None = None,
) -> list[np.dtype]:
    """Return the dtypes for which the type rule accepts `count` vectors of that dtype."""
    found = []
    for d in dtypes:
        try:
            prim.infer((Aval((2,), d),) * count, dict(params or {}))
        except PlaitError:
            continue
        found.append(d)
    return found
