"""Batching of elementwise primitives, by their trait, and of bitcasts.

Invariant: all operands that vary are moved to one position of the mapped axis, which some of them
have already; the others are broadcast along that axis.  The last axis, which a bitcast may add or
remove, is never the mapped one.
"""

from collections.abc import Sequence

from plait.ext.ir import Primitive
from plait.ext.ops.elementwise import bitcast_
from plait.ext.rules import Elementwise
from plait.ext.trace import Value

from ..interpreter import Batch, batching_rules


@batching_rules.rule(Elementwise)
def _(
    prim: Primitive, batch: Batch, xs: Sequence[Value], dims: Sequence[None | int], /, **params: int
):
    if len(xs) == 1:
        out = prim.bind(*xs, **params)
        return (out, [dims[0]] * len(out)) if prim.many else (out, dims[0])
    # The foremost position: an operand moved there often meets later ones that are there already.
    to = min(d for d in dims if d is not None)
    moved = [x if d == to else batch.move(x, d, to) for x, d in zip(xs, dims)]
    out = prim.bind(*moved, **params)
    return (out, [to] * len(out)) if prim.many else (out, to)


@batching_rules.rule(bitcast_)
def _(batch: Batch, xs: Sequence[Value], dims: list[int], *, dtype: object):
    return bitcast_.bind(batch.front(xs[0], dims[0]), dtype=dtype), 0
