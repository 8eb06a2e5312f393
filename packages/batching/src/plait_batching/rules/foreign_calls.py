"""Batching of foreign calls, by the method that each call declares.

Invariant: a function that declares no method is not mapped.
"""

from plait.ext.errors import MissingRule
from plait.ext.ops.callbacks import foreign
from plait.ext.ops.shape import reshape

from ..interpreter import batching_rules


@batching_rules.rule(foreign)
def _(batch, xs, dims, *, outs, vmap_method, in_layouts, out_layouts, **params):
    if vmap_method is None:
        raise MissingRule(
            f"the foreign function {params['target']!r} does not say how it can be mapped",
            fix='say it with ffi_call(..., vmap_method="sequential"), or how it is if it can take '
            "all at once",
        )
    if vmap_method.startswith("sequential"):
        same = dict(vmap_method=vmap_method, in_layouts=in_layouts, out_layouts=out_layouts)
        return batch.each(foreign, xs, dims, dict(params, outs=outs, **same))
    stacked = [
        reshape(x, (1, *x.aval.shape))
        if d is None and vmap_method == "expand_dims"
        else batch.front(x, d)
        for x, d in zip(xs, dims)
    ]
    out = foreign.bind(
        *stacked,
        outs=tuple([o.with_shape((batch.size, *o.shape)) for o in outs]),
        vmap_method=vmap_method,
        in_layouts=tuple([(0, *[i + 1 for i in order]) for order in in_layouts]),
        out_layouts=tuple([(0, *[i + 1 for i in order]) for order in out_layouts]),
        **params,
    )
    return out, [0] * len(outs)
