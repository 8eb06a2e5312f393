"""Exponential integrals and Spence's function by scipy, in double precision.

Invariant: samples are ordinary values, tails and edges that scipy has right.
"""

import numpy as np

from ..samples import Reference
from .elementwise import of_scipy, rounded
from .special import columns

__all__ = ["REFERENCES"]

_X = [0.1, 0.5, 1.0, 5.0, 20.0, 39.0, 60.0, -0.1, -1.0, -5.0, -30.0, 0, np.inf, -np.inf, np.nan]


def _expn(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    return of_scipy("expn")(n.astype(int), x)


REFERENCES = {
    "special.expn": Reference(
        rounded(_expn),
        columns(np.repeat([0, 1, 2, 5, 20], 5), np.tile([1e-3, 0.3, 1, 1.01, 20], 5)), 40),
    "special.expi": Reference(rounded(of_scipy("expi")), columns(_X), 60),
    "special.spence": Reference(
        rounded(of_scipy("spence")),
        columns([1e-3, 0.01, 0.3, 0.5, 0.9, 1.2, 1.9, 2, 2.1, 10, 200, 1, 0, -1, np.nan]), 10,
        least=1e-3),
}  # fmt: skip
"""The Reference of each primitive of the family."""
