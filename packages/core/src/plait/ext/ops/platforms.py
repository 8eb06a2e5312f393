"""The platform a program runs on.

Invariant: nothing is defined here.
"""

from ..._ops.platforms import platform_index

__all__ = [
    "platform_index",
]
