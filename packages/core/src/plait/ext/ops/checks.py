"""Conditions that must hold.

Invariant: nothing is defined here.
"""

from ..._ops.checks import check_p

__all__ = [
    "check_p",
]
