"""The array library of Plait.

Users find its modules in `plait` (`plait.numpy`, `plait.scipy`, `plait.random`, `plait.nn`,
`plait.image`, `plait.ops`); only authors of rules import this package.

Invariant: importing this imports no surface.
"""

import os as _os

from plait.ext.errors import hide as _hide

_hide(_os.path.dirname(__file__), arrays=True)
