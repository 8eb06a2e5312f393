"""Mutable references for Plait.

Users find these names in `plait` (`plait.new_ref`); only authors of rules import this package.

Invariant: every public name is listed here.
"""

import os as _os

from plait.ext.errors import hide as _hide
from plait.ext.surface import advise as _advise

from .api import empty_ref, free_ref, freeze, new_ref
from .ref import Ref

__all__ = ["Ref", "empty_ref", "free_ref", "freeze", "new_ref"]

_hide(_os.path.dirname(__file__))

_advise("plait_state", globals())
