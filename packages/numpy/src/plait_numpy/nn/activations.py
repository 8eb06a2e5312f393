"""Activations, elementwise.

Invariant: values and derivatives at infinity are the limits; only nan gives nan.  Derivatives at
kinks follow the usual convention: zero for `relu` at zero.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plait.errors import ShapeError
from plait.ext import Literal, materialise_at_ground
from plait.ext.errors import border
from plait.ext.ir import Primitive
from plait.ext.ops import elementwise as el
from plait.ext.ops.shape import normal_axis, slice_in_dim
from plait.ext.surface import fused, unary, value
from plait.ext.trace import Value
from plait.ext.types import ml_dtypes
from plait.typing import Array, ArrayLike

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "leaky_relu", "log1mexp", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid",
    "silu", "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh",
]  # fmt: skip


def _float(x: object) -> Array:
    return el.floating((x,))[0]


# ---- piecewise linear ----------------------------------------------------------------------


@fused
def relu(x: ArrayLike) -> Array:
    """Return max(x, 0), with derivative 0 at 0; nan for nan.

    x: real, any shape and dtype.

    >>> import numpy as np, plait
    >>> plait.nn.relu(np.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return el.relu(x)


@fused
def relu6(x: ArrayLike) -> Array:
    """Return min(max(x, 0), 6), with derivative 0 at 0 and 6.

    x: real, any shape and dtype.

    >>> import plait
    >>> float(plait.nn.relu6(9.0))
    6.0
    """
    x = value(x)
    return el.select(el.ge(x, 6), Literal(6, x.aval), relu(x))


@fused(numbers=("negative_slope",))
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """Return x where it is not negative, else negative_slope * x.

    x: real, any shape; negative_slope broadcasts with it.

    >>> import plait
    >>> float(plait.nn.leaky_relu(-2.0, 0.5))
    -1.0
    """
    x = _float(x)
    return el.select(el.ge(x, 0), x, el.mul(x, negative_slope))


@fused
def hard_tanh(x: ArrayLike) -> Array:
    """Clip x to [-1, 1].

    x: real, any shape and dtype.

    >>> import plait
    >>> float(plait.nn.hard_tanh(2.0))
    1.0
    """
    x = value(x)
    high = el.select(el.gt(x, 1), Literal(1, x.aval), x)
    return el.select(el.lt(x, -1), Literal(-1, x.aval), high)


@fused
def hard_sigmoid(x: ArrayLike) -> Array:
    """Return relu6(x + 3) / 6.

    x: real, any shape; integers become the default float.

    >>> import plait
    >>> float(plait.nn.hard_sigmoid(0.0))
    0.5
    """
    return el.div(relu6(el.add(_float(x), 3)), 6)


@fused
def hard_silu(x: ArrayLike) -> Array:
    """Return x * hard_sigmoid(x), 0 at -inf.

    x: real, any shape; integers become the default float.

    >>> import plait
    >>> float(plait.nn.hard_silu(3.0))
    3.0
    """
    return _gated(_float(x), hard_sigmoid)


hard_swish = hard_silu


@fused
def sparse_plus(x: ArrayLike) -> Array:
    """Return 0 up to -1, x from 1 on, and (x + 1) ** 2 / 4 between.

    x: real, any shape; integers become the default float.

    >>> import plait
    >>> float(plait.nn.sparse_plus(2.0))
    2.0
    """
    x = _float(x)
    outer = el.ge(el.abs_(x), 1)
    curve = el.div(el.square(el.add(el.select(outer, 0, x), 1)), 4)
    return el.select(el.le(x, -1), 0, el.select(outer, x, curve))


@fused
def sparse_sigmoid(x: ArrayLike) -> Array:
    """Return (x + 1) / 2 clipped to [0, 1].

    x: real, any shape; integers become the default float.

    >>> import plait
    >>> float(plait.nn.sparse_sigmoid(0.0))
    0.5
    """
    return el.div(el.add(hard_tanh(_float(x)), 1), 2)


@border
def identity(x: ArrayLike) -> Array:
    """Return x itself.

    x: any shape and dtype.

    >>> import plait
    >>> int(plait.nn.identity(2))
    2
    """
    return materialise_at_ground(value(x))


# ---- smooth --------------------------------------------------------------------------------

_LIKE_X = "x: real or complex, any shape; integers become the default float."
_logistic = unary("sigmoid", el.logistic, "1 / (1 + e ** -x).")


def sigmoid(x: ArrayLike) -> Array:
    """Return 1 / (1 + e ** -x).

    x: real, any shape; integers become the default float.

    >>> import plait
    >>> float(plait.nn.sigmoid(0.0))
    0.5
    """
    return _logistic(x)


tanh = unary(
    "tanh",
    el.tanh,
    f"Hyperbolic tangent.\n\n{_LIKE_X}\n\n>>> import plait\n>>> plait.nn.tanh(0.0).item()\n0.0",
)


def _gated(x: Array, gate: Primitive | Callable[..., Any], bound: float = 1000) -> Any:
    """Return x * gate(x) for a gate that is 0 up to -bound, and 1 from `bound` on, in every dtype.

    A clamp before and a selection after serve large and infinite numbers, and their derivatives.
    Compilers compute a clamp again wherever it is needed; a selection would become an array.
    """
    bound = min(bound, float(ml_dtypes.finfo(x.aval.dtype).max))
    inner = el.clamp(-bound, x, bound)
    return el.select(el.ge(x, bound), x, el.mul(inner, gate(inner)))


@fused
def silu(x: ArrayLike) -> Array:
    """Return x * sigmoid(x), 0 at -inf: the sigmoid-weighted linear unit, or swish.

    x: real, any shape; integers become the default float.

    >>> import plait
    >>> float(plait.nn.silu(0.0))
    0.0
    """
    return _gated(_float(x), el.logistic)


swish = silu


@fused
def mish(x: ArrayLike) -> Array:
    """Return x * tanh(softplus(x)), 0 at -inf.

    x: real, any shape; integers become the default float.

    >>> import plait
    >>> float(plait.nn.mish(0.0))
    0.0
    """
    return _gated(_float(x), lambda v: el.tanh(softplus(v)))


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Return x * P(a standard normal variable < x), 0 at -inf: the Gaussian error linear unit.

    Args:
      x: real, any shape; integers become the default float.
      approximate: whether to use tanh instead of the error function (Hendrycks and Gimpel,
        "Gaussian error linear units", 2016).

    >>> import plait
    >>> float(plait.nn.gelu(0.0))
    0.0
    """
    return _gelu(x, approximate=bool(approximate))


@fused
def _gelu(x: object, *, approximate: bool) -> Any:
    if approximate:  # from 20 on, the cube is not needed
        return _gated(_float(x), _normal_cdf_by_tanh, 20)
    return _gated(_float(x), _normal_cdf)


def _normal_cdf_by_tanh(x: Value) -> Any:
    cube = el.mul(el.integer_pow(x, exponent=3), 0.044715)
    return el.mul(el.add(el.tanh(el.mul(el.add(x, cube), math.sqrt(2 / math.pi))), 1), 0.5)


def _normal_cdf(x: Value) -> Any:
    return el.mul(el.erfc(el.mul(x, -math.sqrt(0.5))), 0.5)


@fused
def softplus(x: ArrayLike) -> Array:
    """Return log(1 + e ** x), without overflow.

    x: real, any shape; integers become the default float.

    >>> import numpy as np, plait
    >>> float(plait.nn.softplus(np.float32(100)))
    100.0
    """
    x = _float(x)
    # Two smooth branches meet at zero, where derivatives of every order are right.
    positive = el.gt(x, 0)
    tail = el.log1p(el.exp(el.select(positive, el.neg(x), x)))
    return el.select(positive, el.add(x, tail), tail)


@fused
def log_sigmoid(x: ArrayLike) -> Array:
    """Return log(sigmoid(x)) = -softplus(-x), without underflow.

    x: real, any shape; integers become the default float.

    >>> import numpy as np, plait
    >>> float(plait.nn.log_sigmoid(np.float32(-100)))
    -100.0
    """
    return el.neg(softplus(el.neg(_float(x))))


@fused(numbers=("b",))
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Return (x + sqrt(x ** 2 + b)) / 2.

    x: real, any shape; b: the smoothness, broadcasts with x.

    >>> import plait
    >>> float(plait.nn.squareplus(0.0))
    1.0
    """
    x = _float(x)
    size = el.abs_(x)
    large = el.gt(size, float(ml_dtypes.finfo(x.aval.dtype).max) ** 0.5 / 2)
    root = el.sqrt(el.add(el.square(el.select(large, 0, x)), b))
    root = el.select(large, size, root)
    negative = el.lt(x, 0)  # the sum would cancel there
    high = el.div(el.add(x, root), 2)
    low = el.true_divide(b, el.mul(el.sub(root, el.select(negative, x, 0)), 2))
    return el.select(negative, low, high)


@fused
def soft_sign(x: ArrayLike) -> Array:
    """Return x / (|x| + 1), -1 and 1 at the infinities.

    x: real, any shape; integers become the default float.

    >>> import plait
    >>> float(plait.nn.soft_sign(1.0))
    0.5
    """
    x = _float(x)
    endless = el.eq(el.abs_(x), np.inf)
    inner = el.select(endless, 0, x)
    size = el.abs_(inner)
    rest = el.true_divide(1, el.add(size, 1))
    # For large x the derivative of x / (1 + |x|) would cancel, that of 1 - 1 / (1 + |x|) does not.
    far = el.mul(el.sign(x), el.sub(1, rest))
    return el.select(endless, el.sign(x), el.select(el.gt(size, 1), far, el.mul(inner, rest)))


@fused(numbers=("alpha",))
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Return x where it is positive, else alpha * (e ** x - 1).

    x: real, any shape; alpha broadcasts with it.

    >>> import plait
    >>> float(plait.nn.elu(2.0))
    2.0
    """
    x = _float(x)
    positive = el.gt(x, 0)
    low = el.select(positive, 0, x)  # otherwise e ** x would be infinite, and its derivative nan
    return el.select(positive, x, el.mul(el.expm1(low), alpha))


@fused(numbers=("alpha",))
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Return max(x, 0) + alpha * (e ** (min(x, 0) / alpha) - 1): smooth for every alpha.

    x: real, any shape; alpha broadcasts with it.

    >>> import plait
    >>> float(plait.nn.celu(2.0))
    2.0
    """
    x = _float(x)
    positive = el.gt(x, 0)
    low = el.select(positive, 0, x)
    return el.select(positive, x, el.mul(el.expm1(el.div(low, alpha)), alpha))


@fused
def selu(x: ArrayLike) -> Array:
    """Return `elu`, scaled so that activations stay normalised.

    x: real, any shape.  Source of the constants: Klambauer, Unterthiner, Mayr, Hochreiter,
    "Self-normalizing neural networks", 2017.

    >>> import plait
    >>> float(plait.nn.selu(0.0))
    0.0
    """
    return el.mul(elu(x, 1.6732632423543772), 1.0507009873554805)


@fused
def log1mexp(x: ArrayLike) -> Array:
    """Return log(1 - e ** -x), exact for small and large x; -inf at 0.

    x: positive, any shape.  Source: Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.

    >>> import numpy as np, plait
    >>> float(plait.nn.log1mexp(np.float32(np.inf)))
    -0.0
    """
    x = _float(x)
    small = el.lt(x, math.log(2))
    low, high = el.select(small, x, 0.5), el.select(small, 1, x)
    return el.select(small, el.log(el.neg(el.expm1(el.neg(low)))),
                     el.log1p(el.neg(el.exp(el.neg(high)))))  # fmt: skip


@fused
def _glu(x: Array, *, axis: int) -> Any:
    x = _float(x)
    half = x.aval.shape[axis] // 2
    a, b = (slice_in_dim(x, k * half, (k + 1) * half, axis=axis) for k in (0, 1))
    return el.mul(a, el.logistic(b))


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Return the first half along an axis times the sigmoid of the second: the gated linear unit.

    Raises TypeRule for an axis of odd size.

    >>> import numpy as np, plait
    >>> plait.nn.glu(np.ones((2, 6), np.float32)).shape
    (2, 3)
    """
    x = value(x)
    at = normal_axis(axis, x.aval.ndim)
    if x.aval.shape[at] % 2 != 0:
        raise ShapeError(f"glu along axis {at} of {x.aval!r}", fix="its size must be even")
    return _glu(x, axis=at)
