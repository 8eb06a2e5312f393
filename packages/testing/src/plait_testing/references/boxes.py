"""Boxes at computed positions, in numpy.

Invariant: positions are Python's integers here, so that none wraps around.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from plait.ext.ir import Primitive
from plait.typing import ArrayLike

from ..samples import Reference, Sample, ordinary, stored

__all__ = ["REFERENCES"]


def _box(x: np.ndarray, starts: Any, sizes: tuple[int, ...]) -> tuple:
    """Return the slices of the box, moved inside."""
    at = [min(max(int(s), 0), n - m) for s, n, m in zip(starts, x.shape, sizes)]
    return tuple([slice(a, a + m) for a, m in zip(at, sizes)])


def _dynamic_slice(x: np.ndarray, *starts: ArrayLike, sizes: tuple[int, ...]) -> np.ndarray:
    return x[_box(x, starts, sizes)]


def _dynamic_update_slice(x: np.ndarray, box: np.ndarray, *starts: ArrayLike) -> np.ndarray:
    out = x.copy()
    out[_box(x, starts, box.shape)] = box
    return out


# ---- samples -------------------------------------------------------------------------------


def _boxes(prim: Primitive) -> Iterator[Sample]:
    x = ordinary("float32")
    yield Sample((x, np.int32(1), np.int32(1)), {"sizes": (1, 2)})
    for v in stored():
        yield Sample((v, np.int64(-(2**40))), {"sizes": (2,)})
    for start in (np.uint8(255), np.int8(-128), np.uint64(2**64 - 1), np.int64(2**62)):
        yield Sample((x[0], start), {"sizes": (2,)})
    yield Sample((x, np.int32(5), np.int32(0)), {"sizes": (0, 3)})


def _written(prim: Primitive) -> Iterator[Sample]:
    x = ordinary("float32")
    yield Sample((x, -x[:1, :2], np.int32(1), np.int32(1)))
    for v in stored():
        yield Sample((v, v[::-1][:2].copy(), np.int64(2**40)))
    for start in (np.uint8(255), np.int8(-128), np.uint64(2**64 - 1)):
        yield Sample((x[0], x[1, :2], start))


REFERENCES = {
    "core.dynamic_slice": Reference(_dynamic_slice, _boxes),
    "core.dynamic_update_slice": Reference(_dynamic_update_slice, _written),
}
"""The Reference of each primitive of the family."""
