"""Running sums, products, extremes and recurrences in numpy: one element after the other.

Invariant: sums accumulate in double precision, or in the operands' own dtype if that is wider or an
integer, and are rounded when stored.
"""

from collections.abc import Callable, Iterator

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.types import FLOATING, category

from ..operands import accepted, edges, tuples
from ..samples import Reference, Sample, ordinary
from .elementwise import greater, lesser
from .reduction import ALIKE, pairs

__all__ = ["REFERENCES"]


def _running(step: Callable, start: float | None = None) -> Callable:
    """Apply `step(carry, *elements)` along the axis, from the first element or from `start`."""

    def value(*xs: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
        dtype = xs[0].dtype
        wide = np.float64 if category(dtype) == FLOATING else dtype
        rows = [np.moveaxis(x.astype(wide), axis, 0) for x in xs]
        out = np.zeros(rows[0].shape, wide)
        n = len(out)
        carry = start
        with np.errstate(all="ignore"):
            for i in reversed(range(n)) if reverse else range(n):
                elements = [r[i] for r in rows]
                carry = elements[0] if carry is None else step(carry, *elements)
                out[i] = carry
            return np.moveaxis(out, 0, axis).astype(dtype)

    return value


def _rows(prim: Primitive) -> Iterator[Sample]:
    yield Sample((ordinary("float32", (4, 3)),), {"axis": 0, "reverse": False})
    how = {"axis": 0, "reverse": False}
    dtypes = [d for d in accepted(prim, params=how) if d.name not in ALIKE]
    for k, dtype in enumerate(dtypes):
        yield Sample((pairs(dtype),), {"axis": 1, "reverse": k % 2 == 1})
    yield Sample((ordinary("float32", (2, 0)),), {"axis": 1, "reverse": False})
    yield Sample((ordinary("float32", (1, 3)),), {"axis": 0, "reverse": True})


def _recurrences(prim: Primitive) -> Iterator[Sample]:
    how = {"axis": 0, "reverse": False}
    yield Sample((ordinary("float32", (4, 3)), ordinary("float32", (4, 3), 1)), how)
    for dtype in accepted(prim, 2, params=how):
        a, u = tuples(edges(dtype)[:12], 2)
        yield Sample((np.stack([a, u], 1), np.stack([u, a], 1)), {"axis": 1, "reverse": True})
    yield Sample((ordinary("float32", (0, 2)),) * 2, how)


REFERENCES = {
    "core.cumsum": Reference(_running(np.add, 0), _rows, 1, whole=True),
    "core.cumprod": Reference(_running(np.multiply), _rows, 1, zeros=False),
    "core.cummax": Reference(_running(greater), _rows),
    "core.cummin": Reference(_running(lesser), _rows),
    "core.cumlogsumexp": Reference(_running(np.logaddexp, -np.inf), _rows, 4),
    "core.recurrence": Reference(
        _running(lambda c, a, u: a * c + u, 0), _recurrences, 2, zeros=False, whole=True),
}  # fmt: skip
"""The Reference of each primitive of the family."""
