"""Convolutions of any rank, dilated on either side, in groups of features or of examples.

TensorFlow supports one to three axes of floats in one group.  Its CPU does not differentiate
dilations.  Other convolutions insert zeros between elements, convolve group after group, or sum
over the places of the kernel.

Invariant: axes are transposed to TensorFlow's order, and the result is transposed back.
"""

import re
from collections.abc import Sequence
from typing import Any

from ..library import tf
from . import integers
from .shapes import padded
from .sizes import along, as_shape, listed, size, sizes_of
from .table import graphs

_MOST = 64
"""The most places of a kernel that are summed over one after the other."""


@graphs("stablehlo.convolution")
def _(walk, op, xs):
    pairs = op.attributes.get("padding")
    n = xs[0].shape.rank - 2
    return _convolved(walk, op, xs, [(0, 0)] * n if pairs is None else pairs.tolist())


@graphs("stablehlo.dynamic_conv")
def _(walk, op, xs):
    flat = listed(tf.reshape(xs[2], (-1,)))
    return _convolved(walk, op, xs[:2], list(zip(flat[::2], flat[1::2])))


def _convolved(walk: Any, op: Any, xs: Sequence[Any], padding: Sequence) -> Any:
    at, n = op.attributes, xs[0].shape.rank - 2
    specs = re.search(r"\[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]", at["dimension_numbers"])
    assert specs is not None
    dtype = tf.as_dtype(op.types[0].dtype)
    x, kernel = (tf.cast(v, dtype) for v in xs)
    x = tf.transpose(x, _order(specs[1], "b", "f", n))
    kernel = tf.transpose(kernel, [*_places(specs[2], n), *_named(specs[2], "io")])
    flipped = [i for i, w in enumerate(at.get("window_reversal", ())) if w]
    kernel = tf.reverse(kernel, flipped) if flipped else kernel
    zero, ones = tf.zeros((), dtype), (1,) * n
    low, high = ([pair[k] for pair in padding] for k in (0, 1))
    between = [k - 1 for k in at.get("lhs_dilation", ones)]
    x = padded(x, zero, [0, *low, 0], [0, *high, 0], [0, *between, 0])
    spread = [k - 1 for k in at.get("rhs_dilation", ones)]
    kernel = padded(kernel, zero, [0] * (n + 2), [0] * (n + 2), [*spread, 0, 0])
    strides = list(at.get("window_strides", ones))
    features, examples = (at.get(f"{kind}_group_count", 1) for kind in ("feature", "batch"))
    y = _in_groups(walk, x, kernel, strides, features, examples)
    inverse = _order(specs[3], "b", "f", n)
    return tf.transpose(y, [inverse.index(i) for i in range(n + 2)])


def _named(text: str, names: str) -> list[int]:
    words = text.split(", ")
    return [words.index(w) for w in names]


def _places(text: str, n: int) -> list[int]:
    return _named(text, "".join(map(str, range(n))))


def _order(text: str, first: str, last: str, n: int) -> list[int]:
    """Return the axes in the order of examples, places, features."""
    return [*_named(text, first), *_places(text, n), *_named(text, last)]


def _in_groups(
    walk: Any, x: Any, kernel: Any, strides: list[int], features: int, examples: int
) -> Any:
    """Convolve, group after group if there are several groups of features or of examples."""
    if features == examples == 1:
        return _plain(walk, x, kernel, strides)
    window = kernel.shape.as_list()[: len(strides)]
    count, axis = max(features, examples), -1 if features > 1 else 0
    if None not in window and _product(window) <= _MOST:
        return _over_places(x, kernel, strides, count, axis)
    parts = zip(tf.split(x, count, axis), tf.split(kernel, count, -1))
    return tf.concat([_plain(walk, a, k, strides) for a, k in parts], -1)


def _product(each: Sequence[int]) -> int:
    total = 1
    for n in each:
        total *= n
    return total


_FLOATS = ("float16", "bfloat16", "float32", "float64")


def _plain(walk: Any, x: Any, kernel: Any, strides: list[int]) -> Any:
    n = len(strides)
    if 1 <= n <= 3 and x.dtype.name in _FLOATS:
        return _by_tensorflow(x, kernel, strides)
    window = kernel.shape.as_list()[:n]
    if None in window or _product(window) > _MOST:
        raise walk.unsaid(
            f"a convolution of {n} axes of {x.dtype.name}, by a kernel of more than {_MOST} places"
        )
    return _over_places(x, kernel, strides, 1, 0)


def _by_tensorflow(x: Any, kernel: Any, strides: list[int]) -> Any:
    """Convolve with TensorFlow's raw operation.

    Its Python wrapper needs a static number of features.  In a gradient with respect to the kernel,
    that number is the batch size, which may be unknown.
    """
    if len(strides) == 1:  # There is no Conv1D, so an axis of size 1 is added.
        y = _by_tensorflow(tf.expand_dims(x, 1), tf.expand_dims(kernel, 0), [1, *strides])
        return tf.squeeze(y, 1)
    how = {"input": x, "filter": kernel, "strides": [1, *strides, 1], "padding": "VALID"}
    return tf.raw_ops.Conv2D(**how) if len(strides) == 2 else tf.raw_ops.Conv3D(**how)


def _over_places(x: Any, kernel: Any, strides: list[int], count: int, axis: int) -> Any:
    """Sum matrix products over the places of the kernel, in groups along an axis."""
    n = len(strides)
    window = kernel.shape.as_list()[:n]
    total: Any = None
    for place in _each_place(window):
        part = x
        for i, (k, w, s) in enumerate(zip(place, window, strides)):
            part = along(part, i + 1, k, size(x, i + 1) - (w - 1) + k, s)
        product = _grouped(part, kernel[place], count, axis)
        total = product if total is None else total + product
    if total is None:
        raise ValueError("a kernel without places")
    return total


def _each_place(window: Sequence[int]) -> list[tuple[int, ...]]:
    places: list[tuple[int, ...]] = [()]
    for n in window:
        places = [(*p, k) for p in places for k in range(n)]
    return places


def _grouped(x: Any, kernel: Any, count: int, axis: int) -> Any:
    """Multiply features by one place of the kernel, of shape [i, o].

    An axis of x, and o, are divided into `count` groups.
    """
    if count == 1:
        return _multiplied("...i,io->...o", x, kernel)
    have, (i, o) = sizes_of(x), sizes_of(kernel)
    kernel = tf.reshape(kernel, as_shape([i, count, o // count]))
    if axis == -1:
        x = tf.reshape(x, as_shape([*have[:-1], count, have[-1] // count]))
        y = _multiplied("...gi,igo->...go", x, kernel)
        return tf.reshape(y, as_shape([*have[:-1], o]))
    x = tf.reshape(x, as_shape([count, have[0] // count, *have[1:]]))
    x = tf.transpose(x, [*range(1, len(have)), 0, len(have)])
    y = _multiplied("...gi,igo->...go", x, kernel)
    return tf.reshape(y, as_shape([have[0] // count, *have[1:-1], o]))


def _multiplied(text: str, x: Any, y: Any) -> Any:
    f = lambda a, b: tf.einsum(text, a, b)  # noqa: E731
    narrow = x.dtype.is_integer and x.dtype not in (tf.int32, tf.int64)
    return integers.wide(f, x, y) if narrow else f(x, y)
