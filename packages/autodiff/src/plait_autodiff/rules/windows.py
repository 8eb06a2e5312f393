"""Derivatives of select-and-scatter-add: sums over the windows that chose an element.

Invariant: the choice has no derivative.  So the result is linear in the source, and the transpose
reads the cotangent at the chosen positions.
"""

from plait.ext.ops.windows import chosen_from, select_and_scatter_add_
from plait.ext.trace import Value

from ..forward import ZERO, jvp_rules
from ..transpose import transpose_rules


@jvp_rules.rule(select_and_scatter_add_)
def _(xs: list[Value], ts, /, **params: object):
    out = select_and_scatter_add_.bind(*xs, **params)
    if ts[0] is ZERO:
        return out, ZERO
    return out, select_and_scatter_add_.bind(ts[0], xs[1], **params)


@transpose_rules.rule(select_and_scatter_add_)
def _(ct: Value, source: object, x, /, *, select, **params):
    return chosen_from(ct, x, select_=select, **params), None
