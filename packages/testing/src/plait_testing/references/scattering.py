"""Scattering in numpy: one index after the other.

Invariant: samples with several updates of one position do not depend on their order.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.ops import indexing as ix
from plait.ext.ops import indexing as sc

from ..operands import edges
from ..samples import Reference, Sample, ordinary, stored
from .elementwise import greater, lesser
from .indexing import AT, PAIRED, ROWS, corners, rows, spread

__all__ = ["REFERENCES"]


def _scatter(f: Callable) -> Callable:
    def value(
        x: np.ndarray, indices: np.ndarray, updates: np.ndarray, dimension_numbers: Any,
        mode: str, indices_are_sorted: bool, unique_indices: bool,
    ) -> np.ndarray:  # fmt: skip
        n, out = dimension_numbers, x.copy()
        dropped = (*n.inserted_window_dims, *n.operand_batching_dims)
        window = iter([updates.shape[a] for a in n.update_window_dims])
        sizes = [1 if i in dropped else next(window) for i in range(x.ndim)]
        for at, corner in corners(x.shape, indices, n.scatter_dims_to_operand_dims,
                                   n.operand_batching_dims, n.scatter_indices_batching_dims,
                                   sizes, mode):  # fmt: skip
            if corner is not None:
                place = tuple([slice(c, c + m) for c, m in zip(corner, sizes)])
                new = updates[spread(at, n.update_window_dims, updates.ndim)].reshape(sizes)
                with np.errstate(all="ignore"):
                    out[place] = f(out[place], new).astype(x.dtype)
        return out

    return value


# ---- samples -------------------------------------------------------------------------------


def _scatters(prim: Primitive) -> Iterator[Sample]:
    def how(numbers: Any, mode: str) -> dict:
        return dict(
            dimension_numbers=sc.as_scatter(numbers), mode=mode, indices_are_sorted=False,
            unique_indices=False,
        )  # fmt: skip

    x = ordinary("float32", (4, 3))
    at = np.array(AT)
    few = at[1:] if prim.name == "core.scatter" else at
    yield Sample((x, few, ordinary("float32", (len(few), 3), 1)), how(ROWS, ix.FILL))
    whole = prim.name == "core.scatter"
    ordered = prim.name in ("core.scatter_min", "core.scatter_max")
    names = "int32 uint8 float64 bfloat16" + ("" if ordered else " complex64")
    operands = [*map(rows, stored())] if whole else [rows(edges(n)) for n in names.split()]
    for v in operands:
        new = v[[0, 1, 2, 3, 0, 1]][::-1].copy()
        distinct = np.array([[2], [0], [-1], [4], [1], [3]])  # no order of updates is promised
        yield Sample((v, distinct, new), how(ROWS, ix.FILL))
    yield Sample((x, np.array([[1], [-3]], np.int8), ordinary("float32", (2, 2))),
                 how(ROWS, ix.CLIP))  # fmt: skip
    yield Sample((x, np.array([[2], [0], [9], [1]]), ordinary("float32", (4,))),
                 how(PAIRED, ix.FILL))  # fmt: skip
    yield Sample((x, np.zeros((0, 1), np.int32), np.zeros((0, 3), np.float32)),
                 how(ROWS, ix.FILL))  # fmt: skip


REFERENCES = {
    "core.scatter": Reference(_scatter(lambda a, b: b), _scatters),
    "core.scatter_add": Reference(_scatter(lambda a, b: a + b), _scatters, 1),
    "core.scatter_mul": Reference(_scatter(lambda a, b: a * b), _scatters, 1, zeros=False),
    "core.scatter_min": Reference(_scatter(lesser), _scatters),
    "core.scatter_max": Reference(_scatter(greater), _scatters),
}
"""The Reference of each primitive of the family."""
