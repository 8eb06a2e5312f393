"""Determinants, pseudo-inverses and least squares by numpy.

Invariant: computed in double precision.
"""

from collections.abc import Iterator

import numpy as np

from plait.ext.ir import Primitive

from ..samples import Reference, Sample
from .factorisation import FLOATS, each, matrices

__all__ = ["REFERENCES"]


def _slogdet(x: np.ndarray) -> tuple:
    sign, size = np.linalg.slogdet(x)
    return sign, size


def _lstsq(a: np.ndarray, b: np.ndarray, rtol: np.ndarray) -> tuple:
    x, _, rank, s = np.linalg.lstsq(a, b, float(rtol))
    return x, np.int32(rank), s


def _squares(prim: Primitive) -> Iterator[Sample]:
    for dtype in FLOATS:
        yield Sample((matrices(dtype, (2, 3, 3)),))
    yield Sample((np.ones((2, 2), np.float32),))
    yield Sample((np.zeros((0, 0), np.float64),))


def _rectangles(prim: Primitive) -> Iterator[Sample]:
    for dtype in FLOATS:
        x = matrices(dtype, (2, 4, 3))
        x[1, :, 2] = x[1, :, 1]  # the rank is two
        tol = np.full(2, 1e-3, np.real(x).dtype)
        right = [matrices(dtype, (2, 4, 2), 1)] if prim.name == "linalg.lstsq" else []
        yield Sample((x, *right, tol))


REFERENCES = {
    "linalg.det": Reference(each(np.linalg.det), _squares, 64, least=1.0),
    "linalg.slogdet": Reference(each(_slogdet), _squares, 64, least=1.0, zeros=False),
    "linalg.pinv": Reference(
        each(lambda x, rtol: np.linalg.pinv(x, float(rtol)), (2, 0)), _rectangles, 64, whole=True
    ),
    "linalg.lstsq": Reference(each(_lstsq, (2, 2, 0)), _rectangles, 64, whole=True),
}
"""The Reference of each primitive of the family."""
