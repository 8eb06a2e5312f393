"""Discrete families of distributions.

Invariant: counts of combinations use beta functions, whose logarithm does not cancel; values
outside of the support, or not integers, have probability 0.
"""

import math
from typing import Any

from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import reduce_sum
from plait.ext.ops.shape import broadcast_to, expand_dims, iota_
from plait.ext.trace import Value

from ...primitives.special import functions as sp
from ...primitives.special import incomplete as inc
from ..special import xlog1py, xlogy
from .family import all_positive, discrete


def _counts(*shapes: object) -> tuple[Any, Any]:
    return 0.0, None


def _up_to_n(n: Value, *shapes: object) -> tuple[Any, Any]:
    return 0.0, n


def _chance(p: Value) -> Any:
    """Return where p is in [0, 1]."""
    return el.and_(el.ge(p, 0.0), el.le(p, 1.0))


def _count(n: Value) -> Any:
    """Return where n is an integer from 0 on."""
    return el.and_(el.ge(n, 0.0), el.eq(n, el.floor(n)))


def _log_comb(n: Value, k: Value) -> Any:
    """Return the logarithm of the number of ways to choose k of n."""
    one = el.or_(el.eq(k, 0.0), el.eq(k, n))
    return el.select(one, 0.0, el.neg(el.log1p(n)) - sp.lbeta(n - k + 1.0, k + 1.0))


bernoulli = discrete(
    "bernoulli", "1 with probability `p`, else 0.", "p",
    support=lambda p: (0.0, 1.0),
    valid=_chance,
    logpmf=lambda k, p: xlogy(k, p) + xlog1py(1.0 - k, el.neg(p)),
    cdf=lambda k, p: 1.0 - p + 0.0 * k,
    ppf=lambda q, p: el.select(el.eq(q, 0.0), -1.0, el.select(
        el.or_(el.gt(q, 1.0 - p), el.eq(q, 1.0)), 1.0, 0.0 * q)),
)  # fmt: skip

binom = discrete(
    "binom", "Successes in `n` trials of probability `p`.", "n p",
    support=_up_to_n,
    valid=lambda n, p: el.and_(_count(n), _chance(p)),
    logpmf=lambda k, n, p: _log_comb(n, k) + xlogy(k, p) + xlog1py(n - k, el.neg(p)),
)  # fmt: skip

betabinom = discrete(
    "betabinom", "Successes in `n` trials, of a probability with distribution beta(a, b).",
    "n a b",
    support=_up_to_n,
    valid=lambda n, a, b: el.and_(_count(n), all_positive(a, b)),
    logpmf=lambda k, n, a, b: (
        _log_comb(n, k) + sp.lbeta(k + a, n - k + b) - sp.lbeta(a, b)
    ),
)  # fmt: skip

geom = discrete(
    "geom", "Trials of probability `p` up to the first success.", "p",
    support=lambda p: (1.0, None),
    valid=lambda p: el.and_(el.gt(p, 0.0), el.le(p, 1.0)),
    logpmf=lambda k, p: el.log(p) + xlog1py(k - 1.0, el.neg(p)),
)  # fmt: skip

nbinom = discrete(
    "nbinom", "Failures before `n` successes, in trials of probability `p`.", "n p",
    support=_counts,
    valid=lambda n, p: el.and_(all_positive(n, p), el.le(p, 1.0)),
    logpmf=lambda k, n, p: (
        xlogy(n, p) + xlog1py(k, el.neg(p)) - el.log(n + k) - sp.lbeta(n, k + 1.0)
    ),
)  # fmt: skip


def _poisson_entropy(mu: Value) -> Any:
    """Return the sum up to mu = 100, and beyond it the expansion in 1 / mu (Evans and Boersma,
    The entropy of a Poisson distribution, 1988)."""
    small = el.lt(mu, 100.0)
    m = expand_dims(el.select(small, mu, 1.0), mu.aval.ndim)
    shape = (*mu.aval.shape, 256)
    k = broadcast_to(iota_.bind(shape=(256,), axis=0, dtype=mu.aval.dtype), shape)
    m = broadcast_to(m, shape)
    logs = xlogy(k, m) - m - el.lgamma(k + 1.0)
    total = el.neg(reduce_sum.bind(el.exp(logs) * logs, axes=(mu.aval.ndim,)))
    large = el.select(small, 100.0, mu)
    r = 1.0 / large
    tail = sp.series(r, (0.5 * math.log(2 * math.pi * math.e), -1 / 12, -1 / 24, -19 / 360,
                         -9 / 80))  # fmt: skip
    out = el.select(small, total, 0.5 * el.log(large) + tail)
    return el.select(mu >= 0.0, el.select(el.eq(mu, 0.0), 0.0, out), math.nan)


poisson = discrete(
    "poisson", "Events of which `mu` are expected.", "mu",
    support=_counts,
    valid=lambda mu: el.ge(mu, 0.0),
    logpmf=lambda k, mu: xlogy(k, mu) - mu - el.lgamma(k + 1.0),
    cdf=lambda k, mu: inc.igammac(k + 1.0, mu),
    entropy=_poisson_entropy,
)  # fmt: skip

FAMILIES = {f.__name__: f for f in (bernoulli, betabinom, binom, geom, nbinom, poisson)}
"""Every family of this module by its name."""
