"""Distributions of vectors.

Invariant: a point outside the support has probability 0, and gives no nan.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any

from plait.errors import ArgumentError, ShapeError
from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import sum_
from plait.ext.ops.shape import broadcast_to, concatenate, convert, expand_dims, moveaxis
from plait.ext.surface import fused
from plait.ext.trace import Value
from plait.ext.types import FLOATING, broadcast_shapes, default_dtype, promote

from ...primitives.linalg.batched_matrices import diagonal
from ...primitives.linalg.factorisation import cholesky_
from ...primitives.linalg.solving import triangular
from ...refusals import explained
from ..special import xlogy
from .family import Family, exp_of, operands


def _of_vectors(body: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """Make a function of arrays, which become floats of one dtype without being broadcast."""

    @fused
    def run(xs: tuple[Value, ...]) -> Any:
        dtype = promote([x.aval for x in xs])[0]
        dtype = dtype if dtype.kind not in "iub" else default_dtype(FLOATING)
        return body(*[convert(x, dtype) for x in xs])

    def function(*args: Any, **kwargs: Any) -> Any:
        return run(tuple(operands([*signature.bind(*args, **kwargs).args])))

    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _dirichlet_logpdf(x: Value, alpha: Value) -> Any:
    k = alpha.aval.shape
    if len(k) == 1 and x.aval.ndim and x.aval.shape[0] == k[0] - 1:
        x = concatenate([x, expand_dims(1.0 - sum_(x, 0), 0)], 0)
    if len(k) != 1 or not x.aval.ndim or x.aval.shape[0] != k[0]:
        raise ShapeError(
            f"dirichlet: points {x.aval!r} of parameters {alpha.aval!r}",
            fix="give one parameter for each row of the points: the components lie along axis 0, "
            "and the last one may be left out",
        )
    total = sum_(x, 0)
    bad = el.or_(el.gt(el.abs_(total - 1.0), 1e-4), el.lt(x, 0.0).any(0))
    norm = sum_(el.lgamma(alpha)) - el.lgamma(sum_(alpha))
    each = expand_dims(alpha, tuple(range(1, x.aval.ndim)))
    inside = el.select(el.lt(x, 0.0), 0.5, x)
    out = sum_(xlogy(each - 1.0, inside), 0) - norm
    return el.select(bad, -math.inf, out)


def _multinomial_logpmf(x: Value, n: Value, p: Value) -> Any:
    whole = el.and_(el.eq(x, el.floor(x)), x >= 0.0).all(-1)
    good = el.and_(whole, el.eq(sum_(x, -1), n))
    inside = el.select(el.lt(x, 0.0), 0.0, x)
    out = el.lgamma(n + 1.0) + sum_(xlogy(inside, p) - el.lgamma(inside + 1.0), -1)
    return el.select(good, out, -math.inf)


def _normal_logpdf(x: Value, mean: Value, cov: Value) -> Any:
    n = mean.aval.shape[-1:]
    if not n:
        if cov.aval.ndim:
            raise ShapeError(
                f"multivariate_normal: a mean without axes and {cov.aval!r}",
                fix="give a vector of means",
            )
        return -0.5 * ((x - mean) * (x - mean) / cov + el.log(cov) + math.log(2 * math.pi))
    if cov.aval.ndim and cov.aval.shape[-2:] != (*n, *n):
        raise ArgumentError(
            f"multivariate_normal: means {mean.aval!r} and covariances {cov.aval!r}",
            fix="give vectors of n components and matrices of n times n",
        )
    gap = x - mean
    if not cov.aval.ndim:
        total = sum_(gap * gap, -1) / cov
        return -0.5 * (total + n[0] * (el.log(cov) + math.log(2 * math.pi)))
    root = cholesky_.bind(0.5 * (cov + moveaxis(cov, -1, -2)))
    lead = broadcast_shapes([gap.aval.shape[:-1], cov.aval.shape[:-2]])
    root = broadcast_to(root, (*lead, *n, *n))
    rest = triangular(root, expand_dims(broadcast_to(gap, (*lead, *n)), len(lead) + 1))
    total = sum_(rest * rest, (-2, -1)) + 2.0 * sum_(el.log(diagonal(root)), -1)
    return -0.5 * (total + n[0] * math.log(2 * math.pi))


def _family(name: str, doc: str, log: str, body: Callable, signature: str) -> Family:
    made = Family(name, doc)
    for key, f, what in (
        (log, body, "Logarithm of the " + ("density" if log == "logpdf" else "probability")),
        (log[3:], exp_of(body), "The " + ("density" if log == "logpdf" else "probability")),
    ):
        method = _of_vectors(f, inspect.signature(body))
        method.__name__ = method.__qualname__ = f"{name}.{key}"
        method.__module__ = str(__package__)  # which holds the family
        method.__doc__ = f"{what}.\n\n{doc}\n\n{signature}"
        setattr(made, key, explained(method))
    return made


dirichlet = _family(
    "dirichlet", "The Dirichlet distribution of vectors of positive numbers with sum 1.",
    "logpdf", _dirichlet_logpdf,
    "Args:\n  x: points; the components lie along axis 0, and the last one, which the others\n"
    "    determine, may be left out.\n  alpha: a vector of parameters.",
)  # fmt: skip

multinomial = _family(
    "multinomial", "Counts of categories in `n` draws.", "logpmf", _multinomial_logpmf,
    "Args:\n  x: counts; the categories lie along the last axis.\n  n: how many draws.\n"
    "  p: probabilities of the categories.",
)  # fmt: skip

multivariate_normal = _family(
    "multivariate_normal", "The normal distribution of vectors.", "logpdf", _normal_logpdf,
    "Args:\n  x: points; the components lie along the last axis.\n  mean: a vector, or a number.\n"
    "  cov: a positive definite matrix, or a variance for all components.",
)  # fmt: skip
