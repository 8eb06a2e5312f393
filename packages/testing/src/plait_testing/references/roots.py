"""Sylvester's equation and square roots of matrices by scipy.

Invariant: computed in double precision.
"""

from collections.abc import Iterator

import numpy as np

from plait.ext.ir import Primitive

from ..samples import Reference, Sample
from .factorisation import FLOATS, each, matrices, positive

__all__ = ["REFERENCES"]


def _sylvester(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    import scipy.linalg

    return scipy.linalg.solve_sylvester(a, b, c)


def _sqrtm(x: np.ndarray) -> np.ndarray:
    import scipy.linalg

    return np.asarray(scipy.linalg.sqrtm(x)).astype(np.complex128)


def _equations(prim: Primitive) -> Iterator[Sample]:
    for dtype in FLOATS:
        a, b = positive(dtype, (2, 3, 3)), positive(dtype, (2, 2, 2), 1)
        yield Sample((a, b, matrices(dtype, (2, 3, 2), 2)))


def _definite(prim: Primitive) -> Iterator[Sample]:
    for dtype in FLOATS:
        yield Sample((positive(dtype, (2, 3, 3)),))
    yield Sample((-np.eye(1, dtype=np.float32),))


REFERENCES = {
    "linalg.sylvester": Reference(each(_sylvester, (2, 2, 2)), _equations, 64, whole=True),
    "linalg.sqrtm": Reference(each(_sqrtm), _definite, 64, whole=True),
}
"""The Reference of each primitive of the family."""
