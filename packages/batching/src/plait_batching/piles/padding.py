"""The values that padding must hold before a primitive reads across it.

A rule returns, for each operand, the axes that the primitive reads across, and the neutral element
along each.  If padding holds that element, the result at capacity contains the result of the rows
alone, unchanged and at the same positions.

Invariant: this is the only table of neutral elements, for padded piles and for masks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.ops import reduction
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.convolution import conv_general
from plait.ext.ops.cumulative import cumlogsumexp_, cummax_, cummin_, cumprod_, cumsum_, recurrence
from plait.ext.ops.sorting import top_k_
from plait.ext.rules import RuleTable
from plait.ext.types import BOOL, Aval

__all__ = ["all_ones", "padding_rules"]

padding_rules = RuleTable(
    "padding",
    signature="(avals, **params)",
    doc="for each operand {axis: value}: the axes that the primitive crosses, and what padding "
    "along them must be.",
)

Fills = list[dict[int, Any]]


def all_ones(dtype: np.dtype) -> Any:
    """Return the neutral element of bitwise and logical `and`."""
    return True if dtype == BOOL else (-1 if dtype.kind == "i" else int(np.iinfo(dtype).max))


def _reduction(prim: Primitive, neutral: Callable[..., Any]) -> None:
    @padding_rules.rule(prim)
    def _(avals: list[Aval], *, axes: tuple[int, ...]) -> Fills:
        fill = neutral(avals[0].dtype)
        return [dict.fromkeys(axes, fill)]


def _cumulative(prim: Primitive, *neutrals: Callable[..., Any]) -> None:
    @padding_rules.rule(prim)
    def _(avals: list[Aval], *, axis, reverse) -> Fills:
        # Forwards, padding comes after all rows, so only results in the padding read it.
        return [{axis: n(a.dtype)} if reverse else {} for n, a in zip(neutrals, avals)]


def _zero(dtype: np.dtype) -> Any:
    return 0


def _one(dtype: np.dtype) -> Any:
    return 1


for _prim, _neutral in (
    (reduction.reduce_sum, _zero),
    (reduction.reduce_prod, _one),
    (reduction.reduce_max, reduction.lowest),
    (reduction.reduce_min, reduction.highest),
    (reduction.reduce_and, all_ones),
    (reduction.reduce_or, _zero),
    (reduction.reduce_xor, _zero),
):
    _reduction(_prim, _neutral)

_cumulative(cumsum_, _zero)
_cumulative(cumprod_, _one)
_cumulative(cummax_, reduction.lowest)
_cumulative(cummin_, reduction.highest)
_cumulative(cumlogsumexp_, reduction.lowest)
_cumulative(recurrence, _one, _zero)


@padding_rules.rule(reduction.argmax_)
def _(avals: list[Aval], *, axis, index_dtype: object) -> Fills:
    # Of several equal elements the first is taken, which is never padding.
    return [{axis: reduction.lowest(avals[0].dtype)}]


@padding_rules.rule(reduction.argmin_)
def _(avals: list[Aval], *, axis: int, index_dtype: object) -> Fills:
    return [{axis: reduction.highest(avals[0].dtype)}]


@padding_rules.rule(top_k_)
def _(avals: list[Aval], *, k: object) -> Fills:
    return [{avals[0].ndim - 1: reduction.lowest(avals[0].dtype)}]


@padding_rules.rule(dot_general)
def _(
    avals: list[Aval],
    *,
    contract: tuple[tuple[Any, ...], ...],
    shared: tuple[tuple[Any, ...], ...],
    precision: str,
    out_dtype: np.dtype,
) -> Fills:
    # Both sides must be zero, since zero times an undefined value may be nan.
    return [dict.fromkeys(axes, 0) for axes in contract]


@padding_rules.rule(conv_general)
def _(avals: object, *, dims, **how: object) -> Fills:
    x, y = dims.lhs_spec, dims.rhs_spec
    return [dict.fromkeys(x[1:], 0), dict.fromkeys(y[1:], 0)]
