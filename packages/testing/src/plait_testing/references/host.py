"""Python functions on the host: they are their own reference.

Invariant: the functions called here have no effect, so any number of calls is right.
"""

from collections.abc import Callable, Iterator

import numpy as np

from plait.ext import Aval
from plait.ext.ir import Primitive

from ..samples import Reference, Sample, ordinary

__all__ = ["REFERENCES"]


def _folded(x: np.ndarray, n: np.ndarray) -> tuple:
    return np.asarray(x.sum(0)), np.asarray(n + 1)


def _host(*xs: np.ndarray, f: Callable, outs: tuple, effect: object, whole: bool) -> list:
    return list(f(*xs))


def _called(prim: Primitive) -> Iterator[Sample]:
    outs = Aval((3,), np.float32), Aval((), np.int32)
    how = {"f": _folded, "outs": outs, "effect": None, "whole": False}
    yield Sample((ordinary("float32"), np.int32(3)), how)
    empty = {**how, "outs": (Aval((0,), np.float32), Aval((2,), np.int64))}
    yield Sample((np.zeros((2, 0), np.float32), np.array([1, 2**62], np.int64)), empty)


REFERENCES = {"core.host": Reference(_host, _called)}
"""The Reference of each primitive of the family."""
