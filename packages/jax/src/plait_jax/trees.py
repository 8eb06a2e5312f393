"""Queries of libraries to JAX's inner registry of trees.

Invariant: the answers come from Plait's registry; nothing is registered here.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from plait import tree_util
from plait.tree_util import is_tree_node

__all__ = ["registered"]


class Entry:
    """Functions that take the instances of one class apart and build them again."""

    @staticmethod
    def to_iter(tree: Sequence[Any] | dict[str, Any]) -> tuple[list[Any], Any]:
        """Return (children, structure around them)."""
        return tree_util.tree_flatten(tree, is_leaf=lambda x: x is not tree)

    @staticmethod
    def from_iter(around: Any, children: Iterable[Any]) -> Any:
        """Return the tree of these children."""
        return tree_util.tree_unflatten(around, list(children))


class Registered:
    """The classes whose instances have children, each with an Entry."""

    def __contains__(self, cls: Any) -> bool:
        return isinstance(cls, type) and is_tree_node(cls)

    def __getitem__(self, cls: Any) -> type[Entry]:
        if cls not in self:
            raise KeyError(cls)
        return Entry


registered = Registered()
