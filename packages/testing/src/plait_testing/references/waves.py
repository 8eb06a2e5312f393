"""Wave integrals by scipy, in double precision.

Invariant: samples are ordinary values, tails and edges that scipy has right.
"""

from collections.abc import Callable

import numpy as np

from ..samples import Reference
from .elementwise import of_scipy
from .special import columns

__all__ = ["REFERENCES"]

_X = [0.0, 1e-3, 0.4, 1.0, 2.4, 2.6, 7.9, 8.1, 30.0, 1e3, -0.7, -5.0, -40.0, np.inf, np.nan]


def _pair(name: str, even: bool = False) -> Callable:
    """Return both results of a function of scipy; with `even`, the second one of |x|."""

    def value(x: np.ndarray) -> list[np.ndarray]:
        wide = x.astype(np.float64)
        with np.errstate(all="ignore"):
            first, second = of_scipy(name)(wide)
            second = of_scipy(name)(np.abs(wide))[1] if even else second
        return [first.astype(x.dtype), second.astype(x.dtype)]

    return value


REFERENCES = {
    "special.fresnel": Reference(_pair("fresnel"), columns(_X), 40),
    "special.sici": Reference(_pair("sici", even=True), columns(_X), 40, least=0.1),
}
"""The Reference of each primitive of the family."""
