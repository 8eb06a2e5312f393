"""Reading operations that move elements: reshape, broadcast, slice, pad and others.

Invariant: a shape that the module computes consists of known sizes, static or symbolic.
"""

from math import prod
from typing import Any

from plait.ext.ops import indexing
from plait.ext.ops import shape as shapes
from plait.ext.sizes import Dim
from plait.ext.trace import Value

from ..errors import NotReadable
from .module import Op
from .sizes import Known
from .table import reads
from .walking import Walk, takes_known


def said(op: Op) -> tuple[int, ...]:
    """Return the static shape of the result.  Raises NotReadable if it is dynamic."""
    shape = op.types[0].shape
    if None in shape:
        raise NotReadable(f"{op.name} does not say how large its result is")
    return tuple([d or 0 for d in shape])


# ---- sizes as values -----------------------------------------------------------------------


@reads("stablehlo.get_dimension_size")
def _(walk: Walk, op: Op, xs: list[Value]):
    return Known([xs[0].aval.shape[op.attributes["dimension"]]], (), op.types[0].dtype)


@reads("stablehlo.set_dimension_size")
@takes_known
def _(walk, op: Op, xs):
    x, size = walk.value(xs[0]), xs[1]
    axis = op.attributes["dimension"]
    if size.__class__ is Known and size.items == (x.aval.shape[axis],):
        return x  # TensorFlow writes this for results of sorts, with their own size.
    raise NotReadable(f"{op.name}: a size that is known only when it is computed has no type")


@reads("stablehlo.iota")
def _(walk: Walk, op: Op, xs: list[Any]):
    return _counted(op, said(op))


@reads("stablehlo.dynamic_iota")
@takes_known
def _(walk, op: Op, xs):
    return _counted(op, walk.sizes(xs[0], "sizes of dynamic_iota"))


def _counted(op: Op, shape: tuple[int, ...]) -> Any:
    kind = op.types[0].dtype
    return shapes.iota(kind, tuple(shape), op.attributes["iota_dimension"])


# ---- shapes --------------------------------------------------------------------------------


@reads("stablehlo.reshape")
def _(walk: Walk, op: Op, xs: list[Value]):
    shape = list(op.types[0].shape)
    if shape.count(None) == 1:  # The size of this axis follows from the number of elements.
        at = shape.index(None)
        known = prod([d for d in shape if d is not None])
        shape[at] = prod(xs[0].aval.shape) // known
    return shapes.reshape(xs[0], tuple(shape) if None not in shape else said(op))


@reads("stablehlo.dynamic_reshape")
@takes_known
def _(walk: Walk, op: Op, xs: list[Value | Known]):
    return shapes.reshape(walk.value(xs[0]), walk.sizes(xs[1], "sizes of dynamic_reshape"))


@reads("stablehlo.broadcast_in_dim")
def _(walk: Walk, op: Op, xs: list[Value]):
    return _broadcast(op, xs[0], said(op))


@reads("stablehlo.dynamic_broadcast_in_dim")
@takes_known
def _(walk: Walk, op: Op, xs: list[Any]):
    shape = walk.sizes(xs[1], "sizes of dynamic_broadcast_in_dim")
    return _broadcast(op, walk.value(xs[0]), shape)


def _broadcast(op: Op, x: Value, shape: tuple[int | Dim, ...]) -> Any:
    dims = op.attributes["broadcast_dimensions"]
    if list(dims) != sorted(dims):  # Plait's operation takes increasing dims only.
        order = sorted(range(len(dims)), key=dims.__getitem__)
        x, dims = shapes.transpose_.bind(x, perm=tuple(order)), sorted(dims)
    return shapes.broadcast_in_dim.bind(x, shape=tuple(shape), dims=tuple(dims))


@reads("stablehlo.transpose")
def _(walk: Walk, op: Op, xs: list[Value]):
    return shapes.transpose_.bind(xs[0], perm=op.attributes["permutation"])


@reads("stablehlo.reverse")
def _(walk: object, op: Op, xs):
    axes = op.attributes["dimensions"]
    return shapes.rev.bind(xs[0], axes=tuple(sorted(axes))) if axes else xs[0]


@reads("stablehlo.concatenate")
def _(walk: Walk, op: Op, xs: list[Value]):
    return shapes.concatenate_.bind(*xs, axis=op.attributes["dimension"])


# ---- parts ---------------------------------------------------------------------------------


@reads("stablehlo.slice")
def _(walk: Walk, op: Op, xs: list[Value]):
    at = op.attributes
    return _sliced(xs[0], at["start_indices"], at["limit_indices"], at["strides"])


@reads("stablehlo.real_dynamic_slice")
@takes_known
def _(walk, op, xs):
    """Read a slice whose bounds are known, or whose limits are `start + known sizes`."""
    x, start = walk.value(xs[0]), xs[1]
    if start.__class__ is Known:
        bounds = [walk.sizes(v, "bounds of real_dynamic_slice") for v in xs[1:]]
        return _sliced(x, *bounds)
    sizes = _beyond(walk, op)
    starts = [start[i] for i in range(len(sizes))]
    return indexing.dynamic_slice_.bind(x, *_signed(starts), sizes=tuple(sizes))


def _beyond(walk: Any, op: Op) -> tuple[Any, ...]:
    """Return the sizes of a slice with unknown start, which are added to make its limit.

    Raises NotReadable if the limit is computed otherwise.
    """
    _, start, limit, strides = op.operands
    made = walk.made_by(limit)
    if made is not None and made.name == "stablehlo.add" and start in made.operands:
        (rest,) = [n for n in made.operands if n != start] or [start]
        steps = walk.sizes(walk.of(strides), "strides of real_dynamic_slice")
        if all(n == 1 for n in steps):
            return walk.sizes(walk.of(rest), "sizes of real_dynamic_slice")
    raise NotReadable(f"{op.name} of a size that is computed of values")


def _sliced(x: Value, starts: Any, limits: Any, strides: Any) -> Any:
    starts, limits, strides = map(tuple, (starts, limits, strides))
    return shapes.slice_.bind(x, starts=starts, limits=limits, strides=strides)


@reads("stablehlo.dynamic_slice")
def _(walk: Walk, op: Op, xs: list[Value]):
    x, *starts = xs
    sizes = op.attributes["slice_sizes"]
    return indexing.dynamic_slice_.bind(x, *_signed(starts), sizes=tuple(sizes))


@reads("stablehlo.dynamic_update_slice")
def _(walk: Walk, op: Op, xs: list[Value]):
    x, box, *starts = xs
    return indexing.dynamic_update_slice_.bind(x, box, *_signed(starts))


def _signed(starts: Any) -> list:
    """Return positions as int32 or int64, the dtypes that Plait's operations take."""
    wide = any(s.aval.dtype.itemsize > 4 or s.aval.dtype == "uint32" for s in starts)
    return [shapes.convert(s, "int64" if wide else "int32") for s in starts]


@reads("stablehlo.pad")
def _(walk: object, op: Op, xs):
    at = op.attributes
    keys = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return _padded(*xs, *[at[k] for k in keys])


@reads("stablehlo.dynamic_pad")
@takes_known
def _(walk, op: Op, xs):
    x, value, *config = xs
    config = [walk.sizes(c, "sizes of dynamic_pad") for c in config]
    return _padded(walk.value(x), walk.value(value), *config)


def _padded(x: Any, value: Any, low: Any, high: Any, interior: Any) -> Any:
    return shapes.pad(x, value, list(zip(low, high, interior, strict=True)))
