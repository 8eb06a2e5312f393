"""Greatest elements of rows that may lose nan, because sums of the rows are nan in any case.

Exponentials of rows are taken relative to the greatest element, so that they do not overflow.  The
library of kernels computes such rows at once, but its maximum drops nan.  That changes nothing
where whatever depends on the maximum also depends on a sum of the row: the sum is nan if an element
is.

Invariant: with any other maximum of the rows that hold nan, the block has the same results.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .._base.jaxlib_api import IrOperation, IrValue
from .rows import numbers_of, step_of

_ARITHMETIC = {
    "stablehlo." + n
    for n in ("abs", "add", "divide", "exponential", "log", "multiply", "negate", "subtract")
}
"""Operations of elements that return nan for nan."""
_OTHERS = {"stablehlo." + n for n in ("compare", "is_finite", "maximum", "minimum", "select")}
"""Operations of elements that may return something else."""


_DEPENDENT = ("any", "own")
"""States of values that depend on the maximum."""


class _Value(NamedTuple):
    """A value that depends on the array of rows, as it is in a row that holds nan.

    Attributes:
      axes: the axis of the rows' array along each axis; None along which all elements are equal.
      state: "given" for the array itself; "any" if it depends on the maximum; "own" if it does, and
        is nan where the array is; "nan" if it is nan in all of the row; "false" if it is false
        there.
    """

    axes: tuple[int | None, ...]
    state: str


def may_lose_nan(op: IrOperation, order: Mapping[IrOperation, int]) -> bool:
    """Return whether the maximum of a reduction may be any number where a row holds nan.

    `order` has the places of the operations of its block.
    """
    return _Rows(op, order).pass_all()


class _Rows:
    """The values that depend on the maximum of rows."""

    def __init__(self, op: IrOperation, order: Mapping[IrOperation, int]):
        self.x: IrValue = op.operands[0]
        self.order = order
        axes = range(len(self.x.type.shape))
        self.reduced = numbers_of(op, "dimensions")
        rest = tuple([a for a in axes if a not in self.reduced])
        self.values = {self.x: _Value(tuple(axes), "given")}
        self.next: dict[int, IrOperation] = {}
        self.alone = True
        self.note(op.result, _Value(rest, "any"))

    def note(self, x: IrValue, value: _Value) -> None:
        """Note what becomes of a value, and that its readers come next."""
        self.values[x] = value
        for use in x.uses:
            reader = use.owner.operation
            place = self.order.get(reader)
            if place is not None:
                self.next[place] = reader
            elif value.state in _DEPENDENT:  # within another operation
                self.alone = False

    def pass_all(self) -> bool:
        """Return whether nothing shows another maximum; take the operations in their order."""
        while self.next and self.alone:
            place = min(self.next)
            if not self.passes(self.next.pop(place)):
                return False
        return self.alone

    def passes(self, op: IrOperation) -> bool:
        """Take the next operation; return False if it may show another maximum."""
        operands = list(op.operands)
        found = [self.values[x] for x in operands if x in self.values]
        axes = self.axes_of(op, found)
        state = None if axes is None else self.state_of(op, operands)
        if axes is not None and state is not None:
            self.note(op.result, _Value(axes, state))
        return state is not None or not any(v.state in _DEPENDENT for v in found)

    def axes_of(self, op: IrOperation, found: list[_Value]) -> tuple[int | None, ...] | None:
        """Return the axes of a result; None if they are not those of the array of rows."""
        if op.name in _ARITHMETIC or op.name in _OTHERS:
            return _joined([v.axes for v in found])
        axes = found[0].axes
        if op.name == "stablehlo.broadcast_in_dim":
            to = numbers_of(op, "broadcast_dimensions")
            source = dict(zip(to, zip(axes, op.operands[0].type.shape)))
            return tuple(
                [None if source.get(i, (0, 0))[1] != n else source[i][0]
                 for i, n in enumerate(op.result.type.shape)])  # fmt: skip
        if op.name == "stablehlo.reshape":
            before, after = op.operands[0].type.shape, op.result.type.shape
            rest = [a for a, n in zip(axes, before) if n != 1]
            if [n for n in before if n != 1] != [n for n in after if n != 1]:
                return None
            kept = iter(rest)
            return tuple([None if n == 1 else next(kept) for n in after])
        if _is_sum(op) and op.operands[0] in self.values:
            gone = numbers_of(op, "dimensions")
            return tuple([a for i, a in enumerate(axes) if i not in gone])
        return None

    def state_of(self, op: IrOperation, operands: list[IrValue]) -> str | None:
        """Return the state of a result; None if nothing is known of it."""
        states = [self.values[x].state if x in self.values else None for x in operands]
        depends = any(s in _DEPENDENT for s in states)
        if op.name in _ARITHMETIC:
            if "nan" in states:
                return "nan"
            taken_off = op.name == "stablehlo.subtract" and operands[0] == self.x
            return ("own" if taken_off or "own" in states else "any") if depends else None
        if op.name == "stablehlo.select" and states[0] == "false":
            return states[2]
        if op.name == "stablehlo.compare" and "nan" in states and not depends:
            return None if "NE" in str(op.attributes["comparison_direction"]) else "false"
        if op.name in _OTHERS:
            return "any" if depends else None
        if not _is_sum(op):  # it moves elements
            return None if states[0] == "given" else states[0]
        value = self.values[operands[0]]
        summed = {value.axes[i] for i in numbers_of(op, "dimensions")}
        whole = value.state == "own" and summed.issuperset(self.reduced)
        return "nan" if whole or value.state == "nan" else None


def _joined(all_axes: Iterable[tuple[int | None, ...]]) -> tuple[int | None, ...] | None:
    """Return the axes of a result of elements; None if they differ among the operands."""
    out: list[int | None] = []
    for each in zip(*all_axes):
        known = {a for a in each if a is not None}
        if len(known) > 1:
            return None
        out.append(known.pop() if known else None)
    return tuple(out)


def _is_sum(op: IrOperation) -> bool:
    is_one = op.name == "stablehlo.reduce" and len(op.results) == 1
    return is_one and step_of(op) == "stablehlo.add"
