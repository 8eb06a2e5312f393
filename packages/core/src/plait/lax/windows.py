"""Reductions over windows: pooling.

Invariant: windows are combined along one axis after the other, so that the work grows with the sum
of their sizes.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .._base.errors import ShapeError
from .._core.interpreter import Value
from .._ops.convolution import dilated, explicit_padding, windows
from .._ops.elementwise import add
from .._ops.reduction import reduce_sum
from .._ops.shape import (
    broadcast_to,
    materialise_at_ground,
    normal_shape,
    pad,
    reshape,
    slice_in_dim,
)
from .._ops.static_arguments import fixed_each
from .._types.dims import Dim
from .reductions import combining, elementwise, monoid, together

T = TypeVar("T")


def reduce_window(
    operand: T, init_value: object, computation: Callable, window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None,
) -> T:  # fmt: skip
    """Combine the elements of every window by a function: pooling.

    Args:
      operand: a tree of arrays of one shape.
      init_value: a tree of the same structure: initial values, which also pad the arrays.
      computation: (tree, tree) -> tree of elements; associative and elementwise.
      window_dimensions: the size of the window along each axis.
      window_strides: the distance of windows; 1 if not given.
      padding: "VALID", "SAME", "SAME_LOWER", or a pair (before, after) for each axis.  Those with
        names count the elements of the arrays before `base_dilation`.
      base_dilation, window_dilation: the distance of elements of the arrays, and of the window.

    Windows are combined along one axis after the other, so that the work grows with the sum of
    their sizes, not with the product.

    Raises TypeRule if the computation is not elementwise, or numbers do not fit the axes.

    >>> import numpy as np, plait
    >>> plait.lax.reduce_window(np.array([1, 5, 2, 4]), 0, plait.lax.max, (2,), (2,)).tolist()
    [5, 4]
    """
    tree, xs, start = together("reduce_window", operand, init_value)
    program = elementwise("reduce_window", computation, [x.aval for x in xs], tree, same=True)
    sums = monoid(program) is add and xs[0].aval.inexact
    n = xs[0].aval.ndim
    steps = window_dimensions, window_strides, base_dilation, window_dilation
    sizes, strides, base, spread = _steps(xs[0].aval.shape, *steps)
    extent = [dilated(k, d) for k, d in zip(sizes, spread)]
    pads = explicit_padding(padding, xs[0].aval.shape, extent, strides)
    config = [(low, high, b - 1) for (low, high), b in zip(pads, base)]
    if any(v.__class__ is not int or v for c in config for v in c):
        xs = [pad(x, s, config) for x, s in zip(xs, start)]
    combine = combining(computation, tree)
    for axis in range(n):
        size = sizes[axis]
        if (
            sums
            and size == strides[axis]
            and _is_divided(xs[0].aval.shape[axis], size, spread[axis])
        ):
            xs = [_sums_of_parts(xs[0], axis, size)]
        elif size != 1 or strides[axis] != 1:
            xs = _along(combine, xs, axis, sizes[axis], strides[axis], spread[axis])
    outs = combine([broadcast_to(s, x.aval.shape) for s, x in zip(start, xs)], xs)
    return tree.unflatten([materialise_at_ground(o) for o in outs])


def _steps(shape: Sequence[Any], sizes: Any, *others: Any) -> list[tuple]:
    """Return sizes, strides and dilations, positive, one for each axis; None gives ones."""
    n = len(shape)
    names = "window_dimensions", "window_strides", "base_dilation", "window_dilation"
    found = []
    for name, given in zip(names, (sizes, *others)):
        items = (1,) * n if given is None else fixed_each("reduce_window", name, given)
        if len(items) != n or any(v.__class__ is int and v < 1 for v in items):
            raise ShapeError(
                f"reduce_window: {name} is {given}, for arrays of shape {tuple(shape)}",
                fix=f"give {n} positive numbers, one for each axis",
            )
        if any(v.__class__ is not int for v in items):
            raise ShapeError(
                f"reduce_window: {name} is {given}, and windows are written out as slices",
                fix="give numbers; reduce a whole axis by lax.reduce, and combine every beginning "
                "of it by lax.associative_scan",
            )
        found.append(items)
    return found


def padtype_to_pads(
    in_shape: Any, window_shape: object, window_strides: Any, padding: Any
) -> list[tuple[int, int]]:
    """Return pairs (before, after) for a padding given by name: "VALID", "SAME" or "SAME_LOWER".

    Each argument has one size for each axis.  Raises TypeRule for another name.

    >>> import plait
    >>> plait.lax.padtype_to_pads((5,), (3,), (1,), "SAME")
    [(1, 1)]
    """
    shape = normal_shape(in_shape)
    window, strides, *_ = _steps(shape, window_shape, window_strides)
    return [tuple(p) for p in explicit_padding(padding, shape, window, strides)]


def _extents(shape: Sequence[Any], sizes: tuple, base: tuple, spread: tuple) -> tuple[list, list]:
    """Return the extent of windows, and that of the arrays."""
    extent = [dilated(k, d) for k, d in zip(sizes, spread)]
    return extent, [dilated(d, b) for d, b in zip(shape, base)]


def reduce_window_shape_tuple(
    operand_shape: Any, window_dimensions: object, window_strides: object, padding: Any,
    base_dilation: object = None, window_dilation: object = None,
) -> tuple[int, ...]:  # fmt: skip
    """Return the shape of `reduce_window` for an operand of this shape.

    Raises ShapeError for windows that do not fit the operand.

    >>> import plait
    >>> plait.lax.reduce_window_shape_tuple((8, 8), (2, 2), (2, 2), "VALID")
    (4, 4)
    """
    shape = normal_shape(operand_shape)
    steps = window_dimensions, window_strides, base_dilation, window_dilation
    sizes, strides, base, spread = _steps(shape, *steps)
    extent, inside = _extents(shape, sizes, base, spread)
    pads = explicit_padding(padding, shape, extent, strides)
    return tuple(
        [
            windows(low + n + high, k, s)
            for n, (low, high), k, s in zip(inside, pads, extent, strides)
        ]
    )


_WRITTEN_OUT = 8
"""Largest window, in elements, that is combined from one slice for each element."""


def _is_divided(n: Dim, size: int, spread: int) -> bool:
    """Return whether windows that do not overlap divide an axis of a known size."""
    return n.__class__ is int and spread == 1 < size <= n


def _sums_of_parts(x: Value, axis: int, size: int) -> Any:
    """Sum over windows that do not overlap.

    The sum of an axis has a broadcast as its transpose, where slices of a window have a padding
    each: the gradient takes a third of the time.
    """
    shape = x.aval.shape
    count = shape[axis] // size
    if count * size < shape[axis]:
        x = slice_in_dim(x, 0, count * size, axis=axis)
    x = reshape(x, (*shape[:axis], count, size, *shape[axis + 1 :]))
    return reduce_sum.bind(x, axes=(axis + 1,))


def _along(combine: Callable, xs: list, axis: int, size: int, stride: int, spread: int) -> list:
    """Combine windows along one axis, from slices or from windows of half the size."""
    n = xs[0].aval.shape[axis]
    count = windows(n, dilated(size, spread), stride)
    if size < 1 or count.__class__ is int and count == 0:
        empty = [slice_in_dim(x, 0, 0, axis=axis) for x in xs]
        return empty
    if size <= _WRITTEN_OUT or spread != 1:
        take = lambda k: [slice_in_dim(x, k * spread, k * spread + (count - 1) * stride + 1,
                                       stride, axis) for x in xs]  # noqa: E731  # fmt: skip
        out = take(0)
        for k in range(1, size):
            out = combine(out, take(k))
        return out
    whole = _doubled(combine, xs, axis, size)
    return [slice_in_dim(x, 0, (count - 1) * stride + 1, stride, axis) for x in whole]


def _doubled(combine: Callable, xs: list, axis: int, size: int) -> list:
    """Combine windows at every position, from windows of powers of two that add up to the size."""
    out: list | None = None
    done, width, power = 0, 1, xs
    n = xs[0].aval.shape[axis]
    count = n - size + 1
    while size:
        if size & 1:
            part = [slice_in_dim(p, done, done + count, axis=axis) for p in power]
            out = part if out is None else combine(out, part)
            done += width
        size >>= 1
        if size:
            have = power[0].aval.shape[axis]
            left = [slice_in_dim(p, 0, have - width, axis=axis) for p in power]
            power = combine(left, [slice_in_dim(p, width, have, axis=axis) for p in power])
            width *= 2
    assert out is not None
    return out
