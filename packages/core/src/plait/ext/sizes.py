"""Sizes known by name: constraints on them, decisions about them, and solving for them.

Invariant: nothing is defined here.
"""

from .._core.interpreter import admitted_sizes
from .._types.dims import (
    Dim,
    Scope,
    decide_eq,
    decide_ge,
    divide_exact,
    is_symbolic,
    open_questions,
    product,
    question_of,
    solve_dims,
    symbolic_dims,
)
from .._types.dims.expression import max_dim, min_dim
from .._types.dims.language import read_constraint

__all__ = [
    "Dim", "Scope", "decide_eq", "decide_ge", "is_symbolic", "max_dim", "min_dim",
    "read_constraint", "solve_dims", "symbolic_dims", "admitted_sizes", "divide_exact", "product",
    "open_questions", "question_of",
]  # fmt: skip
