"""Derivatives of sorting: tangents are gathered in the order of the keys.

Invariant: the order is computed once, from the primals.  The linear part is a gather at distinct
positions.
"""

from typing import Any

from plait.ext.ops.indexing import taken
from plait.ext.ops.reduction import dtype_for_indices
from plait.ext.ops.shape import iota
from plait.ext.ops.sorting import sort_, top_k_
from plait.ext.trace import Value

from ..forward import ZERO, jvp_rules


def _tangents(ts: list[Any], positions: Value, axis: int) -> list:
    nothing = any(d.__class__ is int and d == 0 for d in positions.aval.shape)
    return [ZERO if t is ZERO or nothing else taken(t, positions, axis) for t in ts]


@jvp_rules.rule(sort_)
def _(xs: list[Value], ts: list[Value], /, *, axis: int, **params: object):
    shape = xs[0].aval.shape
    positions = iota(dtype_for_indices(shape[axis]), shape, axis)
    *outs, positions = sort_.bind(*xs, positions, axis=axis, **params)
    return outs, _tangents(ts, positions, axis)


@jvp_rules.rule(top_k_)
def _(xs: list[Value], ts, *, k):
    values, positions = top_k_.bind(*xs, k=k)
    (t,) = _tangents(ts, positions, values.aval.ndim - 1)
    return [values, positions], [t, ZERO]
