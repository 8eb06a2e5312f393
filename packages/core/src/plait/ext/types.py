"""Types of values and of their elements.

Invariant: nothing is defined here.
"""

from .._base.jaxlib_api import EXTRA_DTYPES, ml_dtypes
from .._jit.shapes import ShapeDtypeStruct
from .._types.avals import (
    BOOL,
    BOOLEAN,
    COMPLEX,
    FLOAT32,
    FLOATING,
    INT32,
    INTEGER,
    OPAQUE,
    UINT32,
    WEAK,
    Aval,
    Opaque,
    asked_dtype,
    broadcast_shapes,
    category,
    default_dtype,
    dtype_of,
    float0,
    inexact_dtype,
    is_narrow,
    judge_ranks,
    promote,
    short_name,
)

__all__ = [
    "Aval", "BOOL", "COMPLEX", "EXTRA_DTYPES", "FLOAT32", "FLOATING", "INTEGER", "INT32", "Opaque",
    "ShapeDtypeStruct", "UINT32", "category", "float0", "is_narrow", "ml_dtypes", "short_name",
    "BOOLEAN", "OPAQUE", "WEAK", "asked_dtype", "broadcast_shapes", "default_dtype", "dtype_of",
    "inexact_dtype", "judge_ranks", "promote",
]  # fmt: skip
