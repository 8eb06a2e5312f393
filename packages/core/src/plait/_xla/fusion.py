"""One loop for operations of elements that the CPU compiler could compute together.

The compiler decides for each operation whether every loop that needs it computes it again; if not,
its result becomes an array in memory.  An operation of one array is always computed again.  One of
several arrays is not, if an expensive operation with several readers lies behind it.  The compiler
counts those readers before it makes loops, so it counts several where all end in one.

So an expensive operation whose readers end in one loop gets one reader, which rounds to more bits
than there are.  That changes no bit, costs nothing in the machine code, and is not expensive.
Nothing is inserted where several loops need the result, nor before reductions: a library of kernels
may compute these, and it does not know that operation.

Invariant: a module computes the same bits as before.
"""

from collections.abc import Callable, Container, Iterable
from typing import Any

from .._base.jaxlib_api import IrOperation, IrValue
from . import mlir

CHEAP = {
    "stablehlo." + n
    for n in (
        *("abs", "add", "and", "bitcast_convert", "ceil", "clamp", "compare", "convert", "floor"),
        *("is_finite", "maximum", "minimum", "multiply", "negate", "not", "or", "reduce_precision"),
        *("reshape", "round_nearest_afz", "round_nearest_even", "select", "shift_left"),
        *("shift_right_arithmetic", "shift_right_logical", "sign", "subtract", "xor"),
    )
}
FILLED = {"stablehlo." + n for n in ("broadcast_in_dim", "constant", "iota")}
"""Operations whose results need no array."""
_REDUCTIONS = {"stablehlo.reduce", "stablehlo.reduce_window"}


def merge(
    found: Iterable[IrOperation], expensive: Container[str], narrow: Callable[[IrOperation], None]
) -> None:
    """Call `narrow` with each operation that should have one reader.

    Args:
      found: the expensive operations of a module.
      expensive: their names.
      narrow: a function that gives such an operation one reader.
    """
    blocks: dict[Any, list[IrOperation]] = {}
    for op in found:
        if len(op.results) == 1 and _is_read_twice(op.result):
            blocks.setdefault(op.block, []).append(op)
    for block, ops in blocks.items():
        merged = _merged(block, expensive)
        for op in ops:
            if op.result in merged:
                narrow(op)


def _is_read_twice(x: IrValue) -> bool:
    readers = iter(x.uses)
    return next(readers, None) is not None and next(readers, None) is not None


def _merged(block: Any, expensive: Container[str]) -> set[IrValue]:
    """Return the results of a block that one loop reads, which ends in no reduction.

    The loop of an operation of elements ends where its result becomes an array: where another
    operation reads it, or where several loops do and computing it again costs more than reading.
    """
    merged: set[IrValue] = set()
    ends: dict[IrValue, frozenset[Any]] = {}
    for o in reversed(list(block.operations)):
        op = o.operation
        cheap = op.name in CHEAP
        if not cheap and op.name not in expensive:
            continue
        x = op.result
        mine: set[Any] = set()
        for use in x.uses:
            reader = use.owner.operation
            end = ends.get(reader.result) if len(reader.results) == 1 else None
            mine |= end or {(reader, use.operand_number)}
        if len(mine) == 1:
            ((reader, _),) = mine
            if reader.name not in _REDUCTIONS:
                merged.add(x)
        elif not cheap or not _is_of_one_array(op):
            mine = {(op, 0)}
        ends[x] = frozenset(mine)
    return merged


def _is_of_one_array(op: IrOperation) -> bool:
    return sum(not is_filled(x) for x in op.operands) <= 1


def is_filled(x: IrValue) -> bool:
    """Return whether a value needs no array: a constant, positions, or a broadcast."""
    m = mlir.maker(x)
    return m is not None and m.name in FILLED
