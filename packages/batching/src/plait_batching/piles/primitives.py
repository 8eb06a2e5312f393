"""The primitives of piles, for whoever asks for all that there are.

Invariant: nothing is defined here.
"""

from .operation import pile_map
from .segmented import segmented

__all__ = ["pile_map", "segmented"]
