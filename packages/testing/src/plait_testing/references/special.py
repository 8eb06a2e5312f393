"""Special functions by scipy, in double precision.

Invariant: samples are ordinary values, tails and edges that scipy has right; derivatives that scipy
lacks come from mpmath.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from plait.dtypes import finfo
from plait.ext.ir import Primitive

from ..samples import Reference, Sample
from .elementwise import of_scipy, rounded

__all__ = ["REFERENCES", "FLOATS", "columns"]

FLOATS = ("float32", "float64")
"""The dtypes of special functions; narrower ones are converted before and after."""


def columns(*operands: np.ndarray | list[Any], dtypes: Sequence[str] = FLOATS) -> Callable:
    """Return samples given operand by operand, in each dtype that holds them."""

    def samples(prim: Primitive) -> Iterator[Sample]:
        wide = [np.array(v, np.float64) for v in operands]
        yield Sample(tuple([x[:6].reshape(2, 3).astype(np.float32) for x in wide]))
        for name in dtypes:
            info = finfo(name)
            most, tiny = float(info.max), float(info.tiny)
            held = [(np.abs(x) <= most) & (np.abs(x) >= tiny) | (x == 0) | ~np.isfinite(x)
                    for x in wide]  # fmt: skip
            yield Sample(tuple([x[np.all(held, 0)].astype(info.dtype) for x in wide]))

    return samples


def _polygamma(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return polygamma by zeta; for negative x scipy's digamma, and trigamma by reflection."""
    import scipy.special

    return np.where(n == 0, scipy.special.digamma(x), scipy.special.polygamma(n.astype(int), x))


def _lbeta(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return log beta by mpmath: scipy's subtracts nearly equal numbers."""
    import mpmath

    with mpmath.workdps(40):
        rows = zip(a.ravel().tolist(), b.ravel().tolist())
        out = [float(mpmath.log(abs(mpmath.beta(*row)))) for row in rows]
    return np.array(out, np.float64).reshape(a.shape)


_NEAR = [1e-3, 0.3, 1.0, 5.0, 7.9, 8.5, 100.0, -0.5, -3.0, -20.0, np.inf, np.nan, 0.0]

REFERENCES = {
    "special.zeta": Reference(
        rounded(of_scipy("zeta")),
        columns([1.5, 2, 3, 10, 30, 2, 1, 2], [1, 0.1, 5, 1e-3, 2, 0.75, 2, np.nan]), 8),
    "special.polygamma": Reference(
        rounded(_polygamma), columns([0, 1, 2, 5, 3, 1], [1.7, 1.5, 0.1, 10, 1e-3, 40]), 40),
    "special.lbeta": Reference(
        rounded(_lbeta),
        columns([0.1, 1, 5, 9, 0.5, 100, 1e-3, 7.9], [0.2, 3, 20, 9, 200, 300, 1e3, 8.1]), 40),
    "special.bessel_i0e": Reference(rounded(of_scipy("i0e")), columns(_NEAR), 8),
    "special.bessel_i1e": Reference(rounded(of_scipy("i1e")), columns(_NEAR), 12),
    "special.log_ndtr": Reference(
        rounded(of_scipy("log_ndtr")),
        columns([-1000, -50, -21, -19.9, -10.1, -9.9, -5, -1, 0, 1, 3, -np.inf, np.inf, np.nan]),
        24),
    "special.ndtri": Reference(
        rounded(of_scipy("ndtri")),
        columns([1e-4, 0.01, 0.09, 0.11, 0.4, 0.6, 0.95, 0.99, 0, 1, -1, 2, np.nan]), 24),
}  # fmt: skip
"""The Reference of each primitive of the family."""
