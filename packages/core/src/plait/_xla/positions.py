"""Positions that are compared as floats, beside expensive functions.

On CPUs, a loop that computes exponentials, logarithms or hyperbolic tangents is slow if it compares
integer positions along an axis (`iota`), too.  It takes up to two and a half times as long, as for
the softmax of a causal mask.  Converted to floats, the positions cost almost nothing.  They are
exact, and integers keep their order when they are rounded to floats.  So each comparison has the
same outcome.

Invariant: a module computes the same bits as before.
"""

from collections.abc import Iterable
from typing import Any

from .._base.jaxlib_api import IrOperation, IrValue
from . import mlir

_ARRANGED = {"stablehlo.broadcast_in_dim", "stablehlo.reshape"}
_EXACT = 1 << 24
"""The integers below are floats of 32 bits."""


def as_floats(found: Iterable[IrOperation]) -> bool:
    """Let comparisons with positions compare floats; return whether there are any.

    Args:
      found: operations that return positions.
    """
    comparisons: list[Any] = []
    for op in found:
        t: Any = op.result.type
        if str(t.element_type) in ("i32", "ui32") and t.has_static_shape:
            if max(t.shape) <= _EXACT:
                comparisons += _comparisons(op.result)
    for op in dict.fromkeys(comparisons):
        _compare_floats(op)
    return bool(comparisons)


def _comparisons(x: IrValue) -> list[Any]:
    """Return the comparisons of some positions, perhaps with other axes."""
    found: list[Any] = []
    for use in x.uses:
        reader = use.owner.operation
        if reader.name == "stablehlo.compare":
            found.append(reader)
        elif reader.name in _ARRANGED:
            found += _comparisons(reader.result)
    return found


def _compare_floats(op: Any) -> None:
    m = mlir.bindings()
    f32, before = m.ir.F32Type.get(m.context), m.ir.InsertionPoint(op)
    t = m.ir.RankedTensorType.get(op.operands[0].type.shape, f32, None, m.unknown)
    for i, x in enumerate(op.operands):
        made = m.create("stablehlo.convert", [t], [x], None, None, 0, m.unknown, before)
        op.operands[i] = made.result
    op.attributes["compare_type"] = mlir.attr("#stablehlo<comparison_type FLOAT>")
