"""Products that sum over shared axes.

Invariant: nothing is defined here.
"""

from ..._ops.contraction import dot_general

__all__ = [
    "dot_general",
]
