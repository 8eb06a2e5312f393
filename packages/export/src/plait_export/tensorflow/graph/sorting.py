"""Sorts, by any comparator.

The orders that Plait and others write are known again, and are sorts of integers there.  Any other
comparator is asked for all pairs of elements of a row at once: the place of an element is how many
come before it.

Invariant: every sort is stable; elements move, and are never computed, so that derivatives flow.
"""

from collections.abc import Sequence
from typing import Any

from ...reader.comparisons import contradicts_itself, order_of
from ..library import tf
from .elementwise import in_total_order
from .table import graphs

_MOST = 4096
"""Elements of a row that are compared with each other; a square of them is made."""


@graphs("stablehlo.sort")
def _(walk, op, xs):
    axis, block = op.attributes.get("dimension", -1), op.regions[0]
    axis = axis + xs[0].shape.rank if axis < 0 else axis
    moved = [_last(x, axis) for x in xs]
    found = order_of(block, walk.constant_at)
    if found is None and contradicts_itself(block, walk.constant_at):
        raise walk.unsaid(
            f"{op.name} by a function that is no order: of two elements each is first"
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
    """Elements from the least to the greatest along an axis, in numpy's order."""
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
    """Where the elements of sorted rows of integers come from; of equal ones the first is first."""
    return tf.argsort(key, axis=-1, stable=True)


def _keys(x: Any) -> list[Any]:
    """Signed integers in numpy's order, with nan last and equal zeros; the first counts most."""
    if x.dtype.is_complex:
        parts = tf.math.real(x), tf.math.imag(x)
        flags = [tf.cast(tf.math.is_nan(p), tf.int32) for p in parts]
        return [*flags, *[k for p in parts for k in _keys(p)]]
    if x.dtype.is_floating:
        x = tf.where(tf.math.is_nan(x), tf.constant(float("nan"), x.dtype), x)
        x = tf.where(tf.equal(x, 0), tf.zeros((), x.dtype), x)
        return [in_total_order(tf.cast(x, tf.float32) if x.dtype.size < 4 else x)]
    if x.dtype in (tf.uint32, tf.uint64):  # the order stays if the highest bit is turned
        kind = tf.int32 if x.dtype == tf.uint32 else tf.int64
        return [tf.bitwise.bitwise_xor(tf.bitcast(x, kind), tf.constant(kind.min, kind))]
    return [x if x.dtype == tf.int64 else tf.cast(x, tf.int32)]


def _by_keys(keys: Sequence[Any]) -> Any:
    """Sorted by the last key, then by that before it, and so on."""
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
    """Where the elements come from, in the order that a comparator says."""
    n = rows[0].shape[-1]
    if n is not None and n > _MOST:
        raise walk.unsaid(
            f"stablehlo.sort of {n} elements by an order of its own; up to {_MOST} are sorted so"
        )
    one, other = [x[..., None] for x in rows], [x[..., None, :] for x in rows]
    shape = tf.shape(one[0] == other[0])
    one, other = ([tf.broadcast_to(x, shape) for x in side] for side in (one, other))
    # at [..., i, j]: whether element j comes before element i
    ask = walk.elements(block)
    asked = lambda a, b: ask([v for pair in zip(a, b) for v in pair])[0]  # noqa: E731
    ahead, behind = asked(other, one), asked(one, other)
    count = tf.range(shape[-1])
    level = tf.logical_not(tf.logical_or(ahead, behind)) & (count[None, :] < count[:, None])
    return positions(tf.reduce_sum(tf.cast(ahead | level, tf.int32), -1))
