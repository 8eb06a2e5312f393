"""Mutable references for Plait.

Users find them in `plait` (`plait.new_ref`); importing this package is for those who write rules.

Invariant: everything public is named here.
"""

import os as _os

from plait.ext.errors import hide as _hide

from .api import empty_ref, free_ref, freeze, new_ref
from .ref import Ref

__all__ = ["Ref", "empty_ref", "free_ref", "freeze", "new_ref"]

_hide(_os.path.dirname(__file__))
