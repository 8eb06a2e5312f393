"""Distances of results from reference values, in units of the last place.

Invariant: nan, infinities and the signs of zeros agree, or the distance is infinite.  Subnormal
numbers count as zeros of their sign only where the machine is known to flush them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.dtypes import finfo
from plait.ext.types import COMPLEX, FLOATING, category

__all__ = ["differing", "flushed", "flushes", "places"]


def places(
    got: np.ndarray,
    want: np.ndarray,
    least: float = 0.0,
    whole: bool = False,
    zeros: bool = True,
) -> Any:
    """Return the distance of each element in units of the last place of the reference element.

    For complex numbers the place is that of the larger part.  Next to a nan the other part has no
    sign: the C standard leaves it open.

    Args:
      got, want: arrays of one shape and dtype.
      least: the place is at least that of a number of this magnitude.
      whole: whether the place is at least that of the greatest element.
      zeros: whether zeros in complex results have signs.
    """
    kind = category(want.dtype)
    if kind == COMPLEX:
        return _complex_places(got, want, least, whole, zeros)
    if kind != FLOATING:
        return np.where(got == want, 0.0, np.inf)
    w = want.astype(np.float64)
    return _apart(got.astype(np.float64), w, _sizes(w, least, whole), finfo(want.dtype))


def _sizes(w: np.ndarray, least: float, whole: bool) -> np.ndarray:
    sizes = np.where(np.isfinite(w), np.abs(w), 0.0)
    if whole and w.size:
        sizes = np.full(w.shape, sizes.max())
    return np.maximum(sizes, least)


def _apart(g: np.ndarray, w: np.ndarray, sizes: np.ndarray, info: finfo) -> np.ndarray:
    with np.errstate(all="ignore"):
        unit = np.maximum(sizes, float(info.tiny)) * float(info.eps)
        far = np.where(np.isfinite(g) & np.isfinite(w), np.abs(g - w) / unit, np.inf)
    exact = sizes <= np.abs(w)  # where places are the element's own, zeros have signs
    same = (g == w) & ((np.signbit(g) == np.signbit(w)) | ~exact)
    far = np.where((g == w) & ~same, np.inf, far)
    return np.where(same | (np.isnan(g) & np.isnan(w)), 0.0, far)


def _complex_places(
    got: np.ndarray, want: np.ndarray, least: float, whole: bool, zeros: bool
) -> np.ndarray:
    parts = [(getattr(got, p), getattr(want, p)) for p in ("real", "imag")]
    sizes = np.maximum(*[_sizes(w.astype(np.float64), least, whole) for _, w in parts])
    lost = np.isnan(np.real(want)) | np.isnan(np.imag(want))
    far = np.zeros(want.shape)
    for g, w in parts:
        g, w = (np.where(lost, np.abs(v), v).astype(np.float64) for v in (g, w))
        if not zeros:
            g, w = g + 0.0, w + 0.0
        own = np.where(w == 0, 0.0, sizes)  # the signs of zeros must count
        one = _apart(g, w, np.where(g == w, own, sizes), finfo(want.dtype))
        far = np.maximum(far, one)
    return far


# ---- subnormal numbers -----------------------------------------------------------------------


def flushes(dtype: np.dtype, platform: str) -> bool:
    """Return whether a platform flushes subnormal numbers to zeros of their sign: CPUs do in
    float32, float64 and bfloat16.  (float16 is computed in float32, whose normal numbers hold
    its subnormal ones.)"""
    name = np.dtype(dtype).name
    return platform == "cpu" and name in ("bfloat16", "float32", "float64", "complex64",
                                          "complex128")  # fmt: skip


def flushed(x: np.ndarray) -> np.ndarray:
    """Return `x` with zeros for subnormal numbers."""
    kind = category(x.dtype)
    if kind == COMPLEX:
        out: Any = x.copy()
        out.real, out.imag = flushed(np.real(x)), flushed(np.imag(x))
        return out
    if kind != FLOATING:
        return x
    wide = x.astype(np.float64)
    small = np.abs(wide) < float(finfo(x.dtype).tiny)
    return np.where(small, np.copysign(0.0, wide), wide).astype(x.dtype)


def differing(
    value: Callable[..., list[np.ndarray]],
    args: Sequence[np.ndarray],
    got: Sequence[np.ndarray],
    ulps: float,
    platform: str,
    **how: Any,
) -> list[np.ndarray]:
    """Return masks of the elements of `got` that differ from `value(*args)`.

    Where the machine flushes subnormal numbers, operands and results may count as zeros, and so may
    results so small that their computation meets subnormal numbers.
    """
    want = value(*args)
    wrong = [places(g, w, **how) > ulps for g, w in zip(got, want, strict=True)]
    small = any(flushes(v.dtype, platform) for v in (*args, *want))
    if not small or not any(w.any() for w in wrong):
        return wrong
    again = value(*[flushed(a) for a in args])
    for k, (g, w, f) in enumerate(zip(got, want, again)):
        wrong[k] &= places(flushed(g), flushed(f), **how) > ulps
        if category(w.dtype) == FLOATING:
            small = np.abs(w.astype(np.float64)) <= 4 * float(finfo(w.dtype).tiny)
            zero = (g == 0) & (np.signbit(g) == np.signbit(w))
            wrong[k] &= ~(small & zero)
    return wrong
