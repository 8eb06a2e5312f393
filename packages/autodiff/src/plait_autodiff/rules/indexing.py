"""Derivatives of gather, whose transpose is scatter-add, and of dynamic slices.

Invariant: the operations are linear in the elements.  Positions have no derivatives.  A window of a
gather that lies outside reads a zero tangent and drops its cotangent.
"""

from typing import Any

from plait.ext.ops import indexing as ix
from plait.ext.sizes import Dim
from plait.ext.trace import Value
from plait.ext.values import Literal

from ..forward import instantiate, jvp_rules
from ..transpose import Linear, is_linear, transpose_rules


@jvp_rules.rule(ix.gather_)
def _(xs: list[Value], ts: list[Any], *, mode: str, fill_value: float | None, **how: object):
    x, indices = xs
    out = ix.gather_.bind(x, indices, mode=mode, fill_value=fill_value, **how)
    return out, ix.gather_.bind(ts[0], indices, mode=mode, fill_value=0, **how)


@transpose_rules.rule(ix.gather_)
def _(
    ct: Value,
    x: Linear,
    indices: Value,
    *,
    dimension_numbers,
    slice_sizes: tuple[int, ...],
    mode: str,
    fill_value: int | None,
    indices_are_sorted: bool,
    unique_indices: bool,
):
    dx = ix.scatter_add_.bind(
        Literal(0, x.aval),
        indices,
        ct,
        dimension_numbers=ix.as_scatter(dimension_numbers),
        mode=mode,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
    )
    return dx, None


@jvp_rules.rule(ix.dynamic_slice_)
def _(xs: list[Value], ts: list[Any], *, sizes: tuple[int | Dim, ...]):
    x, *starts = xs
    return ix.dynamic_slice_.bind(x, *starts, sizes=sizes), ix.dynamic_slice_.bind(
        ts[0], *starts, sizes=sizes
    )


@transpose_rules.rule(ix.dynamic_slice_)
def _(ct: Value, x: Linear, *starts: Value, sizes: tuple[int | Dim, ...]):
    dx = ix.dynamic_update_slice_.bind(Literal(0, x.aval), ct, *starts)
    return dx, *[None] * len(starts)


@jvp_rules.rule(ix.dynamic_update_slice_)
def _(xs: list[Value], ts: list[Any]):
    x, box, *starts = xs
    t, u = instantiate(ts[0], x), instantiate(ts[1], box)
    return ix.dynamic_update_slice_.bind(*xs), ix.dynamic_update_slice_.bind(t, u, *starts)


@transpose_rules.rule(ix.dynamic_update_slice_)
def _(ct: Value, x: Linear, box: Linear, *starts: Value):
    dx = du = None
    if is_linear(x):
        dx = ix.dynamic_update_slice_.bind(ct, Literal(0, box.aval), *starts)
    if is_linear(box):
        du = ix.dynamic_slice_.bind(ct, *starts, sizes=box.aval.shape)
    return dx, du, *[None] * len(starts)
