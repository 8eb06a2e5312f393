"""Batching of convolutions: the mapped axis joins the batch, the output features or the groups.

Invariant: groups are the slowest part of their axis, so an axis merged into it stands behind
them.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.ops.convolution import ConvDims, conv_general
from plait.ext.ops.shape import moveaxis, reshape
from plait.ext.trace import Value
from plait.ext.values import Literal
from plait.typing import Array

from ..interpreter import Batch, batching_rules


def _joined(x: Any, d: Any, axis: int, groups: int = 1) -> Any:
    """Merge the mapped axis into `axis` of the user's value, behind its groups."""
    x = moveaxis(x, d, axis)
    s = x.aval.shape
    before, (size, n), after = s[:axis], s[axis : axis + 2], s[axis + 2 :]
    if groups > 1:
        x = reshape(x, (*before, size, groups, n // groups, *after))
        x = moveaxis(x, axis, axis + 1)
    return reshape(x, (*before, size * n, *after))


def _parted(batch: Batch, x: Array, axis: int, groups: int = 1) -> Any:
    """Undo `_joined`: take the mapped axis out of `axis`, and put it in front of that axis."""
    s = x.aval.shape
    rest = s[axis] // batch.size // groups
    if groups == 1:
        return reshape(x, (*s[:axis], batch.size, rest, *s[axis + 1 :]))
    x = reshape(x, (*s[:axis], groups, batch.size, rest, *s[axis + 1 :]))
    x = moveaxis(x, axis + 1, axis)
    return reshape(x, (*s[:axis], batch.size, groups * rest, *s[axis + 1 :]))


@batching_rules.rule(conv_general)
def _(batch: Batch, xs: Sequence[Value], at: list[None | int], /, **params):
    if batch.size.__class__ is int and batch.size == 0:
        return _nothing(xs, at, params), 0
    (x, y), (d, e) = xs, at
    named: ConvDims = params["dims"]
    features, batches = params["feature_group_count"], params["batch_group_count"]
    if d is not None and e is not None:
        if batch.size.__class__ is not int:  # the number of groups has to be known
            return batch.each(conv_general, xs, at, params)
        # One group for each element, in front of the existing groups.
        apart = "batch_group_count" if batches > 1 else "feature_group_count"
        x = _joined(x, d, named.lhs_spec[0 if batches > 1 else 1])
        y = _joined(y, e, named.rhs_spec[0])
        params[apart] = params[apart] * batch.size
        out = conv_general.bind(x, y, **params)
        return _parted(batch, out, named.out_spec[1]), named.out_spec[1]
    if d is not None:
        x = _joined(x, d, named.lhs_spec[0], batches)
        out = conv_general.bind(x, y, **params)
        return _parted(batch, out, named.out_spec[0]), named.out_spec[0]
    groups = features * batches
    y = _joined(y, e, named.rhs_spec[0], groups)
    out = conv_general.bind(x, y, **params)
    return _parted(batch, out, named.out_spec[1], groups), named.out_spec[1]


def _nothing(xs: Any, at: list[None | int], params: dict) -> Any:
    """Return the empty result of a map over no elements."""
    inner = [
        x.aval.with_shape([n for i, n in enumerate(x.aval.shape) if i != d]) for x, d in zip(xs, at)
    ]
    out = conv_general.infer(tuple(inner), params)
    return Literal(0, out.with_shape((0, *out.shape)))
