"""Sums of exponentials: softmax, its logarithm, and the logarithm of the sum.

Invariant: nothing overflows, since the greatest element is subtracted first, without its
derivative, so that derivatives are those of the formula.  For floats narrower than float32, sums
and their results are float32 until the final rounding; exponentials, which derivatives keep, are as
narrow as the operand.
"""

from typing import Any, overload
from typing import Literal as Exactly

import ml_dtypes
import numpy as np

from plait.ext import Literal
from plait.ext.ops import elementwise as el
from plait.ext.ops import reduction
from plait.ext.ops.elementwise import rounded, single
from plait.ext.ops.shape import (
    broadcast_in_dim,
    broadcast_to,
    convert,
    given_axes,
    normal_axes,
    reshape,
)
from plait.ext.surface import fused, value
from plait.ext.types import COMPLEX
from plait.typing import Array, ArrayLike, Axis


def _float(x: object) -> Array:
    return el.floating((x,))[0]


def _axes(axis: object, x: Array) -> tuple[int, ...]:
    return tuple(sorted(normal_axes(axis, x.aval.ndim)))


def _peak(x: Array, axes: tuple, where: ArrayLike | None) -> Any:
    """Return the greatest element without its derivative, or a finite number near an infinite one.

    From the greatest number, an infinite element differs by infinity.
    """
    most = float(ml_dtypes.finfo(x.aval.dtype).max)
    top = reduction.max_(x, axes, keepdims=True, initial=-np.inf, where=where)
    return el.stop(el.minimum(el.maximum(top, -most), most))


@fused
def _logsumexp(
    a: object,
    b: object,
    where: ArrayLike | None,
    *,
    axis: object,
    keepdims: bool,
    signed: bool,
    mean: bool,
) -> Any:
    x = _float(a)
    if where is not None:  # excluded elements might overflow, and give nan derivatives
        x = el.select(where, x, -np.inf)
    if b is not None:
        b = value(b)
        if b.aval.category < x.aval.category:  # integers multiply floats
            b = convert(b, x.aval.dtype, x.aval.weak_type)
        x, b = el.promoted((x, b))
        # a zero factor removes its element, even where e ** a is infinite
        x = el.select(el.eq(b, 0), -np.inf, x)
    axes = _axes(axis, x)  # those of both factors together
    size = x if x.aval.category != COMPLEX else el.real(x)
    peak = _peak(size, axes, where)
    terms = single(el.exp(el.sub(x, peak)))
    terms = terms if b is None else el.mul(single(b), terms)
    total = reduction.sum_(terms, axes, keepdims=True, where=where)
    sign = el.sign(total) if signed else None
    nothing = el.eq(total, 0)  # the logarithm has no derivative there
    size_ = el.select(nothing, 1, el.abs_(total) if signed else total)
    out = el.select(nothing, -np.inf, el.add(el.log(size_), single(peak)))
    if mean:
        each = Literal(1, single(size).aval.strong())
        count = reduction.sum_(each, axes, keepdims=True, where=where)
        out = el.sub(out, el.log(count))
    shape = [d for i, d in enumerate(x.aval.shape) if i not in axes]
    parts = [v if v is None else rounded(v, x) for v in (out, sign)]
    parts = [v if keepdims or v is None else reshape(v, shape) for v in parts]
    return tuple(parts) if signed else parts[0]


@overload
def logsumexp(
    a: ArrayLike, axis: Axis | None = ..., b: ArrayLike | None = ..., keepdims: bool = ...,
    return_sign: Exactly[False] = ..., where: ArrayLike | None = ...,
) -> Array: ...  # fmt: skip
@overload
def logsumexp(
    a: ArrayLike, axis: Axis | None = ..., b: ArrayLike | None = ..., keepdims: bool = ...,
    return_sign: bool = ..., where: ArrayLike | None = ...,
) -> Array | tuple[Array, Array]: ...  # fmt: skip
def logsumexp(
    a: ArrayLike, axis: Axis | None = None, b: ArrayLike | None = None, keepdims: bool = False,
    return_sign: bool = False, where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:  # fmt: skip
    """Return log(sum(b * e ** a)) without overflow; -inf without elements.

    Args:
      a: real or complex, any shape.
      axis: None (all), an int, or a tuple of ints.
      b: factors, which broadcast with `a`; 1 if not given.
      keepdims: whether to keep the axes, with size 1.
      return_sign: whether to return (log of the absolute value, sign).
      where: mask of the elements that count.

    >>> import numpy as np, plait
    >>> float(plait.nn.logsumexp(np.array([1000.0, 0.0])))
    1000.0
    """
    axis = given_axes(axis)
    return _logsumexp(
        a, b, where, axis=axis, keepdims=bool(keepdims), signed=bool(return_sign), mean=False
    )


def logmeanexp(
    x: ArrayLike, axis: Axis | None = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """Return log(mean(e ** x)) without overflow; arguments are those of `logsumexp`.

    >>> import plait
    >>> float(plait.nn.logmeanexp(plait.numpy.full(3, 200.0)))
    200.0
    """
    axis = given_axes(axis)
    return _logsumexp(x, None, where, axis=axis, keepdims=bool(keepdims), signed=False, mean=True)


@fused
def _softmax(x: object, where: ArrayLike | None, *, axis: object) -> Any:
    x = _float(x)
    axes = _axes(axis, x)
    terms = single(el.exp(_shifted(x, where, axes)))
    total = reduction.sum_(terms, axes)
    shape = terms.aval.shape
    if where is not None:
        counts = reduction.any_(broadcast_to(where, shape), axes)
        terms, total = el.select(where, terms, 0), el.select(counts, total, 1)
    # One division for each sum: on processors it takes as long as several products.
    rest = tuple([a for a in range(x.aval.ndim) if a not in axes])
    share = broadcast_in_dim.bind(el.div(1, total), shape=shape, dims=rest)
    return rounded(el.mul(terms, share), x)


def _shifted(x: Array, where: ArrayLike | None, axes: tuple) -> Any:
    """Return x less the greatest element, so that the maximum is 0."""
    top = reduction.max_(x, axes, keepdims=True, initial=-np.inf, where=where)
    rest = el.sub(x, el.stop(top))
    return rest if where is None else el.select(where, rest, -np.inf)


def softmax(x: ArrayLike, axis: Axis | None = -1, where: ArrayLike | None = None) -> Array:
    """Return e ** x divided by its sum along axes, without overflow.

    Args:
      x: real, any shape; integers become the default float.
      axis: an int, a tuple of ints, or None (all).
      where: mask of the elements that count; the others become 0.

    An element -inf becomes 0, with zero derivatives.  A row of only -inf, or with an inf, has no
    limit and becomes nan; a row without any counted element becomes 0.

    >>> import numpy as np, plait
    >>> plait.nn.softmax(np.array([0.0, -np.inf, 0.0], np.float32)).tolist()
    [0.5, 0.0, 0.5]
    """
    axis = given_axes(axis)
    return _softmax(x, where, axis=axis)


@fused
def _log_softmax(x: object, where: Any, *, axis: object) -> Any:
    x = _float(x)
    axes = _axes(axis, x)
    shifted = _shifted(x, where, axes)
    total = reduction.sum_(single(el.exp(shifted)), axes, keepdims=True, where=where)
    if where is not None:
        counts = reduction.any_(broadcast_to(where, x.aval.shape), axes, keepdims=True)
        total = el.select(counts, total, 1)
    return rounded(el.sub(single(shifted), el.log(total)), x)


def log_softmax(x: ArrayLike, axis: Axis | None = -1, where: ArrayLike | None = None) -> Array:
    """Return log(softmax(x)), exact where that underflows; arguments are those of `softmax`.

    Excluded elements become -inf.

    >>> import numpy as np, plait
    >>> plait.nn.log_softmax(np.array([0.0, 1000.0])).tolist()
    [-1000.0, 0.0]
    """
    axis = given_axes(axis)
    return _log_softmax(x, where, axis=axis)
