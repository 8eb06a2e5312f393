"""Elementwise functions with a requested accuracy, by numpy.

Invariant: the request changes the computation of results, never their definition.
"""

from collections.abc import Iterator

import numpy as np

from plait.ext.ir import Primitive

from ..operands import edges
from ..samples import Reference, Sample, ordinary
from .elementwise import REFERENCES as PLAIN

__all__ = ["REFERENCES"]


def _accurate(x: np.ndarray, of: str, mode: str, tolerance: tuple) -> np.ndarray:
    return PLAIN[f"core.{of}"].value(x)


_NAMES = "cbrt cos exp expm1 log log1p logistic rsqrt sin sqrt tan tanh"


def _asked(prim: Primitive) -> Iterator[Sample]:
    how = {"of": "exp", "mode": "highest", "tolerance": (0.0, 0.0, 0)}
    yield Sample((ordinary("float32"),), how)
    for of in _NAMES.split():
        yield Sample((edges("float32"),), {**how, "of": of})
    near = {"mode": "tolerance", "tolerance": (0.0, 0.0, 4)}
    yield Sample((edges("float64"),), {"of": "sin", **near})
    yield Sample((edges("complex64"),), {"of": "tanh", **near})


REFERENCES = {"core.accurate": Reference(_accurate, _asked, 3)}
"""The Reference of each primitive of the family."""
