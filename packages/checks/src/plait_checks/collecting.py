"""Programs that return their findings, besides their results.

A program is rewritten to return a code, and arrays for messages, before its results.  Calls pass
them on, and so does every operation with programs that has a rule in the table `runs`.  An
operation with a custom rule is kept, and computed once more without the rule to find errors: the
rule accepts only the results of its own function.

Invariant: results are those of the original program; a collected check is removed, and any other
check stays, unless `LeftOut` is among the kinds.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from plait.ext import Aval, MissingRule, Program, evaluate, programs_in, staged
from plait.ext.ir import Eqn, Thunk, Var, derived
from plait.ext.observers import Loop, Passage, Watched, pass_through
from plait.ext.ops.checks import CHECK, check_p
from plait.ext.ops.elementwise import stop
from plait.ext.trace import Value, as_list, with_lines
from plait.numpy import argmax

from .automatic import look_at
from .errors import CheckError, ErrorCategory, FailedCheckError, Place
from .findings import NOTHING, Findings, Rethrown, first_of, none_of, rows_of, state_of

__all__ = ["LeftOut", "Checked", "Collector", "checked"]


class LeftOut(CheckError):
    """A kind beside others: checks of kinds that are not looked for are left out."""


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


class Collector(Findings, Passage):
    """The findings of a program during the walk over it; rules of the table `runs` take it."""

    picks = True
    smooth = False
    where: Any = None
    """The user's line of the operation that is applied."""

    def sees(self, program: Program) -> bool:
        """Return whether a program can have findings."""
        return bool(checked(program, self.kinds).places)

    def once(self, program: Program) -> Watched:
        """Return a program that returns its findings."""
        made = checked(program, self.kinds)
        return Watched(made.program, width=made.width, note=made)

    def choice(self, programs: Sequence[Program]) -> list[Watched]:
        """Return branches that each return the findings of all: those of the others are empty."""
        branches = [checked(b, self.kinds) for b in programs]
        places = tuple([p for b in branches for p in b.places])
        first = [0, *accumulate(len(b.places) for b in branches)]
        states = [b.state for b in branches]

        def aligned(k: int) -> Program:
            def run(*args: Any) -> list[Any]:
                outs = evaluate(branches[k].program, args)
                mine = Findings(self.kinds)
                own = branches[k].taken(mine, outs)
                code: Any = mine.code if mine.places else NOTHING
                code = (code >= 0) * (code + first[k] + 1) - 1
                payload = [mine.payload if j == k else none_of(s[1:]) for j, s in enumerate(states)]
                return [code, *(x for xs in payload for x in xs), *own]

            return staged(run, programs[k].in_avals, programs[k].name)

        made = [Checked(aligned(k), places) for k in range(len(branches))]
        return [Watched(c.program, width=c.width, note=c) for c in made]

    def taken(self, watched: Watched, outs: Sequence[Any]) -> list[Any]:
        """Add the findings of a program, given all results; return its own results."""
        return watched.note.taken(self, outs)

    def turns(self, program: Program, length: Any) -> Loop:
        """Return a program that carries the findings."""
        turn = checked(program, self.kinds)
        w = turn.width

        def step(*args: Any) -> list[Any]:
            state = Findings(self.kinds, turn.places, args[0], args[1:w])
            outs = evaluate(turn.program, args[w:])
            state.meet_again(outs[0], outs[1:w], 0)
            return [*state.values, *outs[w:]]

        made = turn.program
        if w:
            made = staged(step, [*turn.state, *program.in_avals], program.name)
        return Loop(made, state=tuple(state_of(turn.state)), note=turn)

    def taken_turns(self, loop: Loop, state: Sequence[Any], seen: Sequence[Any]) -> None:
        """Add the findings that a loop carried."""
        if state:
            self.meet(state[0], loop.note.places, state[1:])

    def examples(
        self, program: Program, count: Any, along: frozenset[str] = frozenset()
    ) -> Watched:
        """Return a program that returns the findings of one of several runs."""
        return self.once(program)

    def taken_examples(
        self,
        watched: Watched,
        outs: Sequence[Any],
        words: Callable[[int], str] | None = None,
        there: Any = None,
    ) -> list[Any]:
        """Add the findings of the first run with any; `words(number)` names it in messages.

        Runs that are not `there` have none."""
        w, places = watched.width, watched.note.places
        if w and outs[0].aval.shape == (0,):
            self.meet(NOTHING, places, none_of(watched.note.state[1:]))
        elif w:
            codes = outs[0] if there is None else there * (outs[0] + 1) - 1
            at = argmax(codes >= 0)
            code, *payload = [x[at] for x in (codes, *outs[1:w])]
            if words is None:
                self.meet(code, places, payload)
            else:
                self.meet_at(code, places, payload, at, words)
        return list(outs[w:])

    def finds(self, outs: Sequence[Any]) -> Any:
        """Return whether a run has a finding."""
        return outs[0] >= 0

    def taken_one(
        self, watched: Watched, at: Any, outs: Sequence[Any], words: Callable[[int], str]
    ) -> list[Any]:
        """Add the findings of run number `at`."""
        w = watched.width
        self.meet_at(outs[0], watched.note.places, outs[1:w], at, words)
        return list(outs[w:])

    def bare(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return parameters whose programs have no checks, for programs that run without checks."""
        return {k: _without_checks(v, self.kinds) for k, v in params.items()}

    def custom(self, prim: Any, args: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        """Apply an operation with a custom rule as it is, and once more without the rule, to find
        errors.  The compiler merges the two computations."""
        outs = as_list(prim.bind(*args, **self.bare(params)))
        erased, inside = prim.higher.erase(prim, params)
        held = [stop.bind(x) if x.aval.inexact else x for x in args]
        _through(erased, held, inside, self)
        return outs

    def unruled(
        self, prim: Any, args: Sequence[Any], params: dict[str, Any], fix: str
    ) -> Sequence[Any]:
        """Apply an operation without a rule, and look at its results.

        Raises MissingRule if a user's check is inside.
        """
        inner = [checked(p, self.kinds) for p in programs_in(params)]
        lost = [p for c in inner for p in c.places if p.kind is FailedCheckError]
        if lost:
            raise MissingRule(
                f"a check inside of {prim} cannot be collected",
                where=lost[0].where,
                fix="check before it or after it, or call checkify inside of it and return the "
                f"error; its author gives it a rule:  {fix}",
            )
        outs = as_list(prim.bind(*args, **params))
        look_at(self, prim, args, outs, params, self.where)
        return outs


def checked(program: Program, kinds: ErrorCategory) -> Checked:
    """Return the program that returns its findings of these kinds."""
    made = derived(program, ("checked", kinds), lambda: _made(program, kinds))
    if made is not None:
        return made
    return Checked(_without_checks(program, kinds) if LeftOut in kinds else program, ())


def _made(program: Program, kinds: ErrorCategory) -> Checked | None:
    """Return the program that returns its findings; None if it has no check of these kinds."""
    found = Collector(kinds)

    def run(*args: Value) -> list[Any]:
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
        found.where = e.where
        return _through(e.prim, ins, e.params, found)
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
    elif LeftOut not in found.kinds:
        check_p.bind(*ins, **params)


def _error(ins: Sequence[Any], said: Rethrown, params: dict[str, Any], found: Collector) -> None:
    """Collect an Error that is checked; other kinds stay as a check, unless they are left out."""
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
        if LeftOut not in found.kinds:
            check_p.bind(others, *ins[1:], **params)
        code = (others * (code + 1)) - 1  # errors of other kinds become -1, no finding
    if ours and code.aval.ndim:
        flat = [x.reshape((-1, *x.aval.shape[code.aval.ndim :])) for x in (code, *payload)]
        code, payload = first_of(flat[0], flat[1:])
    if ours:
        found.meet(code, said.places, payload)


# ---- operations with programs ----------------------------------------------------------------


def _through(prim: Any, ins: Sequence[Any], params: dict[str, Any], found: Collector) -> list[Any]:
    """Apply an operation with programs."""
    if prim.higher.pending(params):
        ins, params = prim.higher.settle(params, ins)
    if not any(map(found.sees, programs_in(params))):
        left = found.bare(params) if LeftOut in found.kinds else params
        return as_list(prim.bind(*ins, **left))
    return list(pass_through(found, prim, ins, params))


def _without_checks(x: Any, kinds: ErrorCategory) -> Any:
    """Return a parameter without checks of these kinds in its programs."""
    if x.__class__ is tuple:
        return tuple([_without_checks(v, kinds) for v in x])
    if not kinds & {FailedCheckError, LeftOut}:
        return x
    if x.__class__ is Thunk:
        return _rule_without_checks(x, kinds)
    if x.__class__ is not Program or CHECK not in x.effects:
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
