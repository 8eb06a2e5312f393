"""Floats that the compiler cannot find to be nan.

Its code for the exponential of a nan that it knows reads registers that were never written.  It
knows one if it knows all operands of an operation, or that one of them is nan or infinite.  A
selection may be such a constant here and there.

Invariant: an element of a value with a state is not found to be nan, whatever the compiler knows of
conditions, and in whatever order it computes.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from .origins import Mark, kind_of, value_of
from .rows import step_of

NEVER, FINITE, NOT_NAN = 1, 2, 3
"""States of values: results of arithmetic on arrays, whose elements the compiler does not know;
such values, or finite numbers that it may know; the same with infinite numbers."""


class Unforeseen:
    """The values with a state, of a module in which a walk comes by."""

    def __init__(self) -> None:
        self._states: dict[Any, int] = {}

    def __contains__(self, x: Any) -> bool:
        return x in self._states

    def arrays(self, xs: Iterable[Any]) -> None:
        """Note values that are in memory when the module begins."""
        self._states.update((x, NEVER) for x in xs if kind_of(x.type).category in ("f", "c"))

    def passed(self, values: Iterable[Any], others: Iterable[Any]) -> None:
        """Note those of the other values that stand for values noted before."""
        states = self._states
        states.update((y, states[x]) for x, y in zip(values, others) if x in states)

    def are_arrays(self, xs: Iterable[Any]) -> bool:
        """Return whether the compiler knows no more of values than of those in memory."""
        return all(
            self._states.get(x) == NEVER for x in xs if kind_of(x.type).category in ("f", "c")
        )

    def state(self, x: Any) -> int:
        """Return the state of a value; 0 if it has none."""
        return self._states.get(x, 0)

    def add(self, x: Any, state: int) -> None:
        """Give a value its state, unless it has none."""
        if state:
            self._states[x] = state

    def note(self, op: Any, operands: Sequence[Any], marks: Sequence[Mark]) -> None:
        """Note the results of an operation on these operands, unless they may be foreseen."""
        first, last = _READ.get(op.name, (0, len(marks)))
        last = last or len(op.results)
        states = [
            self._states.get(x) or _state_of(m)
            for x, m in zip(operands[first:last], marks[first:last], strict=True)
        ]
        if 0 in states or not any(x in self._states for x in operands[first:last]):
            return
        state = _state_after(op, states, marks)
        if state:
            self._states.update(dict.fromkeys(op.results, state))


_MOVED = {
    "stablehlo." + n
    for n in (
        *("abs", "broadcast_in_dim", "dynamic_slice", "gather", "negate", "optimization_barrier"),
        *("reshape", "reverse", "select", "slice", "transpose"),
    )
}
"""Operations whose elements are those of operands, but for signs."""
_EXTREMES = {"stablehlo.maximum", "stablehlo.minimum"}
_SUMS = {"stablehlo.add", "stablehlo.subtract", "stablehlo.multiply"}
"""Operations that return no nan for finite numbers."""
_BESIDE_NUMBERS = {
    *_EXTREMES, *_SUMS, "stablehlo.divide", "stablehlo.convolution", "stablehlo.dot_general"
}  # fmt: skip
"""Operations whose result the compiler does not know if it knows one operand alone."""
_PRODUCTS = {"stablehlo.convolution", "stablehlo.dot_general", "stablehlo.multiply"}
_LEAST = 2.0**-126
"""The least normal number of 32 bits."""
_READ = {"stablehlo.select": (1, 3)} | {
    "stablehlo." + n: (0, 0) for n in ("dynamic_slice", "gather", "reduce")
}
"""The first operand whose elements are read, and the end of these; 0 for the number of results."""


def _state_of(m: Mark) -> int:
    """Return the state of a constant; 0 if it is none, is not finite, or has several numbers."""
    return FINITE if math.isfinite(_number(m)) else 0


def _state_after(op: Any, states: Sequence[int], marks: Sequence[Mark]) -> int:
    """Return the state of the results of an operation; 0 if they have none."""
    name, most = op.name, max(states)
    if name in _MOVED:
        return most
    if _may_divide_by_zero(name, states, marks):
        return 0
    if name in _BESIDE_NUMBERS and NEVER in states and most <= FINITE:
        return NEVER
    if name in _EXTREMES:
        return most
    if name in _SUMS:
        return NOT_NAN if most <= FINITE else 0
    if name in ("stablehlo.convert", "stablehlo.exponential"):
        return NEVER if most == NEVER else NOT_NAN
    if name != "stablehlo.reduce" or any(math.isnan(_number(m)) for m in marks[len(states) :]):
        return 0
    kept = most == NEVER or (step_of(op) in _EXTREMES and _has_elements(op.operands[0].type))
    return most if kept else 0


def _may_divide_by_zero(name: str, states: Sequence[int], marks: Sequence[Mark]) -> bool:
    """Return whether the compiler may find a divisor, or a product that may be one, to be zero.

    A quotient by zero is infinite or nan, whatever is divided.
    """
    if name == "stablehlo.divide":
        return states[1] != NEVER and not abs(_number(marks[1])) >= _LEAST
    return name in _PRODUCTS and any(_number(m) == 0 for m in marks)


def _number(m: Mark) -> float:
    """Return the number that fills a constant; nan if it is none, or has several."""
    value = value_of(m) if m.written else None
    return math.nan if value is None else value


def _has_elements(t: Any) -> bool:
    return t.has_static_shape and 0 not in t.shape
