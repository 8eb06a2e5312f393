"""Gamma samples in Python: the method of Marsaglia and Tsang (2000), element after element.

Invariant: random bits are those of the primitive's definition, and arithmetic is in double
precision; so an element may differ only if a proposal is on the edge of acceptance.
"""

import math
from collections.abc import Iterator

import numpy as np

from plait.ext.ir import Primitive

from ..samples import Reference, Sample
from .elementwise import of_scipy
from .rng import hashed

__all__ = ["REFERENCES"]

Stream = tuple[int, int]


def _child(stream: Stream, k: int) -> Stream:
    return hashed(*stream, 0, k)


def _unit(stream: Stream, dtype: np.dtype) -> float:
    """Return a float in [0, 1) with the random bits of a mantissa."""
    a, b = _child(stream, 0)
    if dtype == np.float32:
        return ((a ^ b) >> 9) * 2.0**-23
    return ((a << 32 | b) >> 12) * 2.0**-52


def _normal(u: float, dtype: np.dtype) -> float:
    least = -1 + 2.0 ** -(24 if dtype == np.float32 else 53)
    spread = max(u * (1.0 - least) + least, least)
    return math.sqrt(2) * float(of_scipy("erfinv")(spread))


def _volume(stream: Stream, c: float, d: float, dtype: np.dtype) -> float:
    """Draw proposals until one is accepted."""
    while True:
        stream, source, judge = (_child(stream, k) for k in range(3))
        x = v = 0.0
        while v <= 0:
            source, now = _child(source, 0), _child(source, 1)
            x = _normal(_unit(now, dtype), dtype)
            v = 1 + c * x
        u, cube = _unit(judge, dtype), v**3
        if u < 1 - 0.0331 * x**4:
            return cube
        if u > 0 and math.log(u) < x * x / 2 + d * (1 - cube + math.log(cube)):
            return cube


def _sample(k1: int, k2: int, a: float, log: bool, dtype: np.dtype) -> float:
    if not a >= 0:
        return math.nan
    rest, extra = (_child((k1, k2), k) for k in range(2))
    d = (a + 1 if a < 1 else a) - 1 / 3
    volume = _volume(rest, 1 / 3 / math.sqrt(d), d, dtype)
    boost = math.log1p(-_unit(extra, dtype)) / a if a < 1 else 0.0
    out = math.log(d) + math.log(volume) + boost
    return out if log else math.exp(out)


def _gamma(k1: np.ndarray, k2: np.ndarray, a: np.ndarray, log: bool) -> np.ndarray:
    dtype = np.dtype(np.float32 if a.dtype.itemsize < 4 else a.dtype)
    rows = zip(*[x.ravel().tolist() for x in (k1, k2, a.astype(np.float64))])
    out = [_sample(*row, log=log, dtype=dtype) for row in rows]
    return np.array(out).reshape(a.shape).astype(a.dtype)


def _shapes(prim: Primitive) -> Iterator[Sample]:
    k1, k2 = np.random.default_rng(4).integers(0, 2**32, (2, 2, 4), np.uint32)
    a = np.array([[0.3, 1.0, 2.5, 40.0], [0.7, 5.0, np.nan, -1.0]])
    for name, log in (("float32", False), ("float64", True)):
        yield Sample((k1, k2, a.astype(name)), {"log": log})


REFERENCES = {"special.random_gamma": Reference(_gamma, _shapes, 64)}
"""The Reference of each primitive of the family."""
