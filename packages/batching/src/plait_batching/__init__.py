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
from .piles.masks import (
    mask,
)
from .piles.pile import (
    Pile,
    pile_axis,
)

__all__ = [
    "Pile",
    "custom_vmap",
    "mask",
    "pile_axis",
    "vmap",
]

_hide(_os.path.dirname(__file__))
