"""The greatest elements as CPUs find them fast: by the greatest of blocks.

The compiler compares every element of a row with the least of those found, one after the other.
Vector operations find the greatest element of each block of neighbours instead.  Only the blocks
with the greatest of these can hold results: each of the `k` first holds one at least.  Of equal
elements the first is the result, so blocks of neighbours are needed, in the order of the row.

Invariant: results are elements of the operand and their positions, to the bit those of the
operation.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.interpreter import Value
from .._types.avals import FLOATING, INTEGER, Aval
from .._xla.cpu_forms import cpu_limit
from .elementwise import add, mul
from .reduction import max_
from .shape import broadcast_to, concatenate, expand_dims, iota, reshape, slice_in_dim
from .sorting import sort_, top_k_
from .taking import take_along_axis

BLOCK = cpu_limit(
    "top_k.block",
    32,
    "Elements of a block of neighbours.",
    least=1,
)
FEWEST = cpu_limit("top_k.fewest", 512, "The size of rows from which blocks pay.")
LEAST_LEFT_OUT = cpu_limit(
    "top_k.least_left_out",
    4,
    "The least ratio of the elements of a row to those of the blocks that are searched.",
)


def form_of(avals: Sequence[Aval], *, k: int) -> Callable | None:
    """Return the form of `top_k`; None if rows are short, or most blocks hold a result."""
    (x,) = avals
    if x.category not in (FLOATING, INTEGER) or not all(d.__class__ is int for d in x.shape):
        return None
    n = x.shape[-1]
    searched = k * BLOCK.value + n % BLOCK.value
    few = 0 < k * BLOCK.value * LEAST_LEFT_OUT.value <= n and searched < n
    return (lambda x: _by_blocks(x, k)) if few and n >= FEWEST.value and x.size else None


def _by_blocks(x: Value, k: int) -> list:
    lead, n, block = x.aval.shape[:-1], x.aval.shape[-1], BLOCK.value
    count = n // block
    whole = reshape(slice_in_dim(x, 0, count * block, axis=-1), (*lead, count, block))
    _, best = top_k_.bind(max_(whole, -1), k=k)
    (best,) = sort_.bind(best, axis=len(lead), num_keys=1, stable=False)
    first = broadcast_to(expand_dims(mul(best, block), len(lead) + 1), (*lead, k, block))
    places = reshape(add(first, iota(np.int32, (block,))), (*lead, k * block))
    if count * block < n:
        rest = add(iota(np.int32, (n - count * block,)), count * block)
        rest = broadcast_to(rest, (*lead, n - count * block))
        places = concatenate([places, rest], len(lead))
    _, at = top_k_.bind(_taken(x, places), k=k)
    places = _taken(places, at)
    return [_taken(x, places), places]


def _taken(x: Value, at: Value) -> Any:
    return take_along_axis(x, at, -1, mode="promise_in_bounds")
