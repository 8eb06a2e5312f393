"""Derivatives of reading and writing dynamic slices.

Invariant: the operations are linear in the elements.  Positions have no derivatives and stay as
they are.
"""

from plait.ext.ops.indexing import dynamic_slice_, dynamic_update_slice_
from plait.ext.values import Literal

from ..forward import instantiate, jvp_rules
from ..transpose import is_linear, transpose_rules


@jvp_rules.rule(dynamic_slice_)
def _(xs, ts, *, sizes):
    x, *starts = xs
    return dynamic_slice_.bind(x, *starts, sizes=sizes), dynamic_slice_.bind(
        ts[0], *starts, sizes=sizes
    )


@transpose_rules.rule(dynamic_slice_)
def _(ct, x, *starts, sizes):
    dx = dynamic_update_slice_.bind(Literal(0, x.aval), ct, *starts)
    return dx, *[None] * len(starts)


@jvp_rules.rule(dynamic_update_slice_)
def _(xs, ts):
    x, box, *starts = xs
    t, u = instantiate(ts[0], x), instantiate(ts[1], box)
    return dynamic_update_slice_.bind(*xs), dynamic_update_slice_.bind(t, u, *starts)


@transpose_rules.rule(dynamic_update_slice_)
def _(ct, x, box, *starts):
    dx = du = None
    if is_linear(x):
        dx = dynamic_update_slice_.bind(ct, Literal(0, box.aval), *starts)
    if is_linear(box):
        du = dynamic_slice_.bind(ct, *starts, sizes=box.aval.shape)
    return dx, du, *[None] * len(starts)
