"""Order statistics, covariances, histograms and counts.

Invariant: shapes do not depend on traced values: the number of bins and the length of counts are
fixed, or taken from known values.
"""

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.errors import ArgumentError, ConcretizationError, ShapeError
from plait.ext import Aval, Literal, Tracer, Value, materialise_at_ground, types
from plait.ext.ops import elementwise as el
from plait.ext.ops import reduction
from plait.ext.ops import shape as sh
from plait.ext.ops.sorting import sort
from plait.ext.ops.taking import take_along_axis
from plait.ext.sizes import Dim, decide_eq, decide_ge, max_dim, product
from plait.ext.surface import fused, size_given, value
from plait.typing import Array, ArrayLike, Axis, DTypeLike

from ..exact import matmul
from .creation import linspace
from .logic import isnan
from .masking import unwritten
from .matrices import diagonal
from .reductions import average
from .search import expect_ordered, searchsorted
from .weighing import weighted_quantile

__all__ = [
    "bincount", "corrcoef", "cov", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd",
    "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile",
]  # fmt: skip

# ---- quantiles -----------------------------------------------------------------------------

_CONTINUOUS = {
    "linear": (1.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
    "interpolated_inverted_cdf": (0.0, 1.0),
}
"""The parameters alpha and beta of Hyndman and Fan, "Sample quantiles in statistical packages",
1996."""
_DISCRETE = ("lower", "higher", "nearest", "midpoint", "inverted_cdf")


def _quantile(
    name: str, a: object, q: Any, axis: object, out: None, keepdims: bool, method: str, skip: bool,
    weights: ArrayLike | None = None,
) -> Any:  # fmt: skip
    unwritten(out)
    if method not in (*_CONTINUOUS, *_DISCRETE):
        raise ArgumentError(
            f"{name} has no method {method!r}",
            fix=f"use one of {', '.join((*_CONTINUOUS, *_DISCRETE))}",
        )
    if not isinstance(q, Tracer):
        host = np.asarray(q)
        outside = host[(host < 0) | (host > 1)]  # a nan is neither: its result is nan
        if outside.size:
            most = 100 if "percentile" in name else 1
            raise ArgumentError(
                f"{name} of q={outside[0] * most:g}, which is not between 0 and {most}",
                fix=f"give q between 0 and {most}",
            )
    x = value(a)
    q = value(q) if isinstance(q, np.ndarray | np.generic) else q
    expect_ordered(name, x, *([q] if isinstance(q, Value) else []))
    axes = tuple(sorted(sh.normal_axes(axis, x.aval.ndim)))
    if weights is not None:
        if method != "inverted_cdf":
            raise ArgumentError(
                f"{name} with weights has no method {method!r}", fix='use method="inverted_cdf"'
            )
        return weighted_quantile(x, q, weights, axes=axes, keepdims=bool(keepdims), skip=skip)
    return _of_sorted(x, q, axes=axes, keepdims=bool(keepdims), method=method, skip=skip)


@fused(numbers=("q",))
def _of_sorted(a: Value, q: object, *, axes: tuple, keepdims: bool, method: str, skip: bool) -> Any:
    (x,) = el.floating((a,))
    rest = [i for i in range(x.aval.ndim) if i not in axes]
    rows = [x.aval.shape[i] for i in rest]
    size = 1
    for i in axes:
        size = size * x.aval.shape[i]
    if size.__class__ is int and size == 0:
        raise ShapeError(f"quantiles of nothing: {x.aval!r} over axes {axes}", fix="give elements")
    x = sort(sh.reshape(sh.transpose(x, (*rest, *axes)), (*rows, size)), -1)
    real = np.zeros(0, x.aval.dtype).real.dtype
    if types.is_narrow(x.aval):  # a narrow dtype cannot count the elements
        real = np.dtype(np.float32)
    q = value(q)
    if q.aval.category == types.FLOATING and not q.aval.weak_type and q.aval.dtype.itemsize >= 4:
        real = q.aval.dtype  # as in numpy: float32(0.1) of 5 is 0.5, but slightly more in float64
    q = sh.convert(q, real)
    shape = q.aval.shape
    q = sh.broadcast_to(sh.reshape(q, (q.aval.size,)), (*(1 for _ in rows), q.aval.size))
    nan = isnan(x)
    if skip:
        count = sh.convert(reduction.sum_(el.not_(nan), -1, keepdims=True), real)
    else:
        count = sh.broadcast_to(sh.size_value(size, real), (*(1 for _ in rows), 1))
    out = el.select(isnan(q), np.nan, _picked(x, q, count, method))
    bad = el.eq(count, 0) if skip else reduction.any_(nan, -1, keepdims=True)
    out = sh.moveaxis(el.select(bad, np.nan, out), -1, 0)
    out = sh.reshape(out, (*shape, *rows))
    return sh.expand_dims(out, tuple([len(shape) + i for i in axes])) if keepdims else out


def _picked(x: Value, q: Value, count: Value, method: str) -> Any:
    """Return elements of sorted rows at fractions `q` of `count`."""
    last = el.maximum(el.sub(count, 1), 0)
    if method == "inverted_cdf":
        position = el.sub(el.ceil(el.mul(q, count)), 1)
    else:
        alpha, beta = _CONTINUOUS.get(method, (1.0, 1.0))
        position = el.add(el.mul(q, el.add(count, 1 - alpha - beta)), alpha - 1)
    position = el.clamp(
        Literal(0, position.aval), position, sh.broadcast_to(last, position.aval.shape)
    )
    low = el.floor(position)
    high = el.minimum(el.add(low, 1), last)
    high = el.select(el.eq(low, position), low, high)
    at = lambda i: take_along_axis(x, sh.convert(i, np.int32), -1, mode="clip")  # noqa: E731
    if method in ("lower", "inverted_cdf"):
        return at(low)
    if method == "higher":
        return at(high)
    if method == "nearest":
        return at(el.round_even(position))
    part = 0.5 if method == "midpoint" else sh.convert(el.sub(position, low), x.aval.dtype)
    a, b = at(low), at(high)
    # Two equal infinities would differ by nan; their distance is zero.
    same = el.and_(el.eq(a, b), el.eq(el.abs_(a), np.inf))
    step = el.select(same, 0, el.sub(b, a))
    return el.add(a, el.mul(step, part))


def quantile(
    a: ArrayLike, q: ArrayLike, axis: Axis | None = None, out: None = None,
    overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
    weights: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the values below which fractions of the elements lie; nan if there is one.

    Args:
      a: real, any shape; integers become the default float.
      q: fractions between 0 and 1, any shape.
      axis: None (all), an int, or a tuple of ints.
      out: must be None.
      overwrite_input: accepted for compatibility.
      method: interpolation between elements: "linear", "lower", "higher", "nearest", "midpoint",
        "inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased" or
        "interpolated_inverted_cdf".
      keepdims: whether to keep the axes, with size 1.
      weights: weight of each element, for the method "inverted_cdf": the shape of `a`, or a vector
        along the axis.

    Returns q's axes, then the remaining axes.  Raises TypeRule for other methods, complex numbers,
    known fractions outside of [0, 1], and axes without elements.  As numpy.quantile.

    Raises AxisError for an axis that `a` lacks.

    >>> import plait
    >>> float(plait.numpy.quantile(plait.numpy.arange(5.0), 0.75))
    3.0
    """
    return _quantile("quantile", a, q, axis, out, keepdims, method, skip=False,
                     weights=weights)  # fmt: skip


def nanquantile(
    a: ArrayLike, q: ArrayLike, axis: Axis | None = None, out: None = None,
    overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
    weights: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return `quantile` without nans.  As numpy.nanquantile.

    Raises NotAnArrayError if an operand is not an array, AxisError if `a` has no such axis, and
    OperandTypeError for complex numbers.

    >>> import numpy as np, plait
    >>> float(plait.numpy.nanquantile(np.array([1.0, np.nan, 9.0]), 0.5))
    5.0
    """
    return _quantile("nanquantile", a, q, axis, out, keepdims, method, skip=True,
                     weights=weights)  # fmt: skip


def _percent(q: Any) -> Any:
    if q.__class__ in (int, float):
        return q / 100
    return el.true_divide(q, 100) if isinstance(q, Value) else np.asarray(q) / np.float32(100)


def percentile(
    a: ArrayLike, q: ArrayLike, axis: Axis | None = None, out: None = None,
    overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
    weights: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return `quantile`, by percents.  As numpy.percentile.

    Raises NotAnArrayError if an operand is not an array, AxisError if `a` has no such axis, and
    OperandTypeError for complex numbers.

    >>> import numpy as np, plait
    >>> float(plait.numpy.percentile(np.array([1.0, 2.0, 9.0]), 50))
    2.0
    """
    return _quantile("percentile", a, _percent(q), axis, out, keepdims, method, skip=False,
                     weights=weights)  # fmt: skip


def nanpercentile(
    a: ArrayLike, q: ArrayLike, axis: Axis | None = None, out: None = None,
    overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
    weights: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return `percentile` without nans.  As numpy.nanpercentile.

    Raises NotAnArrayError if an operand is not an array, AxisError if `a` has no such axis, and
    OperandTypeError for complex numbers.

    >>> import numpy as np, plait
    >>> float(plait.numpy.nanpercentile(np.array([1.0, np.nan, 9.0]), 50))
    5.0
    """
    return _quantile("nanpercentile", a, _percent(q), axis, out, keepdims, method, skip=True,
                     weights=weights)  # fmt: skip


def median(
    a: ArrayLike, axis: Axis | None = None, out: None = None, overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """Return the middle element over axes, or the mean of the two; nan if there is one.

    Arguments are those of `quantile`.  As numpy.median.

    Raises NotAnArrayError if `a` is not an array, AxisError if it has no such axis, and
    OperandTypeError for complex numbers.

    >>> import numpy as np, plait
    >>> float(plait.numpy.median(np.array([1.0, 2.0, 9.0])))
    2.0
    """
    return _quantile("median", a, 0.5, axis, out, keepdims, "midpoint", skip=False)


def nanmedian(
    a: ArrayLike, axis: Axis | None = None, out: None = None, overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """Return `median` without nans.  As numpy.nanmedian.

    Raises NotAnArrayError if `a` is not an array, AxisError if it has no such axis, and
    OperandTypeError for complex numbers.

    >>> import numpy as np, plait
    >>> float(plait.numpy.nanmedian(np.array([1.0, np.nan, 9.0])))
    5.0
    """
    return _quantile("nanmedian", a, 0.5, axis, out, keepdims, "midpoint", skip=True)


# ---- covariance ----------------------------------------------------------------------------


def cov(
    m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False,
    ddof: int | None = None, fweights: ArrayLike | None = None, aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return the covariance matrix of variables.

    Args:
      m: a vector (one variable) or a matrix: a variable for each row.
      y: more variables.
      rowvar: False: a variable for each column.
      bias: whether to divide by the number of observations instead of one less.
      ddof: subtracted from the number of observations, instead of `bias`.
      fweights: integer number of repetitions of each observation.
      aweights: the weight of each observation.
      dtype: dtype of the result.

    Raises TypeRule for arrays with more than two axes.  As numpy.cov.

    >>> import numpy as np, plait
    >>> float(plait.numpy.cov(np.array([1.0, 3.0])))
    2.0
    """
    ddof = (0 if bias else 1) if ddof is None else ddof
    dtype = None if dtype is None else types.inexact_dtype("cov", dtype)
    return _cov(m, y, fweights, aweights, rowvar=bool(rowvar), ddof=ddof, dtype=dtype)


@fused
def _cov(
    m: object,
    y: Any,
    fweights: Any,
    aweights: Any,
    *,
    rowvar: bool,
    ddof: int,
    dtype: np.dtype | None,
) -> Any:
    xs = [_variables(value(m), rowvar)]
    if y is not None:
        y = value(y)
        # numpy reads one row of `y` as one variable, whatever `rowvar` says.
        one = y.aval.ndim == 2 and decide_eq(y.aval.shape[0], 1)
        xs.append(_variables(y, bool(rowvar or one)))
    (x,) = el.floating((sh.concatenate(xs, 0),))
    result = x.aval.dtype if dtype is None else dtype
    if x.aval.shape[0].__class__ is int and not x.aval.shape[0]:  # no variables
        return sh.fill(0, Aval((0, 0), result))
    x = sh.convert(
        x, np.float32 if result.itemsize < 4 else result
    )  # sums in float16 lose too much
    weights = None
    for w in (fweights, aweights):
        if w is not None:
            w = sh.convert_into(w, x.aval.dtype)
            weights = w if weights is None else el.mul(weights, w)
    center, total = average(x, 1, weights, returned=True)
    rest = el.sub(x, sh.reshape(center, (-1, 1)))
    total = total[0]
    if weights is None:
        factor, weighted = el.sub(total, ddof), rest
    else:
        heavy = weights if aweights is None else el.mul(weights, sh.convert(aweights, x.aval.dtype))
        loss = ddof if aweights is None else el.mul(el.div(reduction.sum_(heavy), total), ddof)
        row = sh.reshape(weights, (1, -1))
        factor, weighted = el.sub(total, loss), el.mul(rest, row)
    other = sh.transpose(el.conj(weighted) if x.aval.dtype.kind == "c" else weighted)
    out = el.div(matmul(rest, other), el.maximum(_real(factor), 0))
    out = sh.convert(out, result)
    return sh.reshape(out, ()) if out.aval.shape == (1, 1) else out


def _real(x: Array) -> Array:
    return el.real(x) if x.aval.dtype.kind == "c" else x


def _variables(x: Value, rowvar: bool) -> Any:
    if x.aval.ndim > 2:
        raise ArgumentError(f"covariances of {x.aval!r}", fix="give a vector or a matrix")
    if x.aval.ndim < 2:
        return sh.reshape(x, (1, x.aval.size))
    return x if rowvar else sh.transpose(x)


def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """Return the correlation matrix of variables; arguments are those of `cov`.  As numpy.corrcoef.

    Raises NotAnArrayError if `x` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.corrcoef(np.array([[1.0, 2.0], [2.0, 4.0]])).shape
    (2, 2)
    """
    found = [value(v) for v in (x, y) if v is not None]
    if dtype is None:
        result = types.promote([v.aval for v in found])[0]
    else:
        result = types.inexact_dtype("corrcoef", dtype)
    if types.category(result) != types.FLOATING or result.itemsize >= 4:
        return _normalised(cov(x, y, rowvar, dtype=dtype))
    return sh.convert(_normalised(cov(x, y, rowvar, dtype=np.float32)), result)


@fused
def _normalised(c: Array) -> Any:
    if not c.aval.ndim:
        return el.div(c, c)
    n = c.aval.shape[0]
    if n.__class__ is int:
        variances = sh.reshape(c, (n * n,))[:: n + 1]
    else:
        variances = diagonal(c)
    deviations = el.sqrt(_real(variances))
    out = el.div(el.div(c, sh.reshape(deviations, (n, 1))), sh.reshape(deviations, (1, n)))
    if c.aval.dtype.kind == "c":
        parts = [el.clamp(-1.0, f(out), 1.0) for f in (el.real, el.imag)]
        return el.complex_(*parts)
    return el.clamp(-1.0, out, 1.0)


# ---- counts and histograms -----------------------------------------------------------------


def bincount(
    x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *, length: int | None = None
) -> Array:
    """Count the occurrences of each integer from 0 on.

    Args:
      x: a vector of integers or booleans; negative ones count as 0.
      weights: weight of each element, instead of one.
      minlength: the least length of the result.
      length: length of the result; needed if `x` is traced.  Greater numbers are dropped.

    Raises ConcretizationError if `x` is traced and `length` is not given, TypeRule unless it is a
    vector of integers or booleans.  As numpy.bincount.

    >>> import numpy as np, plait
    >>> plait.numpy.bincount(np.array([1, 3, 1])).tolist()
    [0, 2, 0, 1]
    """
    v = value(x)
    if v.aval.category == types.BOOLEAN:
        v = sh.convert(v, types.default_dtype(types.INTEGER))
    if v.aval.ndim != 1 or v.aval.category != types.INTEGER:
        raise ShapeError(f"bincount takes a vector of integers, not {v.aval!r}", fix="convert it")
    if length is None:
        if isinstance(v, Tracer):
            raise ConcretizationError(
                f"the length of bincount({v!r}) depends on values that are not known while it is "
                "traced",
                fix="give length",
            )
        host = np.asarray(v)
        length = builtins.max(int(host.max()) + 1 if host.size else 0, minlength)
    _weigh("bincount", weights, v.aval.shape)
    return _counts(v, weights, length=size_given(length))


def _weigh(name: str, weights: ArrayLike | None, shape: tuple) -> None:
    """Refuse weights other than one for each element."""
    if weights is None:
        return
    have = value(weights).aval.shape
    if len(have) != len(shape) or any(
        n.__class__ is int and m.__class__ is int and n != m for n, m in zip(have, shape)
    ):
        raise ShapeError(
            f"{name}: `weights` must have the shape {shape}, and has {have}",
            fix="give one weight for each element: broadcast_to(weights, shape)",
        )


@fused
def _counts(x: Value, weights: Any, *, length: Dim | int) -> Any:
    x = value(x)
    w = (
        Literal(1, x.aval.with_dtype(types.default_dtype(types.INTEGER)))
        if weights is None
        else value(weights)
    )
    start = sh.fill(0, Aval((length,), w.aval.dtype))
    return start.at[el.maximum(x, 0)].add(materialise_at_ground(w), mode="drop")


def histogram_bin_edges(
    a: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None
) -> Array:
    """Return the edges of a histogram's bins: evenly spaced, unless they are given.

    Args:
      a: the data.
      bins: number of bins, or their edges.
      range: (first, last) edge; by default the least and the greatest element.

    As numpy.histogram_bin_edges, without its rules for choosing a number.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.histogram_bin_edges(np.array([0.0, 4.0]), 2).tolist()
    [0.0, 2.0, 4.0]
    """
    if isinstance(bins, str):
        raise ArgumentError(
            f"histogram with bins={bins!r}", fix="give the number of bins, or edges"
        )
    if getattr(bins, "ndim", 0):
        return _known_edges(el.floating((value(bins),))[0])
    if not hasattr(bins, "__index__") or bins.__index__() < 1:
        raise ArgumentError(f"histogram with bins={bins!r}", fix="give a positive number, or edges")
    return _edges(a, range, bins=bins.__index__())


def _known_edges(edges: Value) -> Any:
    """Return edges; refuse them unless they are a vector and ascend where known."""
    bad = edges.aval.ndim != 1
    if not bad and not isinstance(edges, Tracer):
        bad = bool((np.diff(np.asarray(edges).astype(float)) < 0).any())
    if bad:
        raise ArgumentError(
            f"edges {edges.aval!r} do not ascend", fix="give a vector that is sorted"
        )
    return edges


@fused
def _edges(a: object, limits: tuple[float | Value, ...] | None, *, bins: int) -> Any:
    (x,) = el.floating((value(a),))
    if limits is None and x.aval.size == 0:
        limits = (0.0, 1.0)
    low, high = (
        (reduction.min_(x), reduction.max_(x))
        if limits is None
        else [sh.convert(v, x.aval.dtype) for v in limits]
    )
    if limits is None and not decide_ge(x.aval.size, 1):
        none = el.gt(low, high)  # without elements, the least is infinite
        low, high = el.select(none, 0.0, low), el.select(none, 1.0, high)
    flat = el.eq(low, high)
    low, high = el.select(flat, el.sub(low, 0.5), low), el.select(flat, el.add(high, 0.5), high)
    return linspace(low, high, bins + 1)


def histogram(
    a: ArrayLike, bins: object = 10, range: object = None, weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return (counts, edges) of elements by bins; the last bin includes its right edge.

    Args:
      a: real, any shape.
      bins: number of bins, or their edges, ascending.
      range: (first, last) edge; by default the least and the greatest element.
      weights: weight of each element, of a's shape.
      density: whether to normalise the integral to one.

    Raises TypeRule for a number of bins that is not positive, edges that do not ascend, and weights
    of another shape.  As numpy.histogram.

    >>> import numpy as np, plait
    >>> [x.tolist() for x in plait.numpy.histogram(np.array([0.0, 1.0, 3.0, 4.0]), 2)]
    [[2.0, 2.0], [0.0, 2.0, 4.0]]
    """
    expect_ordered("histogram", value(a))
    edges = histogram_bin_edges(a, bins, range, weights)
    _weigh("histogram", weights, value(a).aval.shape)
    return _histogram(a, edges, weights, density=bool(density)), edges


@fused
def _histogram(a: Any, edges: Array, weights: Any, *, density: bool) -> Any:
    (x,) = el.floating((value(a),))
    x = sh.reshape(x, (x.aval.size,))
    n = edges.aval.shape[0] - 1
    n = max_dim(n, 0) if n.__class__ is not int else n
    position = el.sub(searchsorted(edges, x, side="right"), 1)
    last = el.eq(x, edges[n])
    position = el.select(last, n - 1, position)
    inside = el.and_(el.ge(position, 0), el.lt(position, n))
    if weights is None:
        w = sh.convert(inside, types.default_dtype(types.FLOATING))
    else:
        w = el.select(inside, sh.reshape(value(weights), (x.aval.size,)), 0)
    counts = _counts(position, w, length=n)
    if not density:
        return counts
    widths = el.sub(edges[1:], edges[:-1])
    return el.true_divide(el.true_divide(counts, widths), reduction.sum_(counts))


def histogramdd(
    sample: ArrayLike | Sequence[ArrayLike], bins: object = 10, range: Any = None,
    weights: ArrayLike | None = None, density: bool | None = None,
) -> tuple[Array, list[Array]]:  # fmt: skip
    """Return (counts, edges of each axis) of points by boxes.

    Args:
      sample: of shape (points, axes), or a sequence of vectors.
      bins: number of bins along each axis, one for all or one for each; or edges for each.
      range: (first, last) edge for each axis.
      weights: weight of each point.
      density: whether to normalise the integral to one.

    Raises TypeRule unless bins and ranges are one for each axis.  As numpy.histogramdd.

    >>> import numpy as np, plait
    >>> plait.numpy.histogramdd(np.ones((3, 2)), bins=(2, 4))[0].shape
    (2, 4)
    """
    if isinstance(sample, Sequence):
        x = sh.transpose(sh.concatenate([sh.reshape(value(v), (1, -1)) for v in sample], 0))
    else:
        x = value(sample)
    if x.aval.ndim != 2:
        raise ShapeError(f"histogramdd takes points as rows, not {x.aval!r}", fix="give a matrix")
    _weigh("histogramdd", weights, x.aval.shape[:1])
    expect_ordered("histogramdd", x)
    count = x.aval.shape[1]
    each = list(bins) if isinstance(bins, tuple | list) else [bins] * count
    limits = [None] * count if range is None else list(range)
    if len(each) != count or len(limits) != count:
        raise ShapeError(
            f"{len(each)} bins and {len(limits)} ranges for points with {count} axes",
            fix="give one for each axis",
        )
    columns = [x[:, i] for i in np.arange(count).tolist()]
    edges = [histogram_bin_edges(c, b, r) for c, b, r in zip(columns, each, limits)]
    return _boxes(x, edges, weights, density=bool(density)), edges


@fused
def _boxes(x: Value, edges: list, weights: Any, *, density: bool) -> Any:
    (x,) = el.floating((x,))
    shape = [e.aval.shape[0] - 1 for e in edges]
    shape = [max_dim(n, 0) if n.__class__ is not int else n for n in shape]
    position: Any = np.int32(0)
    inside: Any = True
    for i, (e, n) in enumerate(zip(edges, shape)):
        column = x[:, i]
        k = el.sub(searchsorted(e, column, side="right"), 1)
        k = el.select(el.eq(column, e[n]), n - 1, k)
        inside = el.and_(inside, el.and_(el.ge(k, 0), el.lt(k, n)))
        position = el.add(el.mul(position, n), k)
    total = product(shape)
    ones = sh.fill(1, Aval(x.aval.shape[:1], types.default_dtype(types.FLOATING)))
    w = el.select(inside, ones if weights is None else value(weights), 0)
    counts = sh.reshape(_counts(el.select(inside, position, 0), w, length=total), shape)
    if not density:
        return counts
    for i, e in enumerate(edges):
        along = [-1 if k == i else 1 for k, _ in enumerate(shape)]
        counts = el.true_divide(counts, sh.reshape(el.sub(e[1:], e[:-1]), along))
    return el.true_divide(counts, reduction.sum_(w))


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: object = 10,
    range: object = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Return (counts, edges of x, edges of y); see `histogramdd`.

    Raises TypeRule unless `x` and `y` are vectors of one length.  As numpy.histogram2d.

    >>> import numpy as np, plait
    >>> plait.numpy.histogram2d(np.ones(3), np.ones(3), 2)[0].shape
    (2, 2)
    """
    x, y = value(x), value(y)
    if x.aval.ndim != 1 or x.aval.shape != y.aval.shape:
        raise ShapeError(
            f"histogram2d takes two vectors of one length, not {x.aval!r} and {y.aval!r}",
            fix="use .ravel()",
        )
    counts, (first, second) = histogramdd([x, y], bins, range, weights, density)
    return counts, first, second
