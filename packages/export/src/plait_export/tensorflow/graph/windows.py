"""Reductions of windows by any function, and sums at the extremes of windows.

Windows along an axis are built by doubling: two windows of p elements make one of 2 p.  So the
number of operations is logarithmic in the size of a window.

Invariant: functions are associative, and elements are combined in their order.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...reader.comparisons import is_sum
from ..library import tf
from .shapes import padded
from .sizes import along, as_shape, counted, product, sizes_of
from .table import graphs


@graphs("stablehlo.reduce_window")
def _(walk, op, xs):
    half, at, n = len(xs) // 2, op.attributes, xs[0].shape.rank
    pairs, ones = at.get("padding"), (1,) * n
    pairs = [[0, 0]] * n if pairs is None else pairs.tolist()
    between = [k - 1 for k in at.get("base_dilations", ones)]
    low, high = ([int(p[k]) for p in pairs] for k in (0, 1))
    start = xs[half:]
    wide = [padded(x, s, low, high, between) for x, s in zip(xs[:half], start, strict=True)]
    combine = walk.elements(op.regions[0])
    found = _combined(
        combine, wide, at["window_dimensions"], at.get("window_dilations", ones),
        at.get("window_strides", ones),
    )  # fmt: skip
    firsts = [tf.broadcast_to(s, tf.shape(y)) for s, y in zip(start, found)]
    return combine([*firsts, *found])


def _combined(
    combine: Callable, xs: list, window: Sequence[int], dilations: Sequence[int],
    strides: Sequence[int],
) -> list:  # fmt: skip
    """Combine the elements of each window, axis after axis from the last to the first."""
    for axis in reversed(range(len(window))):
        if window[axis] > 1:
            xs = _doubled(combine, xs, axis, window[axis], dilations[axis])
        if strides[axis] > 1:
            xs = [along(x, axis, step=strides[axis]) for x in xs]
    return xs


def _doubled(combine: Callable, xs: list, axis: int, count: int, apart: int) -> list:
    """Combine windows of `count` elements along an axis, with `apart` as the distance of elements.

    The binary digits of `count` select the doubled windows that are joined.
    """
    found: Any = None
    done, have, power = 0, 1, xs  # `power`: windows of `have`
    while True:
        if count & have:
            ahead = [along(x, axis, done * apart) for x in power]
            if found is None:
                found = ahead
            else:
                kept = [along(x, axis, None, -have * apart) for x in found]
                found = combine([*kept, *ahead])
            done += have
        if done == count:
            return found
        first = [along(x, axis, None, -have * apart) for x in power]
        power = combine([*first, *[along(x, axis, have * apart) for x in power]])
        have *= 2


@graphs("stablehlo.select_and_scatter")
def _(walk, op, xs):
    """Add each source at the position of its window's selected element.

    The windows are reduced together with the positions of their elements.
    """
    x, source, start = xs
    if not is_sum(op.regions[1]):
        raise walk.unsaid(f"{op.name} by another function than the sum")
    at, n = op.attributes, x.shape.rank
    pairs = at.get("padding", np.zeros((n, 2), int)).tolist()
    low, high = ([int(p[k]) for p in pairs] for k in (0, 1))
    have = sizes_of(x)
    total = product(have)
    place = tf.reshape(counted(tf.int32, [total], 0), as_shape(have))
    config = low, high, [0] * n
    rows = [
        padded(x, tf.zeros((), x.dtype), *config),
        padded(place, tf.constant(-1), *config),  # Padding is marked by -1 and never selected.
    ]
    select = walk.elements(op.regions[0])

    def chosen(both: Sequence[Any]) -> list:
        (a, i, b, j) = both
        first = tf.logical_or(j < 0, tf.logical_and(i >= 0, select([a, b])[0]))
        return [tf.where(first, a, b), tf.where(first, i, j)]

    ones = (1,) * n
    _, places = _combined(chosen, rows, at.get("window_dimensions", ones), ones,
                          at.get("window_strides", ones))  # fmt: skip
    flat = tf.math.unsorted_segment_sum(tf.reshape(source, [-1]), tf.reshape(places, [-1]), total)
    return tf.reshape(flat, as_shape(have)) + start
