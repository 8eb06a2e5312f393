"""Symbolic dimensions: one algebra of sizes that are known by name only.

Sizes are polynomials of named integers with floor division, remainder, maximum and minimum.  The
same algebra serves shapes of exported programs, ragged axes and masks.

Invariant: every answer is true for all sizes.  A question with three answers returns None if the
answer is unknown; one with two answers raises an error that shows the question.
"""

from .expression import Dim, max_dim, min_dim, symbolic_dims
from .owners import refuse_ended
from .questions import decide_eq, decide_ge, divide_exact, open_questions, question_of, require_eq
from .scope import Scope
from .shapes import broadcast_dims, is_symbolic, product, same_dims
from .solution import measure_dims, solve_dims

__all__ = [
    "Dim", "Scope", "broadcast_dims", "decide_eq", "decide_ge", "divide_exact", "is_symbolic",
    "max_dim", "measure_dims", "min_dim", "open_questions", "product", "question_of",
    "refuse_ended", "require_eq", "same_dims", "solve_dims", "symbolic_dims",
]  # fmt: skip
