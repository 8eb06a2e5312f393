"""Distributions of integers.

Invariant: a proposal accepted in a later round replaces one accepted before.  jax.random does the
same, and samples equal its samples with the default generator.
"""

import math
from collections.abc import Callable
from typing import Any, SupportsIndex, cast

import numpy as np

from plait.errors import ShapeError
from plait.ext import Aval, Literal
from plait.ext.control import scan, while_loop
from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import reduce_or
from plait.ext.ops.shape import broadcast_to, convert, moveaxis
from plait.ext.sizes import Dim
from plait.ext.surface import fused
from plait.ext.trace import Value
from plait.ext.types import FLOATING, INTEGER, broadcast_shapes, default_dtype
from plait.typing import Array, ArrayLike, DTypeLike, Shape

from ..primitives.special.functions import stirling
from .distributions import shape_or
from .keys import RANGES, number, parameter, split
from .numbers import sample_dtype, uniform
from .samples import given


def _any(x: Value) -> Any:
    return reduce_or.bind(x, axes=tuple(range(x.aval.ndim))) if x.aval.ndim else x


def _full(value: float, shape: Any, dtype: np.dtype) -> Any:
    return broadcast_to(Literal(value, Aval((), dtype)), shape)


def _float(p: object, name: str) -> Array:
    """Return a parameter that users call `name` as an array of floats: of the default float, unless
    it is one."""
    if p.__class__ is float or p.__class__ is int:
        return number(p, default_dtype(FLOATING))
    v = parameter(p, name)
    return v if v.aval.category == FLOATING else convert(v, default_dtype(FLOATING))


# ---- Poisson -------------------------------------------------------------------------------


def poisson(
    key: ArrayLike, lam: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw numbers of events from the Poisson distribution of mean `lam`.

    Args:
      key: a key.
      lam: a number, or an array that broadcasts to the shape.
      shape: shape of the result; by default that of `lam`.
      dtype: an integer dtype; the default one if None.

    Uses D. Knuth's method of multiplying (The art of computer programming 2, 3.4.1) below 10, and
    W. Hormann's transformed rejection (PTRS, 1993) from 10 on.  -1 where `lam` is negative or nan.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.poisson(key, 3.0, (2,)).dtype
    dtype('int32')
    """
    d = sample_dtype(dtype, INTEGER, "poisson")
    lam = _float(lam, "lam")
    return _poisson(key, lam, shape=shape_or(shape, lam), dtype=d)


@fused
def _poisson(key: object, lam: Array, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    # float32 as in jax.random, whatever the default float
    lam = broadcast_to(convert(lam, np.float32), shape)
    few = el.lt(lam, 10.0)
    low = _by_products(key, el.select(few, lam, 0.0), shape)
    many = el.and_(el.not_(few), el.lt(lam, math.inf))
    high = _by_rejection(key, el.select(many, lam, 1e5), shape)
    out = el.select(few, low, el.select(many, high, -1.0))
    out = el.select(el.eq(lam, 0.0), 0.0, el.select(lam >= 0.0, out, -1.0))
    most = float(RANGES[dtype][1])
    top = out >= most
    return el.select(top, RANGES[dtype][1], convert(el.select(top, 0.0, out), dtype))


def _by_products(key: object, lam: Value, shape: tuple[int, ...]) -> Any:
    """Count the uniform numbers to multiply before the product falls below e ** -lam."""
    zero = _full(0, shape, lam.aval.dtype)

    def going(state: tuple[Value, ...]) -> Any:
        return _any(el.gt(state[2], el.neg(lam)))

    def turn(state: Any) -> Any:
        key, k, logs = state
        key, now = split(key)
        k = el.select(el.gt(logs, el.neg(lam)), k + 1.0, k)
        return key, k, logs + el.log(uniform(now, shape, lam.aval.dtype))

    return while_loop(going, turn, (key, zero, zero))[1] - 1.0


def _by_rejection(key: Any, lam: Value, shape: tuple[int, ...]) -> Any:
    # The constants are those of algorithm PTRS in Hormann's paper.
    b = 0.931 + 2.53 * el.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    edge = 0.9277 - 3.6224 / (b - 2.0)
    logs = el.log(lam)

    def judged(u: Value, v: Value, us: Value) -> tuple:
        k = el.floor((2.0 * a / us + b) * u + lam + 0.43)
        s = el.log(v * inverse / (a / (us * us) + b))
        good = el.le(s, k * logs - lam - el.lgamma(k + 1.0))
        bad = el.or_(el.lt(k, 0.0), el.and_(el.lt(us, 0.013), el.gt(v, us)))
        quick = el.and_(us >= 0.07, el.le(v, edge))
        return k, el.or_(quick, el.and_(el.not_(bad), good))

    return _rejected(key, judged, shape, lam.aval.dtype)


def _rejected(
    key: Any, judged: Callable[..., Any], shape: tuple[int | Dim, ...], dtype: np.dtype
) -> Any:
    """Draw proposals by the ratio of uniforms, until one is accepted for each element."""

    def turn(state: Any) -> Any:
        key, out, done = state
        key, first, second = split(key, 3)
        u = uniform(first, shape, dtype) - 0.5
        k, good = judged(u, uniform(second, shape, dtype), 0.5 - el.abs_(u))
        return key, el.select(good, k, out), el.or_(done, good)

    start = key, _full(-1, shape, dtype), broadcast_to(Literal(False, Aval((), bool)), shape)
    return while_loop(lambda state: _any(el.not_(state[2])), turn, start)[1]


# ---- binomial ------------------------------------------------------------------------------


def binomial(
    key: ArrayLike, n: Any, p: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw numbers of successes in `n` trials of probability `p`, as floats.

    Args:
      key: a key.
      n, p: numbers, or arrays that broadcast to the shape.
      shape: shape of the result; by default that of the parameters.
      dtype: a floating dtype; the default one if None.

    Counts failures between successes where at most 10 are expected, and uses W. Hormann's
    transformed rejection (BTRS, 1993) otherwise.  nan where `n` is negative or `p` is outside [0,
    1]; of infinitely many trials infinitely many succeed, unless `p` is 0.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.binomial(key, 10, 0.5, (4,)).shape
    (4,)
    """
    d, shape, (n, p) = given("binomial", dtype, shape, n=n, p=p)
    return _binomial(key, n, p, shape=shape, dtype=d)


@fused
def _binomial(key: Any, n: Any, p: Any, *, shape: Any, dtype: np.dtype) -> Any:
    wide = np.dtype(np.float32) if dtype.itemsize < 4 else dtype
    n, p = (broadcast_to(convert(v, wide), shape) for v in (n, p))
    endless = el.eq(n, math.inf)
    good = el.and_(el.and_(n >= 0.0, el.not_(endless)), el.and_(p >= 0.0, el.le(p, 1.0)))
    q = el.select(el.lt(p, 0.5), p, 1.0 - p)
    usual = el.and_(good, el.and_(el.gt(n, 0.0), el.gt(q, 0.0)))
    few = el.le(n * q, 10.0)
    left, right = el.and_(usual, few), el.and_(usual, el.not_(few))
    # Elements of the other method get parameters with which a loop ends soon.
    low = _by_gaps(key, el.select(left, n, 0.0), el.select(left, q, 0.5), shape)
    high = _by_ratio(key, el.select(right, n, 1e4), el.select(right, q, 0.5), shape)
    out = el.select(usual, el.select(few, low, high), 0.0)
    out = el.select(el.lt(p, 0.5), out, n - out)
    out = el.select(good, out, math.nan)
    endless = el.and_(endless, el.and_(el.gt(p, 0.0), el.le(p, 1.0)))
    return convert(el.select(endless, math.inf, out), dtype)


def _by_gaps(key: Any, n: Any, q: Value, shape: Any) -> Any:
    """Add geometric numbers of trials until they exceed n."""
    rate = el.log1p(el.neg(q))
    zero = _full(0, shape, n.aval.dtype)

    def turn(state: Any) -> Any:
        key, count, total = state
        now, key = split(key)
        u = uniform(now, shape, n.aval.dtype)
        count = el.select(el.le(total, n), count + 1.0, count)
        return key, count, total + el.ceil(el.log(u) / rate)

    start = key, zero, zero
    return while_loop(lambda state: _any(el.le(state[2], n)), turn, start)[1] - 1.0


def _tail(k: Array) -> Any:
    """Return log k! less (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2."""
    x = k + 1.0
    large = x >= 8.0
    y = el.select(large, 1.0, el.maximum(x, 1.0))
    small = el.lgamma(y) - (y - 0.5) * el.log(y) + y - 0.5 * math.log(2 * math.pi)
    return el.select(large, stirling(el.select(large, x, 8.0)), small)


def _by_ratio(key: Any, n: Value, q: Value, shape: Any) -> Any:
    # The constants are those of algorithm BTRS in Hormann's paper.
    deviation = el.sqrt(n * q * (1.0 - q))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * q
    middle = n * q + 0.5
    edge = 0.92 - 4.2 / b
    odds = q / (1.0 - q)
    alpha = (2.83 + 5.1 / b) * deviation
    m = el.floor((n + 1.0) * q)
    most = (m + 0.5) * el.log((m + 1.0) / (odds * (n - m + 1.0))) + _tail(m) + _tail(n - m)

    def judged(u: Value, v: Value, us: Value) -> tuple:
        k = el.floor((2.0 * a / us + b) * u + middle)
        bad = el.or_(el.lt(k, 0.0), el.gt(k, n))
        j = el.select(bad, m, k)
        bound = (
            most + (n + 1.0) * el.log((n - m + 1.0) / (n - j + 1.0))
            + (j + 0.5) * el.log(odds * (n - j + 1.0) / (j + 1.0)) - _tail(j) - _tail(n - j)
        )  # fmt: skip
        good = el.le(el.log(v * alpha / (a / (us * us) + b)), bound)
        quick = el.and_(us >= 0.07, el.le(v, edge))
        return k, el.or_(quick, el.and_(el.not_(bad), good))

    return _rejected(key, judged, shape, n.aval.dtype)


# ---- built on these --------------------------------------------------------------------------


def multinomial(
    key: ArrayLike, n: Any, p: ArrayLike, *, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None, unroll: int | bool = 1,
) -> Array:  # fmt: skip
    """Draw counts of categories in `n` draws, as floats: one binomial number for each category.

    Args:
      key: a key.
      n: number of draws: a number, or an array that broadcasts to the shape without its last axis.
      p: probabilities of the categories, along the last axis.
      shape: shape of the result, the categories last; by default that of the parameters.
      dtype: a floating dtype; the default one if None.
      unroll: number of categories drawn in one iteration of the loop; True: all.

    Raises TypeRule if the shape does not end in the number of categories.

    >>> import numpy as np, plait
    >>> key = plait.random.key(0)
    >>> plait.random.multinomial(key, 9, np.full(3, 1 / 3)).sum().item()
    9.0
    """
    d, _, parameters = given("multinomial", dtype, (), n=n, p=p)
    n, p = cast(tuple[Array, Array], parameters)
    if not p.aval.ndim:
        raise ShapeError("multinomial: `p` has no axis", fix="give a vector of probabilities")
    k = p.aval.shape[-1]
    lead = broadcast_shapes([n.aval.shape, p.aval.shape[:-1]])
    shape = (*lead, k) if shape is None else shape_or(shape)
    if shape[-1:] != (k,):
        raise ShapeError(
            f"multinomial: a result of shape {shape} for {k} categories",
            fix="its last axis is that of the categories",
        )
    return _multinomial(key, n, p, shape=tuple(shape), dtype=d, unroll=unroll)


@fused
def _multinomial(
    key: Any, n: Any, p: Any, *, shape: Any, dtype: np.dtype, unroll: int | bool
) -> Any:
    lead = shape[:-1]
    p = moveaxis(broadcast_to(p, shape), -1, 0)
    start = broadcast_to(n, lead), _full(1, lead, dtype)

    def turn(carry: Any, row: Any) -> Any:
        rest, whole = carry
        now, q = row
        share = el.clamp(0.0, q / el.select(el.gt(whole, 0.0), whole, 1.0), 1.0)
        x = binomial(now, rest, share, lead, dtype)
        return (rest - x, whole - q), x

    _, counts = scan(turn, start, (split(key, shape[-1]), p), unroll=unroll)
    return moveaxis(counts, 0, -1)


def geometric(
    key: ArrayLike, p: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw numbers of trials of probability `p` up to the first success.

    Args:
      key: a key.
      p: a number in (0, 1], or an array that broadcasts to the shape.
      shape: shape of the result; by default that of `p`.
      dtype: an integer dtype; the default one if None.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.geometric(key, 0.5, (2,)).dtype
    dtype('int32')
    """
    d = sample_dtype(dtype, INTEGER, "geometric")
    p = _float(p, "p")
    return _geometric(key, p, shape=shape_or(shape, p), dtype=d)


@fused
def _geometric(key: Any, p: Array, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    u = uniform(key, shape, p.aval.dtype)
    out = el.floor(el.log(u) / el.log1p(el.neg(broadcast_to(p, shape)))) + 1.0
    most = RANGES[dtype][1]
    top = out >= float(most)
    return el.select(top, most, convert(el.select(top, 1.0, out), dtype))
