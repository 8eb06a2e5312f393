"""The wiring of an operation with programs: which value goes where.

Transformations that lift values pass through an operation by its `Wiring`, without other knowledge
of it.  Printers, checkers and lowering find its programs by the same means.

Invariant: a slot is a place where a value can be.  All ends of one wire are one slot (a loop's
carry going in and coming out; the results of all branches).
"""

from collections.abc import Callable, Iterable, Sequence
from types import EllipsisType
from typing import Any, NamedTuple

from .._types.avals import NOWHERE, Aval


class Part(NamedTuple):
    """One component of a lifted value: its type, and the position of the value's axes in it.

    `at[i]` is the component's axis that is axis `i` of the value; None if it lacks it.
    """

    aval: Aval
    at: tuple[int | None, ...]

    def spread(self, items: Iterable[object], new: object = None) -> tuple[Any, ...]:
        """Return `items`, one for each axis of the value, in the order of the component's axes;
        `new` stands at axes that the value lacks."""
        out: list[Any] = [new] * self.aval.ndim
        for k, item in zip(self.at, items, strict=True):
            if k is not None:
                out[k] = item
        return tuple(out)


class Ends(NamedTuple):
    """A custom rule, and the slots that its inputs and outputs belong to.

    The rule is a Thunk, or has a method `lift(carrier, ends, forms, before)`.  That method returns
    the rule on components for a transformation with these forms in its slots; `before` is the
    lifted rule that runs before this one.

    An Ellipsis stands for all remaining inputs or outputs: residuals, whose number is known only
    when the rule is made.  As outputs they keep the forms that they come in.  As inputs they have
    the forms of the residuals of the rule before.
    """

    rule: Any
    inputs: tuple[int | EllipsisType, ...]
    outputs: tuple[int | EllipsisType, ...]
    reverse: tuple[int, ...] = ()
    """For a rule for reverse mode, the slots of results whose cotangents are among its inputs.

    Its outputs are cotangents, too.  A lifted cotangent of a plain value is `collect`ed, since
    every part of the whole (every mapped example, say) used that value.  A plain cotangent of a
    plain result is `spread`."""
    along: Callable[[Any, int], Any] | None = None
    """For a rule for reverse mode, `along(program, k)` returns the derivative of its outputs along
    input `k`: a program of the inputs and the change of that input."""


class Slots:
    """The slots of an operation's operands, of its results, and of the inputs and outputs of its
    programs.

    Args:
      operands, outputs: the slot of each operand and of each result.
      bodies: (program, slots of its inputs, slots of its outputs) for each program.
      count: the number of slots.
      mapped: {slot: axes} that operands and results have and programs do not see (scan: axis 0 of
        its rows and stacked results; a comparator sees elements: all axes).
      cut: {slot: axes} that programs see a piece of, so that the size is another outside
        (shard_map).  The axes are numbered as programs see them.
      plain: slots that must not be lifted unless the transformation has a rule of its own (a
        predicate).
      sizes: slots that give the symbolic sizes of programs (the lengths of a pile).  They are
        plain, and decide nothing else.
      rules: `Ends` of custom rules, which are lifted when they are first needed.
      whole: True if, once one slot is lifted, every slot takes the form that any value of its type
        can have.  A rule that recovers operands from results needs it: it gives them in the form of
        the results.
      within: {slot: axes of a mesh} along which operands vary inside programs but not outside,
        since the operation binds these axes (shard_map: the axes that it divides an operand over).
      declared: {slot: axes of a mesh} along which results, and operands that no program sees, vary
        by the operation's parameters.  Such operands that vary along other axes make every result
        vary.

    `seen` are the slots that programs take their inputs from.
    """

    __slots__ = (
        "operands", "outputs", "bodies", "mapped", "plain", "sizes", "count", "rules",
        "whole", "within", "declared", "seen", "cut",
    )  # fmt: skip
    operands: tuple[int, ...]
    outputs: tuple[int, ...]
    bodies: tuple[tuple[Any, Sequence[int], Sequence[int]], ...]
    mapped: dict[int, tuple[int, ...]]
    plain: frozenset[int]
    sizes: frozenset[int]
    count: int
    rules: tuple[Ends, ...]
    whole: bool
    within: dict[int, frozenset[str]]
    declared: dict[int, frozenset[str]]
    seen: frozenset[int]
    cut: dict[int, tuple[int, ...]]

    def __init__(
        self,
        operands: Iterable[int],
        outputs: Iterable[int],
        bodies: Iterable[tuple[Any, Sequence[int], Sequence[int]]],
        count: int,
        mapped: dict[int, tuple[int, ...]] | None = None,
        plain: Iterable[int] = (),
        rules: Iterable[Ends] = (),
        whole: bool = False,
        within: dict[int, frozenset[str]] | None = None,
        declared: dict[int, frozenset[str]] | None = None,
        cut: dict[int, tuple[int, ...]] | None = None,
        sizes: Iterable[int] = (),
    ):
        self.operands, self.outputs = tuple(operands), tuple(outputs)
        self.bodies, self.count = tuple(bodies), count
        self.mapped, self.cut = mapped or {}, cut or {}
        self.sizes, self.rules = frozenset(sizes), tuple(rules)
        self.plain = self.sizes.union(plain)
        self.whole = whole
        self.within, self.declared = within or {}, declared or {}
        self.seen = frozenset([s for _, ins, _ in self.bodies for s in ins])


class Wiring:
    """The wiring that a primitive with programs declares.

    This base class serves an operation with one program, `params["program"]`, that takes all its
    operands and gives all its results: a call, a checkpoint.
    """

    custom: str = ""
    """The kind of custom rule that it carries ("derivative", ...).  Transformations that commute
    with that kind keep the rule; others apply the operation without it (`erase`)."""
    hint: bool = False
    """True if transformations may erase its custom rule without a warning: it is a name for
    compilers, or the rule was already used where the operation was made."""

    def slots(self, params: dict[str, Any]) -> Slots:
        """Return the slots of an operation with these parameters."""
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
        """Return (operands, parameters) of the same operation over other programs.

        Args:
          programs: one for each body, then one for each rule.
          parts: the components of each slot now, as seen from outside for operands and results.
          operands: the components of all operands, in order.
          extra: values that every program now takes in front of its inputs.
        """
        return [*extra, *operands], {**params, "program": programs[0]}

    def returned(
        self, params: dict[str, Any], parts: list[tuple[Part, ...]], values: Sequence[Any]
    ) -> Sequence[Any]:
        """Return the components of all results, as described by `parts`.

        Args:
          params: the parameters before `rebuild`.
          parts: the components of each slot, as in `rebuild`.
          values: the results of the rebuilt operation.
        """
        return values

    def carried(self, params: dict[str, Any]) -> Callable[..., Sequence[Any]] | None:
        """Return a function of the operands that gives the same results without stacking or joining
        any; None if there is none.

        A carrier uses it whose components lack the axis of rows or pieces: norms of rows do not
        stack to one of the whole.  Rows of a loop are written into a buffer, and examples of a pile
        computed at once, by operations that the carrier has rules for.
        """
        return None

    def binds(self, params: dict[str, Any]) -> frozenset[Any]:
        """Return the axis names that the operation binds for its programs."""
        return frozenset()

    def pending(self, params: dict[str, Any]) -> bool:
        """Return whether some parameters are Python functions that are not staged yet."""
        return False

    waits: bool = False
    """True if it may stay `pending` in a program that is transposed before any other use.  The
    transposition then runs its functions on values."""

    def settle(
        self, params: dict[str, Any], args: Sequence[Any]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        """Stage the Python functions among the parameters; return (operands, parameters).

        The values that they close over are added to the operands.  They cannot stay inside: a
        program is closed, and transformations that pass through later see operands only.  A
        derivative with respect to a captured value would be lost silently.
        """
        return args, params

    def fewer(
        self, params: dict[str, Any], used: Sequence[bool]
    ) -> tuple[Any, dict[str, Any], int] | None:
        """Return (primitive, parameters, n) of a cheaper operation with the first `n` results of
        this one.

        None if it has no such form, or if results beyond the first `n` are used.
        """
        return None

    def erase(self, prim: Any, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return (primitive, parameters) of the same operation without its custom rules."""
        return prim, params


def width(parts: Iterable[tuple[Part, ...]]) -> int:
    """Return the number of components of these slots."""
    return sum(map(len, parts))


def deciding(w: Slots, levels: Sequence[frozenset[str]]) -> frozenset[str]:
    """Return the axes of a mesh along which all values inside an operation vary.

    These are the axes along which plain slots (predicates) vary, and operands that no program sees,
    beyond the axes that the operation declares for them.  `levels` are the axes along which the
    value of each slot varies.
    """
    unseen = [levels[s] - w.declared.get(s, NOWHERE) for s in w.operands if s not in w.seen]
    return NOWHERE.union(*unseen, *(levels[s] for s in w.plain))
