"""Reading gather and scatter.

Invariant: reads out of bounds are clamped and writes out of bounds are dropped, as StableHLO
specifies; a scatter replaces, sums, multiplies or takes an extreme, and is refused otherwise.
"""

from typing import Any

import numpy as np

import plait
from plait.ext.ops import indexing
from plait.ext.ops import shape as shapes
from plait.ext.trace import Value

from ..errors import NotReadable
from .comparisons import body_of
from .contractions import number, numbers
from .table import reads
from .walking import Walk, takes_known


@reads("stablehlo.gather")
def _(walk: Walk, op, xs: list[Value]):
    x, at = xs
    return _gathered(op, x, at, op.attributes["slice_sizes"])


@reads("stablehlo.dynamic_gather")
@takes_known
def _(walk, op, xs):
    sizes = walk.sizes(xs[2], "sizes of dynamic_gather")
    return _gathered(op, walk.value(xs[0]), walk.value(xs[1]), sizes)


def _gathered(op: Any, x: Value, at: Value, sizes: tuple[int, ...]) -> Any:
    said = op.attributes["dimension_numbers"]
    axes = indexing.GatherDimensionNumbers(
        numbers(said, "offset_dims"),
        numbers(said, "collapsed_slice_dims"),
        numbers(said, "start_index_map"),
        numbers(said, "operand_batching_dims"),
        numbers(said, "start_indices_batching_dims"),
    )
    at = _last(at, number(said, "index_vector_dim"))
    return indexing.gather_.bind(
        x, at, dimension_numbers=axes, slice_sizes=tuple(sizes), mode=indexing.CLIP,
        fill_value=None, indices_are_sorted=op.attributes.get("indices_are_sorted", False),
        unique_indices=False,
    )  # fmt: skip


def _last(at: Value, axis: int) -> Any:
    """Move the axis of index vectors to the end, or add it if it is left out."""
    if axis == at.aval.ndim:
        return shapes.expand_dims(at, axis)
    return at if axis == at.aval.ndim - 1 else shapes.moveaxis(at, axis, -1)


_SCATTERS = {
    "second": indexing.scatter_,
    "stablehlo.add": indexing.scatter_add_,
    "stablehlo.multiply": indexing.scatter_mul_,
    "stablehlo.minimum": indexing.scatter_min_,
    "stablehlo.maximum": indexing.scatter_max_,
}
_OF_FLAGS = {
    "stablehlo.add": "stablehlo.maximum",
    "stablehlo.or": "stablehlo.maximum",
    "stablehlo.multiply": "stablehlo.minimum",
    "stablehlo.and": "stablehlo.minimum",
}


@reads("stablehlo.scatter")
def _(walk: Walk, op, xs: list[Value]):
    if len(xs) != 3:
        raise NotReadable(f"{op.name} of {len(xs) // 2} arrays at once")
    x, at, updates = xs
    body = body_of(op.regions[0])
    flags = x.aval.dtype == np.bool_
    prim = _SCATTERS.get(_OF_FLAGS.get(str(body), body) if flags else body)  # type: ignore[arg-type]
    if prim is None:
        raise NotReadable(
            f"{op.name} combines elements by a function that is not a sum, product or extreme"
        )
    said = op.attributes["scatter_dimension_numbers"]
    axes = indexing.ScatterDimensionNumbers(
        numbers(said, "update_window_dims"),
        numbers(said, "inserted_window_dims"),
        numbers(said, "scatter_dims_to_operand_dims"),
        numbers(said, "input_batching_dims"),
        numbers(said, "scatter_indices_batching_dims"),
    )
    promises = {k: op.attributes.get(k, False) for k in ("indices_are_sorted", "unique_indices")}
    if flags and body != "second":
        x, updates = (shapes.convert(v, np.uint8) for v in (x, updates))
    out = prim.bind(
        x, _last(at, number(said, "index_vector_dim")), updates, dimension_numbers=axes,
        mode=indexing.FILL, **promises,
    )  # fmt: skip
    return plait.lax.ne(out, out.dtype.type(0)) if flags and body != "second" else out
