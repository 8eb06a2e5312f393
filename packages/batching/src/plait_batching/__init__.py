"""vmap for Plait.

Users call `plait.vmap`; import this package only to write rules.

Invariant: every public name is listed here.
"""

import os as _os

from plait.ext.errors import hide as _hide

from .api import vmap
from .overrides import custom_vmap, sequential_vmap
from .tiles import vtile
from .vmappable import is_vmappable, register_vmappable, unregister_vmappable

__all__ = [
    "custom_vmap",
    "is_vmappable",
    "register_vmappable",
    "sequential_vmap",
    "unregister_vmappable",
    "vmap",
    "vtile",
]

_hide(_os.path.dirname(__file__))
