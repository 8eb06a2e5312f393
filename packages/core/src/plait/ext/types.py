"""Types of values and of their elements.

Invariant: nothing is defined here.
"""

from .._base.jaxlib_api import EXTRA_DTYPES
from .._jit.shapes import ShapeDtypeStruct
from .._types.avals import (
    BOOL,
    COMPLEX,
    FLOAT32,
    FLOATING,
    INT32,
    INTEGER,
    UINT32,
    Aval,
    Opaque,
    category,
    float0,
    is_narrow,
    short_name,
)

__all__ = [
    "Aval",
    "BOOL",
    "COMPLEX",
    "EXTRA_DTYPES",
    "FLOAT32",
    "FLOATING",
    "INTEGER",
    "INT32",
    "Opaque",
    "ShapeDtypeStruct",
    "UINT32",
    "category",
    "float0",
    "is_narrow",
    "short_name",
]
