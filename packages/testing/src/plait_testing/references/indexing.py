"""Gathering in numpy: one index after the other.

Invariant: indices are Python's integers here, so that none wraps around.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.ops import indexing as ix
from plait.ext.types import INTEGER, category

from ..samples import Reference, Sample, ordinary, stored
from .reduction import least_of, most_of

__all__ = ["AT", "PAIRED", "REFERENCES", "ROWS", "corners", "rows", "spread"]


def corners(
    shape: tuple,
    indices: np.ndarray,
    to: Sequence[int],
    together: Sequence[int],
    with_: Sequence[int],
    sizes: Any,
    mode: str,
) -> Iterator[tuple[tuple, tuple | None]]:
    """Return the position of each index among the indices, and the corner of its window: None if
    it is outside and the mode leaves it there."""
    room = [n - m for n, m in zip(shape, sizes)]
    for at in np.ndindex(indices.shape[:-1]):
        corner = [0] * len(shape)
        for axis, component in zip(to, indices[at]):
            corner[axis] = int(component)
        inside = all(0 <= corner[a] <= room[a] for a in to)
        if mode == ix.CLIP:
            corner = [min(max(c, 0), r) for c, r in zip(corner, room)]
        for axis, other in zip(together, with_):
            corner[axis] = at[other]
        yield at, None if mode == ix.FILL and not inside else tuple(corner)


def spread(at: tuple, window: tuple, ndim: int) -> tuple:
    """Return an index of the result (or of the updates): all of the window's axes, and `at`
    elsewhere."""
    rest = iter(at)
    return tuple([slice(None) if i in window else next(rest) for i in range(ndim)])


def _gather(
    x: np.ndarray,
    indices: np.ndarray,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    mode: str,
    fill_value: float | None,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> np.ndarray:
    n = dimension_numbers
    dropped = (*n.collapsed_slice_dims, *n.operand_batching_dims)
    kept = [m for i, m in enumerate(slice_sizes) if i not in dropped]
    ndim = indices.ndim - 1 + len(kept)
    sizes, others = iter(kept), iter(indices.shape[:-1])
    shape = [next(sizes) if i in n.offset_dims else next(others) for i in range(ndim)]
    out = np.zeros(shape, x.dtype)
    missing = _nothing(x.dtype) if fill_value is None else fill_value
    for at, corner in corners(x.shape, indices, n.start_index_map, n.operand_batching_dims,
                               n.start_indices_batching_dims, slice_sizes, mode):  # fmt: skip
        place = spread(at, n.offset_dims, ndim)
        if corner is None:
            out[place] = missing
        else:
            box = x[tuple([slice(c, c + m) for c, m in zip(corner, slice_sizes)])]
            out[place] = box.reshape(kept)
    return out


def _nothing(dtype: np.dtype) -> Any:
    """Return the value outside: nan, the least signed or the greatest unsigned integer, True."""
    if dtype == bool:
        return True
    if category(dtype) != INTEGER:
        return np.nan
    return most_of(dtype) if "uint" in dtype.name else least_of(dtype)


# ---- samples -------------------------------------------------------------------------------

ROWS = ix.GatherDimensionNumbers((1,), (0,), (0,))
PAIRED = ix.GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
AT = [[2], [0], [-1], [2], [5], [3]]


def rows(x: np.ndarray) -> np.ndarray:
    """Return a vector in four rows."""
    return np.resize(x, (4, (x.size + 3) // 4))


def _gathers(prim: Primitive) -> Iterator[Sample]:
    def how(numbers: object, sizes: tuple[int, ...], mode: str, fill: float | None = None) -> dict:
        return dict(
            dimension_numbers=numbers, slice_sizes=sizes, mode=mode, fill_value=fill,
            indices_are_sorted=False, unique_indices=False,
        )  # fmt: skip

    x = ordinary("float32", (4, 3))
    inside = np.array([[1], [0], [3]], np.int32)
    yield Sample((x, inside), how(ROWS, (1, 3), ix.PROMISE))
    for v in map(rows, stored()):
        yield Sample((v, np.array(AT)), how(ROWS, (1, v.shape[1]), ix.FILL))
    yield Sample((x, np.array(AT, np.int8)), how(ROWS, (1, 2), ix.CLIP))
    far = np.array([[2**64 - 1], [1]], np.uint64)
    yield Sample((x, far), how(ROWS, (1, 3), ix.FILL, 7.0))
    yield Sample((x, far), how(ROWS, (1, 3), ix.CLIP))
    yield Sample((x, np.array([[2], [0], [9], [1]])), how(PAIRED, (1, 1), ix.FILL, -0.0))
    yield Sample((x, np.zeros((0, 1), np.int32)), how(ROWS, (1, 3), ix.FILL))
    both = ix.GatherDimensionNumbers((0, 2), (), (1, 0))
    yield Sample((x, np.array([[1, 2], [0, 3], [1, -1]])), how(both, (2, 2), ix.CLIP))


REFERENCES = {"core.gather": Reference(_gather, _gathers)}
"""The Reference of each primitive of the family."""
