"""Split, the interpreter of partial evaluation: compute known values, stage unknown ones.

Linearizing is forward mode over `Split`: primals are known, tangents unknown.  The same class
divides Programs; its parent is then a Stage, too.

Invariant: an operation without unknown operands runs in `parent` now; one with an unknown operand
is recorded in `stage`.  The values that the stage captures are the residuals.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from plait.ext.ir import Program, Var, derived, evaluate
from plait.ext.rules import RuleTable, expand_rules
from plait.ext.trace import (
    Interpreter,
    Stage,
    Value,
    apply_through,
    as_list,
    collector_paused,
    handle_among,
    open_under,
    staged,
    use,
)
from plait.ext.values import Literal

split_rules = RuleTable(
    "split",
    programs="(split, args, params)",
    doc="results: how an operation with programs divides into one "
    "applied now and one recorded in split.stage; the parent is current.",
)


class Split(Interpreter):
    """Runs operations on known values under `parent`, and records the others in `stage`."""

    does = "linearize"

    def __init__(self, parent: Interpreter, stage: Stage, of: Callable | None = None):
        open_under(self, parent)
        self.stage, self.beside, self.of = stage, stage, of

    def unknown(self, x: Any) -> bool:
        """Return whether a value belongs to the stage."""
        return x.__class__ is Var and x.by is self.stage

    def apply(self, prim: Any, args: Any, params: dict[str, Any]) -> Any:
        stage = self.stage
        for a in args:
            if a.__class__ is Var and a.by is stage:
                break
        else:
            return self.parent.apply(prim, args, params)  # type: ignore[union-attr]
        if prim.higher is not None:
            rule = split_rules.find(prim)
            if rule is not None:
                if prim.higher.pending(params):
                    args, params = prim.higher.settle(params, args)
                    handle = handle_among(args)
                    if handle is not None:
                        return apply_through(self, handle, prim, args, params)
                with use(self.parent):  # type: ignore[arg-type]
                    return rule(self, args, params)
            say = expand_rules.find(prim)
            if say is not None:  # divide the operations of its expansion
                with use(self):
                    return as_list(say(*args, **params))
        return stage.apply(prim, args, params)


class Halves(NamedTuple):
    """A divided program.

    known: known inputs -> known outputs, then residuals.
    unknown: residuals, then unknown inputs -> unknown outputs.
    """

    known: Program
    unknown: Program
    out_unknown: tuple[bool, ...]
    residuals: int


def split_program(
    program: Program, unknown: tuple[bool, ...], force: tuple[bool, ...] | None = None
) -> Halves:
    """Divide a program by which inputs are unknown; outputs in `force` are made unknown."""

    def make() -> Halves:
        known, later = Stage(None, "split"), Stage(None, "split")
        later.settles = False
        later.parent = known  # the unknown half may capture values of the known one
        s = Split(known, later)
        try:
            with collector_paused():
                args = [
                    (later if u else known).input(v.aval)
                    for u, v in zip(unknown, program.inputs, strict=True)
                ]
                with use(s):
                    outs = evaluate(program, args)
                out_unknown = tuple(
                    [s.unknown(o) or bool(force and force[i]) for i, o in enumerate(outs)]
                )
                linear, residuals = later.close(part(outs, out_unknown), program.name, prune=True)
                results = [*part(outs, out_unknown, False), *residuals]
                first, _ = known.close(results, program.name, prune=True)
                return Halves(first, linear, out_unknown, len(residuals))
        finally:
            known.abandon()
            later.abandon()

    return derived(program, ("split", unknown, force), make)


# ---- tools for divided programs --------------------------------------------------------------


def divide(split: Split, args: Sequence[Any]) -> tuple[bool, ...]:
    """Return which operands are unknown."""
    return tuple([split.unknown(a) for a in args])


def merge(mask: Iterable[bool], unknown: Iterable[Any], known: Iterable[Any]) -> list[Any]:
    """Return `unknown` where the mask is true and `known` elsewhere, in order."""
    u, k = iter(unknown), iter(known)
    return [next(u) if m else next(k) for m in mask]


def part(xs: Iterable[Any], mask: Iterable[Any], value: bool = True) -> list[Any]:
    """Return the items whose mask is `value`."""
    return [x for x, m in zip(xs, mask, strict=True) if bool(m) is value]


def choose(program: Program, keep: tuple[bool, ...]) -> Program:
    """Return the program with some of its results only."""
    if all(keep):
        return program
    return derived(
        program,
        ("choose", keep),
        lambda: staged(
            lambda *xs: part(evaluate(program, xs), keep), program.in_avals, program.name, True
        ),
    )


class Pooled(NamedTuple):
    """Branches with equal types.

    firsts: operands -> results, then places for residuals.
    seconds: these places, then the operands whose numbers are in `forwarded`, then the rest.
    """

    firsts: tuple[Program, ...]
    seconds: tuple[Program, ...]
    forwarded: tuple[int, ...]


def pooled(halves: Sequence[tuple[Program, Program, int]], n: int) -> Pooled:
    """Give branches (first, second, count) equal types.

    Each first program returns `n` results, then its `count` residuals; each second program takes
    the residuals in front.  A residual that is an operand is not returned: the caller of the
    second program still has it, and in a loop it may be the same in every turn.  Only one branch
    runs, so the branches share places for residuals by type.  A branch writes zeros into places
    that it does not use.
    """
    places: list[Any] = []
    plans: list[list[tuple[bool, int]]] = []
    for first, _, _ in halves:
        numbers = {v: i for i, v in enumerate(first.inputs)}
        taken: set[int] = set()
        plan: list[tuple[bool, int]] = []
        for a in first.outputs[n:]:
            if a.__class__ is Var and a in numbers:
                plan.append((True, numbers[a]))
                continue
            free = (i for i, t in enumerate(places) if t is a.aval and i not in taken)
            at = next(free, len(places))
            if at == len(places):
                places.append(a.aval)
            taken.add(at)
            plan.append((False, at))
        plans.append(plan)
    forwarded = tuple(sorted({i for plan in plans for is_operand, i in plan if is_operand}))
    where = {i: len(places) + k for k, i in enumerate(forwarded)}
    firsts, seconds = [], []
    for (first, second, count), plan in zip(halves, plans, strict=True):

        def returning(*xs: Value, p: Program = first, plan: list = plan) -> list:
            outs = evaluate(p, xs)
            values: list[Any] = [Literal(0, a) for a in places]
            for (is_operand, i), v in zip(plan, outs[n:], strict=True):
                if not is_operand:
                    values[i] = v
            return [*outs[:n], *values]

        def reading(*xs: Value, p: Program = second, plan: list = plan) -> list:
            mine = [xs[where[i] if is_operand else i] for is_operand, i in plan]
            return evaluate(p, [*mine, *xs[len(places) + len(forwarded) :]])

        firsts.append(staged(returning, first.in_avals, first.name, prune=True))
        types = [*places, *(first.in_avals[i] for i in forwarded), *second.in_avals[count:]]
        seconds.append(staged(reading, types, second.name, prune=True))
    return Pooled(tuple(firsts), tuple(seconds), forwarded)


def steady(program: Program, start: int, count: int) -> list[bool]:
    """Return, for each result from number `start` on, whether it is the same in every turn.

    It is if it depends only on the first `count` inputs, which stay the same in the loop.
    """
    if program.effects:
        return [False] * (len(program.outputs) - start)
    varying = set(program.inputs[count:])
    for e in program.eqns:
        if any(a in varying for a in e.inputs if a.__class__ is Var):
            varying.update(e.outputs)
    return [a.__class__ is not Var or a not in varying for a in program.outputs[start:]]
