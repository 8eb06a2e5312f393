"""The primitives of piles, collected for code that lists all primitives.

Invariant: this module defines nothing itself.
"""

from .operation import pile_map
from .segmented import segmented

__all__ = ["pile_map", "segmented"]
