"""Convolutions in numpy: a loop over every position of the window.

Invariant: sums are taken in double precision, and rounded once.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.ops import convolution as cn

from ..samples import Reference, Sample, ordinary
from .contraction import widened

__all__ = ["REFERENCES"]


def _dilated(x: np.ndarray, steps: tuple[int, ...], axis: int) -> np.ndarray:
    """Insert zeros between elements of axes from `axis` on."""
    for k, step in enumerate(steps, axis):
        n = x.shape[k]
        shape = list(x.shape)
        shape[k] = (n - 1) * step + 1 if n else 0
        out = np.zeros(shape, x.dtype)
        out[(slice(None),) * k + (slice(None, None, step),)] = x
        x = out
    return x


def _surrounded(x: np.ndarray, padding: tuple[tuple[Any, ...], ...]) -> np.ndarray:
    """Pad the spatial axes with zeros; negative padding removes elements."""
    wide = [(0, 0), (0, 0), *[(max(a, 0), max(b, 0)) for a, b in padding]]
    x = np.pad(x, wide)
    cut = [slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(padding, x.shape[2:])]
    return x[(slice(None), slice(None), *cut)]


def _conv(
    x: np.ndarray,
    y: np.ndarray,
    window_strides: tuple[int, ...],
    padding: tuple[tuple[Any, ...], ...],
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    dims: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: str,
    out_dtype: np.dtype,
    exact: bool = False,
) -> np.ndarray:
    lhs, rhs, out_axes = dims
    x, y = widened(x).transpose(lhs), widened(y).transpose(rhs)
    x = _surrounded(_dilated(x, lhs_dilation, 2), padding)
    y = _dilated(y, rhs_dilation, 2)
    n, (o, i), window = x.shape[0], y.shape[:2], y.shape[2:]
    places = [max((d - w) // s + 1, 0) for d, w, s in zip(x.shape[2:], window, window_strides)]
    batch = n // batch_group_count
    out = np.zeros((batch, o, *places), x.dtype)
    groups = max(feature_group_count, batch_group_count)
    for at in product(*map(range, places)):
        corner = [slice(p * s, p * s + w) for p, s, w in zip(at, window_strides, window)]
        box = x[(slice(None), slice(None), *corner)]
        for k in range(o):
            g = k // (o // groups)
            rows = slice(g * batch, (g + 1) * batch) if batch_group_count > 1 else slice(None)
            features = slice(g * i, (g + 1) * i) if feature_group_count > 1 else slice(None)
            products = box[rows, features] * y[k]
            out[(slice(None), k, *at)] = products.sum(tuple(range(1, products.ndim)))
    return out.transpose(np.argsort(out_axes)).astype(out_dtype)


def _how(count: int, dims: Any = None, dtype: Any = "float32", **given: Any) -> dict:
    order = tuple(range(count + 2))
    one = (1,) * count
    return {
        "window_strides": one, "padding": ((0, 0),) * count, "lhs_dilation": one,
        "rhs_dilation": one, "dims": cn.ConvDims(*(dims or (order,) * 3)),
        "feature_group_count": 1, "batch_group_count": 1, "precision": "default",
        "out_dtype": ordinary(dtype, (1,)).dtype, **given,
    }  # fmt: skip


def _windows(prim: Primitive) -> Iterator[Sample]:
    line, kernel = ordinary("float32", (2, 3, 5)), ordinary("float32", (4, 3, 2))
    yield Sample((line, kernel), _how(1))
    steps = _how(1, window_strides=(2,), padding=((2, -1),), lhs_dilation=(2,), rhs_dilation=(3,))
    yield Sample((line, kernel), steps)
    for name in ("bfloat16", "float16", "float64", "complex64", "int32"):
        xs = ordinary(name, (2, 3, 5)), ordinary(name, (4, 3, 2), 1)
        yield Sample(xs, _how(1, dtype=name, padding=((1, 1),)))
    yield Sample((ordinary("float32", (2, 4, 5)), ordinary("float32", (6, 2, 2))),
                 _how(1, feature_group_count=2))  # fmt: skip
    yield Sample((ordinary("float32", (4, 3, 5)), ordinary("float32", (6, 3, 2))),
                 _how(1, batch_group_count=2))  # fmt: skip
    plane = (0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)
    yield Sample((ordinary("float32", (1, 4, 3, 2)), ordinary("float32", (2, 2, 2, 3))),
                 _how(2, plane, padding=((1, 0), (0, 1))))  # fmt: skip
    yield Sample((ordinary("float32", (0, 3, 5)), kernel), _how(1))


REFERENCES = {"core.conv_general": Reference(_conv, _windows, 16, whole=True)}
"""The Reference of each primitive of the family."""
