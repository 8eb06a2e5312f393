"""How an operation that carries programs is wired to them.

With a `Wiring` every transformation that lifts values passes through the operation, and printers,
checkers and lowering find its programs, without knowing the operation.

Invariant: a slot is a place a value can be; two ends of one wire are one slot (a loop's carry
going in and coming out; the results of all branches).
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .._types.avals import Aval


class Part(NamedTuple):
    """One component of a lifted value: its type, and where it has the axes of the value.

    `at[i]` is the component's axis that is axis `i` of the value; None if it lacks it.
    """

    aval: Aval
    at: tuple[int | None, ...]

    def spread(self, items: Iterable[Any], new: Any = None) -> tuple[Any, ...]:
        """What `items` say of the value's axes, said of the component's; `new` of the others."""
        out: list[Any] = [new] * self.aval.ndim
        for k, item in zip(self.at, items, strict=True):
            if k is not None:
                out[k] = item
        return tuple(out)


class Ends(NamedTuple):
    """A custom rule and the slots its inputs and outputs belong to.

    The rule is a Thunk, or has a method `lift(carrier, ends, forms) -> a rule`: the same on the
    components of a transformation that has these forms in its slots.

    An Ellipsis stands for all inputs or outputs that are left (residuals, whose number is known
    only when the rule is made); they take the transformation's `whole` form.
    """

    rule: Any
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


class Slots:
    """Which slots operands, results, and the ends of programs are.

    Args:
      operands, outputs: the slot of each operand and of each result.
      bodies: (program, slots of its inputs, slots of its outputs) for each program.
      count: the number of slots.
      mapped: {slot: axes} that operands and results have and programs do not see (scan: axis 0
        of its rows and stacked results; a comparator sees elements: all axes).
      plain: slots that must not be lifted unless the transformation has a rule of its own (a
        predicate).
      rules: `Ends` of custom rules, which are lifted when somebody asks for them.
    """

    __slots__ = ("operands", "outputs", "bodies", "mapped", "plain", "count", "rules")

    def __init__(
        self,
        operands: Iterable[int],
        outputs: Iterable[int],
        bodies: Iterable[tuple[Any, Sequence[int], Sequence[int]]],
        count: int,
        mapped: dict[int, tuple[int, ...]] | None = None,
        plain: Iterable[int] = (),
        rules: Iterable[Ends] = (),
    ):
        self.operands, self.outputs = tuple(operands), tuple(outputs)
        self.bodies, self.count = tuple(bodies), count
        self.mapped = mapped or {}
        self.plain, self.rules = frozenset(plain), tuple(rules)


class Wiring:
    """What a primitive with programs declares.  This base serves an operation with one program,
    `params["program"]`, on all its operands: a call, and whatever is a call with a twist."""

    custom: str = ""
    """The kind of custom rule it carries ("derivative", ...): transformations that commute with
    that kind keep it, others see the operation without its rule (`erase`)."""

    def slots(self, params: dict[str, Any]) -> Slots:
        """The wiring of an operation with these parameters."""
        p = params["program"]
        n, m = len(p.inputs), len(p.outputs)
        ins, outs = range(n), range(n, n + m)
        return Slots(ins, outs, [(p, ins, outs)], n + m)

    def rebuild(
        self,
        params: dict[str, Any],
        programs: list[Any],
        parts: list[tuple[Part, ...]],
        operands: list[Any],
        extra: list[Any],
    ) -> tuple[list[Any], dict[str, Any]]:
        """(operands, parameters) of the same operation over other programs.

        Args:
          programs: one for each body, then one for each rule.
          parts: what slot `s` is now; as seen from outside for operands and results.
          operands: the components of all operands, in order.
          extra: values that every program now takes in front of its inputs.
        """
        return [*extra, *operands], {**params, "program": programs[0]}

    def binds(self, params: dict[str, Any]) -> frozenset[Any]:
        """Axis names that it gives meaning to, for its programs."""
        return frozenset()

    def pending(self, params: dict[str, Any]) -> bool:
        """Whether some parameters are Python functions that are not staged yet."""
        return False

    def settle(
        self, params: dict[str, Any], args: Sequence[Any]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        """The operation with its Python functions staged; what they close over is added to the
        operands."""
        return args, params

    def fewer(
        self, params: dict[str, Any], used: Sequence[bool]
    ) -> tuple[Any, dict[str, Any], int] | None:
        """(primitive, parameters, n): what gives its first `n` results, if no others are used and
        there is a cheaper way to them; None to leave it as it is."""
        return None

    def erase(self, prim: Any, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The same operation without its custom rules."""
        return prim, params


def width(parts: Iterable[tuple[Part, ...]]) -> int:
    """How many values these slots are."""
    return sum(map(len, parts))
