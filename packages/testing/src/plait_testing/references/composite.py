"""Named composites: the programs themselves.

Invariant: programs are evaluated under the interpreter at work.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from plait.ext import Aval, evaluate, staged
from plait.ext.ir import Primitive, Program
from plait.ext.ops import elementwise as el

from ..samples import Reference, Sample, ordinary

__all__ = ["REFERENCES"]


def _composite(*xs: Any, program: Program, name: str, version: int, attributes: tuple) -> list:
    return evaluate(program, xs)


def _named(prim: Primitive) -> Iterator[Sample]:
    row = Aval((3,), np.float32)
    program = staged(lambda x, y: [el.mul.bind(x, y), el.neg.bind(y)], [row, row], "both")
    how = {"program": program, "name": "testing.both", "version": 1}
    xs = ordinary("float32", (3,)), ordinary("float32", (3,), 1)
    yield Sample(xs, {**how, "attributes": (("times", "2 : i64"),)})
    yield Sample(xs, {**how, "name": "", "attributes": ()})


REFERENCES = {"core.composite": Reference(_composite, _named)}
"""The Reference of each primitive of the family."""
