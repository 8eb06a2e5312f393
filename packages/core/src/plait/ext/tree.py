"""Trees of values: taken apart, compared, put together.

Invariant: nothing is defined here.
"""

from ..tree import (
    LEAF as LEAF,
)
from ..tree import (
    TreeDef as TreeDef,
)
from ..tree import (
    children as children,
)
from ..tree import (
    difference as difference,
)
from ..tree import (
    flatten as flatten,
)
from ..tree import (
    flatten_up_to as flatten_up_to,
)
from ..tree import (
    key_paths as key_paths,
)
from ..tree import (
    map_tree as map_tree,
)
from ..tree import (
    register as register,
)
from ..tree import (
    registry as registry,
)
from ..tree import (
    spread as spread,
)
from ..tree import (
    unflatten as unflatten,
)
from ..tree_util import (
    Partial as Partial,
)

__all__ = [
    "LEAF",
    "Partial",
    "TreeDef",
    "children",
    "difference",
    "flatten",
    "flatten_up_to",
    "key_paths",
    "map_tree",
    "register",
    "registry",
    "spread",
    "unflatten",
]
