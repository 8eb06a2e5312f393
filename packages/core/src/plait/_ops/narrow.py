"""Floats narrower than float32, which are computed with in float32 where many are combined.

Invariant: what is rounded has the dtype that it would have had without this.
"""

from typing import Any

from .._types.avals import FLOAT32, FLOATING, Aval
from .shape import convert


def is_narrow(a: Aval) -> bool:
    """Return whether this is a type of floats narrower than float32."""
    return a.category == FLOATING and a.dtype.itemsize < 4


def single(x: Any) -> Any:
    """Return narrow floats as float32, and anything else as it is."""
    return convert(x, FLOAT32) if is_narrow(x.aval) else x


def rounded(y: Any, x: Any) -> Any:
    """Return what was computed from `single(x)` in the dtype of `x`, if that is narrow."""
    return convert(y, x.aval.dtype) if is_narrow(x.aval) and y.aval.dtype == FLOAT32 else y
