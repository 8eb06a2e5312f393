"""Value numbering: values that the compiler finds to be equal have one number.

The compiler merges equal operations once it has inlined functions.  Guards that differ keep it from
that, so what attention's derivative computes again would be computed twice.  Equal values therefore
get equal guards.  So do values of equal form, as in equal layers: the compiler compiles a loop once
if its text is the same, however often it occurs.

Invariant: two values have one number only if equal operations made them of equal values.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from .._base.jaxlib_api import IrOperation, IrValue
from .mlir import maker
from .rows import step_of

_STEPS = 4
"""The operations in a row that make the form of a value."""

_ALONE = {"func.call", "stablehlo.custom_call"}
"""Operations that may return something else each time, or whose results others are equal to."""


class Forms:
    """The forms of values: their types, and the last steps that made them."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self._numbers: dict[Any, int] = {}
        self._found: dict[tuple[IrValue, int], int] = {}

    def of(self, x: IrValue) -> int:
        """Return a number that values of equal form share."""
        return self._of(x, self.steps)

    def _of(self, x: IrValue, steps: int) -> int:
        found = self._found.get((x, steps))
        if found is None:
            op = maker(x) if steps else None
            made = () if op is None else (op.name, *[self._of(y, steps - 1) for y in op.operands])
            found = self._numbers.setdefault((x.type, *made), len(self._numbers))
            self._found[x, steps] = found
        return found


class Numbers:
    """The numbers of the values of a module in which a walk comes by."""

    def __init__(self) -> None:
        self._of: dict[IrValue, Any] = {}
        self._made: dict[Any, int] = {}
        self._places: dict[Any, int] = {}
        self._forms = Forms(_STEPS)
        self._place_of: dict[int, int] = {}

    def of(self, x: IrValue) -> Any:
        """Return the number of a value; others have another one."""
        found = self._of.get(x)
        if found is None:
            found = self._of[x] = "alone", len(self._of)
        return found

    def place(self, x: IrValue) -> int:
        """Return a small number that equal values share, and values of equal form.

        Gradients of two layer norms in one program take a tenth longer for that (`minus_zero`), and
        twelve equal layers compile in half the time.
        """
        number = self.of(x)
        found = self._places.get(number)
        if found is None:
            form = self._forms.of(x)
            found = self._places[number] = self._place_of.setdefault(form, len(self._place_of))
        return found

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
