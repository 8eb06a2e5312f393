"""Split, the interpreter of partial evaluation: the known is computed, the unknown is staged.

Linearizing is forward mode over `Split`: primals are known, tangents unknown.  The same class
divides Programs, the parent then being a Stage too.

Invariant: what touches no unknown runs in `parent` now; what touches one is recorded in `stage`.
The values that the stage captures are the residuals.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from plait.ext.ir import Program, Var, derived, evaluate
from plait.ext.rules import RuleTable, expand_rules
from plait.ext.trace import (
    Interpreter,
    Stage,
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
    """Runs what is known under `parent`, records the rest in `stage`."""

    does = "linearize"

    def __init__(self, parent: Interpreter, stage: Stage, of: Callable | None = None):
        open_under(self, parent)
        self.stage, self.beside, self.of = stage, stage, of

    def unknown(self, x: Any) -> bool:
        """Whether a value is the stage's."""
        return x.__class__ is Var and x.by is self.stage

    def apply(self, prim: Any, args: Any, params: dict) -> Any:
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
            if say is not None:  # say it with others, and divide those
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
        later.parent = known  # what is known may be captured by what is not
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


# ---- small tools of those who divide ---------------------------------------------------------


def divide(split: Split, args: Sequence[Any]) -> tuple[bool, ...]:
    """Which operands are unknown."""
    return tuple([split.unknown(a) for a in args])


def merge(mask: Iterable[bool], unknown: Iterable[Any], known: Iterable[Any]) -> list:
    """`unknown` where mask, `known` elsewhere, in order."""
    u, k = iter(unknown), iter(known)
    return [next(u) if m else next(k) for m in mask]


def part(xs: Iterable[Any], mask: Iterable[Any], value: bool = True) -> list:
    """Those whose mask is `value`."""
    return [x for x, m in zip(xs, mask, strict=True) if bool(m) is value]


def choose(program: Program, keep: tuple[bool, ...]) -> Program:
    """The program with only some of its results."""
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
    """Branches that were made alike.

    firsts: operands -> results, then places for residuals.
    seconds: these places, then the operands whose numbers are in `forwarded`, then the rest.
    """

    firsts: tuple[Program, ...]
    seconds: tuple[Program, ...]
    forwarded: tuple[int, ...]


def pooled(halves: Sequence[tuple[Program, Program, int]], n: int) -> Pooled:
    """Make branches (first, second, count) alike: a first program returns `n` results and its
    residuals, `count` of them, and its second takes these in front.

    A residual that is an operand is not handed back: whoever runs the second program has it still,
    and in a loop it may be the same in every turn.  Only one branch runs, so the residuals of all
    share places by their types; a branch writes zeros where another has more of a type.
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

        def returning(*xs: Any, p: Program = first, plan: list = plan) -> list:
            outs = evaluate(p, xs)
            values: list[Any] = [Literal(0, a) for a in places]
            for (is_operand, i), v in zip(plan, outs[n:], strict=True):
                if not is_operand:
                    values[i] = v
            return [*outs[:n], *values]

        def reading(*xs: Any, p: Program = second, plan: list = plan) -> list:
            mine = [xs[where[i] if is_operand else i] for is_operand, i in plan]
            return evaluate(p, [*mine, *xs[len(places) + len(forwarded) :]])

        firsts.append(staged(returning, first.in_avals, first.name, prune=True))
        types = [*places, *(first.in_avals[i] for i in forwarded), *second.in_avals[count:]]
        seconds.append(staged(reading, types, second.name, prune=True))
    return Pooled(tuple(firsts), tuple(seconds), forwarded)


def steady(program: Program, start: int, count: int) -> list[bool]:
    """Of each result from number `start` on, whether it depends on the first `count` inputs alone,
    and need not be computed again in every turn of a loop in which these stay as they are."""
    if program.effects:
        return [False] * (len(program.outputs) - start)
    varying = set(program.inputs[count:])
    for e in program.eqns:
        if any(a in varying for a in e.inputs if a.__class__ is Var):
            varying.update(e.outputs)
    return [a.__class__ is not Var or a not in varying for a in program.outputs[start:]]
