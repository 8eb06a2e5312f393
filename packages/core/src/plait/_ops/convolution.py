"""Convolutions (cross-correlations, as everywhere in the field), with strides, dilations, groups.

Invariant: `ConvDims` alone assigns roles to axes, and a rule that permutes operands permutes it.
`padding` is explicit in the primitive, whose lowering is in `sliding.py`.  Only the functions for
users accept "SAME" and "VALID".
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from plait.typing import Array, ArrayLike, DTypeLike

from .._base.errors import ArgumentError, AxisError, ShapeError, TypeRule
from .._base.jaxlib_api import IrValue
from .._base.lazy import later
from .._core.primitive import Ints, primitive
from .._types.avals import INT32, Aval
from .._types.dims import Dim, is_symbolic, max_dim
from .._xla.cpu_forms import cpu_form_rules
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import attr, i64, i64s, matrix
from .contraction import PRECISIONS, normal_precision, precision_config, product_operands
from .layout import free, placed
from .shape import moveaxis, normal_shape, reshape, rev, transpose
from .static_arguments import fixed, fixed_each

__all__ = ["conv_general", "ConvDims", "dilated", "moved_groups"]


class ConvDims(NamedTuple):
    """The roles of the axes of input, kernel and result.

    lhs_spec: (batch, feature, spatial axes...); rhs_spec: (output feature, input feature, spatial
    axes...); out_spec: (batch, feature, spatial axes...).
    """

    lhs_spec: Ints
    rhs_spec: Ints
    out_spec: Ints


# ---- the primitive -------------------------------------------------------------------------


def dilated(n: int, step: int) -> Any:
    """Return the extent of `n` elements that are `step` apart."""
    if n.__class__ is int:
        return (n - 1) * step + 1 if n else 0
    return n if step == 1 else max_dim((n - 1) * step + 1, 0)


def windows(n: Dim | int, window: Dim | int, stride: int) -> Any:
    """Return the number of positions of a window along an axis of size `n`."""
    positions = (n - window) // stride + 1
    return max(positions, 0) if positions.__class__ is int else max_dim(positions, 0)


def _refuse(what: str, fix: str) -> TypeRule:
    return ArgumentError("conv_general: " + what, fix=fix)


def _check_numbers(x: Aval, y: Aval, dims: ConvDims, count: int, params: dict[str, Any]) -> None:
    """Check ranks and axes, and that there is one entry for each spatial axis."""
    roles = (x, dims.lhs_spec, "input"), (y, dims.rhs_spec, "kernel"), (x, dims.out_spec, "result")
    for v, axes, which in roles:
        if v.ndim != count + 2 or sorted(axes) != list(range(count + 2)):
            raise AxisError(
                f"conv_general: {axes} do not number the axes of the {which}, {v!r}, of a "
                f"convolution over {count} axes",
                fix="input and kernel have two axes besides the spatial ones",
            )
    for name, value in params.items():
        if len(value) != count:
            raise _refuse(
                f"{name} is {value} and there are {count} spatial axes", "give one entry for each"
            )
        if name != "padding" and any(v < 1 for v in value):
            raise _refuse(f"{name} is {value}", "strides and dilations are positive")


def _check_groups(x: Aval, y: Aval, dims: ConvDims, features: int, batches: int) -> None:
    n, c = (x.shape[a] for a in dims.lhs_spec[:2])
    o, i = (y.shape[a] for a in dims.rhs_spec[:2])
    if features < 1 or batches < 1 or (features > 1 and batches > 1):
        raise _refuse(
            f"feature_group_count is {features} and batch_group_count is {batches}",
            "both are positive, and one of them is 1",
        )
    if c != i * features:
        raise _refuse(
            f"the input {x!r} has {c} features, the kernel {y!r} takes {i}"
            + (f" in each of {features} groups" if features > 1 else ""),
            "they must agree; dimension_numbers says which axis is which",
        )
    if o % (features * batches) != 0:
        raise _refuse(
            f"{o} output features of the kernel {y!r} do not divide into "
            f"{features * batches} groups",
            "make their number a multiple",
        )
    if n % batches != 0:
        raise _refuse(f"a batch of {n} does not divide into {batches} groups", "make it a multiple")


@primitive("core.conv_general")
def conv_general(
    x: Aval,
    y: Aval,
    *,
    window_strides: Ints,
    padding: tuple[Ints, ...],
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dims: ConvDims,
    feature_group_count: int,
    batch_group_count: int,
    precision: str,
    out_dtype: np.dtype,
    exact: bool = False,
) -> Aval:
    """Sum the products of the input with the kernel at every position of its window.

    Padding and the gaps of dilation are zeros; if `exact`, they are not multiplied.
    """
    steps = {
        "window_strides": window_strides,
        "padding": padding,
        "lhs_dilation": lhs_dilation,
        "rhs_dilation": rhs_dilation,
    }
    _check_numbers(x, y, dims, len(dims.lhs_spec) - 2, steps)
    _check_groups(x, y, dims, feature_group_count, batch_group_count)
    if x.dtype != y.dtype:
        raise _refuse(f"operands are {x!r} and {y!r}", "convert one of them with .astype")
    if precision not in PRECISIONS:
        raise _refuse(f"there is no precision {precision!r}", f"use one of {', '.join(PRECISIONS)}")
    shape: list[Any] = [0] * x.ndim
    shape[dims.out_spec[0]] = x.shape[dims.lhs_spec[0]] // batch_group_count
    shape[dims.out_spec[1]] = y.shape[dims.rhs_spec[0]]
    spatial = zip(*[axes[2:] for axes in dims], window_strides, padding, lhs_dilation, rhs_dilation)
    for a, b, o, stride, (low, high), dl, dr in spatial:
        extent = low + dilated(x.shape[a], dl) + high
        if extent.__class__ is int and extent < 0:
            raise _refuse(
                f"padding of {low} and {high} leaves nothing of an axis of size {x.shape[a]}",
                "cut off less",
            )
        if y.shape[b].__class__ is int and y.shape[b] == 0:
            raise _refuse(
                f"the kernel {y!r} has no elements along axis {b}", "give it at least one"
            )
        shape[o] = windows(extent, dilated(y.shape[b], dr), stride)
    return Aval(shape, out_dtype, x.weak_type and y.weak_type and out_dtype == x.dtype)


@lower_rules.rule(conv_general)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], /, **params: object) -> Any:
    # The lowering binds convolutions of other forms and branches, which lie above this module.
    return later("_ops.sliding").lowered(e, xs, ins, outs, **params)


@cpu_form_rules.rule(conv_general)
def _(avals: Sequence[Aval], /, **params: object) -> Any:
    return later("_ops.convolution_forms").form_of(avals, **params)


@cache
def _numbers(dims: ConvDims):
    def text(axes: Ints, first: str, second: str) -> str:
        names = [""] * len(axes)
        for a, name in zip(axes, (first, second, *map(str, range(len(axes) - 2)))):
            names[a] = name
        return ", ".join(names)

    lhs, rhs = text(dims.lhs_spec, "b", "f"), text(dims.rhs_spec, "o", "i")
    return attr(f"#stablehlo.conv<[{lhs}]x[{rhs}]->[{text(dims.out_spec, 'b', 'f')}]>")


def emit_convolution(e: Emitter, xs: list[IrValue], ins: list[Aval], out, /, **params: object):
    """Emit the convolution of `xs`, of types `ins`, as a value of type `out`.

    In a module for several devices it has a form that the compiler divides correctly.
    """
    if not e.is_divided:
        return _emitted(e, xs, ins, out, **params)
    divided = later("_ops.divided_convolution")
    products = divided.by_products(params, ins[0], ins[1], out)
    *taken, given = divided.whole_axes(params, products)
    xs = [e.whole_along(x, a, axes) for x, a, axes in zip(xs, ins, taken, strict=True)]
    if products:
        made = divided.lowered_by_products(e, xs, ins, params)
    else:
        made = _emitted(e, xs, ins, out, **params)
    return e.whole_along(made, out, given)


def _emitted(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    out,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dims,
    feature_group_count,
    batch_group_count,
    precision,
    out_dtype,
):
    flat = [p for pair in padding for p in pair]
    if not is_symbolic((*flat, *ins[0].shape)):
        is_plain = feature_group_count == batch_group_count == 1 == max(lhs_dilation, default=1)
        if is_plain and e.unit.counts_gains:  # the library of one thread has no others
            gains = later("_xla.product_threads")
            e.unit.gain += gains.of_convolution(ins[0], ins[1], out, dims)
        x, padding, lhs_dilation = _apart(
            e, xs[0], ins[0], dims.lhs_spec[2:], window_strides, padding, lhs_dilation
        )
        xs = [x, xs[1]]
    attributes = dict(
        window_strides=i64s(*window_strides),
        lhs_dilation=i64s(*lhs_dilation),
        rhs_dilation=i64s(*rhs_dilation),
        dimension_numbers=_numbers(dims),
        feature_group_count=i64(feature_group_count),
        batch_group_count=i64(batch_group_count),
        **precision_config(precision),
    )
    if is_symbolic(flat):
        table = Aval((len(padding), 2), INT32)
        pads = e.op("stablehlo.reshape", [e.shape(flat)], table)
        return e.op("stablehlo.dynamic_conv", [*xs, pads], out, **attributes)
    if padding:
        attributes["padding"] = matrix(padding)
    return e.op("stablehlo.convolution", xs, out, **attributes)


def moved_groups(x: Array, axis: int, to: int, groups: int) -> Any:
    """Move the groups of an axis to another axis, where they become the slowest part.

    >>> import numpy as np
    >>> from plait.ext.ops.convolution import moved_groups
    >>> moved_groups(np.zeros((6, 2)), 0, 1, 3).shape
    (2, 6)
    """
    if groups == 1:
        return x
    shape = list(x.aval.shape)
    shape[axis : axis + 1] = [groups, shape[axis] // groups]
    x = moveaxis(reshape(x, tuple(shape)), axis, to)  # now directly in front of the axis they join
    shape = list(x.aval.shape)
    shape[to : to + 2] = [shape[to] * shape[to + 1]]
    return reshape(x, tuple(shape))


def _apart(
    e: Emitter, x: IrValue, aval: Aval, axes: Ints, strides: Ints, padding: tuple, dilation: Ints
) -> tuple[Any, tuple, Ints]:
    """Apply padding and dilation outside a convolution where the compiler does them wrong inside.

    Return the padded input, and the padding and dilation that remain.  XLA's CPU compiler ignores
    padding by -1 and 1.  It ends the process for some convolutions in which one axis has both a
    dilated input and a stride.
    """
    edges = [[0, 0, 0] for _ in aval.shape]
    left, steps = list(padding), list(dilation)
    for k, (axis, (low, high), step, stride) in enumerate(zip(axes, padding, dilation, strides)):
        if step > 1 and (stride > 1 or min(low, high) < 0):
            edges[axis] = [low, high, step - 1]
            left[k], steps[k] = (0, 0), 1
        elif min(low, high) < 0:
            edges[axis] = [min(low, 0), min(high, 0), 0]
            left[k] = max(low, 0), max(high, 0)
    if not any(map(any, edges)):
        return x, padding, dilation
    shape = [low + dilated(n, gap + 1) + high for n, (low, high, gap) in zip(aval.shape, edges)]
    low, high, interior = (i64s(*column) for column in zip(*edges))
    if min(shape) < 0:  # The cut removes more than the axis holds before padding extends it again.
        return x, padding, dilation
    zero = e.constant(0, Aval((), aval.dtype))
    out = aval.with_shape(shape)
    x = e.op(
        "stablehlo.pad", [x, zero], out,
        edge_padding_low=low, edge_padding_high=high, interior_padding=interior,
    )  # fmt: skip
    if any(gap for *_, gap in edges):  # Without a barrier XLA merges this pad into the convolution.
        x = e.op("stablehlo.optimization_barrier", [x], out)
    return x, tuple(left), tuple(steps)


# ---- functions for users -------------------------------------------------------------------


def conv_dimension_numbers(lhs_shape: Any, rhs_shape: Any, dimension_numbers: object) -> ConvDims:
    """Return the roles of axes, from what users write.

    Args:
      lhs_shape, rhs_shape: of input and kernel.
      dimension_numbers: None (batch and features first: NCHW, OIHW, NCHW), three strings such as
        ("NHWC", "HWIO", "NHWC"), or three tuples as `ConvDims` has them.

    Raises AxisError for anything else.

    >>> conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC"))
    ConvDims(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    lhs_shape, rhs_shape = normal_shape(lhs_shape), normal_shape(rhs_shape)
    n = len(lhs_shape)
    if len(rhs_shape) != n or n < 2:
        raise AxisError(
            f"a convolution takes operands with as many axes, at least two, not shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}",
            fix="input: batch, features, space; kernel: output and input features, space",
        )
    if dimension_numbers is None:
        return ConvDims(*[tuple(range(n))] * 3)
    given = tuple(dimension_numbers) if isinstance(dimension_numbers, tuple | list) else ()
    if len(given) != 3:
        raise _bad_numbers(dimension_numbers)
    if all(isinstance(t, str) for t in given):
        space = [c for c in given[1] if c not in "OI"]
        given = [_by_letters(t, names, space, n) for t, names in zip(given, ("NC", "OI", "NC"))]
    found = [fixed_each("conv_general", "dimension_numbers", t) for t in given]
    if any(sorted(t) != list(range(n)) for t in found):
        raise _bad_numbers(dimension_numbers)
    return ConvDims(*found)


def _by_letters(text: str, names: str, space: Sequence[str], n: int) -> list[int]:
    wanted = [*names, *space]
    if sorted(text) != sorted(wanted) or len(set(text)) != len(text) or len(text) != n:
        raise AxisError(
            f"dimension_numbers: {text!r} is not an order of the {n} axes {', '.join(wanted)}",
            fix='write for instance ("NHWC", "HWIO", "NHWC")',
        )
    return [text.index(c) for c in wanted]


def _bad_numbers(given: object) -> AxisError:
    return AxisError(
        f"dimension_numbers {given!r} do not number the axes of input, kernel and result",
        fix='write for instance ("NHWC", "HWIO", "NHWC"), or nothing for ("NCHW", "OIHW", "NCHW")',
    )


def same_padding(sizes: Any, kernel: Any, strides: Sequence[int], lower: bool = False) -> tuple:
    """Return pairs (low, high) for results of size ceil(size / stride) along each axis.

    An odd total pads one more at the end, or at the beginning if `lower`.
    """
    pairs = []
    for n, k, s in zip(sizes, kernel, strides, strict=True):
        if s < 1:
            raise _refuse(f"a stride is {s}", "strides are positive")
        total = (-(-n // s) - 1) * s + k - n
        total = max(total, 0) if total.__class__ is int else max_dim(total, 0)
        less = total // 2
        pairs.append((total - less, less) if lower else (less, total - less))
    return tuple(pairs)


def explicit_padding(
    padding: Sequence[tuple[Any, ...]] | str,
    sizes: Sequence[int | Dim],
    kernel: Sequence[int | Dim],
    strides: Sequence[int],
) -> tuple:
    """Return pairs (low, high), from "SAME", "SAME_LOWER", "VALID", or pairs.

    Raises TypeRule for anything else.
    """
    if isinstance(padding, str):
        word = padding.upper()
        if word == "VALID":
            return ((0, 0),) * len(sizes)
        if word in ("SAME", "SAME_LOWER"):
            return same_padding(sizes, kernel, strides, word == "SAME_LOWER")
    else:
        try:
            pairs = tuple([_pair(p) for p in padding])
        except (TypeError, ValueError, AttributeError):
            pairs = None
        if pairs is not None and len(pairs) == len(sizes):
            return pairs
    raise ShapeError(
        f"padding {padding!r} is not one of a window over {len(sizes)} axes",
        fix='write "SAME", "SAME_LOWER", "VALID", or a pair (low, high) for each spatial axis',
    )


def _pair(p: tuple[int | Dim, ...]) -> tuple[Any, Any]:
    low, high = p
    whole = lambda v: v if hasattr(v, "variables") else v.__index__()  # noqa: E731
    return whole(low), whole(high)


def _each(value: Any, count: int, what: str) -> Ints:
    """Return one int for each spatial axis; None means ones."""
    if value is None:
        return (1,) * count
    single = value.__class__ is int or isinstance(value, np.integer)
    found = (int(value),) * count if single else fixed_each("conv_general", what, value)
    if len(found) != count:
        raise _refuse(f"{what} is {value!r} and there are {count} spatial axes",
                      "give one entry for each")  # fmt: skip
    return found


def conv_general_dilated(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None, dimension_numbers: object = None,
    feature_group_count: int = 1, batch_group_count: int = 1, precision: object = None,
    preferred_element_type: DTypeLike | None = None, out_sharding: object = None,
) -> Array:  # fmt: skip
    """Convolve (cross-correlate) over any number of axes.

    Args:
      lhs: the input: batch, features and spatial axes, in the order of `dimension_numbers`.
      rhs: the kernel: output features, input features (of one group) and spatial axes.
      window_strides: one int for each spatial axis.
      padding: "SAME", "SAME_LOWER", "VALID", or a pair (low, high) for each; may be negative.
      lhs_dilation: distance between input elements; if not 1, the convolution is transposed.
      rhs_dilation: distance between kernel elements.
      dimension_numbers: None (NCHW, OIHW, NCHW), or three strings such as
        ("NHWC", "HWIO", "NHWC").
      feature_group_count: groups of features, each convolved with its own part of the kernel.
      batch_group_count: groups of the batch, likewise.
      precision: None, "default", "high" or "highest".
      preferred_element_type: dtype of the result; by default that of the operands, promoted.
      out_sharding: the sharding of the result.

    Returns the result, batch, features and space in the order of `dimension_numbers`.
    Raises TypeRule and AxisError for sizes or numbers that do not fit.

    >>> import numpy as np
    >>> conv_general_dilated(np.ones((1, 1, 5)), np.ones((2, 1, 3)), (2,), "SAME").shape
    (1, 2, 3)
    """
    lhs, rhs = free(lhs, out_sharding), free(rhs, out_sharding)
    x, y, dtype = product_operands(lhs, rhs, preferred_element_type)
    dims = conv_dimension_numbers(x.aval.shape, y.aval.shape, dimension_numbers)
    count = x.aval.ndim - 2
    strides = _each(window_strides, count, "window_strides")
    dl, dr = _each(lhs_dilation, count, "lhs_dilation"), _each(rhs_dilation, count, "rhs_dilation")
    sizes = [dilated(x.aval.shape[a], d) for a, d in zip(dims.lhs_spec[2:], dl)]
    kernel = [dilated(y.aval.shape[a], d) for a, d in zip(dims.rhs_spec[2:], dr)]
    groups = [
        fixed("conv_general", name, n)
        for name, n in (
            ("feature_group_count", feature_group_count),
            ("batch_group_count", batch_group_count),
        )
    ]
    out = conv_general.bind(
        x, y, window_strides=strides, padding=explicit_padding(padding, sizes, kernel, strides),
        lhs_dilation=dl, rhs_dilation=dr, dims=dims, feature_group_count=groups[0],
        batch_group_count=groups[1], precision=normal_precision(precision), out_dtype=dtype,
    )  # fmt: skip
    return placed(out, out_sharding)


def conv(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]], precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Convolve an input NCHW with a kernel OIHW (any number of spatial axes).

    Raises ArgumentError if the features of operand and kernel do not agree, and ShapeError for a
    padding that does not fit.

    >>> import numpy as np
    >>> conv(np.ones((1, 3, 8, 8)), np.ones((4, 3, 3, 3)), (1, 1), "VALID").shape
    (1, 4, 6, 6)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_with_general_padding(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None, precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Convolve as `conv`, with dilations and pairs of padding; arguments as `conv_general_dilated`.

    Raises ArgumentError if the features of operand and kernel do not agree, and ShapeError for a
    padding that does not fit.

    >>> import numpy as np
    >>> x, y = np.ones((1, 1, 5)), np.ones((1, 1, 2))
    >>> conv_with_general_padding(x, y, (1,), [(1, 0)], (1,), (2,)).shape
    (1, 1, 4)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


_LAST = {2: ("NC", "IO", "NC"), 3: ("NHC", "HIO", "NHC"), 4: ("NHWC", "HWIO", "NHWC"),
         5: ("NHWDC", "HWDIO", "NHWDC")}  # fmt: skip


def conv_transpose(
    lhs: ArrayLike, rhs: ArrayLike, strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]], rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None, transpose_kernel: bool = False, precision: object = None,
    preferred_element_type: DTypeLike | None = None, use_consistent_padding: bool = False,
) -> Array:  # fmt: skip
    """Apply a transposed ("fractionally strided") convolution, which inverts the shapes of one.

    Args:
      lhs: the input.
      rhs: the kernel.
      strides: those of the inverted convolution; the result is larger by these factors.
      padding: "SAME" (size * stride), "VALID" (larger by the window's overhang), or pairs (low,
        high) around the dilated input.
      rhs_dilation: distance between kernel elements.
      dimension_numbers: as for `conv_general_dilated`, but by default features come last:
        NHWC, HWIO, NHWC.
      transpose_kernel: True to reverse the kernel in space and swap its features: the exact
        transpose of the convolution with this kernel.
      precision, preferred_element_type: as for `conv_general_dilated`.
      use_consistent_padding: True if pairs give the padding of the inverted convolution, too.

    Raises TypeRule and AxisError for sizes or numbers that do not fit.

    >>> import numpy as np
    >>> conv_transpose(np.ones((1, 4, 3)), np.ones((3, 3, 2)), (2,), "SAME").shape
    (1, 8, 2)
    """
    x, y, dtype = product_operands(lhs, rhs, preferred_element_type)
    if dimension_numbers is None:
        dimension_numbers = _LAST.get(x.aval.ndim)
    dims = conv_dimension_numbers(x.aval.shape, y.aval.shape, dimension_numbers)
    count = x.aval.ndim - 2
    steps = _each(strides, count, "strides")
    dr = _each(rhs_dilation, count, "rhs_dilation")
    kernel = [dilated(y.aval.shape[a], d) for a, d in zip(dims.rhs_spec[2:], dr)]
    if isinstance(padding, str):
        padding = transposed_padding(padding, kernel, steps)
    elif use_consistent_padding:
        pairs = explicit_padding(padding, kernel, kernel, steps)
        padding = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(kernel, pairs)]
    if transpose_kernel:
        y = rev.bind(y, axes=tuple(sorted(dims.rhs_spec[2:]))) if count else y
        perm = list(range(y.aval.ndim))
        perm[dims.rhs_spec[0]], perm[dims.rhs_spec[1]] = dims.rhs_spec[1], dims.rhs_spec[0]
        y = transpose(y, tuple(perm))
    return conv_general_dilated(
        x, y, (1,) * count, padding, steps, dr, dims, precision=precision,
        preferred_element_type=dtype,
    )  # fmt: skip


def transposed_padding(padding: str, kernel: Sequence[int], strides: Sequence[int]) -> list[tuple]:
    """Return the padding around the dilated input that inverts the padding of a convolution.

    Where the window of the convolution extends `low` beyond the input, here it extends
    `window - 1 - low`.
    """
    word = padding.upper()
    if word not in ("SAME", "VALID"):
        raise ShapeError(
            f"padding {padding!r} is not one of conv_transpose",
            fix='write "SAME", "VALID", or a pair (low, high) for each spatial axis',
        )
    pairs = []
    for k, s in zip(kernel, strides, strict=True):
        over = max(k - s, 0)
        low = k - 1 - (over // 2 if word == "SAME" else 0)
        total = k + s - 2 + (0 if word == "SAME" else over)
        pairs.append((low, total - low))
    return pairs
