"""Derivatives of gather, whose transpose is scatter-add.

Invariant: gather is linear in the elements.  Positions have no derivatives.  A window outside reads
a zero tangent and drops its cotangent.
"""

from plait.ext.ops.indexing import as_scatter, gather_, scatter_add_
from plait.ext.values import Literal

from ..forward import jvp_rules
from ..transpose import transpose_rules


@jvp_rules.rule(gather_)
def _(xs, ts, *, mode, fill_value, **how):
    x, indices = xs
    out = gather_.bind(x, indices, mode=mode, fill_value=fill_value, **how)
    return out, gather_.bind(ts[0], indices, mode=mode, fill_value=0, **how)


@transpose_rules.rule(gather_)
def _(ct, x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, indices_are_sorted,
      unique_indices):  # fmt: skip
    dx = scatter_add_.bind(
        Literal(0, x.aval),
        indices,
        ct,
        dimension_numbers=as_scatter(dimension_numbers),
        mode=mode,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
    )
    return dx, None
