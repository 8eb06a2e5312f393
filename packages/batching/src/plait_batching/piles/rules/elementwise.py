"""Elementwise primitives, in any layout, and sizes as values.

Invariant: no rule here reads one element to compute another, so undefined values stay in place.
"""

from typing import Any

from plait.ext.ops.elementwise import bitcast_
from plait.ext.ops.opaque import unwrap_, wrap_
from plait.ext.ops.random import random_clone
from plait.ext.ops.shape import barrier, convert_, dim_
from plait.ext.rules import Elementwise

from ..carrier import pile_rules


@pile_rules.rule(Elementwise)
def _(prim, r, args, out, /, **params):
    outs = out if prim.many else [out]
    how = r.like(args, *outs)
    got = prim.bind(*[r.data(a, how) for a in args], **params)
    if prim.many:
        return [r.result(a, y, how) for a, y in zip(out, got)]
    return r.result(out, got, how)


def _each(prim):
    @pile_rules.rule(prim)
    def _(r, args, out, /, **params):
        how = r.like(args, out)
        return r.result(out, prim.bind(r.data(args[0], how), **params), how)


for _prim in (convert_, unwrap_, wrap_, bitcast_, random_clone):
    _each(_prim)


@pile_rules.rule(barrier)
def _(r, args, out):
    hows = [r.how(a) for a in args]
    got = barrier.bind(*[r.dense(a)[0] if h is None else r.data(a, h) for a, h in zip(args, hows)])
    dims = [r.dense(a)[1] if h is None else None for a, h in zip(args, hows)]
    return [
        r.wrap(y, d) if h is None else r.result(a, y, h) for a, y, d, h in zip(out, got, dims, hows)
    ]


@pile_rules.rule(dim_)
def _(r, args: list[Any], out, *, size):
    """Return a size as an integer of each example."""
    return r.lift(out, 0, (r.lengths(size),))
