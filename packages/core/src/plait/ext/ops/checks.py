"""Conditions that must hold.

Invariant: nothing is defined here.
"""

from ..._ops import checks as _checks
from ..._ops.checks import *

__all__ = _checks.__all__
