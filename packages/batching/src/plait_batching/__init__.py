"""vmap for Plait.

Users find it in `plait` (`plait.vmap`); importing this package is for those who write rules.

Invariant: everything public is named here.
"""

import os as _os

from plait.ext.errors import (
    hide as _hide,
)

from .api import vmap
from .overrides import (
    custom_vmap,
)

__all__ = [
    "custom_vmap",
    "vmap",
]

_hide(_os.path.dirname(__file__))
