"""A function of numbers, applied to the rows of a pile.

Invariant: a pile has all rows of an array, so a function of single numbers gives the same on it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import plait
from plait.ext.values import as_value

from .report import Inapplicable

__all__ = ["by_elements"]


def by_elements(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that maps `f` over a pile whose elements are the rows of an array.

    One element has no rows.  Raises Inapplicable for an array without rows, and if plait-batching
    is not installed.
    """
    pile, vmap = getattr(plait, "Pile", None), getattr(plait, "vmap", None)

    def mapped(x: Any) -> Any:
        if pile is None or vmap is None:
            raise Inapplicable("plait.Pile is not installed")
        x = as_value(x)
        if not x.ndim or not x.shape[0]:
            raise Inapplicable("the values have no rows that could be elements of a pile")
        rows = x.shape[0]
        lengths = np.array([rows - rows // 2, 0, rows // 2], np.int32)
        each = vmap(f, plait.pile_axis, plait.pile_axis)
        return each(pile(x, lengths)).data[:rows]

    return mapped
