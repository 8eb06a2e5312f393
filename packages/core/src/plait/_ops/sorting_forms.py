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
from .elementwise import add, mul
from .reduction import max_
from .shape import broadcast_to, concatenate, expand_dims, iota, reshape, slice_in_dim
from .sorting import sort_, top_k_
from .taking import take_along_axis

BLOCK = 16
"""Elements of a block: of 16 to 128, the fastest for rows of 10,000; rows of a million have about
the same time for all."""
FEWEST = 2048
"""The size of rows from which blocks pay: with 256 elements they do not."""
LEAST_LEFT_OUT = 4
"""The least ratio of the elements of a row to those of the blocks that are searched."""


def form_of(avals: Sequence[Aval], *, k: int) -> Callable | None:
    """Return the form of `top_k`; None if rows are short, or most blocks hold a result."""
    (x,) = avals
    if x.category not in (FLOATING, INTEGER) or not all(d.__class__ is int for d in x.shape):
        return None
    n = x.shape[-1]
    few = k > 0 and k * BLOCK * LEAST_LEFT_OUT <= n
    return (lambda x: _by_blocks(x, k)) if few and n >= FEWEST and x.size else None


def _by_blocks(x: Value, k: int) -> list:
    lead, n = x.aval.shape[:-1], x.aval.shape[-1]
    count = n // BLOCK
    whole = reshape(slice_in_dim(x, 0, count * BLOCK, axis=-1), (*lead, count, BLOCK))
    _, best = top_k_.bind(max_(whole, -1), k=k)
    (best,) = sort_.bind(best, axis=len(lead), num_keys=1, stable=False)
    first = broadcast_to(expand_dims(mul(best, BLOCK), len(lead) + 1), (*lead, k, BLOCK))
    places = reshape(add(first, iota(np.int32, (BLOCK,))), (*lead, k * BLOCK))
    if count * BLOCK < n:
        rest = add(iota(np.int32, (n - count * BLOCK,)), count * BLOCK)
        rest = broadcast_to(rest, (*lead, n - count * BLOCK))
        places = concatenate([places, rest], len(lead))
    _, at = top_k_.bind(_taken(x, places), k=k)
    places = _taken(places, at)
    return [_taken(x, places), places]


def _taken(x: Value, at: Value) -> Any:
    return take_along_axis(x, at, -1, mode="promise_in_bounds")
