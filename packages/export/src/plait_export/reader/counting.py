"""Recognition of counting loops, and their conversion to scans.

A slice that each turn reads from an array, or writes into one, at the counter becomes a row of the
scan.  Otherwise each turn of the derivative would handle cotangents of whole arrays.

Invariant: in a counting loop, the condition is that a counter is below a number that no turn
changes, and each turn adds a known number to it.  Slices become rows only if all of them lie inside
the array; written rows must also cover it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import plait
from plait.ext.errors import PlaitError
from plait.ext.ops import shape as shapes
from plait.ext.sizes import Dim, max_dim
from plait.typing import Array

from .module import Block, Op
from .sizes import Known
from .table import enum
from .walking import Walk


class Counter(NamedTuple):
    """The counter of a loop.

    Attributes:
      number: its index among the values that the loop carries.
      start: its first value.
      step: the amount that each turn adds.
      turns: the number of turns.
    """

    number: int
    start: Any
    step: int
    turns: Any


def counter_of(walk: Walk, op: Op, xs: Sequence[Any], kept: Sequence[int]) -> Counter | None:
    """Return the counter of a counting loop; None for any other loop."""
    test, body = op.regions
    last = made_by(test, test.returned[0])
    if last is None or last.name != "stablehlo.compare":
        return None
    if enum(last.attributes["comparison_direction"]) != "LT":
        return None
    left, right = last.operands
    if left not in test.arguments:
        return None
    k = test.arguments.index(left)
    start, top = xs[k], _settled(walk, test, right, xs, kept)
    step = _step(walk, body, k)
    if start.__class__ is not Known or top is None or step is None:
        return None
    first, count = start.items[0], top - start.items[0]
    if count.__class__ is not Dim:
        return Counter(k, first, step, max(0, -(-count // step)))
    return Counter(k, first, step, max_dim(0, -(-count // step)))


def made_by(block: Block, number: int) -> Op | None:
    """Return the operation of a block that makes a value; None if no operation does."""
    return next((op for op in block.ops if number in op.results), None)


def _settled(
    walk: Walk, test: Block, number: int, xs: Sequence[Any], kept: Sequence[int]
) -> Any | None:
    """Return the limit of a counter, if it is known before the loop; otherwise None."""
    found: Any
    if number in test.arguments:
        i = test.arguments.index(number)
        found = xs[i] if i in kept else None
    else:
        made = made_by(test, number)
        if made is None:
            found = walk.of(number)
        else:  # The condition may compute the limit from values known outside.
            args = [x if i in kept else None for i, x in enumerate(xs)]
            found = walk.known_in(test, number, args)
    return found.items[0] if found.__class__ is Known else None


def _step(walk: Walk, body: Block, k: int) -> int | None:
    """Return the positive amount that a turn adds to argument k; None for any other change."""
    at, total = body.returned[k], 0
    while at != body.arguments[k]:
        op = made_by(body, at)
        if op is None or op.name != "stablehlo.add":
            return None
        pair = [(n, _written(walk, body, m)) for n, m in (op.operands, op.operands[::-1])]
        found = next(((n, m) for n, m in pair if m is not None), None)
        if found is None:
            return None
        at, total = found[0], total + found[1]
    return total if total > 0 else None


def _written(walk: Walk, body: Block, number: int) -> int | None:
    """Return the value of a constant integer, inside a block or outside; None for others."""
    if number in body.arguments:
        return None
    op = made_by(body, number)
    if op is None:
        found = walk.of(number)
        plain = found.__class__ is Known and not found.shape and found.items[0].__class__ is int
        return found.items[0] if plain else None
    if op.name != "stablehlo.constant" or op.types[0].shape:
        return None
    return int(op.attributes["value"])


def bound_of(walk: Walk, op: Op, xs: Sequence[Any]) -> int | None:
    """Return an upper bound for the turns of a loop; None if it has none.

    A bound exists if the loop carries its condition as a flag that each turn computes as a
    conjunction.  One of the terms must be that a counter from 0 in steps of 1 is below a constant.
    """
    test, body = op.regions
    if test.ops or test.returned[0] not in test.arguments:
        return None
    both = made_by(body, body.returned[test.arguments.index(test.returned[0])])
    if both is None or both.name != "stablehlo.and":
        return None
    for number in both.operands:
        below = made_by(body, number)
        if below is None or below.name != "stablehlo.compare":
            continue
        if enum(below.attributes["comparison_direction"]) != "LT":
            continue
        left, right = below.operands
        most = _written(walk, body, right)
        if left not in body.returned or most is None:
            continue
        k = body.returned.index(left)
        start = xs[k].items[0] if xs[k].__class__ is Known else None
        if start == 0 and _step(walk, body, k) == 1 and most > 0:
            return most
    return None


# ---- rows ----------------------------------------------------------------------------------


class Row(NamedTuple):
    """Rows of an array along an axis, one for each turn, in increasing or decreasing order.

    Attributes:
      op: the operation that reads or writes them.
      axis: the axis of the array.
      first: the index of the row in the first turn.
      down: whether indices decrease.
    """

    op: Op
    axis: int
    first: Any
    down: bool

    def range(self, turns: Dim | int) -> tuple[Any, Any]:
        """Return (lowest index, highest index + 1)."""
        return (self.first - turns + 1, self.first + 1) if self.down else (
            self.first, self.first + turns)  # fmt: skip


class _Loop:
    """The body of a counting loop."""

    def __init__(
        self, walk: Walk, body: Block, given: Sequence[Any], kept: Sequence[int], counter: Counter
    ):
        self.walk, self.body, self.given, self.kept = walk, body, given, kept
        self.counter = counter

    def outside(self, number: int) -> Any:
        """Return a value that no turn changes; None if turns make or change it."""
        if number in self.body.arguments:
            i = self.body.arguments.index(number)
            return self.given[i] if i in self.kept else None
        return self.walk.of(number) if made_by(self.body, number) is None else None

    def known(self, number: int) -> Any:
        """Return the value of a known integer; None if it is not known."""
        op = made_by(self.body, number)
        if op is not None and op.name == "stablehlo.constant" and not op.types[0].shape:
            value = op.attributes["value"]
            return int(value) if value.dtype.kind in "iu" else None
        found: Any = self.outside(number) if op is None else None
        return found.items[0] if found.__class__ is Known and not found.shape else None

    def line(self, number: int) -> tuple[int, Any] | None:
        """Return (a, b) for a position a * counter + b with a in -1, 0, 1; None for others."""
        if number == self.body.arguments[self.counter.number]:
            return 1, 0
        n = self.known(number)
        if n is not None:
            return 0, n
        op = made_by(self.body, number)
        if op is None:
            return None
        if op.name == "stablehlo.convert":
            return self.line(op.operands[0])
        if op.name == "stablehlo.select":
            return self.line(op.operands[2]) if self._counts_from_end(op) else None
        if op.name not in ("stablehlo.add", "stablehlo.subtract"):
            return None
        x, y = (self.line(k) for k in op.operands)
        sign = 1 if op.name == "stablehlo.add" else -1
        if x is None or y is None or abs(x[0] + sign * y[0]) > 1:
            return None
        return x[0] + sign * y[0], x[1] + sign * y[1]

    def _counts_from_end(self, op: Op) -> bool:
        """Return whether a selection only wraps negative positions, which rows never have."""
        test = made_by(self.body, op.operands[0])
        if test is None or test.name != "stablehlo.compare":
            return False
        below = enum(test.attributes["comparison_direction"]) == "LT"
        return below and test.operands[0] == op.operands[2] and self.known(test.operands[1]) == 0

    def row(
        self, op: Op, starts: Sequence[int], box: tuple[None | int, ...], shape: Sequence[Any]
    ) -> Row | None:
        """Return the row that a box at some positions is; None if it is not a row.

        A row has the full size along all axes but one, where it has size 1.
        """
        if self.counter.step != 1:
            return None
        lines = [self.line(n) for n in starts]
        moving = [i for i, at in enumerate(lines) if at is None or at[0]]
        at = lines[moving[0]] if len(moving) == 1 else None
        if at is None:
            return None
        axis = moving[0]
        rest = [i for i in range(len(shape)) if i != axis]
        if box[axis] != 1 or any(lines[i][1] != 0 or box[i] != shape[i] for i in rest):  # type: ignore[index]
            return None
        return Row(op, axis, at[0] * self.counter.start + at[1], at[0] < 0)

    def reads(self) -> Iterator[tuple[Row, Any]]:
        """Yield (row, array) for the rows that turns read."""
        for op in self.body.ops:
            x = self.outside(op.operands[0]) if "dynamic_slice" in op.name else None
            if x is None or x.__class__ is Known:
                continue
            row = self._read(op, x.aval.shape)
            if row is None:
                continue
            low, high = row.range(self.counter.turns)
            if _surely(lambda low=low: low >= 0) and _surely(
                lambda row=row, high=high, x=x: high <= x.aval.shape[row.axis]
            ):
                yield row, x

    def _read(self, op: Op, shape: Sequence[Any]) -> Row | None:
        """Return the row that a slice reads of an array of this shape; None if it is not one."""
        if op.name == "stablehlo.dynamic_slice":
            return self.row(op, op.operands[1:], op.attributes["slice_sizes"], shape)
        start = made_by(self.body, op.operands[1])
        if start is None or start.name != "stablehlo.concatenate" or len(start.operands) != 2:
            # Rows of arrays with symbolic sizes start at (counter, 0, 0, ...).
            return None
        first, rest = start.operands
        counter, zeros = (
            made_by(self.body, first),
            self.walk.known_in(self.body, rest, self.fixed()),
        )
        limit = made_by(self.body, op.operands[2])
        if counter is None or counter.name != "stablehlo.reshape" or zeros is None or limit is None:
            return None
        if limit.name != "stablehlo.add" or limit.operands[0] != op.operands[1]:
            return None
        sizes = self.walk.known_in(self.body, limit.operands[1], self.fixed())
        at = self.line(counter.operands[0])
        if sizes is None or at is None or not at[0] or self.counter.step != 1:
            return None
        if any(zeros.items) or sizes.items != (1, *shape[1:]):
            return None
        return Row(op, 0, at[0] * self.counter.start + at[1], at[0] < 0)

    def fixed(self) -> list:
        """Return the arguments that no turn changes, with None for the others."""
        return [x if i in self.kept else None for i, x in enumerate(self.given)]

    def writes(self, moving: Sequence[int]) -> Iterator[tuple[int, Row]]:
        """Yield (index, row) for the arguments whose rows are all written and never read."""
        for j in moving:
            op = made_by(self.body, self.body.returned[j])
            number = self.body.arguments[j]
            if op is None or op.name != "stablehlo.dynamic_update_slice":
                continue
            x, box, *starts = op.operands
            if x != number or _uses(self.body, number) != 1:
                continue
            shape, made = self.given[j].aval.shape, made_by(self.body, box)
            if made is None:
                continue
            kind = made.types[made.results.index(box)]
            row = self.row(op, starts, kind.shape, shape)
            if row is None:
                continue
            low, high = row.range(self.counter.turns)
            if _surely(lambda low=low: low == 0) and _surely(
                lambda row=row, high=high, shape=shape: high == shape[row.axis]
            ):
                yield j, row


def _surely(question: Callable[..., Any]) -> bool:
    """Return whether a question is true for all sizes."""
    try:
        return bool(question())
    except PlaitError:
        return False


def _uses(block: Block, number: int) -> int:
    """Return how often a value is used, including in inner regions."""
    inner = [b for op in block.ops for b in op.regions]
    here = sum(op.operands.count(number) for op in block.ops) + block.returned.count(number)
    return here + sum(_uses(b, number) for b in inner)


def counted(
    walk: Walk, body: Block, given: list[Any], kept: Sequence[int], counter: Counter
) -> list[Any]:
    """Return the results of a counting loop, read as a scan.

    Values that no turn changes stay outside the carry.
    """
    k, start, step, turns = counter
    kind = body.types[k].dtype
    loop = _Loop(walk, body, given, kept, counter)
    changing = [i for i in range(len(given)) if i not in kept and i != k]
    reads, writes = list(loop.reads()), dict(loop.writes(changing))
    moving = [i for i in changing if i not in writes]

    def turn(state: Sequence[Any], rows: tuple[Any, ...]) -> Any:
        i, read = rows
        args = list(given)
        for j, x in zip(moving, state, strict=True):
            args[j] = x
        args[k] = i
        for (row, _), x in zip(reads, read, strict=True):
            walk.instead[row.op.results[0]] = shapes.expand_dims(x, row.axis)
        for row in writes.values():
            walk.instead[row.op.results[0]] = _UNSEEN
        new = walk.block(body, args)
        boxes = [walk.value(walk.of(row.op.operands[1])) for row in writes.values()]
        written = [shapes.reshape(b, _without(b.aval.shape, r.axis))
                   for b, r in zip(boxes, writes.values())]  # fmt: skip
        return [walk.value(new[j]) for j in moving], written

    number = shapes.iota(kind, (turns,))
    if step != 1:
        number = number * np.asarray(step, kind)
    if start != 0:
        number = number + Known([start], (), kind).value()
    rows = [_rows_of(x, row, turns) for row, x in reads]
    state, written = plait.lax.scan(turn, [given[j] for j in moving], (number, rows))
    found = list(given)
    for j, x in zip(moving, state, strict=True):
        found[j] = x
    for (j, row), ys in zip(writes.items(), written, strict=True):
        ys = shapes.rev.bind(ys, axes=(0,)) if row.down else ys
        found[j] = shapes.moveaxis(ys, 0, row.axis)
    found[k] = Known([start + step * turns], (), kind)
    return found


_UNSEEN = Known([0], (), np.dtype(np.int32))
"""A placeholder for an array that is written and never read."""


def _without(shape: Sequence[Any], axis: int) -> tuple[Any, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _rows_of(x: Array, row: Row, turns: Dim | int) -> Any:
    """Return the rows in the order of turns, along the first axis."""
    low, high = row.range(turns)
    x = shapes.moveaxis(shapes.slice_in_dim(x, low, high, axis=row.axis), row.axis, 0)
    return shapes.rev.bind(x, axes=(0,)) if row.down else x
