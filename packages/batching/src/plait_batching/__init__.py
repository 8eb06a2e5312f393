"""vmap for Plait.

Users find it in `plait` (`plait.vmap`); importing this package is for those who write rules.

Invariant: everything public is named here.
"""

import os as _os

from plait.source import hide as _hide

from .api import vmap
from .interpreter import Batch, batching_rules, insert, skip
from .overrides import custom_vmap, custom_vmap_call

__all__ = [
    "Batch",
    "batching_rules",
    "custom_vmap",
    "custom_vmap_call",
    "insert",
    "skip",
    "vmap",
]

_hide(_os.path.dirname(__file__))
