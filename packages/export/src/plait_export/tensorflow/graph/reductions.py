"""Reductions of axes by any function.

TensorFlow has operations for sums, products, extremes, and any and all of booleans.  Any other
function combines neighbours until one element is left.

Invariant: functions are associative, as StableHLO requires, and elements are combined in their
order.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...reader.comparisons import body_of
from ..library import tf
from .sizes import as_shape, product, sizes_of
from .table import graphs

_PLAIN: dict[str, tuple[Callable, Callable]] = {
    "stablehlo.add": (lambda x, axes: tf.reduce_sum(x, axes), lambda d: 0),
    "stablehlo.multiply": (lambda x, axes: tf.reduce_prod(x, axes), lambda d: 1),
    "stablehlo.maximum": (lambda x, axes: tf.reduce_max(x, axes), lambda d: _lowest(d)),
    "stablehlo.minimum": (lambda x, axes: tf.reduce_min(x, axes), lambda d: _highest(d)),
}
_OF_FLAGS: dict[str, tuple[Callable, Callable]] = {
    name: (f, neutral)
    for f, neutral, names in (
        (lambda x, axes: tf.reduce_any(x, axes), lambda d: False, ("add", "or", "maximum")),
        (lambda x, axes: tf.reduce_all(x, axes), lambda d: True, ("multiply", "and", "minimum")),
    )
    for name in [f"stablehlo.{n}" for n in names]
}


def _lowest(dtype: Any) -> Any:
    return -np.inf if dtype.is_floating else dtype.min


def _highest(dtype: Any) -> Any:
    return np.inf if dtype.is_floating else dtype.max


@graphs("stablehlo.reduce")
def _(walk, op, xs):
    half, axes = len(xs) // 2, sorted(op.attributes["dimensions"])
    block, start = op.regions[0], xs[half:]
    combine = walk.elements(block)
    body = str(body_of(block)) if half == 1 else ""
    plain = (_OF_FLAGS if xs[0].dtype == tf.bool else _PLAIN).get(body)
    if plain is None or not axes:
        return _by_neighbours(combine, xs[:half], start, axes)
    found = plain[0](xs[0], axes)
    if is_neutral(start[0], plain[1](xs[0].dtype)):
        return found
    return combine([tf.broadcast_to(start[0], tf.shape(found)), found])


def is_neutral(start: Any, neutral: object) -> bool:
    """Return whether the start of a reduction is known to be its neutral element."""
    known = tf.get_static_value(start)
    return known is not None and bool(np.all(known == neutral))


def _by_neighbours(combine: Callable, xs: list, start: list, axes: Sequence[int]) -> list:
    """Reduce axes by combining neighbours; the start is put before the elements."""
    rest = [i for i in range(xs[0].shape.rank) if i not in axes]
    have = sizes_of(xs[0])
    kept, n = [have[i] for i in rest], product([have[i] for i in axes])
    rows = [tf.reshape(tf.transpose(x, [*axes, *rest]), as_shape([n, *kept])) for x in xs]
    first = [tf.broadcast_to(s, as_shape([1, *kept])) for s in start]
    rows = [tf.concat([s, x], 0) for s, x in zip(first, rows, strict=True)]
    if n.__class__ is int:
        for _ in range(int(n).bit_length()):
            rows = _halved(combine, rows)
    else:
        shapes = [tf.TensorShape([None, *x.shape[1:]]) for x in rows]
        rows = tf.while_loop(
            lambda *xs: tf.shape(xs[0])[0] > 1,
            lambda *xs: _halved(combine, list(xs)),
            rows, shape_invariants=shapes,
        )  # fmt: skip
    return [tf.squeeze(x, 0) if n.__class__ is int else x[0] for x in rows]


def _halved(combine: Callable, rows: list) -> list:
    """Combine each pair of neighbours; an unpaired last element is kept."""
    n = sizes_of(rows[0])[0]
    if n.__class__ is int and n < 2:
        return rows
    even = n // 2 * 2
    ys = combine([*[x[0:even:2] for x in rows], *[x[1:even:2] for x in rows]])
    return [tf.concat([y, x[even:]], 0) for y, x in zip(ys, rows, strict=True)]
