"""Trees of values: taken apart, compared, put together.

Invariant: nothing is defined here.
"""

from .._base.freezing import bare, exact
from .._base.guarded import guard, guarded_nodes
from .._core.elements import SavedClass, advice_for_elements
from .._core.fitting import aligned, fitted, register_capacities
from .._core.openable import registered_by
from .._core.same_parts import tell_parts_apart
from ..tree import (
    LEAF,
    TreeDef,
    children,
    difference,
    each_leaf,
    exact_key,
    flatten,
    flatten_up_to,
    in_words,
    key_paths,
    map_tree,
    node_data,
    register,
    registry,
    spread,
)
from ..tree_util import Partial

__all__ = [
    "advice_for_elements", "aligned", "bare", "children", "difference", "each_leaf", "exact",
    "exact_key", "fitted", "flatten", "flatten_up_to", "guard", "guarded_nodes", "in_words",
    "key_paths", "LEAF", "map_tree", "node_data", "Partial", "register", "register_capacities",
    "registered_by", "registry", "SavedClass", "spread", "tell_parts_apart", "TreeDef",
]  # fmt: skip
