"""Convolutions that the compiler may divide over devices.

XLA's partitioner gives wrong numbers, or ends the process, for many divided convolutions.  It does
so where an operand or the result is divided along a spatial axis, or along an axis of groups.
Spatial axes are therefore gathered first.  A convolution by groups is lowered as products of
matrices, one for each position of the kernel or of the result.  The groups are an axis of their
own, which may be divided, as may the batch.  Examples with a kernel each are such groups.

Invariant: no convolution by groups that the compiler may divide reaches it with its groups divided.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.interpreter import Value
from .._core.staging import staged
from .._types.avals import Aval
from .._xla.lower import Emitter
from .contraction import dot_general
from .shape import concatenate, convert, expand_dims, pad, reshape, slice_, transpose

if TYPE_CHECKING:
    from .convolution import ConvDims

MOST_PRODUCTS = 128
"""The most positions to lower with one product each; larger modules take long to compile."""


def by_products(params: dict[str, Any], x: Aval, y: Aval, out: Aval) -> bool:
    """Return True if a convolution in a divided module is lowered as products of matrices."""
    dims = params["dims"]
    if params["feature_group_count"] * params["batch_group_count"] == 1:
        return False
    sizes = *x.shape, *y.shape, *out.shape
    if not all(n.__class__ is int and n > 0 for n in sizes):
        return False
    window = math.prod([y.shape[a] for a in dims.rhs_spec[2:]])
    places = math.prod([out.shape[a] for a in dims.out_spec[2:]])
    return min(window, places) <= MOST_PRODUCTS


def whole_axes(params: dict[str, Any], products: bool) -> tuple[Sequence[int], ...]:
    """Return the axes of input, kernel and result that every device must hold undivided."""
    dims = params["dims"]
    if products or params["feature_group_count"] * params["batch_group_count"] == 1:
        return dims.lhs_spec[2:], dims.rhs_spec[2:], dims.out_spec[2:]
    if params["batch_group_count"] > 1:
        return dims
    return dims.lhs_spec[1:], dims.rhs_spec, dims.out_spec[1:]


def lowered_by_products(
    e: Emitter, xs: Sequence[Any], ins: Sequence[Aval], params: dict[str, Any]
) -> Any:
    """Lower a convolution as products of matrices."""
    avals = [a.with_sharding(None) for a in ins]
    program = staged(lambda x, y: [_products(x, y, **params)], avals, "convolution")
    return e.program(program, xs)[0]


def _products(
    x: Value,
    y: Value,
    window_strides: Sequence[int],
    padding: Sequence,
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dims: "ConvDims",
    feature_group_count: int,
    batch_group_count: int,
    precision: str,
    out_dtype: np.dtype,
) -> Any:
    groups = feature_group_count * batch_group_count
    x = _grouped(transpose(x, dims.lhs_spec), 1 if feature_group_count > 1 else 0, groups)
    y = _grouped(transpose(y, dims.rhs_spec), 0, groups)
    around = [(low, high, step - 1) for (low, high), step in zip(padding, lhs_dilation)]
    x = pad(x, convert(0, x.aval.dtype), [(0, 0, 0)] * 3 + around)
    window = y.aval.shape[3:]
    reach = [(n - 1) * step + 1 for n, step in zip(window, rhs_dilation)]
    places = [(n - w) // s + 1 for n, w, s in zip(x.aval.shape[3:], reach, window_strides)]
    # A convolution rounds its sum once; summing products in a narrow dtype would round each term.
    wide = np.dtype(np.float32) if out_dtype.itemsize < 4 and out_dtype.kind in "fV" else out_dtype
    how = {"precision": precision, "out_dtype": wide}
    if math.prod(window) <= math.prod(places):
        out = _each_of_window(x, y, window, places, rhs_dilation, window_strides, how)
    else:
        out = _each_of_places(x, y, window, places, rhs_dilation, window_strides, how)
    order = 1, 0, len(places) + 2, *range(2, len(places) + 2)  # batch, groups, features, space
    out = transpose(convert(out, out_dtype), order)
    n, g, o, *space = out.aval.shape
    return transpose(reshape(out, (n, g * o, *space)), tuple(np.argsort(dims.out_spec).tolist()))


def _grouped(x: Value, axis: int, groups: int) -> Any:
    """Return `x` with the groups, the slowest part of an axis, as its first axis."""
    s = x.aval.shape
    x = reshape(x, (*s[:axis], groups, s[axis] // groups, *s[axis + 1 :]))
    return transpose(x, (axis, *[i for i in range(len(s) + 1) if i != axis]))


def every(
    x: Value, axes: Sequence[int], start: Sequence[int], count: Sequence[int], steps: Sequence[int]
) -> Any:
    """Return `count` elements along each of these axes, from `start` on, `steps` apart."""
    starts, limits, strides = [0] * x.aval.ndim, [*x.aval.shape], [1] * x.aval.ndim
    for a, first, n, step in zip(axes, start, count, steps):
        starts[a], limits[a], strides[a] = first, first + (n - 1) * step + 1, step
    if not any(starts) and limits == [*x.aval.shape] and max(strides, default=1) == 1:
        return x
    return slice_.bind(x, starts=tuple(starts), limits=tuple(limits), strides=tuple(strides))


def _each_of_window(
    x: Value, y: Value, window: Sequence[int], places: Sequence[int], apart: Sequence[int],
    strides: Sequence[int], how: dict[str, Any],
) -> Any:  # fmt: skip
    """Return the sum over the positions of the kernel: groups, batch, space, features."""
    total: Any = None
    for at in product(*map(range, window)):
        shifted = every(
            x, range(3, x.aval.ndim), [i * d for i, d in zip(at, apart)], places, strides
        )
        cell = every(y, range(3, y.aval.ndim), at, [1] * len(at), [1] * len(at))
        cell = reshape(cell, cell.aval.shape[:3])
        found = dot_general.bind(shifted, cell, contract=((2,), (2,)), shared=((0,), (0,)), **how)
        total = found if total is None else total + found
    return total


def _each_of_places(
    x: Value, y: Value, window: Sequence[int], places: Sequence[int], apart: Sequence[int],
    strides: Sequence[int], how: dict[str, Any],
) -> Any:  # fmt: skip
    """Return the results at each place one after the other: groups, batch, space, features."""
    summed = tuple(range(2, x.aval.ndim))
    found = []
    for at in product(*map(range, places)):
        box = every(x, range(3, x.aval.ndim), [i * s for i, s in zip(at, strides)], window, apart)
        out = dot_general.bind(box, y, contract=(summed, summed), shared=((0,), (0,)), **how)
        found.append(expand_dims(out, 2))
    g, n, _, o = found[0].aval.shape
    return reshape(concatenate(found, 2), (g, n, *places, o))
