"""Functions for neural networks: activations, softmax, normalisation.

Invariant: values and derivatives are those of the limit at infinity, nan comes from nan only (or
from a row without a greatest finite element), and at a kink the derivative is the one that
everybody uses: zero for `relu` at zero.
"""

import math
from typing import Any

import numpy as np

from .door import ml_dtypes
from .errors import TypeRule
from .ops import elementwise as el
from .ops import reduction
from .ops.contraction import contracted
from .ops.shape import (
    broadcast_to,
    convert,
    convert_together,
    expand_dims,
    iota,
    materialise_at_ground,
    normal_axes,
    normal_axis,
    reshape,
    slice_in_dim,
    transpose,
)
from .surface import fused, unary, value
from .types import COMPLEX, FLOATING, INTEGER, default_dtype, dtype_of
from .values import Literal, canonical

__all__ = [
    "celu",
    "dot_product_attention",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]


def _float(x: Any) -> Any:
    return el.floating((x,))[0]


# ---- linear by parts -----------------------------------------------------------------------


@fused
def relu(x: Any) -> Any:
    """max(x, 0), with derivative 0 at 0; nan of nan.

    x: real, any shape and dtype.
    """
    return el.relu(x)


@fused
def relu6(x: Any) -> Any:
    """min(max(x, 0), 6), with derivative 0 at 0 and 6.

    x: real, any shape and dtype.
    """
    x = value(x)
    return el.select(el.ge(x, 6), Literal(6, x.aval), relu(x))


@fused(numbers=("negative_slope",))
def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    """x where it is not negative, else negative_slope * x.

    x: real, any shape; negative_slope broadcasts with it.
    """
    x = _float(x)
    return el.select(el.ge(x, 0), x, el.mul(x, negative_slope))


@fused
def hard_tanh(x: Any) -> Any:
    """x brought into [-1, 1].

    x: real, any shape and dtype.
    """
    x = value(x)
    high = el.select(el.gt(x, 1), Literal(1, x.aval), x)
    return el.select(el.lt(x, -1), Literal(-1, x.aval), high)


@fused
def hard_sigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6.

    x: real, any shape; integers become the default float.
    """
    return el.div(relu6(el.add(_float(x), 3)), 6)


@fused
def hard_silu(x: Any) -> Any:
    """x * hard_sigmoid(x), 0 at -inf.

    x: real, any shape; integers become the default float.
    """
    return _gated(_float(x), hard_sigmoid)


hard_swish = hard_silu


@fused
def sparse_plus(x: Any) -> Any:
    """0 up to -1, x from 1 on, and (x + 1) ** 2 / 4 between.

    x: real, any shape; integers become the default float.
    """
    x = _float(x)
    inner = el.select(el.lt(el.abs_(x), 1), x, 0)
    curve = el.div(el.square(el.add(inner, 1)), 4)
    return el.select(el.le(x, -1), 0, el.select(el.lt(x, 1), curve, x))


@fused
def sparse_sigmoid(x: Any) -> Any:
    """(x + 1) / 2 brought into [0, 1].

    x: real, any shape; integers become the default float.
    """
    return el.div(el.add(hard_tanh(_float(x)), 1), 2)


def identity(x: Any) -> Any:
    """x itself.

    x: any shape and dtype.
    """
    return materialise_at_ground(value(x))


# ---- smooth --------------------------------------------------------------------------------

_LIKE_X = "x: real or complex, any shape; integers become the default float."
sigmoid = unary("sigmoid", el.logistic, f"1 / (1 + e ** -x).\n\n{_LIKE_X}")
tanh = unary("tanh", el.tanh, f"Hyperbolic tangent.\n\n{_LIKE_X}")


def _gated(x: Any, gate: Any) -> Any:
    """x * gate(x) for a gate from 0 to 1, with the limits at infinity: 0 and x."""
    finite = el.is_finite(x)
    inner = el.select(finite, x, 0)
    return el.select(finite, el.mul(inner, gate(inner)), el.maximum(x, 0))


@fused
def silu(x: Any) -> Any:
    """x * sigmoid(x), 0 at -inf: the sigmoid-weighted linear unit, or swish.

    x: real, any shape; integers become the default float.
    """
    return _gated(_float(x), el.logistic)


swish = silu


@fused
def mish(x: Any) -> Any:
    """x * tanh(softplus(x)), 0 at -inf.

    x: real, any shape; integers become the default float.
    """
    return _gated(_float(x), lambda v: el.tanh(softplus(v)))


def gelu(x: Any, approximate: bool = True) -> Any:
    """x * P(a standard normal variable < x), 0 at -inf: the Gaussian error linear unit.

    Args:
      x: real, any shape; integers become the default float.
      approximate: by tanh instead of the error function (Hendrycks and Gimpel, "Gaussian error
        linear units", 2016).
    """
    return _gelu(x, approximate=bool(approximate))


@fused
def _gelu(x: Any, *, approximate: bool) -> Any:
    return _gated(_float(x), _normal_cdf_by_tanh if approximate else _normal_cdf)


def _normal_cdf_by_tanh(x: Any) -> Any:
    # beyond 20 the result is 0 or 1 in every dtype, and the cube of a large number is infinite
    v = el.select(el.lt(el.abs_(x), 20), x, el.mul(el.sign(x), 20))
    t = el.mul(el.add(v, el.mul(el.integer_pow(v, exponent=3), 0.044715)), math.sqrt(2 / math.pi))
    return el.mul(el.add(el.tanh(t), 1), 0.5)


def _normal_cdf(x: Any) -> Any:
    return el.mul(el.erfc(el.mul(x, -math.sqrt(0.5))), 0.5)


@fused
def softplus(x: Any) -> Any:
    """log(1 + e ** x), without overflow.

    x: real, any shape; integers become the default float.
    """
    x = _float(x)
    # two smooth branches that meet at zero: derivatives of every order are right there
    positive = el.gt(x, 0)
    tail = el.log1p(el.exp(el.select(positive, el.neg(x), x)))
    return el.select(positive, el.add(x, tail), tail)


@fused
def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)) = -softplus(-x), without underflow.

    x: real, any shape; integers become the default float.
    """
    return el.neg(softplus(el.neg(_float(x))))


@fused(numbers=("b",))
def squareplus(x: Any, b: Any = 4) -> Any:
    """(x + sqrt(x ** 2 + b)) / 2.

    x: real, any shape; b: its smoothness, broadcasts with x.
    """
    x = _float(x)
    size = el.abs_(x)
    large = el.gt(size, float(ml_dtypes.finfo(x.aval.dtype).max) ** 0.5 / 2)
    root = el.sqrt(el.add(el.square(el.select(large, 0, x)), b))
    root = el.select(large, size, root)
    positive = el.ge(x, 0)  # below zero the sum would cancel
    high = el.div(el.add(x, root), 2)
    low = el.true_divide(b, el.mul(el.sub(root, el.select(positive, 0, x)), 2))
    return el.select(positive, high, el.select(el.ne(x, x), x, low))


@fused
def soft_sign(x: Any) -> Any:
    """x / (|x| + 1), -1 and 1 at the infinities.

    x: real, any shape; integers become the default float.
    """
    x = _float(x)
    finite = el.is_finite(x)
    inner = el.select(finite, x, 0)
    return el.select(finite, el.div(inner, el.add(el.abs_(inner), 1)), el.sign(x))


@fused(numbers=("alpha",))
def elu(x: Any, alpha: Any = 1.0) -> Any:
    """x where it is positive, else alpha * (e ** x - 1).

    x: real, any shape; alpha broadcasts with it.
    """
    x = _float(x)
    positive = el.gt(x, 0)
    low = el.select(positive, 0, x)  # e ** x would be infinite, and its derivative nan
    return el.select(positive, x, el.mul(el.expm1(low), alpha))


@fused(numbers=("alpha",))
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """max(x, 0) + alpha * (e ** (min(x, 0) / alpha) - 1): smooth for every alpha.

    x: real, any shape; alpha broadcasts with it.
    """
    x = _float(x)
    positive = el.gt(x, 0)
    low = el.select(positive, 0, x)
    return el.select(positive, x, el.mul(el.expm1(el.div(low, alpha)), alpha))


@fused
def selu(x: Any) -> Any:
    """`elu` scaled so that activations stay normalised.

    x: real, any shape.  Source of the constants: Klambauer, Unterthiner, Mayr, Hochreiter,
    "Self-normalizing neural networks", 2017.
    """
    return el.mul(elu(x, 1.6732632423543772), 1.0507009873554805)


@fused
def log1mexp(x: Any) -> Any:
    """log(1 - e ** -x), exact for small and large x; -inf at 0.

    x: positive, any shape.  Source: Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.
    """
    x = _float(x)
    small = el.lt(x, math.log(2))
    low, high = el.select(small, x, 0.5), el.select(small, 1, x)
    return el.select(small, el.log(el.neg(el.expm1(el.neg(low)))),
                     el.log1p(el.neg(el.exp(el.neg(high)))))  # fmt: skip


@fused
def _glu(x: Any, *, axis: int) -> Any:
    x = _float(x)
    half = x.aval.shape[axis] // 2
    a, b = (slice_in_dim(x, k * half, (k + 1) * half, axis=axis) for k in (0, 1))
    return el.mul(a, el.logistic(b))


def glu(x: Any, axis: int = -1) -> Any:
    """The first half along an axis times the sigmoid of the second: the gated linear unit.

    Raises TypeRule for an axis of odd size.
    """
    x = value(x)
    at = normal_axis(axis, x.aval.ndim)
    if x.aval.shape[at] % 2 != 0:
        raise TypeRule(f"glu along axis {at} of {x.aval!r}", fix="its size must be even")
    return _glu(x, axis=at)


# ---- sums of exponentials ------------------------------------------------------------------


def _axes(axis: Any, x: Any) -> tuple[int, ...]:
    return tuple(sorted(normal_axes(axis, x.aval.ndim)))


def _peak(x: Any, axes: tuple, where: Any) -> Any:
    """The greatest element, of which nothing but the value counts; 0 where it is infinite."""
    top = reduction.max_(x, axes, keepdims=True, initial=-np.inf, where=where)
    return el.stop(el.select(el.is_finite(top), top, 0))


@fused
def _logsumexp(
    a: Any, b: Any, where: Any, *, axis: Any, keepdims: bool, signed: bool, mean: bool
) -> Any:
    x = _float(a)
    axes = _axes(axis, x)
    if b is not None:
        x, b = el.promoted((x, b))
        x = el.select(el.eq(b, 0), -np.inf, x)  # 0 * inf counts as nothing
    size = x if x.aval.category != COMPLEX else el.real(x)
    peak = _peak(size, axes, where)
    terms = el.exp(el.sub(x, peak))
    terms = terms if b is None else el.mul(b, terms)
    total = reduction.sum_(terms, axes, keepdims=True, where=where)
    sign = el.sign(total) if signed else None
    nothing = el.eq(total, 0)  # whose logarithm has no derivative
    size_ = el.select(nothing, 1, el.abs_(total) if signed else total)
    out = el.select(nothing, -np.inf, el.add(el.log(size_), peak))
    if mean:
        each = Literal(1, size.aval.strong())
        count = reduction.sum_(each, axes, keepdims=True, where=where)
        out = el.sub(out, el.log(count))
    shape = [d for i, d in enumerate(x.aval.shape) if i not in axes]
    parts = [v if keepdims or v is None else reshape(v, shape) for v in (out, sign)]
    return tuple(parts) if signed else parts[0]


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False,
    where: Any = None,
) -> Any:  # fmt: skip
    """log(sum(b * e ** a)) without overflow; -inf of nothing.

    Args:
      a: real or complex, any shape.
      axis: None (all), an int, or a tuple of ints.
      b: factors, which broadcast with `a`; 1 if not given.
      keepdims: whether the axes stay, with size 1.
      return_sign: whether to return (log of the absolute value, sign).
      where: which elements count.
    """
    axis = tuple(axis) if isinstance(axis, list) else axis
    return _logsumexp(
        a, b, where, axis=axis, keepdims=bool(keepdims), signed=bool(return_sign), mean=False
    )


def logmeanexp(a: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Any:
    """log(mean(e ** a)) without overflow; arguments are those of `logsumexp`."""
    axis = tuple(axis) if isinstance(axis, list) else axis
    return _logsumexp(
        a, None, where, axis=axis, keepdims=bool(keepdims), signed=False, mean=True
    )


@fused
def _softmax(x: Any, where: Any, *, axis: Any) -> Any:
    x = _float(x)
    axes = _axes(axis, x)
    terms = el.exp(_shifted(x, where, axes))
    total = reduction.sum_(terms, axes, keepdims=True)
    if where is None:
        return el.div(terms, total)
    counts = reduction.any_(broadcast_to(where, x.aval.shape), axes, keepdims=True)
    return el.div(el.select(where, terms, 0), el.select(counts, total, 1))


def _shifted(x: Any, where: Any, axes: tuple) -> Any:
    """x less the greatest element, which becomes 0."""
    top = reduction.max_(x, axes, keepdims=True, initial=-np.inf, where=where)
    rest = el.sub(x, el.stop(top))
    return rest if where is None else el.select(where, rest, -np.inf)


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """e ** x divided by its sum along axes, without overflow.

    Args:
      x: real, any shape; integers become the default float.
      axis: an int, a tuple of ints, or None (all).
      where: which elements count; the others become 0.

    An element -inf becomes 0, with zero derivatives.  A row of nothing but -inf, or with an inf,
    has no limit and becomes nan; a row of which no element counts becomes 0.

    >>> import numpy as np, weft as wf
    >>> wf.nn.softmax(np.array([0.0, -np.inf, 0.0], np.float32)).tolist()
    [0.5, 0.0, 0.5]
    """
    axis = tuple(axis) if isinstance(axis, list) else axis
    return _softmax(x, where, axis=axis)


@fused
def _log_softmax(x: Any, where: Any, *, axis: Any) -> Any:
    x = _float(x)
    axes = _axes(axis, x)
    shifted = _shifted(x, where, axes)
    total = reduction.sum_(el.exp(shifted), axes, keepdims=True, where=where)
    return el.sub(shifted, el.log(total))


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """log(softmax(x)), exact where that underflows; arguments are those of `softmax`.

    Elements that do not count become -inf.
    """
    axis = tuple(axis) if isinstance(axis, list) else axis
    return _log_softmax(x, where, axis=axis)


# ---- normalisation and labels --------------------------------------------------------------


@fused(numbers=("epsilon",))
def _standardize(
    x: Any, mean: Any, variance: Any, epsilon: Any, where: Any, *, axis: Any, algorithm: str
) -> Any:
    x = _float(x)
    axes = _axes(axis, x)
    if mean is None:
        mean = reduction.mean(x, axes, keepdims=True, where=where)
    if variance is None:
        if algorithm == "fast":  # one pass, which rounding may make negative
            squares = reduction.mean(el.square(x), axes, keepdims=True, where=where)
            variance = el.maximum(el.sub(squares, el.square(mean)), 0)
        else:
            rest = el.square(el.sub(x, mean))
            variance = reduction.mean(rest, axes, keepdims=True, where=where)
    return el.mul(el.sub(x, mean), el.rsqrt(el.add(variance, epsilon)))


def standardize(
    x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5,
    where: Any = None, *, algorithm: str = "fast",
) -> Any:  # fmt: skip
    """(x - mean) / sqrt(variance + epsilon), along axes.

    Args:
      x: real, any shape; integers become the default float.
      axis: an int, a tuple of ints, or None (all).
      mean, variance: along the axes, which are kept; computed if they are not given.
      epsilon: what keeps the root from zero.
      where: which elements count for mean and variance.
      algorithm: "fast", the mean of squares less the square of the mean, or "stable", the mean of
        squared differences.
    """
    if algorithm not in ("fast", "stable"):
        raise TypeRule(f"standardize has no algorithm {algorithm!r}", fix='use "fast" or "stable"')
    axis = tuple(axis) if isinstance(axis, list) else axis
    return _standardize(x, mean, variance, epsilon, where, axis=axis, algorithm=algorithm)


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Any:
    """Ones at the places that labels name, zeros elsewhere; zeros only for labels outside.

    Args:
      x: labels, any shape.
      num_classes: the size of the new axis.
      dtype: of the result; the default float if not given.
      axis: where the new axis is.

    >>> import weft as wf
    >>> wf.nn.one_hot(wf.numpy.array([0, 2]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    x = value(x)
    kind = default_dtype(FLOATING) if dtype is None else canonical(dtype_of(dtype))
    at = normal_axis(axis, x.aval.ndim + 1)
    return _one_hot(x, classes=num_classes, dtype=kind, axis=at)


@fused
def _one_hot(x: Any, *, classes: Any, dtype: Any, axis: int) -> Any:
    x = expand_dims(x, axis)
    shape = [classes if i == axis else 1 for i in range(x.aval.ndim)]
    kind = x.aval.dtype if x.aval.category == INTEGER else np.dtype(np.int32)
    return convert(el.eq(x, iota(kind, shape, axis)), dtype)


# ---- attention -----------------------------------------------------------------------------


def dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *,
    scale: float | None = None, is_causal: bool = False,
) -> Any:  # fmt: skip
    """Softmax of the products of queries and keys, times the values.

    Args:
      query: of shape (batch, queries, heads, depth), or without batch.
      key, value: of shape (batch, keys, groups, depth), where groups divides heads.
      bias: added to the products, broadcasts with (batch, heads, queries, keys).
      mask: booleans: which products count, broadcasts likewise.
      scale: of the products; 1 / sqrt(depth) if not given.
      is_causal: whether query i sees the keys up to i only.

    Returns an array of the shape of `query`.  Queries that see nothing get zeros.  Raises TypeRule
    for shapes that do not fit.
    """
    return _attention(query, key, value, bias, mask, scale=scale, causal=bool(is_causal))


@fused
def _attention(
    q: Any, k: Any, v: Any, bias: Any, mask: Any, *, scale: float | None, causal: bool
) -> Any:
    q, k, v = convert_together([_float(q), _float(k), _float(v)])
    batched = q.aval.ndim == 4
    if not batched:
        q, k, v = (expand_dims(x, 0) for x in (q, k, v))
    _fit_attention(q, k, v)
    b, t, h, d = q.aval.shape
    s, groups = k.aval.shape[1:3]
    q = reshape(q, (b, t, groups, h // groups, d))
    scale = 1 / math.sqrt(d) if scale is None else scale
    # (batch, groups, queries, heads of a group, keys), in single precision at least
    wide = np.dtype(np.float32) if q.aval.dtype.itemsize < 4 else q.aval.dtype
    logits = contracted(q, k, ((4,), (3,)), ((0, 2), (0, 2)), preferred_element_type=wide)
    logits = reshape(transpose(el.mul(logits, scale), (0, 1, 3, 2, 4)), (b, h, t, s))
    logits = logits if bias is None else el.add(logits, convert(bias, wide))
    if causal:
        seen = el.ge(iota(np.int32, (t, s), 0), iota(np.int32, (t, s), 1))
        mask = seen if mask is None else el.and_(mask, seen)
    if mask is not None:
        mask = broadcast_to(mask, logits.aval.shape)
    weights = convert(softmax(logits, where=mask), v.aval.dtype)
    weights = reshape(weights, (b, groups, h // groups, t, s))
    out = contracted(weights, v, ((4,), (1,)), ((0, 1), (0, 2)))
    out = reshape(transpose(out, (0, 3, 1, 2, 4)), (b, t, h, v.aval.shape[-1]))
    return out if batched else reshape(out, out.aval.shape[1:])


def _fit_attention(q: Any, k: Any, v: Any) -> None:
    ranks = {x.aval.ndim for x in (q, k, v)}
    fits = ranks == {4} and (
        q.aval.shape[0] == k.aval.shape[0] == v.aval.shape[0]
        and q.aval.shape[3] == k.aval.shape[3]
        and k.aval.shape[1:3] == v.aval.shape[1:3]
        and q.aval.shape[2] % k.aval.shape[2] == 0
    )
    if not fits:
        raise TypeRule(
            f"dot_product_attention of {q.aval!r}, {k.aval!r} and {v.aval!r}",
            fix="queries: (batch, queries, heads, depth); keys and values: (batch, keys, groups, "
            "depth), where groups divides heads",
        )
