"""What libraries ask JAX's inner registry of trees.

Invariant: the answers are those of Plait's registry; nothing is registered here.
"""

from typing import Any

from plait.tree_util import is_tree_node

__all__ = ["registered"]


class Registered:
    """The classes whose instances have children, as a collection: for `in`."""

    def __contains__(self, cls: Any) -> bool:
        return isinstance(cls, type) and is_tree_node(cls)


registered = Registered()
