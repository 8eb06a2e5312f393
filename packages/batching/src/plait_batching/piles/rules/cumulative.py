"""Cumulative operations.

Invariant: the result of an example depends on its own rows only.
"""

from typing import Any

from plait.ext.rules import Cumulative
from plait.ext.sizes import Dim

from ..carrier import Ragged, pile_rules
from ..operation import FLAT
from ..row_access import rows_at
from ..segmented import segmented

__all__: list[str] = []


@pile_rules.rule(Cumulative)
def _(prim, r: Ragged, args, out, *, axis, reverse: bool):
    how = r.like(args, out)
    params = {"axis": axis, "reverse": reverse}
    if how != FLAT:
        return r.by_padding(prim, args, out, params)
    xs = [r.data(a, FLAT) for a in args]
    if axis not in r.axes(out):
        return r.result(out, prim.bind(*xs, **params), FLAT)
    new = _first_rows(r, out.shape[axis], reverse)
    return r.result(out, segmented.bind(new, *xs, of=prim, **params), FLAT)


def _first_rows(r: Ragged, d: Dim, reverse: bool) -> Any:
    """Return which rows come first in their example, in the direction of the operation."""
    t = r.rows(d)
    return t.position == (rows_at(t.lengths, t.owner) - 1 if reverse else 0)
