"""Batching of callbacks and foreign calls: one call per element in order, or one call for all
elements if the function allows it.  Checks run for all elements at once.

Invariant: no call is lost or doubled; a foreign function that declares no method is not mapped.
"""

from plait.ext.errors import MissingRule
from plait.ext.ops.callbacks import foreign, host
from plait.ext.ops.checks import check_p
from plait.ext.ops.shape import reshape

from ..interpreter import batching_rules


@batching_rules.rule(host)
def _(batch, xs, dims, *, outs, whole, **params):
    if not whole:
        return batch.each(host, xs, dims, dict(params, outs=outs, whole=whole))
    grown = tuple([o.with_shape((batch.size, *o.shape)) for o in outs])
    single = lambda x: reshape(x, (1, *x.aval.shape))  # noqa: E731
    stacked = [
        single(x) if d is None and whole == "expand_dims" else batch.front(x, d)
        for x, d in zip(xs, dims)
    ]
    return host.bind(*stacked, outs=grown, whole=whole, **params), [0] * len(outs)


@batching_rules.rule(check_p)
def _(batch, xs, dims, **params):
    return check_p.bind(*map(batch.front, xs, dims), **params), []


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
