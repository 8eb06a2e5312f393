"""Distributions computed from uniform numbers.

Invariant: a sampler draws once, and gives the bits of jax.random.
"""

import math
from collections.abc import Callable
from typing import Any, Protocol, SupportsIndex

import numpy as np

from plait.errors import ArgumentError
from plait.ext import Aval, Literal
from plait.ext.ops import elementwise as el
from plait.ext.ops.shape import broadcast_to, convert, normal_shape
from plait.ext.surface import fused
from plait.ext.trace import Value
from plait.ext.types import COMPLEX, FLOATING, INTEGER, broadcast_shapes, category, default_dtype
from plait.typing import Array, ArrayLike, DTypeLike, Shape

from .keys import number, one_key, parameter
from .numbers import MANTISSA, between, halves, row, sample_dtype

__all__ = [
    "bernoulli", "cauchy", "exponential", "gumbel", "laplace", "logistic", "normal", "rademacher",
    "truncated_normal",
]  # fmt: skip


def normal(
    key: ArrayLike, shape: SupportsIndex | Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Draw from the standard normal distribution; complex numbers have variance 1 too.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a floating or complex dtype; the default floating one if None.

    Raises OperandTypeError if `key` is not a key, and ShapeError for an array of keys.

    >>> import plait
    >>> plait.random.normal(plait.random.key(0), (2,))
    Array([1.6226422, 2.0252647], dtype=float32)
    """
    d = sample_dtype(dtype, FLOATING, "normal", COMPLEX)
    return _normal(one_key(key, "normal"), shape=normal_shape(shape), dtype=d)


@fused
def _normal(data: Array, *, shape: tuple, dtype: np.dtype) -> Any:
    if category(dtype) != COMPLEX:
        return _real_normal(data, shape, dtype)
    part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
    re, im = (_real_normal(k, shape, part) for k in halves(data))
    z = el.complex_.bind(re, im)
    # A product, since JAX's numbers are those of a compiler that divides by a constant in this way.
    return el.mul.bind(z, Literal(complex(part.type(1 / np.sqrt(2))), z.aval))


def _real_normal(data: Any, shape: tuple, dtype: np.dtype) -> Any:
    """Apply the inverse error function to uniform numbers in (-1, 1)."""
    least = -1 + 2.0 ** -(MANTISSA[dtype.name] + 1)
    u = between(data, least, 1.0, shape, dtype)
    return el.mul.bind(Literal(math.sqrt(2), u.aval), el.erf_inv.bind(u))


def truncated_normal(
    key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw from the standard normal distribution, truncated to (lower, upper).

    Args:
      key: a key.
      lower, upper: numbers, or arrays that broadcast to the shape.
      shape: shape of the result; by default that of the bounds.
      dtype: a floating dtype; the default one if None.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.truncated_normal(key, -1.0, 1.0, (2,)).shape
    (2,)
    """
    d = sample_dtype(dtype, FLOATING, "truncated_normal")
    low, high = parameter(lower, "lower"), parameter(upper, "upper")
    shape = shape_or(shape, low, high)
    return _truncated_normal(one_key(key, "truncated_normal"), low, high, shape=shape, dtype=d)


def shape_or(shape: Any, *xs: Any) -> tuple:
    """Return the shape given, or that of the parameters."""
    return normal_shape(shape) if shape is not None else broadcast_shapes([x.shape for x in xs])


@fused
def _truncated_normal(
    data: Array, low: Value, high: Value, *, shape: tuple, dtype: np.dtype
) -> Any:
    low, high = (convert(v, dtype) for v in (low, high))
    root = Literal(math.sqrt(2), Aval((), dtype))
    a, b = (el.erf(el.div(v, root)) for v in (low, high))
    x = el.mul(root, el.erf_inv(between(data, a, b, shape, dtype)))
    infinity = Literal(math.inf, Aval((), dtype))
    least = el.nextafter(el.stop(low), infinity)
    most = el.nextafter(el.stop(high), el.neg(infinity))
    return el.minimum(el.maximum(x, least), most)


def bernoulli(
    key: ArrayLike, p: ArrayLike = 0.5, shape: SupportsIndex | Shape | None = None,
    mode: str = "low",
) -> Array:  # fmt: skip
    """Draw booleans that are True with probability `p`.

    Args:
      key: a key.
      p: a number, or an array that broadcasts to the shape.
      shape: shape of the result; by default that of `p`.
      mode: "low", or "high" for probabilities below the resolution of a float, at twice the cost.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.bernoulli(key, 0.5, (3,)).dtype
    dtype('bool')
    """
    if mode not in ("low", "high"):
        raise ArgumentError(f"bernoulli has no mode {mode!r}", fix='use "low" or "high"')
    data = one_key(key, "bernoulli")
    v = number(p, default_dtype(FLOATING)) if p.__class__ is float else parameter(p, "p")
    d = v.aval.dtype if v.aval.category == FLOATING else default_dtype(FLOATING)
    return _bernoulli(data, v, shape=shape_or(shape, v), dtype=d, high=mode == "high")


@fused
def _bernoulli(data: Array, p: Array, *, shape: tuple, dtype: np.dtype, high: bool) -> Any:
    p = broadcast_to(convert(p, dtype), shape)
    if not high:
        return el.lt.bind(between(data, 0.0, 1.0, shape, dtype), p)
    both = between(data, 0.0, 1.0, (2, *shape), dtype)
    u, fine = row(both, 0), row(both, 1)
    fine = el.mul.bind(fine, Literal(2.0 ** -MANTISSA[dtype.name], fine.aval))
    return el.lt.bind(fine, el.sub.bind(p, u))


class Sampler(Protocol):
    """A sampler with only a shape and a dtype."""

    def __call__(
        self, key: ArrayLike, shape: SupportsIndex | Shape = (), dtype: DTypeLike | None = None
    ) -> Array: ...


def _simple(name: str, f: Callable[..., Any], doc: str) -> Sampler:
    """Make a sampler with only a shape and a dtype."""
    run = fused(f)

    def sample(
        key: ArrayLike, shape: SupportsIndex | Shape = (), dtype: DTypeLike | None = None
    ) -> Array:
        d = sample_dtype(dtype, FLOATING, name)
        return run(one_key(key, name), shape=normal_shape(shape), dtype=d)

    sample.__name__ = sample.__qualname__ = name
    sample.__doc__ = f"""{doc}

    Args:
      key: a key.
      shape: of the result.
      dtype: a floating dtype; the default one if None.

    Raises TypeRule for what is not a key, and for other dtypes.

    >>> import plait
    >>> plait.random.{name}(plait.random.key(0), (2,)).shape
    (2,)
    """
    return sample


def _exponential(data: Value, *, shape: tuple, dtype: np.dtype) -> Any:
    u = between(data, 0.0, 1.0, shape, dtype)
    return el.neg.bind(el.log1p.bind(el.neg.bind(u)))


def _laplace(data: Value, *, shape: tuple, dtype: np.dtype) -> Any:
    least = -1 + 2.0 ** -(MANTISSA[dtype.name] + 1)
    u = between(data, least, 1.0, shape, dtype)
    return el.mul.bind(el.sign.bind(u), el.log1p.bind(el.neg.bind(el.abs_.bind(u))))


def _logistic(data: Value, *, shape: tuple, dtype: np.dtype) -> Any:
    u = between(data, _tiny(dtype), 1.0, shape, dtype)
    return el.sub.bind(el.log.bind(u), el.log1p.bind(el.neg.bind(u)))


def _cauchy(data: Value, *, shape: tuple, dtype: np.dtype) -> Any:
    u = between(data, 2.0 ** -MANTISSA[dtype.name], 1.0, shape, dtype)
    centred = el.sub.bind(u, Literal(0.5, u.aval))
    return el.tan.bind(el.mul.bind(Literal(math.pi, u.aval), centred))


def _tiny(dtype: np.dtype) -> float:
    """Return the least normal number."""
    least = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}
    return 2.0 ** least[dtype.name]


exponential = _simple(
    "exponential", _exponential, "Numbers from the exponential distribution of rate 1."
)
laplace = _simple("laplace", _laplace, "Numbers from the Laplace distribution.")
logistic = _simple("logistic", _logistic, "Numbers from the logistic distribution.")
cauchy = _simple("cauchy", _cauchy, "Numbers from the Cauchy distribution.")


def gumbel(
    key: ArrayLike, shape: SupportsIndex | Shape = (), dtype: DTypeLike | None = None,
    mode: str | None = None,
) -> Array:  # fmt: skip
    """Draw from the Gumbel distribution.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a floating dtype; the default one if None.
      mode: "low" (the default), or "high" for a tail that reaches twice as far, at twice the cost.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.gumbel(key, (2,)).shape
    (2,)
    """
    d = sample_dtype(dtype, FLOATING, "gumbel")
    return _gumbel_now(
        one_key(key, "gumbel"), shape=normal_shape(shape), dtype=d, high=is_high(mode, "gumbel")
    )


def is_high(mode: Any, what: str) -> bool:
    if mode not in (None, "low", "high"):
        raise ArgumentError(f"{what} has no mode {mode!r}", fix='use "low" or "high"')
    return mode == "high"


def gumbel_noise(data: Any, shape: tuple, dtype: np.dtype, high: bool) -> Any:
    if not high:
        u = between(data, _tiny(dtype), 1.0, shape, dtype)
        return el.neg.bind(el.log.bind(el.neg.bind(el.log.bind(u))))
    both = between(data, 0.0, 1.0, (2, *shape), dtype)
    u, fine = row(both, 0), row(both, 1)
    fine = el.mul.bind(Literal(2.0 ** -MANTISSA[dtype.name], u.aval), fine)
    more = el.add.bind(el.add.bind(u, fine), Literal(_tiny(dtype), u.aval))
    x = el.select.bind(el.ge.bind(*agree(u, 0.5)), u, more)
    return el.neg.bind(el.log.bind(el.neg.bind(el.log1p.bind(el.neg.bind(x)))))


@fused
def _gumbel_now(data: Array, *, shape: tuple, dtype: np.dtype, high: bool) -> Any:
    return gumbel_noise(data, shape, dtype, high)


def rademacher(
    key: ArrayLike, shape: SupportsIndex | Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Draw -1 or 1, each with probability 1/2.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.rademacher(key, (2,)).shape
    (2,)
    """
    d = sample_dtype(dtype, INTEGER, "rademacher", FLOATING, COMPLEX)
    kind = default_dtype(FLOATING)
    return _rademacher(one_key(key, "rademacher"), shape=normal_shape(shape), dtype=d, kind=kind)


@fused
def _rademacher(data: Array, *, shape: tuple, dtype: np.dtype, kind: np.dtype) -> Any:
    heads = el.lt.bind(*agree(between(data, 0.0, 1.0, shape, kind), 0.5))
    x = convert(heads, dtype)
    return el.sub(el.mul(x, Literal(2, Aval((), dtype))), Literal(1, Aval((), dtype)))


def agree(x: Value, value: float) -> tuple[Any, Any]:
    return x, Literal(value, x.aval)
