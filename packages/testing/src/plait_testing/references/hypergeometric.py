"""Hypergeometric functions by scipy, in double precision.

Invariant: samples cover every formula, and edges, that scipy has right.
"""

import numpy as np

from ..samples import Reference
from .elementwise import of_scipy, rounded
from .special import columns

__all__ = ["REFERENCES"]

_ONE = [[0.3, 1.0, 2.5, -2.0, 0.5, 0.0, 1.0, 1.5, np.nan],
        [0.7, 2.0, 3.5, 1.5, 1.5, 2.0, -1.0, 2.0, 1.0],
        [1.3, -4.0, -0.3, 3.0, -60.0, 5.0, 1.0, 0.0, 1.0]]  # fmt: skip
_TWO = [[0.3, 1.0, 2.5, -2.0, 0.5, 0.7, 1.0, 0.5, 1.0, np.nan],
        [0.7, 2.0, -0.4, 1.5, 1.5, 1.1, 1.0, 1.0, 2.0, 1.0],
        [1.3, 3.5, 0.9, 1.2, 2.3, 1.3, 2.0, 3.0, -1.0, 1.0],
        [0.4, -3.0, 0.95, 7.0, -20.0, 0.97, 0.999, 1.0, 0.5, 0.5]]  # fmt: skip


REFERENCES = {
    "special.hyp1f1": Reference(
        rounded(of_scipy("hyp1f1")), columns(*_ONE, dtypes=["float64"]), 200
    ),
    "special.hyp2f1": Reference(
        rounded(of_scipy("hyp2f1")), columns(*_TWO, dtypes=["float64"]), 200
    ),
}
"""The Reference of each primitive of the family."""
