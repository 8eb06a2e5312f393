"""Piles whose leaves got more axes in front, by functions that add axes to all leaves of a tree.

Where rows have more axes and lengths have not, each element has these axes in front: a Jacobian
with respect to a pile, or vmap with out_axes=0.  Where lengths have them too, the tree is a stack
of batches, as scan takes and returns.  In second derivatives a leaf may be a pile itself.

Invariant: nothing is computed before a method is called, since leaves may be any objects while a
tree is rebuilt.
"""

from typing import Any

from plait.ext.trace import Value
from plait.ext.tree import map_tree
from plait.ext.types import Aval
from plait.ext.values import as_value

from ..interpreter import with_axis_at
from .capacities import Capacities
from .operation import FLAT, layout, place

__all__ = ["leading", "of_batch", "with_added_axes"]


def with_added_axes(x: Value, t: Aval, caps: Capacities) -> tuple[Any, Aval] | None:
    """Return the rows `x` of elements of type `t`, and their type with the axes that were added in
    front; None if `x` has not the shape of such rows."""
    how = place(t, caps, False)
    want = layout(t, caps, how).shape
    have = getattr(x, "shape", None)
    if have is None or have[len(have) - len(want) :] != want:
        return None
    added = have[: len(have) - len(want)]
    if not added:
        return x, t
    if how != FLAT:  # the axis of elements, or of tiles, is the first of all
        x = with_axis_at(as_value(x), len(added), 0)
    return x, t.with_shape((*added, *t.shape))


def leading(lengths: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the axes of a stack of batches; none for one batch."""
    return tuple(getattr(lengths[0], "shape", (0,)))[:-1] if lengths else ()


def of_batch(p: Any, i: Any) -> Any:
    """Return batch number `i` of a stack, or several of them."""
    return map_tree(lambda x: x[i], p)
