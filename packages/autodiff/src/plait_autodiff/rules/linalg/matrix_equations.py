"""Derivatives of the solutions of Sylvester's equation and of square roots of matrices.

Source: Higham 2008, "Functions of matrices", chapter 6.

Invariant: every tangent solves a Sylvester equation, whose transpose is the equation with
transposed matrices; Schur forms are never differentiated.
"""

from plait.ext.ops.elementwise import neg, sub
from plait.ext.ops.shape import convert
from plait.ext.trace import Value
from plait_numpy.ext.linalg import nothing, sqrtm_, sylvester, times, transposed

from ...forward import ZERO, jvp_rules
from ...transpose import is_linear, transpose_rules


@jvp_rules.rule(sylvester)
def _(xs: list[Value], ts: list[Value]):
    """Solve a dx + dx b = dc - da x - x db."""
    (a, b, c), (da, db, dc) = xs, ts
    x = sylvester.bind(a, b, c)
    if nothing(c.aval):
        return x, ZERO
    terms = [] if da is ZERO else [times(da, x)]
    terms += [] if db is ZERO else [times(x, db)]
    right = dc
    for term in terms:
        right = neg.bind(term) if right is ZERO else sub.bind(right, term)
    return x, ZERO if right is ZERO else sylvester.bind(a, b, right)


@transpose_rules.rule(sylvester)
def _(ct: Value, a, b, c):
    if not is_linear(c) or is_linear(a) or is_linear(b):
        return None, None, None
    return None, None, sylvester.bind(transposed(a), transposed(b), ct)


@jvp_rules.rule(sqrtm_)
def _(xs: list[Value], ts: list[Value]):
    """Solve root d + d root = dx, which follows from root @ root = x."""
    (x,), (t,) = xs, ts
    root = sqrtm_.bind(x)
    if nothing(x.aval):
        return root, ZERO
    return root, sylvester.bind(root, root, convert(t, root.aval.dtype))
