"""Sums at the extremes of windows, in numpy: one window after the other.

Invariant: among equal elements the first in row-major order is selected; nan precedes all others.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from plait.ext.ir import Primitive

from ..samples import Reference, Sample, ordinary
from .contraction import widened

__all__ = ["REFERENCES"]


def _select_and_scatter_add(
    source: np.ndarray,
    x: np.ndarray,
    select: str,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: tuple[tuple[Any, ...], ...],
) -> np.ndarray:
    out = widened(np.zeros_like(x))
    low = [a for a, _ in padding]
    for at in np.ndindex(source.shape):
        best = None
        for step in np.ndindex(tuple(window)):
            place = tuple([a * s + k - p for a, s, k, p in zip(at, strides, step, low)])
            if not all(0 <= i < n for i, n in zip(place, x.shape)):
                continue
            v, held = x[place], None if best is None else x[best]
            beats = held is None or v > held if select == "max" else held is None or v < held
            if beats or (v != v and held == held):
                best = place
        if best is not None:
            out[best] += widened(source[at])
    return out.astype(x.dtype)


def _pools(prim: Primitive) -> Iterator[Sample]:
    how = {"select": "max", "window": (1, 2), "strides": (1, 1), "padding": ((0, 0), (0, 0))}
    yield Sample((ordinary("float32", (2, 2)), ordinary("float32", (2, 3), 1)), how)
    wide = {"select": "min", "window": (3,), "strides": (2,), "padding": ((1, 1),)}
    for name in ("int32", "uint8", "bfloat16", "float64"):
        x = ordinary(name, (7,))
        x[2] = x[1]
        yield Sample((ordinary(name, (4,)), x), wide)
        yield Sample((ordinary(name, (4,)), x), {**wide, "select": "max"})
    lost = np.array([1, np.nan, 2, np.inf, -np.inf, -0.0, 0.0], np.float32)
    yield Sample((ordinary("float32", (4,)), lost), {**wide, "select": "max"})
    yield Sample((np.zeros(0, np.float32), np.zeros(0, np.float32)),
                 {**wide, "padding": ((0, 0),)})  # fmt: skip


REFERENCES = {
    "core.select_and_scatter_add": Reference(_select_and_scatter_add, _pools, 1, whole=True)
}
"""The Reference of each primitive of the family."""
