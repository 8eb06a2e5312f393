"""Batching of contractions: a mapped axis of both operands is an additional shared axis; of one
operand, an additional free axis.

Invariant: the mapped axis of a result is where the type rule of dot_general puts that axis.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.ops.contraction import dot_general
from plait.ext.trace import Carrier, Value

from ..interpreter import batching_rules, skip


@batching_rules.rule(dot_general)
def _(
    batch: Carrier,
    xs: Sequence[Value],
    dims: Sequence[None | int],
    /,
    *,
    contract: tuple[tuple[Any, ...], ...],
    shared: tuple[tuple[Any, ...], ...],
    **params: object,
):
    (x, y), (d, e) = xs, dims
    (cx, cy), (bx, by) = contract, shared
    if d is not None:
        cx, bx = skip(cx, d), skip(bx, d)
    if e is not None:
        cy, by = skip(cy, e), skip(by, e)
    if d is not None and e is not None:
        bx, by, at = (d, *bx), (e, *by), 0
    elif d is not None:
        at = len(bx) + _own(d, cx, bx)
    else:
        at = x.aval.ndim - len(cx) + _own(e, cy, by)
    return dot_general.bind(x, y, contract=(cx, cy), shared=(bx, by), **params), at


def _own(d: Any, contract: tuple, shared: tuple) -> int:
    """Return how many free axes of an operand come before axis `d`."""
    return d - sum(a < d for a in (*contract, *shared))
