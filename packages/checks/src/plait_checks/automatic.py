"""Automatic checks: nans, divisors, indices.

Invariant: a check reads only the operands and results of an operation, and changes neither.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.dtypes import iinfo
from plait.ext import Indexing, Structural
from plait.ext.ir import Primitive
from plait.ext.ops import indexing as ix
from plait.ext.ops.elementwise import div, select, stop
from plait.ext.ops.shape import convert_, size_value
from plait.ext.sizes import is_symbolic
from plait.numpy import argmin, asarray, isnan, reshape, stack

from .errors import DivisionByZeroError, NaNError, OutOfBoundsError, Place
from .findings import Findings

__all__ = ["look_at"]

_MOVES = {select, convert_, stop}
"""Operations that return a nan only where an operand has it, besides those with such traits."""


def look_at(
    findings: Findings,
    prim: Primitive,
    args: Sequence[Any],
    outs: Sequence[Any],
    params: object,
    where: object,
) -> None:
    """Report errors in the operands and results of an operation."""
    if OutOfBoundsError in findings.kinds and prim in _WINDOWS:
        _indices(findings, prim, args, _WINDOWS[prim](args, params), where)
    if DivisionByZeroError in findings.kinds and prim is div:
        text = _said(f"division by zero in {prim}")
        findings.report((args[1] != 0).all(), Place(DivisionByZeroError, text, 0, where))
    if NaNError in findings.kinds and prim not in _MOVES:
        if {Structural, Indexing}.isdisjoint(prim.traits):
            _nans(findings, prim, outs, where)


def _said(text: str) -> Callable[[Any], str]:
    return lambda payload: text


def _nans(findings: Findings, prim: Primitive, outs: Sequence[Any], where: object) -> None:
    """Report an operation that returned a nan."""
    found = [isnan(o).any() for o in outs if o.aval.inexact]
    if not found:
        return
    ok = ~found[0]
    for more in found[1:]:
        ok = ok & ~more
    findings.report(ok, Place(NaNError, _said(f"{prim} gave a nan"), 0, where))


# ---- indices -------------------------------------------------------------------------------


def _of_box(args: Sequence[Any], sizes: Sequence[Any], first: int) -> tuple[Any, Any, Any]:
    starts = args[first:]
    if not starts:
        return None, (), ()
    return stack(list(starts)), tuple(range(len(starts))), sizes


def _of_gather(args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any, Any]:
    return args[1], params["dimension_numbers"].start_index_map, params["slice_sizes"]


def _of_scatter(args: Sequence[Any], params: Any) -> tuple[Any, Any, Any]:
    x, indices, updates = args
    numbers = params["dimension_numbers"]
    sizes = ix.window_sizes(x.aval, updates.aval, numbers)
    return indices, numbers.scatter_dims_to_operand_dims, sizes


_WINDOWS: dict[Any, Callable[[Sequence[Any], Any], tuple[Any, Any, Any]]] = {
    ix.dynamic_slice_: lambda args, params: _of_box(args, params["sizes"], 1),
    ix.dynamic_update_slice_: lambda args, params: _of_box(args, args[1].aval.shape, 2),
    ix.gather_: _of_gather,
    **dict.fromkeys(ix.SCATTER.values(), _of_scatter),
}
"""Functions that return (positions, axes, sizes) of an operation's windows.

The last axis of the positions has a component for each of the axes; the sizes are along all axes.
"""


def _indices(
    findings: Findings,
    prim: Primitive,
    args: Sequence[Any],
    windows: tuple[Any, Any, Any],
    where: object,
) -> None:
    """Report a window that is not inside its array."""
    indices, axes, sizes = windows
    if not axes or any(d.__class__ is int and d == 0 for d in indices.aval.shape):
        return
    shape, k = args[0].aval.shape, len(axes)
    flat = reshape(indices, (-1, k))
    ok = (flat >= 0) & (flat <= _room(shape, axes, sizes, flat.aval.dtype))
    at = argmin(reshape(ok, (-1,)))

    def text(payload: Sequence[Any]) -> str:
        axis = axes[int(payload[1])]
        what = "index" if sizes[axis] == 1 else f"a window of size {sizes[axis]} at index"
        return (
            f"{prim}: {what} {int(payload[0])} is out of bounds for axis {axis} of an array of "
            f"shape {shape}"
        )

    place = Place(OutOfBoundsError, text, 2, where)
    findings.report(ok.all(), place, [reshape(flat, (-1,))[at], at % k])


def _room(shape: Sequence[Any], axes: Sequence[int], sizes: Sequence[Any], dtype: np.dtype) -> Any:
    """Return the greatest positions along these axes, in the dtype of indices."""
    room = [shape[a] - sizes[a] for a in axes]
    if is_symbolic(room):
        return stack([size_value(r, dtype) for r in room])
    top = int(iinfo(dtype).max)
    return asarray(np.array([min(r, top) for r in room], dtype))
