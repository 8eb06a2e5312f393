"""Value numbering: values that the compiler finds to be equal have one number.

The compiler merges equal operations once it has inlined functions.  Guards that differ keep it from
that, so what attention's derivative computes again would be computed twice.  Equal values therefore
get equal guards.

Invariant: two values have one number only if equal operations made them of equal values.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from .._base.jaxlib_api import IrOperation, IrValue
from .rows import step_of

_ALONE = {"func.call", "stablehlo.custom_call"}
"""Operations that may return something else each time, or whose results others are equal to."""


class Numbers:
    """The numbers of the values of a module in which a walk comes by."""

    def __init__(self) -> None:
        self._of: dict[IrValue, Any] = {}
        self._made: dict[Any, int] = {}
        self._places: dict[Any, int] = {}

    def of(self, x: IrValue) -> Any:
        """Return the number of a value; others have another one."""
        found = self._of.get(x)
        if found is None:
            found = self._of[x] = "alone", len(self._of)
        return found

    def place(self, x: IrValue) -> int:
        """Return a small number that equal values share, and no others."""
        return self._places.setdefault(self.of(x), len(self._places))

    def passed(self, values: Iterable[IrValue], others: Iterable[IrValue]) -> None:
        """Give values the numbers of those that they stand for."""
        self._of.update((y, self.of(x)) for x, y in zip(values, others))

    def note(self, op: IrOperation, operands: Sequence[IrValue]) -> None:
        """Number the results of an operation on these operands."""
        step = step_of(op) if op.name == "stablehlo.reduce" else ""
        if op.name in _ALONE or (len(op.regions) and not step):
            return
        try:
            how = tuple([(name, op.attributes[name]) for name in op.attributes])
        except (TypeError, ValueError):  # the bindings have no attribute for complex constants
            return
        types = tuple([r.type for r in op.results])
        key = op.name, step, tuple(map(self.of, operands)), types, how
        number = self._made.setdefault(key, len(self._made))
        self._of.update((r, (number, i)) for i, r in enumerate(op.results))
