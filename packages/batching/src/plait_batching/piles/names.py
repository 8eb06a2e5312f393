"""Names of the sizes of piles.

Invariant: all these sizes belong to one scope, whose only assumption is that each is at least 0.
Other facts about a size are written in its expression: `2*n + 4` is even and at least 4.
"""

from functools import lru_cache

from plait.ext.sizes import Dim, Scope, symbolic_dims

__all__ = ["SCOPE", "named"]

SCOPE = Scope([], lower=0)
"""Scope of all sizes that piles name."""


@lru_cache(maxsize=256)
def named(name: str) -> Dim:
    """Return the size of a name."""
    (d,) = symbolic_dims(name, SCOPE)
    return d  # type: ignore[return-value]
