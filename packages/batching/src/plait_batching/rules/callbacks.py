"""Batching of callbacks and foreign calls: one call per element in order, or one call for all
elements if the function allows it.  Checks run for all elements at once.

Invariant: no call is lost or doubled; a foreign function that declares no method is not mapped.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.ext.errors import MissingRule
from plait.ext.ops.callbacks import exact, foreign, host
from plait.ext.ops.checks import check_p
from plait.ext.ops.shape import reshape
from plait.ext.trace import Value
from plait.ext.types import Aval

from ..interpreter import Batch, batching_rules


@batching_rules.rule(host)
def _(
    batch: Batch,
    xs: Sequence[Value],
    dims: list[int],
    /,
    *,
    outs: tuple[Aval, ...],
    whole: str,
    **params,
):
    if not whole:
        return batch.each(host, xs, dims, dict(params, outs=outs, whole=whole))
    grown = tuple([o.with_shape((batch.size, *o.shape)) for o in outs])
    if batch.present is not None:
        own = [d is not None or whole == "broadcast_all" for d in dims]
        xs, dims = [batch.present, *xs], [0, *dims]
        params["f"] = _OfThose(params["f"], outs, own)
    unmapped: dict[str, Callable[[Value], Value]] = {
        "broadcast_all": lambda x: batch.front(x, None),
        "expand_dims": lambda x: reshape(x, (1, *x.aval.shape)),
        "legacy_vectorized": lambda x: x,
    }
    stacked = [unmapped[whole](x) if d is None else batch.front(x, d) for x, d in zip(xs, dims)]
    return host.bind(*stacked, outs=grown, whole=whole, **params), [0] * len(outs)


class _OfThose:
    """Callback for stacks with missing elements; `f` is given the others.

    Args:
      f: the function of stacks.
      outs: types of the results for one element.
      own: which operands are stacks of all elements.
    """

    def __init__(self, f: Callable[..., Any], outs: Sequence[Aval], own: Sequence[bool]):
        self.f, self.outs, self.own = f, outs, own

    def __call__(self, there: np.ndarray, *xs: np.ndarray) -> tuple:
        given = [x[there] if own else x for x, own in zip(xs, self.own, strict=True)]
        types = tuple([o.with_shape((int(there.sum()), *o.shape)) for o in self.outs])
        every = [np.zeros((len(there), *o.shape), o.dtype) for o in self.outs]
        for y, part in zip(every, exact(self.f, types)(*given), strict=True):
            y[there] = part
        return tuple(every)


@batching_rules.rule(check_p)
def _(batch: Batch, xs: Sequence[Value], dims: list[int], /, **params: object):
    ok, *payload = map(batch.front, xs, dims)
    ok, _ = batch.of_elements(ok, 0, True)
    return check_p.bind(ok, *payload, **params), []


@batching_rules.rule(foreign)
def _(
    batch: Batch,
    xs: Sequence[Value],
    dims: list[int],
    /,
    *,
    outs: tuple[Aval, ...],
    vmap_method: str,
    in_layouts: tuple[tuple[Any, ...], ...],
    out_layouts: tuple[tuple[Any, ...], ...],
    **params: object,
):
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
