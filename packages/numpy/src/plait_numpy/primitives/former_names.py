"""The primitives that left the namespace `core`, for readers of texts that have their old names.

Invariant: importing this module defines every primitive whose former name is in `core`.
"""

from .linalg import families as linalg
from .nn import families as nn
from .special import families as special

__all__ = ["linalg", "nn", "special"]
