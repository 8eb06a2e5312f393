"""Sums of many cotangents: over the turns of a loop, or the uses of a value.

Invariant: three or more floats narrower than float32 are summed in float32 and rounded once.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.ops.elementwise import add
from plait.ext.ops.shape import convert
from plait.ext.trace import Value
from plait.ext.types import FLOAT32, Aval, is_narrow


def widened(x: Any) -> Any:
    """Return a sum or a cotangent of narrow floats in float32."""
    return x if x.aval.dtype == FLOAT32 else convert(x, FLOAT32)


def summed_in(a: Aval) -> Aval:
    """Return the type in which cotangents of type `a`, one per turn, are summed.

    Floats narrower than float32 would be rounded at every turn: a sum of ones ends at 256 in
    bfloat16.
    """
    return a.with_dtype(FLOAT32) if is_narrow(a) else a


def added(total: Value, ct: Value | None) -> Any:
    """Return the sum of a total of type `summed_in` and the cotangent of a turn; None is zero."""
    if ct is None:
        return total
    narrow = ct.aval.dtype != total.aval.dtype
    return add.bind(total, convert(ct, total.aval.dtype) if narrow else ct)


def rounded(totals: Sequence[Any], avals: Sequence[Aval]) -> list[Any]:
    """Return sums of types `summed_in` as cotangents of these types."""
    pairs = zip(totals, avals, strict=True)
    return [t if t.aval.dtype == a.dtype else convert(t, a.dtype) for t, a in pairs]
