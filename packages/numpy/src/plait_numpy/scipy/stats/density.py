"""Densities estimated from samples.

Invariant: an estimate is a tree of arrays: transformations accept and return it.
"""

import math
from typing import Any

import numpy as np

from plait.errors import ArgumentError
from plait.ext import Literal
from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import sum_
from plait.ext.ops.shape import broadcast_to, convert, expand_dims, normal_shape, reshape, transpose
from plait.ext.ops.taking import take
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.ext.types import COMPLEX, FLOATING
from plait.tree import register

from ...nn.exponentials import logsumexp
from ...numpy import linalg
from ...primitives.linalg.batched_matrices import diagonal, times
from ...primitives.linalg.factorisation import cholesky_
from ...primitives.linalg.solving import triangular
from ...random import choice, normal, split
from ..special import ndtr


def _points(name: str, x: object, rows: int | None = None) -> Any:
    """Return vectors in columns; numbers without a second axis are points on a line."""
    x = el.floating((value(x),))[0]
    if x.aval.category == COMPLEX or x.aval.ndim > 2:
        raise ArgumentError(
            f"{name}: {x.aval!r} are not points", fix="give real ones, (d, n) or (n,)"
        )
    if x.aval.ndim < 2:
        column = rows is not None and rows > 1 and x.aval.shape == (rows,)
        x = reshape(x, (rows, 1) if column else (1, -1))
    if rows is not None and x.aval.shape[0] != rows:
        raise ArgumentError(f"{name}: {x.aval!r} are not points of {rows} coordinates",
                       fix="give them in columns")  # fmt: skip
    return x


class gaussian_kde:  # noqa: N801
    """A density estimate: a sum of Gaussian bells, one on each sample.

    Args:
      dataset: (d, n), samples in columns; or (n,), on a line.
      bw_method: the width of bells, relative to that of the samples: None or "scott", neff ** (-1 /
        (d + 4)); "silverman"; a number; or a function of the estimate.
      weights: (n,), weights of samples; equal by default.

    Attributes: neff, the effective number of weighted samples; dataset (d, n), weights (n,),
    covariance and inv_cov (d, d); d and n.
    Raises TypeRule for shapes that do not fit, for complex samples, and for fewer than two.
    As scipy.stats.gaussian_kde.

    >>> import numpy as np, plait
    >>> estimate = plait.scipy.stats.gaussian_kde(np.array([-1.0, 0.0, 1.0]))
    >>> estimate(np.array([0.0, 9.0])).round(3).tolist()
    [0.318, 0.0]
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset: object, bw_method: Any = None, weights: object = None):
        x = _points("gaussian_kde", dataset)
        n = x.aval.shape[1]
        if n < 2:
            raise ArgumentError(f"gaussian_kde of {x.aval!r}", fix="give two samples or more")
        if weights is None:
            w = broadcast_to(Literal(1.0 / n, x.aval.strong().with_shape(())), (n,))
        else:
            w = convert(el.floating((value(weights),))[0], x.aval.dtype)
            if w.aval.shape != (n,):
                raise ArgumentError(f"gaussian_kde: weights {w.aval!r} of {n} samples",
                               fix="give one number for each")  # fmt: skip
            w = el.div(w, sum_(w))
        self.dataset, self.weights = x, w
        self.neff = 1.0 / sum_(w * w)
        width = self._width(bw_method)
        away = x - expand_dims(sum_(x * w, 1), 1)
        spread = times(away * w, transpose(away)) / (1.0 - sum_(w * w))
        self.covariance = spread * (width * width)
        self.inv_cov = linalg.inv(spread) / (width * width)

    def _width(self, method: float | str | None) -> Any:
        if method is None or isinstance(method, str) and method == "scott":
            return self.neff ** (-1.0 / (self.d + 4))
        if isinstance(method, str):
            if method != "silverman":
                raise ArgumentError(f"gaussian_kde has no bw_method {method!r}", fix='use "scott"')
            return (self.neff * ((self.d + 2) / 4.0)) ** (-1.0 / (self.d + 4))
        width = value(method(self) if callable(method) else method)
        if width.aval.ndim or width.aval.category > FLOATING:
            raise ArgumentError(
                f"gaussian_kde: bw_method gives {width.aval!r}", fix="give a number"
            )
        return convert(width, self.dataset.aval.dtype)

    @property
    def d(self) -> int:
        """Number of coordinates of a sample."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.dataset.shape[1]

    def logpdf(self, x: object) -> Any:
        """Return logarithms of the density at points (d, m) or (m,); shape (m,)."""
        at = _points("gaussian_kde.logpdf", x, self.d)
        return _log_density(at, self.dataset, self.weights, self.covariance)

    def pdf(self, x: object) -> Any:
        """Return the density at points (d, m) or (m,); shape (m,)."""
        return el.exp(self.logpdf(x))

    def evaluate(self, points: object) -> Any:
        """Return the same as `pdf`."""
        return self.pdf(points)

    __call__ = evaluate

    def integrate_gaussian(self, mean: object, cov: object) -> Any:
        """Return the integral of the density times a Gaussian density, of mean (d,), covariance
        (d, d)."""
        at = reshape(_points("integrate_gaussian", mean), (self.d, 1))
        wide = el.floating((value(cov),))[0]
        wide = convert(reshape(wide, (self.d, self.d)), self.dataset.aval.dtype)
        both = self.covariance + wide
        return el.exp(_log_density(at, self.dataset, self.weights, both))[0]

    def integrate_box_1d(self, low: object, high: object) -> Any:
        """Return the probability between two numbers, for samples on a line."""
        if self.d != 1:
            raise ArgumentError(
                f"integrate_box_1d of {self.d} coordinates", fix="integrate on a line"
            )
        width = el.sqrt(self.covariance[0, 0])
        below, above = ((value(v) - self.dataset[0]) / width for v in (low, high))
        return sum_(self.weights * (ndtr(above) - ndtr(below)))

    def integrate_kde(self, other: object) -> Any:
        """Return the integral of the product of two estimates."""
        if not isinstance(other, gaussian_kde) or other.d != self.d:
            raise ArgumentError(
                f"integrate_kde with {other!r}", fix="give an estimate of as many axes"
            )
        both = self.covariance + other.covariance
        logs = _log_density(other.dataset, self.dataset, self.weights, both)
        return sum_(other.weights * el.exp(logs))

    def resample(self, key: Any, shape: Any = ()) -> Any:
        """Draw samples of the estimate, (d, *shape)."""
        shape = normal_shape(shape)
        first, second = split(key)
        at = choice(first, self.n, shape, p=self.weights)
        noise = normal(second, (self.d, int(np.prod(shape))), self.dataset.aval.dtype)
        noise = reshape(times(cholesky_.bind(self.covariance), noise), (self.d, *shape))
        return take(self.dataset, at, 1) + noise


@fused
def _log_density(at: Value, samples: Value, weights: Value, covariance: Value) -> Any:
    root = cholesky_.bind(covariance)
    dtype = samples.aval.dtype
    d, n, m = samples.aval.shape[0], samples.aval.shape[1], at.aval.shape[1]
    gaps = expand_dims(convert(at, dtype), 2) - expand_dims(samples, 1)
    white = triangular(root, reshape(gaps, (d, m * n)))
    far = reshape(sum_(white * white, 0), (m, n))
    size = 0.5 * d * math.log(2 * math.pi) + sum_(el.log(diagonal(root)))
    return logsumexp(-0.5 * far + el.log(weights), 1) - size


def _parts(x: gaussian_kde) -> tuple[tuple, None]:
    return (x.neff, x.dataset, x.weights, x.covariance, x.inv_cov), None


def _whole(_: None, parts: tuple[Value, ...]) -> gaussian_kde:
    out = object.__new__(gaussian_kde)
    out.neff, out.dataset, out.weights, out.covariance, out.inv_cov = parts
    return out


register(gaussian_kde, _parts, _whole)

__all__ = ["gaussian_kde"]
