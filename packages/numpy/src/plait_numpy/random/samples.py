"""Continuous distributions with parameters: gamma and those built on it, powers, tails.

Invariant: with the default generator samples equal those of jax.random, up to rounding.  They are
differentiable functions of their parameters, except of integers.
"""

from typing import Any, SupportsIndex

import numpy as np

from plait.ext.ops import elementwise as el
from plait.ext.ops.shape import broadcast_to, convert
from plait.ext.sizes import Dim
from plait.ext.surface import fused
from plait.ext.trace import Value
from plait.ext.types import FLOATING
from plait.typing import Array, ArrayLike, DTypeLike, Shape

from ..primitives.special.sampling import random_gamma
from .distributions import exponential, normal, rademacher, shape_or
from .keys import key_data, key_impl, number, parameter, split
from .numbers import bits, sample_dtype, uniform

__all__ = [
    "beta", "chisquare", "double_sided_maxwell", "f", "gamma", "generalized_normal", "loggamma",
    "lognormal", "maxwell", "pareto", "rayleigh", "t", "triangular", "wald", "weibull_min",
]  # fmt: skip


def given(sampler: str, dtype: object, shape: object, /, **parameters: ArrayLike) -> Any:
    """Return (dtype, shape, parameters as arrays of the dtype) of a sampler.

    The parameters are given by the names that users know them by.
    """
    d = sample_dtype(dtype, FLOATING, sampler)
    vs = [
        number(p, d) if p.__class__ is float or p.__class__ is int else convert(parameter(p, n), d)
        for n, p in parameters.items()
    ]
    return d, shape_or(shape, *vs), vs


def _streams(key: Any, shape: tuple[int | Dim, ...]) -> tuple[Any, Any]:
    """Return a stream of random bits for each element, as two words: keys of the default
    generator."""
    if key_impl(key) == "threefry2x32":
        words = key_data(split(key, shape if shape else 1))
    else:
        words = bits(key, (*(shape or (1,)), 2), "uint32")
    return words[..., 0].reshape(shape), words[..., 1].reshape(shape)


def _gamma_of(key: object, a: Array, shape: Any, log: bool) -> Any:
    return random_gamma.bind(*_streams(key, shape), broadcast_to(a, shape), log=log)


# ---- gamma ---------------------------------------------------------------------------------


def gamma(
    key: ArrayLike, a: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw from the gamma distribution of shape `a` and scale 1.

    Args:
      key: a key.
      a: a number, or an array that broadcasts to the shape; nan for negative ones.
      shape: shape of the result; by default that of `a`.
      dtype: a floating dtype; the default one if None.

    Samples are differentiable in `a`, as quantiles (M. Figurnov, S. Mohamed, A. Mnih: Implicit
    reparameterization gradients, 2018).  With a generator other than the default one, bits differ
    from those of jax.random.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> bool((plait.random.gamma(plait.random.key(0), 2.0, (3,)) > 0).all())
    True
    """
    d, shape, (a,) = given("gamma", dtype, shape, a=a)
    return _gamma(key, a, shape=shape)


@fused
def _gamma(key: object, a: Any, *, shape: Any) -> Any:
    return _gamma_of(key, a, shape, False)


def loggamma(
    key: ArrayLike, a: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw logarithms of gamma samples, even where those underflow; arguments as in `gamma`.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.loggamma(key, 0.1, (2,)).shape
    (2,)
    """
    d, shape, (a,) = given("loggamma", dtype, shape, a=a)
    return _loggamma(key, a, shape=shape)


@fused
def _loggamma(key: object, a: Any, *, shape: Any) -> Any:
    return _gamma_of(key, a, shape, True)


def beta(
    key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw from the beta distribution of shapes `a` and `b`.

    Args:
      key: a key.
      a, b: positive numbers, or arrays that broadcast to the shape.
      shape: shape of the result; by default that of the parameters.
      dtype: a floating dtype; the default one if None.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.beta(key, 2.0, 3.0, (4,)).shape
    (4,)
    """
    d, shape, (a, b) = given("beta", dtype, shape, a=a, b=b)
    return _beta(key, a, b, shape=shape)


@fused
def _beta(key: Any, a: Any, b: Any, *, shape: Any) -> Any:
    first, second = split(key)
    x, y = _gamma_of(first, a, shape, True), _gamma_of(second, b, shape, True)
    return el.logistic(x - y)


def chisquare(
    key: ArrayLike, df: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw from the chi-squared distribution with `df` degrees of freedom; see `gamma`.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.chisquare(key, 3.0, (2,)).shape
    (2,)
    """
    d, shape, (df,) = given("chisquare", dtype, shape, df=df)
    return _chisquare(key, df, shape=shape)


@fused
def _chisquare(key: object, df: Any, *, shape: Any) -> Any:
    return 2.0 * _gamma_of(key, 0.5 * df, shape, False)


def f(
    key: ArrayLike, dfnum: ArrayLike, dfden: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw from the F distribution with `dfnum` and `dfden` degrees of freedom; see `beta`.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.f(key, 2.0, 3.0, (2,)).shape
    (2,)
    """
    d, shape, (m, n) = given("f", dtype, shape, dfnum=dfnum, dfden=dfden)
    return _f(key, m, n, shape=shape)


@fused
def _f(key: Any, m: Value, n: Value, *, shape: Any) -> Any:
    below, above = split(key)
    top = _gamma_of(above, 0.5 * m, shape, False) / m
    return top / (_gamma_of(below, 0.5 * n, shape, False) / n)


def t(
    key: ArrayLike, df: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw from Student's t with `df` degrees of freedom; see `gamma`.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.t(key, 3.0, (2,)).shape
    (2,)
    """
    d, shape, (df,) = given("t", dtype, shape, df=df)
    return _t(key, df, shape=shape)


@fused
def _t(key: Any, df: Any, *, shape: Any) -> Any:
    first, second = split(key)
    half = broadcast_to(0.5 * df, shape)
    return normal(first, shape, df.aval.dtype) * el.sqrt(
        half / _gamma_of(second, half, shape, False)
    )


def generalized_normal(
    key: ArrayLike, p: ArrayLike, shape: SupportsIndex | Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Draw numbers of density proportional to e ** -|x| ** p.

    Args:
      key: a key.
      p: a positive number.
      shape: shape of the result.
      dtype: a floating dtype; the default one if None.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.generalized_normal(key, 2.0, (2,)).shape
    (2,)
    """
    d, shape, (p,) = given("generalized_normal", dtype, shape, p=p)
    return _generalized_normal(key, p, shape=shape)


@fused
def _generalized_normal(key: Any, p: Any, *, shape: Any) -> Any:
    first, second = split(key)
    r = 1.0 / broadcast_to(p, shape)
    size = el.exp(_gamma_of(first, r, shape, True) * r)
    return size * rademacher(second, shape, p.aval.dtype)


# ---- powers and tails --------------------------------------------------------------------------


def pareto(
    key: ArrayLike, b: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw numbers of density b x ** (-b - 1), from 1 on; arguments as in `gamma`.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.pareto(key, 3.0, (2,)).shape
    (2,)
    """
    d, shape, (b,) = given("pareto", dtype, shape, b=b)
    return _pareto(key, b, shape=shape)


@fused
def _pareto(key: Any, b: Any, *, shape: Any) -> Any:
    return el.exp(exponential(key, shape, b.aval.dtype) / broadcast_to(b, shape))


def lognormal(
    key: ArrayLike, sigma: ArrayLike = 1.0, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw e to the power of normal numbers of deviation `sigma`; arguments as in `gamma`.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.lognormal(key, 0.5, (2,)).shape
    (2,)
    """
    d, shape, (sigma,) = given("lognormal", dtype, shape, sigma=sigma)
    return _lognormal(key, sigma, shape=shape)


@fused
def _lognormal(key: Any, sigma: Any, *, shape: Any) -> Any:
    return el.exp(normal(key, shape, sigma.aval.dtype) * broadcast_to(sigma, shape))


def rayleigh(
    key: ArrayLike, scale: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw lengths of pairs of normal numbers of deviation `scale`; arguments as in `gamma`.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.rayleigh(key, 1.0, (2,)).shape
    (2,)
    """
    d, shape, (scale,) = given("rayleigh", dtype, shape, scale=scale)
    return _rayleigh(key, scale, shape=shape)


@fused
def _rayleigh(key: Any, scale: Any, *, shape: Any) -> Any:
    dtype = scale.aval.dtype
    tiny = float(np.finfo(np.float32 if dtype.itemsize < 4 else dtype).tiny)
    u = uniform(key, shape, dtype, minval=tiny)
    return broadcast_to(scale, shape) * el.sqrt(-2.0 * el.log(u))


def weibull_min(
    key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: SupportsIndex | Shape = (),
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw from Weibull's distribution: scale * E ** (1 / concentration), E exponential.

    Args:
      key: a key.
      scale, concentration: positive numbers, or arrays that broadcast to the shape.
      shape: shape of the result.
      dtype: a floating dtype; the default one if None.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.weibull_min(key, 1.0, 2.0, (2,)).shape
    (2,)
    """
    d, shape, (scale, power) = given(
        "weibull_min", dtype, shape, scale=scale, concentration=concentration
    )
    return _weibull_min(key, scale, power, shape=shape)


@fused
def _weibull_min(key: Any, scale: Any, power: Value, *, shape: Any) -> Any:
    e = exponential(key, shape, scale.aval.dtype)
    return el.pow_(e, 1.0 / broadcast_to(power, shape)) * broadcast_to(scale, shape)


def maxwell(
    key: ArrayLike, shape: SupportsIndex | Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Draw lengths of triples of normal numbers: speeds in a gas.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.maxwell(key, (2,)).shape
    (2,)
    """
    d, shape, _ = given("maxwell", dtype, shape)
    return _maxwell(key, shape=shape, dtype=d)


@fused
def _maxwell(key: Any, *, shape: Any, dtype: np.dtype) -> Any:
    x = normal(key, (*shape, 3), dtype)
    return el.sqrt((x * x).sum(-1))


def double_sided_maxwell(
    key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: SupportsIndex | Shape = (),
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw loc + scale * s * m, with m as in `maxwell` and s = -1 or 1.

    Args:
      key: a key.
      loc, scale: numbers, or arrays that broadcast with the shape.
      shape: shape of the samples; further axes of the parameters come in front.
      dtype: a floating dtype; the default one if None.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.double_sided_maxwell(key, 0.0, 1.0, (2,)).shape
    (2,)
    """
    d, shape, (loc, scale) = given("double_sided_maxwell", dtype, shape, loc=loc, scale=scale)
    return _double_sided(key, loc, scale, shape=shape)


@fused
def _double_sided(key: Any, loc: Any, scale: Any, *, shape: Any) -> Any:
    dtype = loc.aval.dtype
    first, second = split(key)
    return maxwell(first, shape, dtype) * rademacher(second, shape, dtype) * scale + loc


def triangular(
    key: ArrayLike, left: ArrayLike, mode: Any, right: ArrayLike,
    shape: SupportsIndex | Shape | None = None, dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw numbers between `left` and `right`, of a triangular density with its top at `mode`.

    Args:
      key: a key.
      left, mode, right: numbers in order, or arrays that broadcast to the shape.
      shape: shape of the result; by default that of the parameters.
      dtype: a floating dtype; the default one if None.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.triangular(key, 0.0, 0.5, 1.0, (2,)).shape
    (2,)
    """
    d, shape, (low, top, high) = given(
        "triangular", dtype, shape, left=left, mode=mode, right=right
    )
    return _triangular(key, low, top, high, shape=shape)


@fused
def _triangular(key: Any, low: Value, top: Value, high: Value, *, shape: Any) -> Any:
    u = uniform(key, shape, low.aval.dtype)
    width = high - low
    first = el.lt(u, (top - low) / width)
    x = low + el.sqrt(el.select(first, u, 0.0) * width * (top - low))
    y = high - el.sqrt(el.select(first, 0.0, 1.0 - u) * width * (high - top))
    return el.select(first, x, y)


def wald(
    key: ArrayLike, mean: Any, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw from Wald's distribution (inverse Gaussian) of this mean and scale 1.

    Source: J. R. Michael, W. R. Schucany, R. W. Haas: Generating random variates using
    transformations with multiple roots, 1976.  Arguments as in `gamma`.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.wald(key, 1.0, (2,)).shape
    (2,)
    """
    d, shape, (mean,) = given("wald", dtype, shape, mean=mean)
    return _wald(key, mean, shape=shape)


@fused
def _wald(key: Any, mean: Any, *, shape: Any) -> Any:
    first, second = split(key)
    m, dtype = broadcast_to(mean, shape), mean.aval.dtype
    v, u = normal(first, shape, dtype), uniform(second, shape, dtype)
    y = m * v * v
    x = m / (1.0 + 0.5 * (y + el.sqrt(y * (4.0 + y))))  # the lesser root
    return el.select(el.le(u * (m + x), m), x, m * m / x)
