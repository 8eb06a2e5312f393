"""Sums of products of one array with another at every place, without products of padding.

`conv_general` is defined by padding with zeros, and a backend may multiply by them.  A nan or an
infinity in the kernel then reaches results that lie beyond the data.  The convolutions of numpy and
scipy sum over the overlap.  So does a convolution that is `exact`, and so do its derivatives.
Where everything is finite it is the plain one.  Otherwise it is one that visits no padding, or one
that counts infinities and nans.  The check is one pass over the kernel.

Invariant: a result of an exact convolution is nan or infinite only if a sum over overlaps is.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.jaxlib_api import IrValue
from .._base.lazy import later
from .._base.pjrt_plugins import GPUS
from .._core.array import Literal
from .._core.interpreter import Value
from .._core.staging import staged
from .._types.avals import COMPLEX, FLOAT32, FLOATING, INT32, Aval
from .._types.dims import is_symbolic
from .._xla.lower import Emitter
from ..typing import Array
from . import elementwise as el
from .contraction import normal_precision, product_operands
from .control_flow import cond
from .convolution import ConvDims, conv_general, emit_convolution, explicit_padding, moved_groups
from .reduction import reduce_and
from .shape import concatenate, convert, fill, reshape

__all__ = ["slide"]

INFINITE = float("inf")
FLOAT64 = np.dtype(np.float64)
LACKING = frozenset(GPUS)
"""Platforms whose libraries have convolutions of floating-point numbers only."""


def slide(
    x: Array, kernel: Any, padding: list[tuple[Any, ...]], precision: Any = None, dtype: Any = None
) -> Any:
    """Sum the products of `x` with `kernel` at every place of it, where `x` has elements.

    Args:
      x, kernel: arrays with equally many axes.
      padding: a pair (low, high) for each axis: how far the kernel may extend beyond `x`.
      precision: None, "default", "high" or "highest".
      dtype: of the result; by default that of the operands, promoted.
    """
    x, kernel, out_dtype = product_operands(x, kernel, dtype)
    n = x.aval.ndim
    order, one = tuple(range(n + 2)), (1,) * n
    x, kernel = (reshape(v, (1, 1, *v.aval.shape)) for v in (x, kernel))
    pairs = explicit_padding(padding, x.aval.shape[2:], kernel.aval.shape[2:], one)
    out = conv_general.bind(
        x, kernel, window_strides=one, padding=pairs, lhs_dilation=one, rhs_dilation=one,
        dims=ConvDims(order, order, order), feature_group_count=1, batch_group_count=1,
        precision=normal_precision(precision), out_dtype=out_dtype, exact=True,
    )  # fmt: skip
    return reshape(out, out.aval.shape[2:])


def lowered(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    /,
    *,
    exact: bool = False,
    **params: object,
) -> Any:
    """Lower `conv_general`; a rule of the table `lower`."""
    cpu = e.unit.platforms == ("cpu",)
    if ins[0].category != FLOATING and not LACKING.isdisjoint(e.unit.platforms):
        f = _replacement(ins, params)
        if f is not None:
            return e.program(staged(lambda x, y: [f(x, y, params)], ins), xs)[0]
    way = _better_groups(ins, params) if cpu and not e.is_divided else None
    if way is not None:
        how, there = {**params, **way, "exact": exact}, way["feature_group_count"] > 1
        f = lambda x, y: [conv_general.bind(_regrouped(x, params, there), y, **how)]  # noqa: E731
        return e.program(staged(f, ins), xs)[0]
    single = params["feature_group_count"] == params["batch_group_count"] == 1
    visits = not (cpu and single and ins[0].dtype.itemsize == 8)
    if not exact or ins[0].category != FLOATING or not visits or not _overlaps(params):
        return emit_convolution(e, xs, ins, outs[0], **params)
    careful = _in_double if cpu and single else _counted
    return e.program(staged(lambda x, y: [_checked(x, y, careful, params)], ins), xs)[0]


def _replacement(ins: Sequence[Aval], params: dict[str, Any]) -> Callable | None:
    """Return how to compute a convolution of complex numbers or integers; None if unknown."""
    if ins[0].category == COMPLEX:
        return _by_parts
    sizes = [n for aval in ins for n in aval.shape]
    if is_symbolic(sizes + [n for pair in params["padding"] for n in pair]):
        return None
    return later("_ops.convolution_forms").by_patches


def _by_parts(x: Value, y: Value, params: dict[str, Any]) -> Any:
    """Return the convolution of complex arrays by four of their real and imaginary parts."""
    out_dtype = params["out_dtype"]
    real = {**params, "out_dtype": np.finfo(out_dtype).dtype}
    x, y = (convert(v, out_dtype) for v in (x, y))
    xs, ys = ((el.real.bind(v), el.imag.bind(v)) for v in (x, y))
    (rr, ri), (ir, ii) = [[conv_general.bind(a, b, **real) for b in ys] for a in xs]
    return el.complex_.bind(el.sub.bind(rr, ii), el.add.bind(ri, ir))


def _better_groups(ins: Sequence[Aval], params: dict[str, Any]) -> dict[str, int] | None:
    """Return the other kind of groups where the CPU's compiler does not support this kind.

    It makes them one large convolution, which multiplies elements of other groups by 0.  A nan
    then spreads from one example of a map to all others, and it took a hundred times as long.
    """
    features, batches = params["feature_group_count"], params["batch_group_count"]
    narrow = ins[0].category == FLOATING and ins[0].dtype.itemsize <= 4
    if narrow and batches > 1 and ins[0].shape[params["dims"].lhs_spec[0]] != batches:
        return {"feature_group_count": batches, "batch_group_count": 1}
    wide = not narrow and ins[0].inexact
    if wide and features > 1 and ins[0].shape[params["dims"].lhs_spec[1]] == features:
        return {"feature_group_count": 1, "batch_group_count": features}
    return None


def _regrouped(x: Value, params: dict[str, Any], to_features: bool) -> Any:
    batch, feature = params["dims"].lhs_spec[:2]
    if to_features:
        return moved_groups(x, batch, feature, params["batch_group_count"])
    return moved_groups(x, feature, batch, params["feature_group_count"])


def _overlaps(params: dict[str, Any]) -> bool:
    """Return True if elements of one operand meet padding or gaps of the other."""
    steps = (*params["lhs_dilation"], *params["rhs_dilation"])
    return any(p != 0 for pair in params["padding"] for p in pair) or any(s > 1 for s in steps)


def _checked(x: Value, y: Value, careful: Callable, params: dict[str, Any]) -> Any:
    plain = lambda x, y: [conv_general.bind(x, y, **params)]  # noqa: E731
    apart = lambda x, y: [careful(x, y, params)]  # noqa: E731
    # The elements of x meet padding of the kernel only where that is dilated.
    checked = [y] if all(s == 1 for s in params["rhs_dilation"]) else [x, y]
    finite = [reduce_and.bind(el.is_finite(v), axes=tuple(range(v.aval.ndim))) for v in checked]
    safe = finite[0] if len(finite) == 1 else el.and_(*finite)
    types = [v.aval.strong() for v in (x, y)]
    branches = tuple([staged(f, types) for f in (apart, plain)])
    return cond.bind(convert(safe, INT32), x, y, branches=branches)[0]


def _in_double(x: Value, y: Value, params: dict[str, Any]) -> Any:
    """Return the convolution by the CPU's loop over elements, which visits no padding.

    The compiler has this loop for double precision only; narrower floats go to a library that pads.
    It takes a tenth of the time of `_counted` to compile.
    """
    x, y = (convert(v, FLOAT64) for v in (x, y))
    return convert(conv_general.bind(x, y, **{**params, "out_dtype": FLOAT64}), params["out_dtype"])


def _counted(x: Value, y: Any, params: dict[str, Any]) -> Any:
    """Convolve the finite elements, and set nan and infinity where products have them."""
    finite = [el.select(el.is_finite(v), v, Literal(0, v.aval)) for v in (x, y)]
    out = conv_general.bind(*finite, **params)
    a, b = (_Kinds(v) for v in (x, y))
    values = [a.plus, a.minus, a.positive, a.negative]
    nan = _any([a.nan, a.all, a.infinite, a.zero], [b.all, b.nan, b.zero, b.infinite], params)
    plus = _any(values, [b.positive, b.negative, b.plus, b.minus], params)
    minus = _any(values, [b.negative, b.positive, b.minus, b.plus], params)
    nan = el.or_(nan, el.and_(plus, minus))
    for where, value in ((plus, INFINITE), (minus, -INFINITE), (nan, float("nan"))):
        # A dtype without infinities has nans instead, so the constant is converted.
        one = convert(fill(value, Aval((), FLOAT32)), out.aval.dtype)
        out = el.select(where, one, out)
    return out


class _Kinds:
    """Masks of the elements of an array, one for each kind."""

    def __init__(self, x: Value):
        if x.aval.dtype.itemsize < 4:
            x = convert(x, FLOAT32)
        zero = Literal(0, x.aval)
        self.all = fill(True, Aval(x.aval.shape, bool))
        self.nan, self.zero = el.ne(x, x), el.eq(x, zero)
        self.positive, self.negative = el.gt(x, zero), el.lt(x, zero)
        self.plus = el.eq(x, Literal(INFINITE, x.aval))
        self.minus = el.eq(x, Literal(-INFINITE, x.aval))
        self.infinite = el.or_(self.plus, self.minus)


def _any(xs: Sequence[Any], ys: Sequence[Any], params: dict[str, Any]) -> Any:
    """Mark the places where any pair of masks from `xs` and `ys` is true in one product."""
    dims, groups = params["dims"], params["feature_group_count"]
    x = _beside([convert(v, FLOAT32) for v in xs], dims.lhs_spec[1], groups)
    y = _beside([convert(v, FLOAT32) for v in ys], dims.rhs_spec[1], 1)
    count = conv_general.bind(x, y, **{**params, "out_dtype": FLOAT32})
    return el.gt(count, Literal(0, count.aval))


def _beside(xs: Sequence[Any], axis: int, groups: int) -> Any:
    """Join arrays along `axis`, within each of its groups."""
    if groups == 1:
        return concatenate(xs, axis)
    shape = xs[0].aval.shape
    before, n, after = shape[:axis], shape[axis], shape[axis + 1 :]
    apart = [reshape(x, (*before, groups, n // groups, *after)) for x in xs]
    return reshape(concatenate(apart, axis + 1), (*before, n * len(xs), *after))
