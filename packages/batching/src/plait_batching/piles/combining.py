"""Piles in functions of all leaves of trees, such as steps of optimisers and norms of gradients.

Invariant: such a function changes rows and not lengths; one that reduces rows, or combines leaves,
meets neither lengths nor rows that are hidden.
"""

from collections.abc import Callable, Sequence
from typing import Any

import plait.numpy as pnp
from plait.ext.errors import ShapeError
from plait.ext.trace import Tracer
from plait.ext.tree import guard
from plait.ext.types import Aval

from ..api import vmap
from .added_axes import leading, of_batch, with_added_axes
from .axis import pile_axis
from .elements import piles_in, shown
from .frames import inner_lengths
from .guarding import expect_equal, is_passive
from .on_host import is_on_host
from .operation import FLAT, place
from .pile import Pile, again


def lengths_among(static: Any, count: int) -> list[int]:
    """Return the numbers of the children that are lengths, of this pile or of its elements."""
    types, _, tree, _ = static
    return [*inner_lengths(tree), *range(len(types), count)]


def _seen(
    static: Any, trees: Sequence[Sequence[Any]], results: Sequence[Any] | None
) -> Callable[[Callable[..., Any], int], Any] | None:
    """Return how a function meets the rows of each leaf; None if `results` are rows, too."""
    piles = [again(static, children) for children in trees]
    first = piles[0]
    if piles_in(first._tree) or any(leading(p._lengths) for p in piles):
        return None
    caps, rows = first._caps(), first._leaves if results is None else results
    are_rows = [with_added_axes(y, t, caps) is not None for y, t in zip(rows, first._types)]
    if all(are_rows) if results is not None else not all(are_rows):
        return None
    return lambda f, k: _of_rows(f, [(p, *p._columns()[k]) for p in piles])


def _of_rows(f: Callable[..., Any], columns: Sequence[tuple[Pile, Any, Aval]]) -> Any:
    """Return a function of the rows of all elements, without those that are hidden.

    If their number is not known, they are the rows of the one element of a pile, over which the
    function is mapped."""
    xs = [p._rows(x, t) for p, x, t in columns]
    p, _, t = columns[0]
    axes = p._axes(t)
    if is_on_host(*p._lengths):
        return f(*xs)
    if len(axes) != 1 or place(t, p._caps(), False) != FLAT:
        if not axes or not any(isinstance(n, Tracer) for n in p._lengths):
            return f(*xs)
        raise ShapeError(
            f"a function of all rows of {shown(p)} would meet places without rows, since lengths "
            "are traced and several axes differ between elements",
            fix="map it over the elements, plait.vmap(f, plait.pile_axis)(p), and combine results",
        )
    (axis,) = axes
    lengths = p._ragged().lengths(t.shape[axis])
    if not isinstance(lengths, Tracer):
        return f(*xs)
    there = xs[0].aval.shape[axis]
    one = Pile(tuple(xs), pnp.sum(lengths, keepdims=True), axis, capacity=(there, there))
    return of_batch(vmap(lambda ys: f(*ys), pile_axis)(one), 0)


# A step of an optimiser changes rows, but not lengths.  The norm of a gradient is that of its rows.
guard(Pile, lengths_among, expect_equal, is_passive, _seen)
