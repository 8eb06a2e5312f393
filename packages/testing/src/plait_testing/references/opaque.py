"""Opaque elements in numpy: the integers that represent them.

Invariant: opaque arrays are given, and returned, as their memory.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.ops.opaque import unwrap_, wrap_
from plait.ext.ops.random import FRY
from plait.ext.trace import Value, as_list
from plait.ext.types import OPAQUE

from ..samples import Reference, Sample

__all__ = ["REFERENCES", "in_memory"]


def in_memory(prim: Primitive, /, *xs: Value, **params: object) -> list:
    """Apply a primitive of keys to words of keys, and return the words of the resulting keys."""
    outs = as_list(prim.bind(wrap_.bind(xs[0], dtype=FRY), *xs[1:], **params))
    return [unwrap_.bind(y) if y.aval.category == OPAQUE else y for y in outs]


def _made(prim: Primitive, x: Any, dtype: Any) -> list:
    return [unwrap_.bind(prim.bind(x, dtype=dtype))]


def _words(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 2**32, (*shape, 2), np.uint32)


def _wrapped(prim: Primitive) -> Iterator[Sample]:
    for shape in ((2, 3), (), (0, 2)):
        yield Sample((_words(shape),), {"dtype": FRY} if prim.name == "core.wrap" else {})


REFERENCES = {
    "core.wrap": Reference(lambda x, dtype: x, _wrapped, through=_made),
    "core.unwrap": Reference(lambda x: x, _wrapped, through=in_memory),
}
"""The Reference of each primitive of the family."""
