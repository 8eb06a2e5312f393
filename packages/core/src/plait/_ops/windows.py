"""Extremes of windows: sums over the windows that chose an element.

They make up the gradient of pooling if only the first of equal elements receives it.

Invariant: `select_and_scatter_add` is linear in its first operand; the choice is piecewise constant
in the second.
"""

from collections.abc import Sequence
from typing import Any

from .._base.errors import OperandTypeError, ShapeError
from .._base.jaxlib_api import IrValue
from .._core.array import Literal, as_value
from .._core.interpreter import Value
from .._core.primitive import Ints, Primitive
from .._types.avals import FLOAT32, FLOATING, INTEGER, Aval, is_narrow
from .._types.dims import is_symbolic
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import i64s, matrix
from ..typing import Array, ArrayLike
from .convolution import explicit_padding, windows
from .elementwise import and_, eq, gt, lt, ne, or_, select
from .reduction import highest, lowest
from .shape import convert, pad, slice_in_dim
from .static_arguments import fixed_each

__all__ = ["chosen_from", "select_and_scatter_add_"]


def _select_and_scatter_add(
    source: Aval, x: Aval, *, select: str, window: Ints, strides: Ints, padding: tuple
) -> Aval:
    """Add every element of `source` to zeros like `x`, at the extreme of its window of `x`.

    The extreme is the "max" or the "min", the first if there are several, nan before all others.
    """
    if x.category not in (INTEGER, FLOATING) or source.dtype != x.dtype:
        raise OperandTypeError(
            f"select_and_scatter_add of {source!r} to {x!r}",
            fix="give real numbers of one dtype",
        )
    if select not in ("max", "min"):
        raise ShapeError(f"windows have no {select!r}", fix='select by "max" or "min"')
    if is_symbolic(x.shape) or any(len(v) != x.ndim for v in (window, strides, padding)):
        raise ShapeError(
            f"select_and_scatter_add of {x!r} by windows {window}",
            fix=f"give {x.ndim} sizes, strides and pairs of padding; sizes must be known",
        )
    padded = [d + low + high for d, (low, high) in zip(x.shape, padding)]
    count = tuple([windows(d, k, s) for d, k, s in zip(padded, window, strides)])
    if source.shape != count:
        raise ShapeError(
            f"select_and_scatter_add: {source!r} for windows of {x!r}",
            fix=f"there are {count} windows: give an element for each",
        )
    return source.with_shape(x.shape)


select_and_scatter_add_ = Primitive("core.select_and_scatter_add", _select_and_scatter_add)


@lower_rules.rule(select_and_scatter_add_)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    select: str,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: tuple[tuple[Any, ...], ...],
):
    """Pad with the worst value, so that elements of the array are chosen before the padding."""
    source, x = xs
    aval = ins[1]
    worst = (lowest if select == "max" else highest)(aval.dtype)
    if 0 in ins[0].shape or 0 in aval.shape:
        return e.constant(0, outs[0])
    zeros = (0,) * aval.ndim
    low, high = ([p[i] for p in padding] for i in (0, 1))
    wide = aval.with_shape([d + a + b for d, a, b in zip(aval.shape, low, high)])
    edge = e.constant(worst, Aval((), aval.dtype))
    padded = e.op("stablehlo.pad", [x, edge], wide, edge_padding_low=i64s(*low),
                  edge_padding_high=i64s(*high), interior_padding=i64s(*zeros))  # fmt: skip
    first = "GE" if select == "max" else "LE"

    def chosen(r, pair):
        flag = Aval((), bool)
        better = r.compare(*pair, first, flag)
        return [r.op("stablehlo.or", [better, r.compare(pair[0], pair[0], "NE", flag)], flag)]

    def total(r: Emitter, pair: list[IrValue]):
        return [r.op("stablehlo.add", pair, cell)]

    # Sums of narrow floats are made in float32, where elements compare as they do themselves.
    narrow = is_narrow(aval)
    inner = Aval(wide.shape, FLOAT32) if narrow else wide
    cell = Aval((), inner.dtype)
    if narrow:
        padded = e.op("stablehlo.convert", [padded], inner)
        source = e.op("stablehlo.convert", [source], Aval(ins[0].shape, FLOAT32))
    out = e.op(
        "stablehlo.select_and_scatter", [padded, source, e.constant(0, cell)], inner,
        window_dimensions=i64s(*window), window_strides=i64s(*strides),
        padding=matrix(((0, 0),) * aval.ndim),
        regions=[((cell, cell), chosen), ((cell, cell), total)],
    )  # fmt: skip
    out = e.op("stablehlo.convert", [out], wide) if narrow else out
    limits = [a + d for a, d in zip(low, aval.shape)]
    return e.op("stablehlo.slice", [out], outs[0], start_indices=i64s(*low),
                limit_indices=i64s(*limits), strides=i64s(*[1] * aval.ndim))  # fmt: skip


def chosen_from(
    t: Value, x: Value, *, select_: str, window: Sequence[int], strides: Sequence[int],
    padding: Sequence[Any],
) -> Any:  # fmt: skip
    """Return the element of `t` at the extreme of each window of `x`."""
    worst = (lowest if select_ == "max" else highest)(x.aval.dtype)
    config = [(low, high, 0) for low, high in padding]
    x = pad(x, Literal(worst, Aval((), x.aval.dtype)), config)
    t = pad(t, Literal(0, Aval((), t.aval.dtype)), config)
    beats = gt if select_ == "max" else lt
    for axis in reversed(range(x.aval.ndim)):
        count = windows(x.aval.shape[axis], window[axis], strides[axis])
        stop = (count - 1) * strides[axis] + 1
        parts = [
            [slice_in_dim(v, k, k + stop, strides[axis], axis) for v in (x, t)]
            for k in range(window[axis])
        ]
        x, t = parts[0]
        for y, u in parts[1:]:
            better = or_(beats(y, x), and_(ne(y, y), eq(x, x)))
            x, t = select(better, y, x), select(better, u, t)
    return t


# ---- functions for users -------------------------------------------------------------------


def select_and_scatter_add(
    source: ArrayLike, operand: ArrayLike, select: str, window_dimensions: Sequence[int],
    window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]] = "VALID",
) -> Array:  # fmt: skip
    """Add every element of `source` at the extreme of its window of `operand`.

    Args:
      source: one element for each window.
      operand: the array that is divided into windows.
      select: "max" or "min"; of equal elements the first in the window is taken.
      window_dimensions: the size of the window along each axis.
      window_strides: the distance between windows along each axis.
      padding: "VALID", "SAME", "SAME_LOWER", or a pair (before, after) for each axis.

    Returns an array like `operand`, zero where nothing was added.  It is a gradient of pooling that
    gives one element the whole share of an extreme; that of `reduce_window` divides it among equal
    elements.  Raises TypeRule if the shapes do not fit.

    >>> import numpy as np, plait
    >>> x = np.float32([1, 5, 2, 4])
    >>> plait.lax.select_and_scatter_add(np.float32([10, 20]), x, "max", (2,), (2,)).tolist()
    [0.0, 10.0, 0.0, 20.0]
    """
    x = as_value(operand)
    y = convert(as_value(source), x.aval.dtype)
    window = fixed_each("select_and_scatter_add", "window_dimensions", window_dimensions)
    strides = fixed_each("select_and_scatter_add", "window_strides", window_strides)
    if len(window) != x.aval.ndim or len(strides) != x.aval.ndim:
        raise ShapeError(
            f"select_and_scatter_add of {x.aval!r} by windows {window}",
            fix=f"give {x.aval.ndim} sizes and strides",
        )
    pads = explicit_padding(padding, x.aval.shape, window, strides)
    return select_and_scatter_add_.bind(
        y, x, select=select, window=window, strides=strides,
        padding=tuple([(int(a), int(b)) for a, b in pads]),
    )  # fmt: skip
