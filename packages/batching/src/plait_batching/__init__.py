"""vmap for Plait.

Users call `plait.vmap`; import this package only to write rules.

Invariant: every public name is listed here.
"""

import os as _os
from typing import TYPE_CHECKING

from plait.ext.errors import hide as _hide
from plait.ext.rules import later_names as _later_names

if TYPE_CHECKING:  # for editors; at run time a module is imported when one of its names is used
    from .api import vmap
    from .overrides import custom_vmap, sequential_vmap
    from .tiles import vtile
    from .vmappable import is_vmappable, register_vmappable, unregister_vmappable

__all__ = [
    "custom_vmap", "is_vmappable", "register_vmappable", "sequential_vmap", "unregister_vmappable",
    "vmap", "vtile",
]  # fmt: skip

__getattr__, __dir__ = _later_names(
    __name__,
    {
        "api": "vmap",
        "overrides": "custom_vmap sequential_vmap",
        "tiles": "vtile",
        "vmappable": "is_vmappable register_vmappable unregister_vmappable",
    },
)

_hide(_os.path.dirname(__file__))
