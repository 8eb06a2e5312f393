"""Sums over a short axis as CPUs compute them fast: as a sum of slices.

The compiler hands sums over an axis to a library, which reads its operand from memory, so that
whatever made the operand is a loop of its own.  Sums of slices join that loop, and the one after
it.  The last axis stays, so that slices are rows in memory.

Invariant: a sum of no numbers but -0 is 0, as that of the operation.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .._core.array import Literal
from .._core.interpreter import Value
from .._types.avals import FLOATING, Aval
from .._xla.cpu_forms import cpu_limit
from .elementwise import add
from .shape import reshape, slice_in_dim

LONGEST = cpu_limit("reduction.longest", 8, "The longest axis to write out.")
SHORTEST_ROW = cpu_limit(
    "reduction.shortest_row",
    2,
    "The least size of the last axis: slices of shorter rows are gathered one by one.",
)


def form_of(avals: Sequence[Aval], *, axes: Sequence[int]) -> Callable | None:
    """Return the form of a sum; None if several axes are summed, a long one, or the last."""
    (x,) = avals
    if len(axes) != 1 or x.category != FLOATING or x.dtype.itemsize < 4:
        return None
    (axis,) = axes
    if axis == x.ndim - 1 or not all(d.__class__ is int and d > 0 for d in x.shape):
        return None
    fits = 1 < x.shape[axis] <= LONGEST.value and x.shape[-1] >= SHORTEST_ROW.value
    return (lambda x: _of_slices(x, axis)) if fits else None


def _of_slices(x: Value, axis: int) -> Any:
    shape = x.aval.shape
    total = Literal(0, x.aval.with_shape(()))
    for k in range(shape[axis]):
        part = slice_in_dim(x, k, k + 1, axis=axis)
        total = add(total, reshape(part, (*shape[:axis], *shape[axis + 1 :])))
    return total
