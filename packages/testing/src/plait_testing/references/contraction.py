"""Contractions in numpy: every product of a shared position, summed in double precision.

Invariant: narrow operands are widened before they are multiplied, and the sum is rounded once.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.types import COMPLEX, FLOATING, category

from ..samples import Reference, Sample, ordinary

__all__ = ["REFERENCES", "widened"]


def widened(x: np.ndarray) -> np.ndarray:
    """Convert to double precision; integers to 64 bits, where they wrap as they do in fewer."""
    kinds = {FLOATING: np.float64, COMPLEX: np.complex128}
    wide = kinds.get(category(x.dtype), np.uint64 if x.dtype.kind == "u" else np.int64)
    return x if x.dtype == bool else x.astype(wide)


def _dot(
    x: np.ndarray,
    y: np.ndarray,
    contract: tuple[tuple[Any, ...], ...],
    shared: tuple[tuple[Any, ...], ...],
    precision: str,
    out_dtype: np.dtype,
) -> np.ndarray:
    (cx, cy), (bx, by) = contract, shared
    x, y = widened(x), widened(y)
    fx = [i for i in range(x.ndim) if i not in (*cx, *bx)]
    fy = [i for i in range(y.ndim) if i not in (*cy, *by)]
    x, y = x.transpose(*bx, *fx, *cx), y.transpose(*by, *fy, *cy)
    n, m, k = len(bx), len(fx), len(cx)
    left = x.reshape(*x.shape[: n + m], *(1,) * len(fy), *x.shape[n + m :])
    right = y.reshape(*y.shape[:n], *(1,) * m, *y.shape[n:])
    axes = tuple(range(left.ndim - k, left.ndim))
    with np.errstate(all="ignore"):
        products = left & right if x.dtype == bool else left * right
        total = products.any(axes) if x.dtype == bool else products.sum(axes)
        return np.asarray(total).astype(out_dtype)


def _like(
    contract: tuple[tuple[Any, ...], ...],
    shared: tuple[tuple[Any, ...], ...] = ((), ()),
    dtype: Any = "float32",
) -> dict:
    dtype = ordinary(dtype, (1,)).dtype
    return dict(contract=contract, shared=shared, precision="default", out_dtype=dtype)


def _products(prim: Primitive) -> Iterator[Sample]:
    plain = ((1,), (0,)), ((), ())
    yield Sample((ordinary("float32"), ordinary("float32", (3, 4))), _like(*plain))
    names = "bool int8 uint8 int32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
    for name in names.split():
        x, y = ordinary(name, (2, 5, 3)), ordinary(name, (3, 2, 4), 1)
        if category(x.dtype) == FLOATING:
            x, y = x.copy(), y.copy()
            x[0, 0, 0], x[0, 1, 1], y[2, 1, 3] = np.inf, np.nan, -np.inf
        yield Sample((x, y), _like(((2,), (0,)), ((0,), (1,)), name))
    wide = _like(*plain, "int32")
    yield Sample((ordinary("int8"), ordinary("int8", (3, 4))), wide)
    yield Sample((ordinary("float32", (2, 0)), ordinary("float32", (0, 3))), _like(*plain))
    yield Sample((ordinary("float64", (2, 3)),) * 2, _like(((0, 1), (0, 1)), dtype="float64"))


REFERENCES = {"core.dot_general": Reference(_dot, _products, 8, whole=True)}
"""The Reference of each primitive of the family."""
