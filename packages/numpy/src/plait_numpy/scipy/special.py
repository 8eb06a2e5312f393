"""Special functions, elementwise, with the names of scipy.special.

Operands broadcast together; integers become the default float.  Complex numbers are refused, except
where softmax and logsumexp document them.

Invariant: where the limit is a number, neither the value nor the derivative is nan.
"""

import math
from typing import Any

from plait.ext.errors import border
from plait.ext.ops import elementwise as el
from plait.ext.ops.shape import convert
from plait.ext.surface import advise as _advise
from plait.ext.surface import found_by_name, fused
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike, Axis

from ..nn import exponentials
from ..nn.exponentials import logsumexp
from ..primitives.special import functions as sp
from ..primitives.special import incomplete as inc
from ..primitives.special import integrals as ints
from ..refusals import explain
from .factorials import bernoulli, beta, comb, factorial, gamma, gammasgn, multigammaln, poch
from .harmonics import bessel_jn, erfcx, fresnel, hyp1f1, hyp2f1, loggamma, sici, sph_harm_y, wofz
from .pointwise import (
    betaln,
    dawsn,
    digamma,
    erf,
    erfc,
    erfinv,
    expi,
    expit,
    expn,
    floats,
    gammainc,
    gammaincc,
    gammaln,
    i0e,
    i1e,
    log_ndtr,
    ndtri,
    owens_t,
    polygamma,
    spence,
)

# ---- from one primitive ---------------------------------------------------------------------


@border
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return I_x(a, b), the regularised incomplete beta function, for x in [0, 1].

    Differentiable in all three.

    >>> import plait
    >>> round(float(plait.scipy.special.betainc(2.0, 2.0, 0.5)), 6)
    0.5
    """
    return inc.regularized_incomplete_beta(a, b, x)


@border
def zeta(x: ArrayLike, q: ArrayLike = 1.0) -> Array:
    """Return Hurwitz's zeta function, by default Riemann's: the sum of (q + k) ** -x over k >= 0.

    inf for x = 1, nan for x < 1.

    x, q: real, of shapes that broadcast; the result is floating.

    >>> import plait
    >>> print(f"{plait.scipy.special.zeta(2.0).item():.4f}")
    1.6449
    """
    return sp.zeta(x, q)


@border
def exp1(x: ArrayLike) -> Array:
    """Return the exponential integral E_1(x); nan for negative x.

    x: real, any shape; the result has the same shape, and a floating dtype.

    >>> import plait
    >>> print(f"{plait.scipy.special.exp1(1.0).item():.4f}")
    0.2194
    """
    return ints.expn(1.0, x)


# ---- composed --------------------------------------------------------------------------------


@fused
def ndtr(x: ArrayLike) -> Array:
    """Return the normal distribution function.

    x: real, any shape; the result has the same shape, and a floating dtype.

    >>> import plait
    >>> print(f"{plait.scipy.special.ndtr(1.0).item():.4f}")
    0.8413
    """
    (x,) = floats(x)
    return 0.5 * el.erfc(el.neg(x) * math.sqrt(0.5))


@fused
def logit(x: ArrayLike) -> Array:
    """Return log(x / (1 - x)).

    x: real, any shape; the result has the same shape, and a floating dtype.

    >>> import plait
    >>> print(f"{plait.scipy.special.logit(0.25).item():.4f}")
    -1.0986
    """
    (x,) = floats(x)
    # Near 1/2 the difference of the logarithms would cancel.
    near = el.lt(el.abs_(x - 0.5), 0.25)
    y, z = el.select(near, x, 0.5), el.select(near, 0.25, x)
    middle = el.log1p((y + y - 1.0) / (1.0 - y))
    return el.select(near, middle, el.log(z) - el.log1p(el.neg(z)))


@fused
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x log(y), and 0 where x is 0; the derivatives are log(y), infinite at 0, and x / y.

    x, y: real, of shapes that broadcast; the result is floating.

    >>> import plait
    >>> print(f"{plait.scipy.special.xlogy(2.0, 3.0).item():.4f}")
    2.1972
    """
    x, y = floats(x, y)
    nothing = el.and_(el.eq(x, 0.0), el.or_(el.le(y, 0.0), el.eq(y, math.inf)))
    rest = _steep(nothing, x, el.eq(y, 0.0), el.eq(y, math.inf))
    return x * el.log(el.select(nothing, 1.0, y)) + rest


def _steep(nothing: Value, x: Value, down: Value, up: Value) -> Any:
    """Return 0, with an infinite derivative in `x` where it is 0: that of a root."""
    root = el.sqrt(el.select(el.and_(nothing, el.or_(down, up)), x, 1.0))
    return el.select(nothing, el.select(down, el.neg(root), el.select(up, root, 0.0)), 0.0)


@fused
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x log(1 + y), and 0 where x is 0; the derivatives are log(1 + y) and x / (1 + y).

    x, y: real, of shapes that broadcast; the result is floating.

    >>> import plait
    >>> print(f"{plait.scipy.special.xlog1py(2.0, 3.0).item():.4f}")
    2.7726
    """
    x, y = floats(x, y)
    nothing = el.and_(el.eq(x, 0.0), el.or_(el.le(y, -1.0), el.eq(y, math.inf)))
    rest = _steep(nothing, x, el.eq(y, -1.0), el.eq(y, math.inf))
    return x * el.log1p(el.select(nothing, 0.0, y)) + rest


@fused
def entr(x: ArrayLike) -> Array:
    """Return -x log(x): 0 at 0, -inf for negative x.

    x: real, any shape; the result has the same shape, and a floating dtype.

    >>> import plait
    >>> print(f"{plait.scipy.special.entr(0.5).item():.4f}")
    0.3466
    """
    (x,) = floats(x)
    low = el.lt(x, 0.0)
    return el.select(low, -math.inf, el.neg(xlogy(el.select(low, 1.0, x), x)))


@fused
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Return p log(p / q): 0 where p is 0 and q is not negative, inf where either is out of range.

    p, q: real, of shapes that broadcast; the result is floating.

    >>> import plait
    >>> print(f"{plait.scipy.special.rel_entr(0.5, 0.25).item():.4f}")
    0.3466
    """
    p, q = floats(p, q)
    # also true of nan, whose derivatives are nan
    both = el.not_(el.or_(el.le(p, 0.0), el.le(q, 0.0)))
    x, y = el.select(both, p, 1.0), el.select(both, q, 1.0)
    # Of close numbers the difference is exact, and that of their logarithms is not.
    near = el.and_(el.le(x, y + y), el.le(y, x + x))
    close = el.log1p((el.select(near, x, 1.0) - el.select(near, y, 1.0)) / el.select(near, y, 1.0))
    ratio = el.select(near, close, el.log(x) - el.log(y))
    nothing = el.and_(el.eq(p, 0.0), q >= 0.0)
    out = el.select(both, p * ratio, el.select(nothing, 0.0, math.inf))
    return el.select(el.or_(el.ne(p, p), el.ne(q, q)), math.nan, out)


@fused
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Return p log(p / q) - p + q; the ranges are those of rel_entr.

    p, q: real, of shapes that broadcast; the result is floating.

    >>> import plait
    >>> print(f"{plait.scipy.special.kl_div(0.5, 0.25).item():.4f}")
    0.0966
    """
    p, q = floats(p, q)
    near = el.and_(el.gt(p, 0.0), el.le(el.abs_(q - p), 0.5 * p))
    x, y = el.select(near, p, 1.0), el.select(near, q, 1.0)
    close = el.neg(x * sp.log1p_less((y - x) / x))
    far = rel_entr(p, q) - p + q
    return el.select(near, convert(close, far.aval.dtype, far.aval.weak_type), far)


@fused
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Return (x ** lmbda - 1) / lmbda, and log(x) where lmbda is 0.

    x, lmbda: real, of shapes that broadcast; the result is floating.

    >>> import plait
    >>> print(f"{plait.scipy.special.boxcox(4.0, 0.5).item():.4f}")
    2.0000
    """
    x, p = floats(x, lmbda)
    return _boxcox(el.log(x), p)


@fused
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Return boxcox(1 + x, lmbda), exact for small x.

    x, lmbda: real, of shapes that broadcast; the result is floating.

    >>> import plait
    >>> print(f"{plait.scipy.special.boxcox1p(3.0, 0.5).item():.4f}")
    2.0000
    """
    x, p = floats(x, lmbda)
    return _boxcox(el.log1p(x), p)


def _boxcox(logs: Value, p: Value) -> Any:
    """Use the power series of (e ** t - 1) / t for small t = p log(x): its derivatives in p are
    right at 0 too."""
    t = p * logs
    near = el.or_(el.eq(p, 0.0), el.lt(el.abs_(t), 0.25))
    inside = el.select(el.and_(near, el.is_finite(logs)), t, 0.0)
    series = sp.series(inside, [1 / math.factorial(k + 1) for k in range(14)])
    safe = el.select(near, 1.0, p)
    return el.select(near, logs * series, el.expm1(safe * logs) / safe)


# ---- Bessel functions ------------------------------------------------------------------------


@fused
def i0(x: ArrayLike) -> Array:
    """Return the modified Bessel function of order 0.

    x: real, any shape; the result has the same shape, and a floating dtype.

    >>> import plait
    >>> print(f"{plait.scipy.special.i0(1.0).item():.4f}")
    1.2661
    """
    (x,) = floats(x)
    size = x * el.sign(x)  # unlike that of abs, its derivative at 0 is 0
    return el.exp(size) * sp.bessel_i0e(x)


@fused
def i1(x: ArrayLike) -> Array:
    """Return the modified Bessel function of order 1.

    x: real, any shape; the result has the same shape, and a floating dtype.

    >>> import plait
    >>> print(f"{plait.scipy.special.i1(1.0).item():.4f}")
    0.5652
    """
    (x,) = floats(x)
    return el.exp(el.abs_(x)) * sp.bessel_i1e(x)


# ---- sums of exponentials --------------------------------------------------------------------


def softmax(x: ArrayLike, /, *, axis: Axis | None = None) -> Array:
    """Return e ** x divided by its sum along axes (all by default); see plait.nn.softmax.

    >>> import numpy as np, plait
    >>> plait.scipy.special.softmax(np.zeros(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return exponentials.softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: Axis | None = None) -> Array:
    """Return log(softmax(x, axis=axis)), exact where that underflows.

    >>> import numpy as np, plait
    >>> plait.scipy.special.log_softmax(np.zeros((2, 3)), axis=1).shape
    (2, 3)
    """
    return exponentials.log_softmax(x, axis)


__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "dawsn",
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp1", "expi", "expit", "expn",
    "factorial", "fresnel", "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn", "hyp1f1",
    "hyp2f1", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr", "log_softmax", "loggamma", "logit",
    "logsumexp", "multigammaln", "ndtr", "ndtri", "owens_t", "poch", "polygamma", "rel_entr",
    "sici", "softmax", "spence", "sph_harm_y", "wofz", "xlog1py", "xlogy", "zeta",
]  # fmt: skip

found_by_name(globals())
explain(globals())

_advise("plait.scipy.special", globals())
