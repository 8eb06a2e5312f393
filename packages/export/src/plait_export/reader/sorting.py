"""Reading sorts by any comparator.

The orders that Plait and other exporters write are recognised.  Any other comparator is applied to
all pairs of elements of a row at once: the place of an element is the number of those before it.

Invariant: every sort is stable; elements are moved and not recomputed, so derivatives pass through.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import plait
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as shapes
from plait.ext.ops import sorting
from plait.ext.trace import Value
from plait.ext.types import FLOATING, INT32
from plait.typing import Array

from ..errors import NotReadable
from .cells import of_cells
from .comparisons import contradicts_itself, order_of
from .elementwise import in_total_order
from .table import reads
from .walking import Walk

if TYPE_CHECKING:
    from .module import Block

_MOST = 4096
"""The most elements of a row that are compared pairwise, which takes memory of its square."""


@reads("stablehlo.sort")
def _(walk: Walk, op, xs: list[Value]):
    axis, block = op.attributes.get("dimension", -1), op.regions[0]
    axis = axis + xs[0].aval.ndim if axis < 0 else axis
    found = order_of(block, walk.constant_at)
    if found is None and contradicts_itself(block, walk.constant_at):
        raise NotReadable(
            f"{op.name} by a function that is not an order: of two elements each is first"
        )
    if found is None:
        order = _by_all_pairs(walk, block, xs, axis)
    elif found[0] == "ascending":
        return sorting.sort_.bind(*xs, axis=axis, num_keys=found[1], stable=True)
    else:
        key = in_total_order(xs[0]) if xs[0].aval.category == FLOATING else xs[0]
        order = sorting.argsort_.bind(
            key, axis=axis, stable=True, descending=found[0] == "total down", index_dtype=INT32
        )
    return [in_order(x, order, axis) for x in xs]


def in_order(x: Value, order: Value, axis: int) -> Any:
    """Return the elements at the given positions along an axis."""
    return plait.numpy.take_along_axis(x, order, axis)


def _by_all_pairs(walk: Walk, block: "Block", xs: list, axis: int) -> Any:
    """Return the positions that put rows into the order of a comparator."""
    n = xs[0].aval.shape[axis]
    if n.__class__ is int and n > _MOST:
        raise NotReadable(
            f"stablehlo.sort of {n} elements by an order of its own, and up to {_MOST} are sorted "
            "so",
        )
    moved = [shapes.moveaxis(x, axis, -1) for x in xs]
    rows = [_square(x, -1) for x in moved]
    columns = [_square(x, -2) for x in moved]
    # `ahead[..., i, j]` is true if element j comes before element i.
    comparator = of_cells(walk, block)
    ahead, behind = _asked(comparator, columns, rows), _asked(comparator, rows, columns)
    shape = ahead.aval.shape
    i, j = (shapes.iota(INT32, shape, len(shape) - k) for k in (2, 1))
    level = el.and_.bind(el.not_.bind(el.or_.bind(ahead, behind)), el.lt.bind(j, i))
    place = shapes.convert(el.or_.bind(ahead, level), INT32).sum(-1)
    order = sorting.argsort_.bind(
        place, axis=place.aval.ndim - 1, stable=True, descending=False, index_dtype=INT32
    )
    return shapes.moveaxis(order, -1, axis)


def _square(x: Array, at: int) -> Any:
    """Repeat rows along a new axis: y[.., i, j] is x[.., i] for `at` -1, and x[.., j] for -2."""
    n, k = x.aval.shape[-1], x.aval.ndim
    dims = (*range(k - 1), k - 1 if at == -1 else k)
    return shapes.broadcast_in_dim.bind(x, shape=(*x.aval.shape, n), dims=dims)


def _asked(comparator: Callable, first: list, second: list) -> Any:
    """Apply the comparator to every pair of elements."""
    return comparator([v for pair in zip(first, second) for v in pair])[0]
