"""Batching of callbacks: one call per element in order, or one call for all elements if the
function allows it.  Checks run for all elements at once.

Invariant: no call is lost or doubled.
"""

from plait.ext.ops.callbacks import host
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
