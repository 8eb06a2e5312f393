"""Relatives of the error function by scipy, in double precision.

Invariant: samples are ordinary values, tails and edges that scipy has right.
"""

from collections.abc import Iterator

import numpy as np

from plait.ext.ir import Primitive

from ..samples import Reference, Sample
from .elementwise import of_scipy, rounded
from .special import columns

__all__ = ["REFERENCES"]

_X = [-9.0, -3.0, -0.4, 0.0, 1e-3, 0.7, 1.1, 3.0, 4.9, 5.2, 30.0, 1e4, np.inf, -np.inf, np.nan]


def _complex(prim: Primitive) -> Iterator[Sample]:
    """Return samples in each half plane, on both axes, and far out."""
    xs, ys = np.meshgrid([-3.0, -0.4, 0.0, 1.3, 8.0, 1e5], [-1.5, -0.1, 0.0, 0.3, 6.0, 1e5])
    z = (xs + 1j * ys).ravel()
    z = z[(z.imag >= 0) | (np.abs(z) < 10)]
    for name in ("complex64", "complex128"):
        yield Sample((z.astype(name),))
    yield Sample((np.array([complex(np.inf, 0), complex(0, np.inf), complex(np.nan, 0)]),))
    yield Sample((np.zeros((0, 2), np.complex64),))


REFERENCES = {
    "special.erfcx": Reference(rounded(of_scipy("erfcx")), columns(_X), 40),
    "special.dawsn": Reference(rounded(of_scipy("dawsn")), columns(_X), 16),
    "special.wofz": Reference(rounded(of_scipy("wofz")), _complex, 200, whole=True, zeros=False),
    "special.owens_t": Reference(
        rounded(of_scipy("owens_t")),
        columns([0.0, 0.3, -2.0, 5.0, 1.0, 0.0, 3.0, np.inf, np.nan],
                [0.4, -0.9, 3.0, 0.1, 1.0, np.inf, -np.inf, 1.0, 1.0]), 100),
}  # fmt: skip
"""The Reference of each primitive of the family."""
