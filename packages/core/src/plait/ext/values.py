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
    integer_bounds,
    is_literal_zero,
    is_tracer,
    on_accelerator,
    shared,
    solid,
    standing_for,
    unmasked,
    wrap,
)
from .._core.interpreter import add_members
from .._xla.guards import is_seeded, seeded
from .._xla.operands import as_argument, scalar_buffer

__all__ = [
    "Array", "Literal", "add_members", "as_argument", "as_value", "asarray", "canonical",
    "from_numpy", "is_literal_zero", "is_seeded", "is_tracer", "solid", "wrap", "integer_bounds",
    "on_accelerator", "scalar_buffer", "seeded", "shared", "standing_for", "unmasked",
]  # fmt: skip
