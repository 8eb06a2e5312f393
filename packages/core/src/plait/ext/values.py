"""Values: arrays, literals, and conversion of users' values.

Invariant: nothing is defined here.
"""

from .._core.array import (
    Array,
    Literal,
    as_value,
    asarray,
    canonical,
    from_numpy,
    is_literal_zero,
    is_tracer,
    solid,
    wrap,
)
from .._xla.operands import as_argument

__all__ = [
    "Array",
    "Literal",
    "as_argument",
    "as_value",
    "asarray",
    "canonical",
    "from_numpy",
    "is_literal_zero",
    "is_tracer",
    "solid",
    "wrap",
]
