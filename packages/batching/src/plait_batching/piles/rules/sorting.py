"""Sorting: by example first, then by the keys.

Invariant: the example is the first key, so rows of one example never mix with those of another.
"""

from typing import Any

import plait.numpy as pnp
from plait.ext.ops.sorting import sort_, top_k_

from ..carrier import pile_rules
from ..layouts import along
from ..operation import FLAT, PADDED


@pile_rules.rule(sort_)
def _(r, args, out, *, axis, num_keys: int, stable: bool):
    how = r.like(args, *out)
    params = {"num_keys": num_keys, "stable": stable}
    ragged = axis in r.axes(out[0])
    if how == FLAT:
        xs = [r.data(x, FLAT) for x in args]
        if ragged:
            t = r.rows(out[0].shape[axis])
            xs = _with_key(pnp.broadcast_to(along(t.example, axis, xs[0].ndim), xs[0].shape), xs)
        got = _sorted(xs, axis, ragged, **params)
        return [r.result(a, y, FLAT) for a, y in zip(out, got)]
    xs = [r.data(x, PADDED) for x in args]
    if ragged:
        inside = r.rows(out[0].shape[axis]).inside
        shape = [1] * xs[0].ndim
        shape[0], shape[axis + 1] = inside.shape
        beyond = pnp.logical_not(inside).astype("int32").reshape(shape)
        xs = _with_key(pnp.broadcast_to(beyond, xs[0].shape), xs)
    got = _sorted(xs, axis + 1, ragged, **params)
    return [r.result(a, y, PADDED) for a, y in zip(out, got)]


def _with_key(key: Any, xs: list) -> list:
    return [key, *xs]


def _sorted(xs: list, axis: int, keyed: bool, num_keys: int, stable: bool) -> list:
    got = sort_.bind(*xs, axis=axis, num_keys=num_keys + keyed, stable=stable)
    return got[1:] if keyed else got


@pile_rules.rule(top_k_)
def _(r, args, out, *, k):
    (x,) = args
    if r.how(x) == FLAT and x.aval.ndim - 1 not in r.axes(x.aval):
        return [r.result(a, y, FLAT) for a, y in zip(out, top_k_.bind(r.data(x, FLAT), k=k))]
    return r.by_padding(top_k_, args, out, {"k": k})
