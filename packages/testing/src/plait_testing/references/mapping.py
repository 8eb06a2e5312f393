"""A program along axes in Python: one row after the other.

Invariant: programs are evaluated under the interpreter at work.
"""

from collections.abc import Iterator

import numpy as np

from plait.ext import Aval, evaluate, staged
from plait.ext.ir import Primitive, Program
from plait.ext.ops import elementwise as el

from ..samples import Reference, Sample, ordinary
from .higher import as_numpy

__all__ = ["REFERENCES"]


def _map(
    *xs: np.ndarray, program: Program, in_axes: tuple, out_axes: tuple, size: int, **_: bool
) -> list:
    if not size:  # without a row, the types of the results are unknown
        avals = [o.aval for o in program.outputs]
        shapes = [(*t.shape[:a], 0, *t.shape[a:]) for t, a in zip(avals, out_axes)]
        return [np.zeros(shape, t.dtype) for shape, t in zip(shapes, avals)]
    rows = [[x if a is None else x.take(i, a) for x, a in zip(xs, in_axes)] for i in range(size)]
    columns = zip(*[map(as_numpy, evaluate(program, r)) for r in rows])
    return [np.stack(c, a) for c, a in zip(columns, out_axes)]


def _mapped(prim: Primitive) -> Iterator[Sample]:
    row = Aval((2,), np.float32)
    program = staged(lambda x, y: [el.mul.bind(x, y), el.exp.bind(y)], [row, row], "each")
    x, y = ordinary("float32", (2, 3)), ordinary("float32", (2,), 4)
    how = {"program": program, "in_axes": (1, None), "out_axes": (0, 1), "size": 3}
    for parallel in (True, False):
        yield Sample((x, y), {**how, "parallel": parallel})
        yield Sample((x[:, :0], y), {**how, "size": 0, "parallel": parallel})


REFERENCES = {"core.map_axes": Reference(_map, _mapped, 2)}
"""The Reference of each primitive of the family."""
