"""Values that lie as rows in the arrays of scans, and arrays made of such rows.

A scan reads one array where a loop read a value in each turn, and writes one where a loop kept
them.  A later scan often reads what an earlier one wrote, or read: the backward pass of a network
takes the weights and the residuals of all layers, last layer first.  So the origin of each value is
kept, and an array is put together from stretches of rows, where values follow one another there.

Invariant: the rows of an array that is put together are the given values in the given order.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._core.interpreter import Value
from .._core.ir import Var
from .._ops.shape import concatenate, reshape, rev, slice_in_dim, stack


class Stretch(NamedTuple):
    """Consecutive rows: `length` of an array from row `first` on, upwards or downwards; or one
    value that is a row by itself (`step` is 0)."""

    atom: Any
    first: int = 0
    step: int = 0
    length: int = 1

    def array(self, x: Value) -> Any:
        """Return the rows as an array of one more axis, from the value of the atom."""
        if self.step == 0:
            return stack([x])
        low = self.first if self.step > 0 else self.first - self.length + 1
        if self.length != x.aval.shape[0]:
            x = slice_in_dim(x, low, low + self.length)
        return x if self.step > 0 else rev.bind(x, axes=(0,))


class Stacks:
    """The places at which values lie as rows of arrays: value -> [(array, row)]."""

    def __init__(self) -> None:
        self.places: dict[Any, list[tuple[Any, int]]] = {}

    def keep(self, array: Value, values: Sequence[Any]) -> None:
        """Record that the rows of an array are these values; None for those that are not known."""
        for row, v in enumerate(values):
            if v.__class__ is Var:
                self.places.setdefault(v, []).append((array, row))

    def stretches(self, values: Sequence[Any]) -> list[Stretch]:
        """Return the fewest stretches, taken greedily, that make up the values in order."""
        found: list[Stretch] = []
        i = 0
        while i < len(values):
            best = Stretch(values[i])
            for array, row in self.places.get(values[i], ()):
                for step in (1, -1):
                    count = 1
                    while i + count < len(values) and self._lies(
                        values[i + count], array, row + step * count
                    ):
                        count += 1
                    if count > best.length or best.step == 0:
                        best = Stretch(array, row, step, count)
            found.append(best)
            i += best.length
        return found

    def _lies(self, value: Value, array: Value, row: int) -> bool:
        # by identity: == of values is an operation
        return any(a is array and r == row for a, r in self.places.get(value, ()))


def whole(stretches: Sequence[Stretch], values: Sequence[Any]) -> Any:
    """Return the array that stretches make up, from the values of their atoms."""
    parts: list[Any] = []
    alone: list[Any] = []  # single values that follow one another are one operand
    for s, x in zip(stretches, values, strict=True):
        if s.step == 0:
            alone.append(x)
            continue
        if alone:
            parts.append(stack(alone))
            alone = []
        parts.append(s.array(x))
    if alone:
        parts.append(stack(alone))
    return parts[0] if len(parts) == 1 else concatenate(parts)


def row(array: Value, r: int) -> Any:
    """Return a row of an array as a value of one axis less."""
    return reshape(slice_in_dim(array, r, r + 1), array.aval.shape[1:])
