"""Derivatives of collectives.

Invariant: an operand differs from position to position, and so does its cotangent: a sum for all
positions is its own transpose.  Where types list the axes along which values vary, the sum does
not vary, and its cotangent is the cotangent of every operand unchanged.
"""

from typing import Any

from plait.ext.ir import Primitive
from plait.ext.ops import collective
from plait.ext.ops.elementwise import div, eq, mul, once, select
from plait.ext.trace import Value
from plait.ext.values import Literal

from ..forward import ZERO, jvp_rules
from ..transpose import Linear, transpose_rules


@jvp_rules.rule(collective.axis_index_)
def _(xs: list[Value], ts: object, *, name):
    return collective.axis_index_.bind(name=name), ZERO


def _extreme(prim: Primitive):
    @jvp_rules.rule(prim)
    def _(xs: list[Value], ts: list[Value], **who: object):
        """Share the derivative equally among the positions that have the extreme value."""
        x = once.bind(*xs)
        out = prim.bind(x, **who)
        here = select.bind(eq.bind(x, out), Literal(1, x.aval), Literal(0, x.aval))
        count = collective.psum_.bind(here, **who)
        return out, div.bind(collective.psum_.bind(mul.bind(ts[0], here), **who), count)


_extreme(collective.pmax_)
_extreme(collective.pmin_)


@transpose_rules.rule(collective.psum_)
def _(ct: Value, x: Linear, *, axes: tuple[str, ...], **who: tuple[Any, ...]):
    if not who.get("groups"):
        axes = tuple([n for n in axes if n not in x.aval.vma])
    return (collective.psum_.bind(ct, axes=axes, **who) if axes else ct,)


@transpose_rules.rule(collective.pvary_)
def _(ct: Value, x: object, *, axes: object):
    return (ct,)


@transpose_rules.rule(collective.all_gather_)
def _(ct: Value, x: Linear, /, **params: object):
    return (collective.psum_scatter_.bind(ct, **params),)


@transpose_rules.rule(collective.psum_scatter_)
def _(ct: Value, x: object, /, **params: object):
    return (collective.all_gather_.bind(ct, **params),)


@transpose_rules.rule(collective.ppermute_)
def _(
    ct: Value,
    x: object,
    *,
    name: str | tuple[str, ...],
    perm: tuple[tuple[Any, ...], ...],
    size: int,
):
    back = tuple([(b, a) for a, b in perm])
    return (collective.ppermute_.bind(ct, name=name, perm=back, size=size),)


@transpose_rules.rule(collective.all_to_all_)
def _(ct: Value, x: Linear, *, split: int, concat: int, **who: object):
    return (collective.all_to_all_.bind(ct, split=concat, concat=split, **who),)
