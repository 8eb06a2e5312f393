"""Sizes known by name: what is known of them, and how they are found.

Invariant: nothing is defined here.
"""

from .._types.dims import (
    Dim,
    Scope,
    is_symbolic,
    solve_dims,
    symbolic_dims,
)
from .._types.dims.language import (
    read_constraint,
)

__all__ = [
    "Dim",
    "Scope",
    "is_symbolic",
    "read_constraint",
    "solve_dims",
    "symbolic_dims",
]
