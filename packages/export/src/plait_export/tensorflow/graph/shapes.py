"""Operations that move elements: reshape, broadcast, slice, pad and others.

Invariant: starts of slices are clamped to the bounds, as StableHLO specifies; sizes may be
computed.
"""

from collections.abc import Sequence
from typing import Any

from ..library import tf
from .sizes import as_shape, broadcast, counted, listed, product, size, sizes_of
from .table import graphs, refuses

# ---- sizes as values -----------------------------------------------------------------------


@graphs("stablehlo.get_dimension_size")
def _(walk: object, op, xs):
    n = size(xs[0], op.attributes["dimension"])
    return tf.constant(n, tf.int32) if n.__class__ is int else n


refuses("it gives an array a size that is known only when it is computed",
        "stablehlo.set_dimension_size")  # fmt: skip


@graphs("stablehlo.iota")
def _(walk, op, xs: object):
    return _iota(op, said(walk, op))


@graphs("stablehlo.dynamic_iota")
def _(walk: object, op, xs):
    return _iota(op, listed(xs[0]))


def _iota(op: Any, shape: Sequence[Any]) -> Any:
    return counted(tf.as_dtype(op.types[0].dtype), shape, op.attributes["iota_dimension"])


def said(walk: Any, op: Any) -> list[int]:
    """Return the static shape of the result; refuse an operation whose result is dynamic."""
    shape = op.types[0].shape
    if None in shape:
        raise walk.unsaid(f"{op.name} does not say how large its result is")
    return list(shape)


# ---- shapes --------------------------------------------------------------------------------


@graphs("stablehlo.reshape")
def _(walk, op, xs):
    shape: list[Any] = list(op.types[0].shape)
    if shape.count(None) == 1:  # The size of this axis follows from the number of elements.
        known = max(1, product([d for d in shape if d is not None]))
        shape[shape.index(None)] = product(sizes_of(xs[0])) // known
    elif None in shape:
        shape = said(walk, op)
    return tf.reshape(xs[0], as_shape(shape))


@graphs("stablehlo.dynamic_reshape")
def _(walk: object, op: object, xs):
    return tf.reshape(xs[0], as_shape(listed(xs[1])))


@graphs("stablehlo.broadcast_in_dim")
def _(walk, op, xs):
    return broadcast(xs[0], said(walk, op), op.attributes["broadcast_dimensions"])


@graphs("stablehlo.dynamic_broadcast_in_dim")
def _(walk: object, op, xs):
    return broadcast(xs[0], listed(xs[1]), op.attributes["broadcast_dimensions"])


@graphs("stablehlo.transpose")
def _(walk: object, op, xs):
    return tf.transpose(xs[0], list(op.attributes["permutation"]))


@graphs("stablehlo.reverse")
def _(walk: object, op, xs):
    axes = list(op.attributes["dimensions"])
    return tf.reverse(xs[0], axes) if axes else tf.identity(xs[0])


@graphs("stablehlo.concatenate")
def _(walk: object, op, xs):
    return tf.concat(xs, op.attributes["dimension"])


# ---- parts ---------------------------------------------------------------------------------


@graphs("stablehlo.slice")
def _(walk: object, op, xs):
    at = op.attributes
    bounds = [list(at[k]) for k in ("start_indices", "limit_indices", "strides")]
    return tf.strided_slice(xs[0], *bounds)


@graphs("stablehlo.real_dynamic_slice")
def _(walk: object, op: object, xs):
    bounds = zip(*map(listed, xs[1:]), strict=True)
    return xs[0][tuple([slice(*b) for b in bounds])]


def positions(starts: Sequence[Any], room: Sequence[Any]) -> Any:
    """Return starts as a vector, clamped to between 0 and the room that is left."""
    inside = [
        tf.clip_by_value(position(s), 0, tf.cast(r, tf.int64))
        for s, r in zip(starts, room, strict=True)
    ]
    return tf.stack(inside)


def position(s: Any) -> Any:
    """Return a position as int64; uint64 beyond its range stays out of bounds."""
    if s.dtype == tf.uint64:
        s = tf.minimum(s, tf.constant(2**62, tf.uint64))
    return tf.cast(s, tf.int64)


@graphs("stablehlo.dynamic_slice")
def _(walk: object, op, xs):
    x, *starts = xs
    if not starts:
        return tf.identity(x)
    wanted = op.attributes["slice_sizes"]
    room = [n - k for n, k in zip(sizes_of(x), wanted)]
    return tf.slice(x, positions(starts, room), tf.constant(wanted, tf.int64))


@graphs("stablehlo.dynamic_update_slice")
def _(walk: object, op: object, xs):
    x, box, *starts = xs
    if not starts:
        return tf.identity(box)
    wide = sizes_of(box)
    have = sizes_of(x)
    begin = positions(starts, [n - k for n, k in zip(have, wide)])
    # Loops write whole rows; more consumers of graphs support this operation than the one below.
    if _whole_rows(have, wide):
        rows = begin[0] + tf.range(wide[0], dtype=tf.int64)
        return tf.tensor_scatter_nd_update(x, rows[:, None], box)
    end = begin + tf.cast(as_shape(wide), tf.int64)
    return tf.raw_ops.TensorStridedSliceUpdate(
        input=x, begin=begin, end=end, strides=tf.ones_like(begin), value=box
    )


def _whole_rows(have: Sequence[Any], wide: Sequence[Any]) -> bool:
    """Return whether a box is known to be as large as the array in all axes but the first."""
    known = all(n.__class__ is int for n in wide) and all(n.__class__ is int for n in have[1:])
    return known and list(have[1:]) == list(wide[1:])


# ---- padding -------------------------------------------------------------------------------


@graphs("stablehlo.pad")
def _(walk: object, op, xs):
    keys = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return padded(*xs, *[op.attributes[k] for k in keys])


@graphs("stablehlo.dynamic_pad")
def _(walk: object, op: object, xs):
    x, value, *config = xs
    return padded(x, value, *map(listed, config))


def padded(
    x: Any, value: Any, low: Sequence[Any], high: Sequence[Any], between: Sequence[Any]
) -> Any:
    """Pad an array with `value` before, after and between its elements.

    Negative padding before or after removes elements.
    """
    for axis, k in enumerate(between):
        if k.__class__ is not int or k:
            x = _spread_out(x, value, axis, k)
    if not any(n.__class__ is not int or n for n in (*low, *high)):
        return tf.identity(x)
    room = [[_at_least_0(a), _at_least_0(b)] for a, b in zip(low, high)]
    pairs = tf.reshape(as_shape([n for pair in room for n in pair]), (-1, 2))
    full = tf.raw_ops.PadV2(input=x, paddings=pairs, constant_values=value)
    if all(n.__class__ is int and n >= 0 for n in (*low, *high)):
        return full
    whole = [n + a + b for n, a, b in zip(sizes_of(x), low, high)]
    begin = as_shape([_at_least_0(0 - a) for a in low])
    return tf.slice(full, begin, as_shape(whole))


def _at_least_0(n: int) -> Any:
    return max(n, 0) if n.__class__ is int else tf.maximum(n, 0)


def _spread_out(x: Any, value: Any, axis: int, k: Any) -> Any:
    """Insert the value `k` times between the elements along an axis."""
    have = sizes_of(x)
    pairs = [[0, 0] for _ in range(len(have) + 1)]
    pairs[axis + 1][1] = k
    flat = tf.reshape(as_shape([n for pair in pairs for n in pair]), (-1, 2))
    wide = tf.raw_ops.PadV2(input=tf.expand_dims(x, axis + 1), paddings=flat, constant_values=value)
    n, shape = have[axis], list(have)
    shape[axis] = n * (k + 1)
    last = _at_least_0(n * (k + 1) - k)
    return tf.reshape(wide, as_shape(shape))[(*[slice(None)] * axis, slice(0, last))]
