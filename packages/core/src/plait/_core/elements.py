"""Trees that are batches of their own kind: loops cannot take the rows of their leaves as elements.

Invariant: this is read only for messages of errors.
"""

from typing import Any

from ..tree import flatten

__all__ = ["advice_for_elements"]


def advice_for_elements(tree: Any) -> str | None:
    """Return how to map over a node of a tree whose class has elements of its own.

    Such a class has an attribute `__plait_elements__`, the advice; None without such a node.
    """
    is_one = lambda x: hasattr(type(x), "__plait_elements__")  # noqa: E731
    return next((type(x).__plait_elements__ for x in flatten(tree, is_one)[0] if is_one(x)), None)
