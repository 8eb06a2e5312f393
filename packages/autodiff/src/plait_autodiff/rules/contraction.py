"""Derivatives of contractions.

Invariant: a contraction is bilinear; its transpose in one operand contracts the cotangent with the
other operand, over the axes that only the other operand has.
"""

from typing import Any

from plait.ext.ir import Primitive
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.elementwise import add
from plait.ext.ops.shape import convert_together, transpose
from plait.ext.trace import Value
from plait.ext.types import Aval

from ..forward import ZERO, jvp_rules
from ..transpose import Linear, is_linear, transpose_rules


@jvp_rules.rule(dot_general)
def _(xs: list[Value], ts: list[Any], /, **params: object):
    return bilinear(dot_general, xs, ts, params)


def bilinear(
    prim: Primitive, xs: list[Value], ts: list[Any], params: dict[str, Any]
) -> tuple[Any, ...]:
    """Apply the product rule; return (result, tangent)."""
    (x, y), (t, u) = xs, ts
    out = prim.bind(x, y, **params)
    if not out.aval.inexact:
        return out, ZERO
    left = ZERO if t is ZERO else prim.bind(t, y, **params)
    right = ZERO if u is ZERO else prim.bind(x, u, **params)
    if left is ZERO or right is ZERO:
        return out, left if right is ZERO else right
    return out, add.bind(left, right)


@transpose_rules.rule(dot_general)
def _(
    ct: Value,
    x: Value | Linear,
    y: Value | Linear,
    *,
    contract: tuple[tuple[Any, ...], ...],
    shared: tuple[tuple[Any, ...], ...],
    precision: str,
    out_dtype: object,
):
    (cx, cy), (bx, by) = contract, shared
    if is_linear(x):
        return _back(ct, x.aval, y, (cx, cy), (bx, by), True, precision), None
    return None, _back(ct, y.aval, x, (cy, cx), (by, bx), False, precision)


def _back(
    ct: Value,
    want: Aval,
    other: Any,
    contract: tuple[tuple[Any, ...], ...],
    shared: tuple[tuple[Any, ...], ...],
    first: bool,
    precision: str,
) -> Any:
    """Return the cotangent of an operand of type `want`; `first` if it was the first operand."""
    (mine, its), (my_shared, its_shared) = contract, shared
    own = [i for i in range(want.ndim) if i not in mine and i not in my_shared]
    of_other = [i for i in range(other.aval.ndim) if i not in its and i not in its_shared]
    lead = len(my_shared)
    at = lead + (len(own) if first else 0)
    g, other = convert_together([ct, other], strict=False)
    meet = tuple(range(at, at + len(of_other))), tuple(of_other)
    pairs = tuple(range(lead)), tuple(its_shared)
    # The axes of the operand in the order in which a contraction returns them: those of the first
    # factor come first.  Factors in the order that leaves nothing to transpose save a copy, and
    # a product of matrices is then written as compilers know it.
    rest = sorted(mine, key=lambda a: its[mine.index(a)])
    straight, turned = [*my_shared, *own, *rest], [*my_shared, *rest, *own]
    if turned == sorted(turned) and straight != turned:
        factors, meet, pairs, order = (other, g), meet[::-1], pairs[::-1], turned
    else:
        factors, order = (g, other), straight
    out = dot_general.bind(
        *factors, contract=meet, shared=pairs, precision=precision, out_dtype=want.dtype
    )
    return transpose(out, tuple(sorted(range(want.ndim), key=order.__getitem__)))
