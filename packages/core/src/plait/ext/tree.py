"""Trees of values: taken apart, compared, put together.

Invariant: nothing is defined here.
"""

from .._base.guarded import guard, guarded_nodes
from .._core.elements import advice_for_elements
from .._core.openable import registered_by
from .._core.same_parts import tell_parts_apart
from ..tree import (
    LEAF,
    TreeDef,
    children,
    difference,
    each_leaf,
    flatten,
    flatten_up_to,
    key_paths,
    map_tree,
    node_data,
    register,
    registry,
    spread,
)
from ..tree_util import Partial

__all__ = [
    "LEAF", "registered_by", "Partial", "TreeDef", "advice_for_elements", "children", "difference",
    "each_leaf", "flatten", "flatten_up_to", "guard", "guarded_nodes", "key_paths", "map_tree",
    "node_data", "register", "registry", "spread", "tell_parts_apart",
]  # fmt: skip
