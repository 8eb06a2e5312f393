"""Incomplete gamma and beta functions by scipy, their derivatives by mpmath.

Invariant: derivatives are central differences with forty digits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..samples import Reference
from .elementwise import of_scipy, rounded
from .special import columns

__all__ = ["REFERENCES"]


def _slope(density: bool) -> Callable:
    """Return the derivative in `a` of P(a, x), or of the sample x that has this P."""

    def one(a: float, x: float) -> float:
        import mpmath

        if not (a > 0 and x >= 0) or a == np.inf:
            return np.nan
        if x in (0, np.inf):
            return 0.0
        with mpmath.workdps(40):
            k, y, h = mpmath.mpf(a), mpmath.mpf(x), mpmath.mpf(10) ** -12
            p = lambda s: mpmath.gammainc(s, 0, y, regularized=True)  # noqa: E731
            slope = (p(k + h) - p(k - h)) / (2 * h)
            if density:
                slope = -slope / (y ** (k - 1) * mpmath.exp(-y) / mpmath.gamma(k))
            return float(slope)

    def value(a: np.ndarray, x: np.ndarray) -> np.ndarray:
        out = [one(*row) for row in zip(a.ravel().tolist(), x.ravel().tolist())]
        return np.array(out, np.float64).reshape(a.shape)

    return value


_SHAPES: Any = [0.5, 1, 2, 3.5, 10, 10, 100, 0.01, 7.9, 900]
_AT: Any = [0.1, 0.5, 2, 10, 5, 25, 80, 1e-3, 8, 910]
_EDGES = [2, 1, np.nan], [0, np.inf, 1]
_IN_SINGLE = columns(_SHAPES[:8], _AT[:8], dtypes=["float32"])

REFERENCES = {
    "special.igamma": Reference(
        rounded(of_scipy("gammainc")), columns(_SHAPES + _EDGES[0], _AT + _EDGES[1]), 130),
    "special.igammac": Reference(
        rounded(of_scipy("gammaincc")), columns(_SHAPES + _EDGES[0], _AT + _EDGES[1]), 160),
    "special.igamma_grad_a": Reference(rounded(_slope(False)), _IN_SINGLE, 250),
    "special.random_gamma_grad": Reference(rounded(_slope(True)), _IN_SINGLE, 250),
    "special.regularized_incomplete_beta": Reference(
        rounded(lambda a, b, x: of_scipy("betainc")(a, b, x)),
        columns([0.5, 0.5, 2, 2, 20, 100, 0.01, 5, 9, 1, 1], [0.5, 0.5, 3, 3, 30, 50, 10, 100, 9, 2,
                1], [0.1, 0.9, 0.3, 0.8, 0.4, 0.7, 0.1, 0.05, 0.5, 0, 1]), 60),
}  # fmt: skip
"""The Reference of each primitive of the family."""
