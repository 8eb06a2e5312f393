"""Bessel functions of integer order by scipy, in double precision.

Invariant: all orders are given, and compared, together.
"""

from collections.abc import Iterator

import numpy as np

from plait.ext.ir import Primitive

from ..samples import Reference, Sample
from .elementwise import of_scipy
from .special import columns

__all__ = ["REFERENCES"]

_X = [0.0, 1e-3, 0.4, 2.0, 11.0, 24.0, 26.0, 60.0, -0.7, -5.0, -40.0, np.nan]


def _orders(x: np.ndarray, order: int) -> list[np.ndarray]:
    wide = x.astype(np.float64)
    return [of_scipy("jv")(k, wide).astype(x.dtype) for k in range(order + 1)]


def _samples(prim: Primitive) -> Iterator[Sample]:
    for sample in columns(_X)(prim):
        yield sample._replace(params={"order": 3})
    yield Sample((np.array(_X),), {"order": 30})


REFERENCES = {"special.bessel_j": Reference(_orders, _samples, 60, least=0.05)}
"""The Reference of each primitive of the family."""
