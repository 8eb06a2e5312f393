"""Derivatives of convolutions.

A convolution is bilinear.  Its transpose in the input convolves the cotangent, with its elements
spread by the stride, with the reversed kernel.  Its transpose in the kernel convolves the input
with the cotangent as kernel; batch and features are exchanged.

Invariant: the padding makes the result have exactly the size of the operand.  Where batch and
features are exchanged, groups of one kind become groups of the other.
"""

from typing import Any

from plait.ext.ops.convolution import ConvDims, conv_general, dilated, moved_groups
from plait.ext.ops.shape import convert_together, rev
from plait.ext.trace import Value
from plait.ext.types import Aval
from plait.ext.values import Literal

from ..forward import jvp_rules
from ..transpose import Linear, is_linear, transpose_rules
from .contraction import bilinear


@jvp_rules.rule(conv_general)
def _(xs: list[Value], ts: list[Value], /, **params: object):
    return bilinear(conv_general, xs, ts, params)


@transpose_rules.rule(conv_general)
def _(ct: Value, x: Value | Linear, y: Value | Linear, /, **params: object):
    want = x.aval if is_linear(x) else y.aval
    back = _to_input if is_linear(x) else _to_kernel
    sizes = [*ct.aval.shape, *x.aval.shape, *y.aval.shape]
    if any(d.__class__ is int and d == 0 for d in sizes):
        got = Literal(0, want.strong())
    else:
        g, other = convert_together([ct, y if is_linear(x) else x], strict=False)
        got = back(g, other, want, params)
    return (got, None) if is_linear(x) else (None, got)


def _kept(params: dict) -> dict:
    """Return the parameters that the derivative shares with the operation."""
    return {name: params[name] for name in ("precision", "exact") if name in params}


def _to_input(g: Value, y: Value, want: Aval, params: dict) -> Any:
    dims: ConvDims = params["dims"]
    batches = params["batch_group_count"]
    groups = params["feature_group_count"] * batches
    o, i, *space = dims.rhs_spec
    y = moved_groups(y, o, i, groups)
    y = rev.bind(y, axes=tuple(sorted(space))) if space else y
    padding = []
    spatial = zip(dims.lhs_spec[2:], space, dims.out_spec[2:], params["window_strides"],
                  params["padding"], params["lhs_dilation"], params["rhs_dilation"])  # fmt: skip
    for a, b, c, stride, (low, _), dl, dr in spatial:
        window = dilated(y.aval.shape[b], dr)
        size, reach = dilated(want.shape[a], dl), dilated(g.aval.shape[c], stride)
        padding.append((window - 1 - low, size + low - reach))
    out = conv_general.bind(
        g, y,
        window_strides=params["lhs_dilation"], padding=tuple(padding),
        lhs_dilation=params["window_strides"], rhs_dilation=params["rhs_dilation"],
        dims=ConvDims(dims.out_spec, (i, o, *space), dims.lhs_spec),
        feature_group_count=groups, batch_group_count=1,
        out_dtype=want.dtype, **_kept(params),
    )  # fmt: skip
    return moved_groups(out, dims.lhs_spec[1], dims.lhs_spec[0], batches)


def _to_kernel(g: Value, x: Value, want: Aval, params: dict) -> Any:
    dims: ConvDims = params["dims"]
    exchanged = lambda axes: (axes[1], axes[0], *axes[2:])  # noqa: E731
    padding = []
    spatial = zip(dims.lhs_spec[2:], dims.rhs_spec[2:], dims.out_spec[2:], params["window_strides"],
                  params["padding"], params["lhs_dilation"], params["rhs_dilation"])  # fmt: skip
    for a, b, c, stride, (low, _), dl, dr in spatial:
        size, window = dilated(x.aval.shape[a], dl), dilated(want.shape[b], dr)
        reach = dilated(g.aval.shape[c], stride)
        padding.append((low, reach + window - 1 - size - low))
    return conv_general.bind(
        x, g,
        window_strides=params["rhs_dilation"], padding=tuple(padding),
        lhs_dilation=params["lhs_dilation"], rhs_dilation=params["window_strides"],
        dims=ConvDims(exchanged(dims.lhs_spec), exchanged(dims.out_spec), exchanged(dims.rhs_spec)),
        feature_group_count=params["batch_group_count"],
        batch_group_count=params["feature_group_count"],
        out_dtype=want.dtype, **_kept(params),
    )  # fmt: skip
