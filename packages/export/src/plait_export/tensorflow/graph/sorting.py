"""Sorts by any comparator.

The orders that Plait and other exporters write are recognised, and become sorts of integers.  Any
other comparator is applied to all pairs of elements of a row at once: the place of an element is
the number of those before it.

Invariant: every sort is stable; elements are moved and not recomputed, so derivatives pass through.
"""

from collections.abc import Sequence
from typing import Any

from ...reader.comparisons import contradicts_itself, order_of
from ..library import tf
from .elementwise import in_total_order
from .table import graphs

_MOST = 4096
"""The most elements of a row that are compared pairwise, which takes memory of its square."""


@graphs("stablehlo.sort")
def _(walk, op, xs):
    axis, block = op.attributes.get("dimension", -1), op.regions[0]
    axis = axis + xs[0].shape.rank if axis < 0 else axis
    moved = [_last(x, axis) for x in xs]
    found = order_of(block, walk.constant_at)
    if found is None and contradicts_itself(block, walk.constant_at):
        raise walk.unsaid(
            f"{op.name} by a function that is not an order: of two elements each is first"
        )
    if found is None:
        order = _by_all_pairs(walk, block, moved)
    elif found[0] == "ascending":
        order = _by_keys([k for x in moved[: found[1]] for k in _keys(x)])
    else:
        key = in_total_order(moved[0]) if moved[0].dtype.is_floating else _keys(moved[0])[0]
        order = positions(tf.bitwise.invert(key) if found[0] == "total down" else key)
    return [_back(tf.gather(x, order, batch_dims=x.shape.rank - 1), axis) for x in moved]


def in_order(x: Any, axis: int) -> Any:
    """Sort elements along an axis, in numpy's order."""
    row = _last(x, axis)
    order = _by_keys(_keys(row))
    return _back(tf.gather(row, order, batch_dims=row.shape.rank - 1), axis)


def _last(x: Any, axis: int) -> Any:
    rank = x.shape.rank
    return x if axis == rank - 1 else tf.transpose(x, [*_without(rank, axis), axis])


def _back(x: Any, axis: int) -> Any:
    rank = x.shape.rank
    if axis == rank - 1:
        return x
    order = list(range(rank - 1))
    return tf.transpose(x, [*order[:axis], rank - 1, *order[axis:]])


def _without(rank: int, axis: int) -> list[int]:
    return [i for i in range(rank) if i != axis]


def positions(key: Any) -> Any:
    """Return the positions that sort rows of integers, stably."""
    return tf.argsort(key, axis=-1, stable=True)


def _keys(x: Any) -> list[Any]:
    """Return keys of signed integers in numpy's order, with nan last and zeros equal.

    The first key is the most significant.
    """
    if x.dtype.is_complex:
        parts = tf.math.real(x), tf.math.imag(x)
        flags = [tf.cast(tf.math.is_nan(p), tf.int32) for p in parts]
        return [*flags, *[k for p in parts for k in _keys(p)]]
    if x.dtype.is_floating:
        x = tf.where(tf.math.is_nan(x), tf.constant(float("nan"), x.dtype), x)
        x = tf.where(tf.equal(x, 0), tf.zeros((), x.dtype), x)
        return [in_total_order(tf.cast(x, tf.float32) if x.dtype.size < 4 else x)]
    if x.dtype in (tf.uint32, tf.uint64):  # Flipping the highest bit keeps the order when signed.
        kind = tf.int32 if x.dtype == tf.uint32 else tf.int64
        return [tf.bitwise.bitwise_xor(tf.bitcast(x, kind), tf.constant(kind.min, kind))]
    return [x if x.dtype == tf.int64 else tf.cast(x, tf.int32)]


def _by_keys(keys: Sequence[Any]) -> Any:
    """Return the positions that sort by several keys, by a stable sort for each, the last first."""
    order: Any = None
    for key in reversed(keys):
        if order is None:
            order = positions(key)
        else:
            batch = key.shape.rank - 1
            again = positions(tf.gather(key, order, batch_dims=batch))
            order = tf.gather(order, again, batch_dims=batch)
    return order


def _by_all_pairs(walk: Any, block: Any, rows: Sequence[Any]) -> Any:
    """Return the positions that put rows into the order of a comparator."""
    n = rows[0].shape[-1]
    if n is not None and n > _MOST:
        raise walk.unsaid(
            f"stablehlo.sort of {n} elements by an order of its own; up to {_MOST} are sorted so"
        )
    one, other = [x[..., None] for x in rows], [x[..., None, :] for x in rows]
    shape = tf.shape(one[0] == other[0])
    one, other = ([tf.broadcast_to(x, shape) for x in side] for side in (one, other))
    # `ahead[..., i, j]` is true if element j comes before element i.
    ask = walk.elements(block)
    asked = lambda a, b: ask([v for pair in zip(a, b) for v in pair])[0]  # noqa: E731
    ahead, behind = asked(other, one), asked(one, other)
    count = tf.range(shape[-1])
    level = tf.logical_not(tf.logical_or(ahead, behind)) & (count[None, :] < count[:, None])
    return positions(tf.reduce_sum(tf.cast(ahead | level, tf.int32), -1))
