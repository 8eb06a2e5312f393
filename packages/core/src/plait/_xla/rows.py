"""Sums of rows, which the compiler for CPUs leaves to a library of kernels.

The library also computes the operations around such a sum that it knows: arithmetic, exponentials,
extremes, broadcasts.  It does not know roundings, comparisons and selections.

Invariant: these are facts about the compilers of the releases of jaxlib that are supported.
"""

import math
from collections.abc import Sequence
from typing import Any

from .._base.jaxlib_api import IrOperation

__all__ = ["FEWEST", "is_along_rows", "is_left", "numbers_of", "step_of"]

FEWEST = 1 << 12
"""The fewest elements of a reduction that is left to the library."""

_TYPES = ("f32", "f64", "bf16", "f16")


def is_left(op: IrOperation, types: Sequence[str] = _TYPES) -> bool:
    """Return whether an operation is a reduction of elements of these types that may be left to the
    library."""
    if op.name != "stablehlo.reduce":
        return False
    t: Any = op.operands[0].type
    large = not t.has_static_shape or math.prod(t.shape) >= FEWEST
    return large and str(t.element_type) in types


def is_along_rows(op: IrOperation) -> bool:
    """Return whether the library may compute a reduction and its surroundings in one pass."""
    if not is_left(op, ("f32",)) or len(op.results) != 1:
        return False
    return len(op.operands[0].type.shape) - 1 in numbers_of(op, "dimensions")


def step_of(op: IrOperation) -> str:
    """Return the name of the only operation in the region of a reduction; "" if it has several."""
    step, *rest = op.regions[0].blocks[0].operations
    return step.operation.name if len(rest) == 1 else ""


def numbers_of(op: IrOperation, name: str) -> list[int]:
    """Return the numbers of an attribute."""
    numbers: Any = op.attributes[name]
    return [int(n) for n in numbers]
