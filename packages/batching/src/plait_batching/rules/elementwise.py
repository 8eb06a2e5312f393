"""Batching of elementwise primitives, by their trait.

Invariant: operands that vary come to one position of the mapped axis, one that some of them have it
at, and the others are given that axis.
"""

from plait.ext.rules import Elementwise

from ..interpreter import batching_rules


@batching_rules.rule(Elementwise)
def _(prim, batch, xs, dims, **params):
    if len(xs) == 1:
        out = prim.bind(*xs, **params)
        return (out, [dims[0]] * len(out)) if prim.many else (out, dims[0])
    # the foremost position: what is moved there once meets others that are there already
    to = min(d for d in dims if d is not None)
    moved = [x if d == to else batch.move(x, d, to) for x, d in zip(xs, dims)]
    out = prim.bind(*moved, **params)
    return (out, [to] * len(out)) if prim.many else (out, to)
