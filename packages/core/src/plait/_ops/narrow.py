"""Floats narrower than float32, which are computed in float32 where many are combined.

Invariant: a rounded result has the dtype that it would have without the computation in float32.
"""

from typing import Any

from .._types.avals import FLOAT32, is_narrow
from .shape import convert

__all__ = ["rounded", "single"]


def single(x: Any) -> Any:
    """Return narrow floats as float32, and anything else as it is."""
    return convert(x, FLOAT32) if is_narrow(x.aval) else x


def rounded(y: Any, x: Any) -> Any:
    """Return a result of `single(x)` in the dtype of `x`, if that is narrow."""
    return convert(y, x.aval.dtype) if is_narrow(x.aval) and y.aval.dtype == FLOAT32 else y
