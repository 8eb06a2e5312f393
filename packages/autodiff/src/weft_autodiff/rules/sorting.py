"""Derivatives of sorting: tangents are brought into the order of the keys.

Invariant: the order is found once, on the primal side; what is linear is a gather along it, whose
places are all different.
"""

from typing import Any

from weft.ops.indexing import PROMISE, GatherDimensionNumbers, gather_
from weft.ops.reduction import dtype_for_indices
from weft.ops.shape import iota, reshape
from weft.ops.sorting import sort_, top_k_

from ..forward import ZERO, jvp_rules


def _taken(t: Any, places: Any, axis: int) -> Any:
    """Elements of `t` at places along `axis`, given for each place of the result."""
    n = t.aval.ndim
    rest = tuple([i for i in range(n) if i != axis])
    return gather_.bind(
        t,
        reshape(places, (*places.aval.shape, 1)),
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), rest, rest),
        slice_sizes=(1,) * n,
        mode=PROMISE,
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=True,
    )


def _tangents(ts: Any, places: Any, axis: int) -> list:
    nothing = any(d.__class__ is int and d == 0 for d in places.aval.shape)
    return [ZERO if t is ZERO or nothing else _taken(t, places, axis) for t in ts]


@jvp_rules.rule(sort_)
def _(xs, ts, *, axis, **params):
    shape = xs[0].aval.shape
    places = iota(dtype_for_indices(shape[axis]), shape, axis)
    *outs, places = sort_.bind(*xs, places, axis=axis, **params)
    return outs, _tangents(ts, places, axis)


@jvp_rules.rule(top_k_)
def _(xs, ts, *, k):
    values, places = top_k_.bind(*xs, k=k)
    (t,) = _tangents(ts, places, values.aval.ndim - 1)
    return [values, places], [t, ZERO]
