"""Programs that return their findings, besides their results.

A program is rewritten to return a code, and arrays for messages, before its results.  Calls,
branches and loops pass them on, and so does every operation with programs that has a rule in the
table `checks`.  An operation with a custom rule is kept, and computed once more without the rule to
find errors: the rule accepts only the results of its own function.

Invariant: results are those of the original program; a collected check is removed, and any other
check stays.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from plait.ext import Aval, MissingRule, Program, Wiring, evaluate, programs_in, staged
from plait.ext.ir import Eqn, Thunk, Var, derived
from plait.ext.ops.checks import CHECK, check_p
from plait.ext.ops.control_flow import cond, map_axes, scan, while_
from plait.ext.ops.elementwise import stop
from plait.ext.rules import checks_rules
from plait.ext.trace import as_list, with_lines
from plait.numpy import argmax

from .automatic import look_at
from .errors import ErrorCategory, FailedCheckError, Place
from .findings import NOTHING, Findings, Rethrown, first_of, none_of, rows_of, state_of

__all__ = ["Checked", "Collector", "checked"]


class Checked(NamedTuple):
    """A program whose results are its findings followed by its own results, and its places.

    It is the original program if it has no places.
    """

    program: Program
    places: tuple[Place, ...]

    @property
    def width(self) -> int:
        """The number of results that hold findings."""
        return 1 + sum(p.count for p in self.places) if self.places else 0

    @property
    def state(self) -> list[Aval]:
        """The types of these results."""
        return [a.strong() for a in self.program.out_avals[: self.width]]

    def taken(self, findings: Findings, outs: Sequence[Any]) -> list[Any]:
        """Add the findings, given all results; return the program's own results."""
        if self.places:
            findings.meet(outs[0], self.places, outs[1 : self.width])
        return list(outs[self.width :])


class Collector(Findings):
    """The findings of a program during the walk over it; rules of the table `checks` take it."""

    def checked(self, program: Program) -> Checked:
        """Return a program of an operation that returns its findings, if it can have any.

        Pass all its results to `taken` or `taken_first`, or the findings of one of several runs to
        `meet_at`.
        """
        return checked(program, self.kinds)

    def taken(self, inner: Checked, outs: Sequence[Any]) -> list[Any]:
        """Add the findings of a program of `checked`, given all results; return its own results."""
        return inner.taken(self, outs)

    def taken_first(
        self, inner: Checked, outs: Sequence[Any], words: Callable[[int], str] | None = None
    ) -> list[Any]:
        """Do as `taken` for several runs, given their findings along a leading axis.

        The first run with a finding counts, and `words(number)` names it in messages.
        """
        w = inner.width
        if not w:
            return list(outs)
        at = argmax(outs[0] >= 0)
        code, *payload = [x[at] for x in outs[:w]]
        if words is None:
            self.meet(code, inner.places, payload)
        else:
            self.meet_at(code, inner.places, payload, at, words)
        return list(outs[w:])

    def unchecked(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return parameters whose programs have no checks, for programs that run without checks."""
        return {k: _without_checks(v, self.kinds) for k, v in params.items()}


def checked(program: Program, kinds: ErrorCategory) -> Checked:
    """Return the program that returns its findings of these kinds."""
    made = derived(program, ("checked", kinds), lambda: _made(program, kinds))
    return Checked(program, ()) if made is None else made


def _made(program: Program, kinds: ErrorCategory) -> Checked | None:
    """Return the program that returns its findings; None if it has no check of these kinds."""
    found = Collector(kinds)

    def run(*args: Any) -> list[Any]:
        outs = _walked(program, args, found)
        return [*found.values, *outs]

    made = staged(run, program.in_avals, program.name)
    return Checked(made, tuple(found.places)) if found.places else None


def _walked(program: Program, args: Sequence[Any], found: Collector) -> list[Any]:
    """Apply the equations under the current interpreter, and add their findings."""
    env: dict[Any, Any] = dict(zip(program.inputs, args, strict=True))
    env.update(program.consts)
    with with_lines() as recorders:
        for e in program.eqns:
            for p in recorders:
                p.where = e.where
            ins = [env[a] if a.__class__ is Var else a for a in e.inputs]
            env.update(zip(e.outputs, _applied(e, ins, found), strict=True))
    return [env[a] if a.__class__ is Var else a for a in program.outputs]


def _applied(e: Eqn, ins: Sequence[Any], found: Collector) -> list[Any]:
    """Apply one equation."""
    if e.prim is check_p:
        _check(ins, e.params, found)
        return []
    if e.prim.higher is not None:
        return _through(e, ins, found)
    outs = as_list(e.prim.bind(*ins, **e.params))
    look_at(found, e.prim, ins, outs, e.params, e.where)
    return outs


def _check(ins: Sequence[Any], params: dict[str, Any], found: Collector) -> None:
    """Collect a check, or leave it if its kind is not looked for."""
    said = params["said"]
    if isinstance(said, Rethrown):
        _error(ins, said, params, found)
    elif said.kind in found.kinds:
        found.report(ins[0], said, ins[1:])
    else:
        check_p.bind(*ins, **params)


def _error(ins: Sequence[Any], said: Rethrown, params: dict[str, Any], found: Collector) -> None:
    """Collect an Error that is checked; other kinds stay as a check."""
    ndim = ins[0].aval.ndim
    if 0 in ins[0].aval.shape:  # without examples nothing can fail
        found.meet(NOTHING, said.places, none_of(rows_of(ins[2:], ndim)))
        return
    ours = [k for k, p in enumerate(said.places) if p.kind in found.kinds]
    code, payload = ins[1], list(ins[2:])
    if len(ours) < len(said.places):
        others = code < 0
        for k in ours:
            others = others | (code == k)
        check_p.bind(others, *ins[1:], **params)
        code = (others * (code + 1)) - 1  # errors of other kinds become -1, no finding
    if ours and code.aval.ndim:
        flat = [x.reshape((-1, *x.aval.shape[code.aval.ndim :])) for x in (code, *payload)]
        code, payload = first_of(flat[0], flat[1:])
    if ours:
        found.meet(code, said.places, payload)


# ---- operations with programs ----------------------------------------------------------------


def _through(e: Eqn, ins: Sequence[Any], found: Collector) -> list[Any]:
    """Apply an operation with programs."""
    prim, params, higher = e.prim, e.params, e.prim.higher
    assert higher is not None
    if higher.pending(params):
        ins, params = higher.settle(params, ins)
    inner = [found.checked(p) for p in programs_in(params)]
    if not any(c.places for c in inner):
        return as_list(prim.bind(*ins, **params))
    rule = checks_rules.find(prim)
    if rule is not None:
        return rule(found, ins, params)
    if type(higher) is Wiring:
        outs = prim.bind(*ins, **{**params, "program": inner[0].program})
        return found.taken(inner[0], outs)
    if higher.custom:
        return _twice(e, ins, params, found)
    outs = as_list(prim.bind(*ins, **params))
    lost = [p for c in inner for p in c.places if p.kind is FailedCheckError]
    if lost:
        raise MissingRule(
            f"a check inside of {prim} cannot be collected",
            where=lost[0].where,
            fix="check before it or after it, or call checkify inside of it and return the error; "
            f"its author gives it a rule:  @checks_rules.rule({prim.name.rpartition('.')[2]})",
        )
    look_at(found, prim, ins, outs, params, e.where)
    return outs


def _twice(e: Eqn, ins: Sequence[Any], params: dict[str, Any], found: Collector) -> list[Any]:
    """Apply an operation with a custom rule as it is, and once more without the rule, to find
    errors.  The compiler merges the two computations."""
    outs = as_list(e.prim.bind(*ins, **found.unchecked(params)))
    prim, inside = e.prim.higher.erase(e.prim, params)
    held = [stop.bind(x) if x.aval.inexact else x for x in ins]
    _through(Eqn(prim, e.inputs, e.outputs, inside, e.where), held, found)
    return outs


def _without_checks(x: Any, kinds: ErrorCategory) -> Any:
    """Return a parameter without checks of these kinds in its programs."""
    if x.__class__ is tuple:
        return tuple([_without_checks(v, kinds) for v in x])
    if x.__class__ is Thunk and FailedCheckError in kinds:
        return _rule_without_checks(x, kinds)
    if x.__class__ is not Program or CHECK not in x.effects or FailedCheckError not in kinds:
        return x

    def make() -> Program:
        kept = [
            Eqn(
                e.prim,
                e.inputs,
                e.outputs,
                {k: _without_checks(v, kinds) for k, v in e.params.items()},
                e.where,
            )
            for e in x.eqns
            if e.prim is not check_p
        ]
        bare = Program(x.inputs, kept, x.outputs, x.name, x.consts)
        return staged(lambda *args: evaluate(bare, args), x.in_avals, x.name)

    return derived(x, ("without checks", kinds), make)


def _rule_without_checks(rule: Thunk, kinds: ErrorCategory) -> Thunk:
    """Return a custom rule without checks; like the rule itself, it is made when it is needed."""
    key = "without checks", kinds
    hit = rule.lifted.get(key)
    if hit is None:

        def make() -> tuple[Program, tuple[Any, ...]]:
            program = _without_checks(rule.get(), kinds)
            return program, rule.rest

        hit = rule.lifted[key] = Thunk(make)
    return hit


@checks_rules.rule(cond)
def _cond(found: Collector, ins: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Let every branch return the findings of all branches; those of the others are empty."""
    branches = [checked(b, found.kinds) for b in params["branches"]]
    places = [p for b in branches for p in b.places]
    first = [0, *accumulate(len(b.places) for b in branches)]
    states = [b.state for b in branches]

    def aligned(k: int) -> Program:
        def run(*args: Any) -> list[Any]:
            outs = evaluate(branches[k].program, args)
            mine = Findings(found.kinds)
            own = branches[k].taken(mine, outs)
            code: Any = mine.code if mine.places else NOTHING
            code = (code >= 0) * (code + first[k] + 1) - 1
            payload = [mine.payload if j == k else none_of(s[1:]) for j, s in enumerate(states)]
            return [code, *(x for xs in payload for x in xs), *own]

        b = params["branches"][k]
        return staged(run, b.in_avals, b.name)

    outs = cond.bind(*ins, branches=tuple([aligned(k) for k in range(len(branches))]))
    n = 1 + sum(p.count for p in places)
    found.meet(outs[0], places, outs[1:n])
    return list(outs[n:])


@checks_rules.rule(while_)
def _while(found: Collector, ins: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Carry the findings; carry the result of the predicate too, if it has findings."""
    going, turn = (checked(params[k], found.kinds) for k in ("cond", "body"))
    a, b = params["cond_consts"], params["body_consts"]
    ours, theirs, init = ins[:a], ins[a : a + b], ins[a + b :]
    places = (*turn.places, *going.places)
    nothing = none_of([*turn.state[1:], *going.state[1:]])
    start = Findings(found.kinds, places, NOTHING, nothing)
    asks = bool(going.places)
    w = len(start.values)

    def asked(state: Findings, consts: Sequence[Any], carry: Sequence[Any]) -> list[Any]:
        """Return the predicate's result for a carry, if it is computed beforehand."""
        if not asks:
            return []
        outs = evaluate(going.program, [*consts, *carry])
        _again(state, outs, going, len(turn.places))
        return outs[going.width :]

    def more(*args: Any) -> list[Any]:
        held = args[a + w :]
        return [held[0]] if asks else evaluate(params["cond"], [*args[:a], *held])

    def step(*args: Any) -> list[Any]:
        consts, rest = args[:b], args[b + a :]
        state = Findings(found.kinds, places, rest[0], rest[1:w])
        outs = evaluate(turn.program, [*consts, *rest[w + asks :]])
        _again(state, outs, turn, 0)
        carry = outs[turn.width :]
        front = asked(state, args[b : b + a], carry)  # adds to the state
        return [*state.values, *front, *carry]

    front = asked(start, ours, init)  # adds to the start
    carried = [*start.values, *front, *init]
    types = [x.aval for x in carried]
    outs = while_.bind(
        *ours,
        *theirs,
        *ours,
        *carried,
        **{
            **params,
            "cond": staged(more, [*(x.aval for x in ours), *types], params["cond"].name),
            "body": staged(
                step, [*(x.aval for x in (*theirs, *ours)), *types], params["body"].name
            ),
            "body_consts": a + b,
        },
    )
    found.meet(outs[0], places, outs[1:w])
    return list(outs[w + asks :])


@checks_rules.rule(scan)
def _scan(found: Collector, ins: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Carry the findings."""
    turn = checked(params["body"], found.kinds)
    k, w = params["consts"], turn.width
    first = state_of(turn.state)

    def step(*args: Any) -> list[Any]:
        state = Findings(found.kinds, turn.places, args[k], args[k + 1 : k + w])
        outs = evaluate(turn.program, [*args[:k], *args[k + w :]])
        _again(state, outs, turn, 0)
        return [*state.values, *outs[w:]]

    types = turn.program.in_avals
    body = staged(step, [*types[:k], *turn.state, *types[k:]], params["body"].name)
    new = {**params, "body": body, "carry": params["carry"] + w}
    outs = scan.bind(*ins[:k], *first, *ins[k:], **new)
    return found.taken(turn, outs)


def _again(state: Findings, outs: Sequence[Any], turn: Checked, first: int) -> None:
    """Add the findings of a further turn."""
    if turn.places:
        state.meet_again(outs[0], outs[1 : turn.width], first)


@checks_rules.rule(map_axes)
def _mapped(found: Collector, ins: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Map the rows; the first row with a finding counts."""
    row = checked(params["program"], found.kinds)
    if params["size"] == 0:
        found.meet(NOTHING, row.places, none_of(row.state[1:]))
        return map_axes.bind(*ins, **found.unchecked(params))
    new = {
        **params,
        "program": row.program,
        "out_axes": (*(0,) * row.width, *params["out_axes"]),
    }
    return found.taken_first(row, map_axes.bind(*ins, **new))
