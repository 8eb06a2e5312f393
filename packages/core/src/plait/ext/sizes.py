"""Sizes known by name: what is known of them, and how they are found.

Invariant: nothing is defined here.
"""

from .._types.dims import (
    Dim as Dim,
)
from .._types.dims import (
    Scope as Scope,
)
from .._types.dims import (
    is_symbolic as is_symbolic,
)
from .._types.dims import (
    solve_dims as solve_dims,
)
from .._types.dims import (
    symbolic_dims as symbolic_dims,
)
from .._types.dims.language import (
    read_constraint as read_constraint,
)

__all__ = [
    "Dim",
    "Scope",
    "is_symbolic",
    "read_constraint",
    "solve_dims",
    "symbolic_dims",
]
