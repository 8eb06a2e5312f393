"""The time that a module gains where all processors share its products and convolutions.

The compiler for CPUs has two libraries for products of matrices.  Older releases prefer one that
computes convolutions, and stacks of matrices of middle size, on a single thread.  The other library
divides them among the processors.  But it takes longer to begin each matrix of a stack, and copies
the patches of a convolution run by run.  It is slow for small integers, and for convolutions in
double precision.  One library serves a whole module, so gains and losses are added.

The numbers are measured ones, for cores that do some 90 operations on float32 in a nanosecond.
Others differ, but mostly by a factor that gains and losses share.

Invariant: the gain depends on types, parameters and the number of processors alone.
"""

import math
from collections.abc import Sequence
from typing import Any

from .._base.jaxlib_api import processors
from .._types.avals import COMPLEX, FLOATING, Aval

RATE = 90.0
"""Operations on float32 in a nanosecond, by one processor."""
OF_A_MATRIX = 1000.0
"""Nanoseconds to begin a matrix of a stack."""
OF_A_RUN = 7.0
"""Nanoseconds to copy the features at one element of a patch."""
SHARED = 2.6e6, 1.6e7
"""The least and the most operations on a matrix that the second library alone divides."""
OF_SMALL_INTEGERS = 0.012
"""Nanoseconds that the second library needs more for an operation."""
OF_DOUBLE = 0.2
"""The same for a convolution in double precision."""


def of_contraction(
    x: Aval, y: Aval, contract: Sequence[Sequence[int]], shared: Sequence[Sequence[int]]
) -> float:
    """Return the nanoseconds that a contraction gains."""
    if x.category == COMPLEX or not _is_known(x, y):
        return 0.0
    count = math.prod([x.shape[a] for a in shared[0]])
    depth = math.prod([x.shape[a] for a in contract[0]])
    each = 2 * math.prod(x.shape) * math.prod(y.shape) // max(1, count * count * depth)
    if x.category != FLOATING:
        return -OF_SMALL_INTEGERS * count * each if x.dtype.itemsize == 1 else 0.0
    sums_rows = all(max(c, default=-1) == v.ndim - 2 for c, v in zip(contract, (x, y)))
    if count == 1 or sums_rows:  # the second library computes the latter in any case
        return 0.0
    least, most = SHARED
    saved = _saved(count * each, x) if least <= each <= most else 0.0
    return saved - OF_A_MATRIX * count


def of_convolution(x: Aval, y: Aval, out: Aval, dims: Any) -> float:
    """Return the nanoseconds that a convolution without groups or gaps gains, whose axes have the
    roles `dims`."""
    if x.category != FLOATING or not _is_known(x, y, out) or x.ndim != 4:
        return 0.0
    made, met = (y.shape[a] for a in dims.rhs_spec[:2])
    window = math.prod([y.shape[a] for a in dims.rhs_spec[2:]])
    operations = 2 * math.prod(out.shape) * met * window
    if x.dtype.itemsize > 4:
        return -OF_DOUBLE * operations
    runs = math.prod(out.shape) // max(1, made) * window
    return _saved(operations, x) - OF_A_RUN * runs / processors()


def _saved(operations: int, x: Aval) -> float:
    alone = operations / RATE * (2 if x.dtype.itemsize > 4 else 1)
    return alone * (1 - 1 / processors())


def _is_known(*avals: Aval) -> bool:
    return all(n.__class__ is int for a in avals for n in a.shape)
