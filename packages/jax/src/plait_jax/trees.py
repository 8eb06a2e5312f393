"""Queries of libraries to JAX's inner registry of trees.

Invariant: the answers come from Plait's registry; nothing is registered here.
"""

from typing import Any

from plait.tree_util import is_tree_node

__all__ = ["registered"]


class Registered:
    """A collection, for `in` only, of the classes whose instances have children."""

    def __contains__(self, cls: Any) -> bool:
        return isinstance(cls, type) and is_tree_node(cls)


registered = Registered()
