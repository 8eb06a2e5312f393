"""Calls of Python, and of foreign functions.

Invariant: nothing is defined here.
"""

from ..._ops.callbacks import exact, host
from ..._ops.foreign_calls import foreign

__all__ = [
    "exact",
    "foreign",
    "host",
]
