"""Gather and scatter of any windows.

Both use positions of elements in the flattened array, except for a gather of whole rows.

Invariant: reads out of bounds are clamped, and windows written out of bounds are dropped, as in
XLA.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...reader.comparisons import body_of
from ...reader.contractions import number, numbers
from ..library import tf
from .shapes import position
from .sizes import as_shape, broadcast, counted, listed, product, sizes_of
from .table import graphs


class _Windows(NamedTuple):
    """The layout of windows in an array.

    Attributes:
      at: positions [..., k]: k coordinates of each window.
      axes: the axes of the array for these coordinates.
      batch: pairs (axis of the array, axis of the positions) of batch axes.
      sizes: the size of a window along every axis of the array.
      kept: the axes of the array that are axes of windows, too.
    """

    at: Any
    axes: tuple[int, ...]
    batch: tuple[tuple[int, int], ...]
    sizes: Sequence[Any]
    kept: tuple[int, ...]

    def starts(self, shape: Sequence[Any], inside: bool) -> tuple[list[Any], Any]:
        """Return (starts along each axis, or None for 0; whether windows are in bounds).

        With `inside`, starts are clamped to the bounds.
        """
        lead = sizes_of(self.at)[:-1]
        found: list[Any] = [None] * len(shape)
        fits = tf.ones(as_shape(lead), tf.bool)
        for k, axis in enumerate(self.axes):
            start = position(self.at[..., k])
            room = tf.cast(shape[axis] - self.sizes[axis], tf.int64)
            if inside:
                start = tf.clip_by_value(start, 0, room)
            else:
                fits = tf.logical_and(fits, tf.logical_and(start >= 0, start <= room))
            found[axis] = start
        for axis, of in self.batch:
            found[axis] = counted(tf.int64, lead, of)
        return found, fits

    def places(self, shape: Sequence[Any], starts: Sequence[Any]) -> tuple[Any, Any]:
        """Return (flat position of each window, offsets of its elements from there)."""
        lead, window = sizes_of(self.at)[:-1], [self.sizes[i] for i in self.kept]
        first = tf.zeros(as_shape(lead), tf.int64)
        inner = tf.zeros(as_shape(window), tf.int64)
        step: Any = 1
        for axis in reversed(range(len(shape))):
            far = tf.cast(step, tf.int64)
            if starts[axis] is not None:
                first = first + starts[axis] * far
            if axis in self.kept:
                inner = inner + counted(tf.int64, window, self.kept.index(axis)) * far
            step = step * shape[axis]
        return first, inner


def _beside(first: Any, inner: Any) -> Any:
    """Return the flat positions of all elements of all windows."""
    for _ in range(inner.shape.rank):
        first = first[..., None]
    return first + inner


def _positions_last(at: Any, axis: int) -> Any:
    """Move the axis of index vectors to the end, or add it if it is left out."""
    rank = at.shape.rank
    if axis == rank:
        return at[..., None]
    return tf.transpose(at, [*[i for i in range(rank) if i != axis], axis])


# ---- reading -------------------------------------------------------------------------------


@graphs("stablehlo.gather")
def _(walk: object, op, xs):
    return _gathered(op, xs[0], xs[1], op.attributes["slice_sizes"])


@graphs("stablehlo.dynamic_gather")
def _(walk: object, op, xs):
    return _gathered(op, xs[0], xs[1], listed(xs[2]))


def _gathered(op: Any, x: Any, at: Any, window: Sequence[Any]) -> Any:
    said = op.attributes["dimension_numbers"]
    batch = tuple(zip(numbers(said, "operand_batching_dims"),
                      numbers(said, "start_indices_batching_dims"), strict=True))  # fmt: skip
    gone = {*numbers(said, "collapsed_slice_dims"), *(i for i, _ in batch)}
    kept = tuple([i for i in range(x.shape.rank) if i not in gone])
    at = _positions_last(at, number(said, "index_vector_dim"))
    windows = _Windows(at, numbers(said, "start_index_map"), batch, window, kept)
    shape = sizes_of(x)
    starts, _ = windows.starts(shape, True)
    found = _rows(x, windows, shape, starts)
    if found is None:
        first, inner = windows.places(shape, starts)
        found = tf.gather(tf.reshape(x, [-1]), _beside(first, inner))
    return tf.transpose(found, _arranged(found.shape.rank, numbers(said, "offset_dims")))


def _rows(x: Any, windows: _Windows, shape: Sequence[Any], starts: Sequence[Any]) -> Any:
    """Gather whole rows, or return None if windows are not whole rows.

    Such windows have one element along axes with a position, and all along the others.
    """
    given = [i for i, s in enumerate(starts) if s is not None]
    whole = all(n.__class__ is int and n == m for i, (n, m) in enumerate(zip(windows.sizes, shape))
                if i not in given)  # fmt: skip
    if not given or not whole or set(given) & set(windows.kept):
        return None
    order = [*given, *windows.kept]
    x = x if order == sorted(order) else tf.transpose(x, order)
    if len(given) == 1:
        return tf.gather(x, starts[given[0]])
    return tf.gather_nd(x, tf.stack([starts[i] for i in given], -1))


def _arranged(rank: int, offset: Sequence[int]) -> list[int]:
    """Return the permutation from arrays with window axes last to the order of the result."""
    lead = iter(range(rank - len(offset)))
    inner = {axis: rank - len(offset) + k for k, axis in enumerate(offset)}
    return [inner[i] if i in inner else next(lead) for i in range(rank)]


# ---- writing -------------------------------------------------------------------------------

_SCATTERS: dict[str, Callable] = {
    "second": lambda x, at, v: tf.tensor_scatter_nd_update(x, at[:, None], v),
    "stablehlo.add": lambda x, at, v: tf.tensor_scatter_nd_add(x, at[:, None], v),
    "stablehlo.minimum": lambda x, at, v: tf.tensor_scatter_nd_min(x, at[:, None], v),
    "stablehlo.maximum": lambda x, at, v: tf.tensor_scatter_nd_max(x, at[:, None], v),
    "stablehlo.multiply": lambda x, at, v: (
        x * tf.math.unsorted_segment_prod(v, at, tf.size(x, tf.int64))
    ),
}
_OF_FLAGS = {
    "stablehlo.add": "stablehlo.maximum",
    "stablehlo.or": "stablehlo.maximum",
    "stablehlo.multiply": "stablehlo.minimum",
    "stablehlo.and": "stablehlo.minimum",
}


@graphs("stablehlo.scatter")
def _(walk, op, xs):
    if len(xs) != 3:
        raise walk.unsaid(f"{op.name} of {len(xs) // 2} arrays at once")
    x, at, updates = xs
    body, flags = str(body_of(op.regions[0])), x.dtype == tf.bool
    if flags and body != "second":
        x, updates = tf.cast(x, tf.uint8), tf.cast(updates, tf.uint8)
        body = _OF_FLAGS.get(body, body)
    write = _SCATTERS.get(body)
    if write is None:
        raise walk.unsaid(
            f"{op.name} combines elements by a function that is not a sum, product or extreme"
        )
    said = op.attributes["scatter_dimension_numbers"]
    batch = tuple(zip(numbers(said, "input_batching_dims"),
                      numbers(said, "scatter_indices_batching_dims"), strict=True))  # fmt: skip
    gone = {*numbers(said, "inserted_window_dims"), *(i for i, _ in batch)}
    kept = tuple([i for i in range(x.shape.rank) if i not in gone])
    inner = numbers(said, "update_window_dims")
    at = _positions_last(at, number(said, "index_vector_dim"))
    given, window = sizes_of(updates), [1] * x.shape.rank
    for axis, of in zip(kept, inner, strict=True):
        window[axis] = given[of]
    outer = [i for i in range(updates.shape.rank) if i not in inner]
    updates = tf.transpose(updates, [*outer, *inner])
    axes = numbers(said, "scatter_dims_to_operand_dims")
    found = _written(x, updates, _Windows(at, axes, batch, window, kept), write)
    return tf.cast(found, tf.bool) if xs[0].dtype == tf.bool else found


def _written(x: Any, updates: Any, windows: _Windows, write: Callable) -> Any:
    """Return the array with windows written.

    Windows out of bounds are written to an extra element at the end, which is then removed.
    """
    shape = sizes_of(x)
    starts, fits = windows.starts(shape, False)
    first, inner = windows.places(shape, starts)
    places, total = _beside(first, inner), tf.cast(product(shape), tf.int64)
    fits = broadcast(fits, sizes_of(places), list(range(fits.shape.rank)))
    places = tf.where(fits, places, total)
    flat = tf.concat([tf.reshape(x, [-1]), tf.ones([1], x.dtype)], 0)
    found = write(flat, tf.reshape(places, [-1]), tf.reshape(updates, [-1]))
    return tf.reshape(found[:-1], as_shape(shape))
