"""Attributes by which classes of trees describe themselves to functions of all trees.

Invariant: an attribute concerns instances of its class only; classes without it cost a look-up.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..tree import flatten

if TYPE_CHECKING:
    from .interpreter import Value

__all__ = ["SavedClass", "advice_for_elements"]


class SavedClass(NamedTuple):
    """The attribute `__plait_saved__` of a class that artifacts know by name.

    Attributes:
      name: `plait.<public name>`, or `plait.<surface>.<name>`, by which a reader finds the class.
      write: returns the static part of a node as bytes; ValueError if it has no such form.
      read: returns the static part from bytes; ValueError for any other bytes.
    """

    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]


def advice_for_elements(tree: "Value | tuple[Any, ...]") -> str | None:
    """Return how to map over a node of a tree whose class has elements of its own.

    Such a class has an attribute `__plait_elements__`, the advice; None without such a node.
    """
    is_one = lambda x: hasattr(type(x), "__plait_elements__")  # noqa: E731
    return next((type(x).__plait_elements__ for x in flatten(tree, is_one)[0] if is_one(x)), None)
