"""Rows of integers sorted by a network of comparisons, as CPUs do it fast.

The compiler sorts row after row by comparisons that branch, and processors guess half of the
branches wrong.  A bitonic network (Batcher, "Sorting networks and their applications", 1968)
compares the same positions whatever the elements are.  So vector operations take many rows at a
time.  Each step reads rows of a transposed block, which stays in the processor's cache; it compares
over two distances at once, which halves the passes.  The loop over steps has a single body, because
the compiler takes a long time for each of the dozens of steps.

Invariant: integers are compared whole, so equal ones are interchangeable and no order is lost.
"""

from typing import Any

from .._base.config import config
from .._base.jaxlib_api import limits
from .._core.array import Literal
from .._core.interpreter import Value
from .._core.ir import Program
from .._core.staging import staged
from .._types.avals import INT32, INTEGER, Aval
from .._xla.cpu_forms import cpu_limit
from .control_flow import scan
from .elementwise import and_, eq, maximum, minimum, select, shift_left, shift_right_logical, xor
from .shape import broadcast_in_dim, iota, moveaxis, pad, reshape, slice_in_dim, transpose
from .sorting import sort_
from .taking import take

__all__ = ["network"]

FEWEST = cpu_limit(
    "sort.fewest",
    1 << 15,
    "The fewest elements that are worth a network: compiling one takes a fifth of a second.",
)
BLOCK = cpu_limit("sort.block", 1 << 16, "The bytes of a block.")
LEAST_ROWS = cpu_limit("sort.least_rows", 32, "The fewest rows that are worth a network.")
LANES = cpu_limit("sort.lanes", 32, "The fewest rows of a block where there are more.", 1)
LONGEST = cpu_limit(
    "sort.longest", 1 << 20, "The most bytes of a block; longer rows are left to the compiler."
)
ADVANTAGE = cpu_limit(
    "sort.advantage",
    28,
    "The cost of a comparison that branches, in bytes of a step of the network.",
)

_CELL = Aval((), INT32)


def network(aval: Aval, axis: int) -> Program | None:
    """Return the program that sorts integers along `axis`; None where comparing row by row wins."""
    key = "network", aval, axis, config.cpu_limits
    if key not in sort_.compiled:
        sort_.compiled[key] = _made(aval, axis)
    return sort_.compiled[key]


def _made(aval: Aval, axis: int) -> Program | None:
    if aval.category != INTEGER or not all(d.__class__ is int for d in aval.shape):
        return None
    n, size = aval.shape[axis], aval.dtype.itemsize
    if n < 2 or aval.size < FEWEST.value or aval.size // n < LEAST_ROWS.value:
        return None
    long = 1 << (n - 1).bit_length()
    if long * LANES.value * size > LONGEST.value:
        return None
    if long * _steps(long) * size > ADVANTAGE.value * n * n.bit_length():
        return None
    return staged(lambda x: [_sorted(x, axis, long)], (aval,), "sort_rows")


def _steps(n: int) -> int:
    """Return the number of steps for rows of `n` elements, a power of two."""
    return sum((merged + 1) // 2 for merged in range(1, n.bit_length()))


def _sorted(x: Any, axis: int, long: int) -> Any:
    """Sort along `axis`, by blocks of rows that are filled up to `long` elements."""
    x = moveaxis(x, axis, -1)
    shape, dtype = x.aval.shape, x.aval.dtype
    n = shape[-1]
    count = x.aval.size // n
    blocks = -(-count // max(LANES.value, BLOCK.value // (long * dtype.itemsize)))
    rows = -(-count // blocks)
    most = Literal(int(limits(dtype)[1]), Aval((), dtype))
    x = pad(reshape(x, (count, n)), most, [(0, rows * blocks - count, 0), (0, long - n, 0)])
    x = reshape(x, (blocks, rows, long))
    body = staged(lambda y: [_block(y)], [Aval((rows, long), dtype)], "sort_block")
    (x,) = scan.bind(x, body=body, consts=0, carry=0, length=blocks, reverse=False, unroll=1)
    x = slice_in_dim(reshape(x, (rows * blocks, long)), 0, count, axis=0)
    return moveaxis(reshape(slice_in_dim(x, 0, n, axis=1), shape), -1, axis)


def _block(x: Value) -> Any:
    """Sort each row of a block."""
    x = transpose(x, (1, 0))
    body = staged(_step, [x.aval, _CELL, _CELL], "sort_step")
    x, _, _ = scan.bind(
        x, Literal(1, _CELL), Literal(2, _CELL),
        body=body, consts=0, carry=3, length=_steps(x.aval.shape[0]), reverse=False, unroll=1,
    )  # fmt: skip
    return transpose(x, (1, 0))


def _step(x: Value, far: Value, run: Value) -> list:
    """Compare over the distances `far` and `far / 2`, to merge into sorted runs of length `run`.

    Runs ascend and descend by turns.  If `far` is 1, the second distance is 0, which compares
    elements with themselves.
    """
    near = _half(far)
    at = iota(INT32, (x.aval.shape[0],))
    ascends = _without(at, run)
    first = eq.bind(_without(at, far), ascends)
    second = eq.bind(_without(at, near), ascends)
    other, across = _partner(at, far), _partner(at, near)
    here = _kept(first, x, _row(x, other))
    there = _kept(first, _row(x, across), _row(x, _partner(across, far)))
    x = _kept(second, here, there)
    following = _half(near)
    ends = eq.bind(following, Literal(0, _CELL))
    longer = shift_left.bind(run, Literal(1, _CELL))
    return [x, select.bind(ends, run, following), select.bind(ends, longer, run)]


def _half(x: Value) -> Any:
    return shift_right_logical.bind(x, Literal(1, _CELL))


def _spread(x: Value, aval: Aval) -> Any:
    return broadcast_in_dim.bind(x, shape=aval.shape, dims=())


def _without(at: Value, bit: Value) -> Any:
    """Return whether positions lack a bit."""
    return eq.bind(and_.bind(at, _spread(bit, at.aval)), _spread(Literal(0, _CELL), at.aval))


def _partner(at: Value, distance: Value) -> Any:
    return xor.bind(at, _spread(distance, at.aval))


def _row(x: Value, at: Value) -> Any:
    return take(x, at, 0, mode="promise_in_bounds")


def _kept(lesser: Value, x: Value, y: Value) -> Any:
    """Return the lesser of two elements in marked rows, and the greater in others."""
    flags = broadcast_in_dim.bind(lesser, shape=x.aval.shape, dims=(0,))
    return select.bind(flags, minimum.bind(x, y), maximum.bind(x, y))
