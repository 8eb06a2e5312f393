"""Reverse mode by inversion: operands are recovered from results, and few values are saved.

A program's results are known when it is reversed.  If an operation has an inverse and its results
are known, its operands are recovered from them.  If its operands are known, it is computed again.
Values that neither way provides follow from saved inputs of the program, which are chosen to be
few and small.

Invariant: which values can be recovered follows from their dependencies, not from the order of
equations.  Values are recovered when a derivative needs them, so that at any time only the values
that one equation needs have to be alive.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

from plait.ext.ir import (
    Eqn,
    Program,
    Var,
    derived,
    effects_of,
    evaluate,
    inline_calls,
    live_equations,
)
from plait.ext.rules import RuleTable
from plait.ext.trace import Value, as_list, current, staged, with_lines
from plait.ext.types import Aval
from plait.ext.values import Literal

from ..equation_derivative import EquationDerivative, differential
from ..split import choose, merge, part
from ..transpose import Linear, Step, backward, free_of_shardings, pull_back, solid_ct

__all__ = ["Reverse", "Unknown", "inverse_rules", "reverse"]

inverse_rules = RuleTable(
    "inverse",
    signature="(out, *args, **params)",
    programs="(params)",
    doc="a value or None per operand: what unknown operands "
    "(`Unknown`) were, as far as the others and the result say; `out` is a list if the primitive "
    "has many; of an operation with programs a Reverse, or None.",
)


class Unknown:
    """An unknown operand of an inverse rule: only its type is given."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval):
        self.aval = aval

    def __repr__(self) -> str:
        return f"<unknown {self.aval!r}>"


def is_unknown(x: "Value | Unknown") -> bool:
    """Return whether a rule's operand is to be recovered."""
    return x.__class__ is Unknown


class Reverse(NamedTuple):
    """A reversed program, and the inputs that it needs besides results and cotangents.

    saved: inputs that it takes; recovered: inputs that it gives back.
    program: saved inputs, outputs, cotangents of inexact outputs -> recovered inputs, cotangents
    of inexact inputs.
    """

    saved: tuple[bool, ...]
    recovered: tuple[bool, ...]
    program: Program

    def cotangents(self, wanted: Sequence[bool]) -> Program:
        """Return the program without recovered inputs, with cotangents of wanted inputs only."""
        n = self.recovered.count(True)
        return choose(self.program, (*(False,) * n, *wanted))


def reverse(program: Program, keep: tuple[bool, ...]) -> Reverse | None:
    """Return the reversed program; None if it would have to save inputs that are not in `keep`."""
    return derived(program, ("reverse", keep), lambda: _reversed(program, keep))


def _reversed(program: Program, keep: tuple[bool, ...]) -> Reverse | None:
    flat = inline_calls(program)
    flat = Program(
        flat.inputs, live_equations(flat.eqns, flat.outputs), flat.outputs, flat.name, flat.consts
    )
    plan = _Plan(flat)
    if not plan.complete(keep):
        return None
    saved = tuple([v in plan.saved for v in flat.inputs])
    recovered = tuple([v in plan.steps and v not in plan.saved for v in flat.inputs])
    outs = flat.out_avals
    n, m = saved.count(True), len(outs)

    def back(*vs: Value) -> list:
        known = dict(zip(part(flat.inputs, saved), vs[:n]))
        known.update((a, x) for a, x in zip(flat.outputs, vs[n : n + m]) if a.__class__ is Var)
        cts = iter(vs[n + m :])
        return _Recovery(plan, known).run(
            [next(cts) if a.varies else None for a in outs], recovered
        )

    types = [*part(flat.in_avals, saved), *outs, *(a.tangent_type for a in outs if a.varies)]
    return Reverse(saved, recovered, staged(back, types, program.name + "_inverse", prune=True))


# ---- planning the recovery -----------------------------------------------------------------


class _Step(NamedTuple):
    """A step that recovers values.

    `how` is "again" (evaluate the equation), "inverse" (invert it, with the operands in `given`),
    or "whole" (reverse an operation with programs as a whole).
    """

    how: str
    eqn: Eqn
    given: tuple[bool, ...]
    order: int

    def reads(self) -> list[Any]:
        """Return the values that must be known first."""
        given = part(self.eqn.inputs, self.given)
        return given if self.how == "again" else [*given, *self.eqn.outputs]


class _Plan:
    """The known values of a program, and the steps that recover the others."""

    def __init__(self, program: Program):
        self.program = program
        self.steps: dict[Any, _Step] = {}
        self.known = {a for a in program.outputs if a.__class__ is Var}
        self.known.update(v for v, _ in program.consts)
        self.saved: set[Any] = set()
        self.order = 0
        self.index = {id(e): i for i, e in enumerate(program.eqns)}
        self.users: dict[Any, list[Eqn]] = {}
        for e in program.eqns:
            for a in {*_vars(e.inputs), *e.outputs}:
                self.users.setdefault(a, []).append(e)
        self.reverses: dict[int, Reverse | None] = {}
        self.inverses: dict[Any, tuple[bool, ...]] = {}
        self.derivatives: dict[Any, EquationDerivative] = {}
        self.active = self._active()
        self.gains: dict[Any, int] = {}
        self.spread(program.eqns)
        self.lacking = [e for e in program.eqns if id(e) in self.active]

    # -- closing the known values under the possible steps -------------------------------------

    def spread(self, eqns: Iterable[Eqn]) -> list[Any]:
        """Recover values by the given equations, the latest first, and by those that then become
        usable; return the values that became known."""
        heap = [-self.index[id(e)] for e in eqns]
        heapq.heapify(heap)
        found: list[Any] = []
        while heap:
            e = self.program.eqns[-heapq.heappop(heap)]
            for v in self._gained(e):
                found.append(v)
                for user in self.users.get(v, ()):
                    heapq.heappush(heap, -self.index[id(user)])
                    for a in _vars(user.inputs):
                        self.gains.pop(a, None)
        return found

    def _gained(self, e: Eqn) -> list[Any]:
        """Return the values that one equation makes known; record them in `steps` and `known`."""
        given = tuple([a.__class__ is not Var or a in self.known for a in e.inputs])
        outs = [o for o in e.outputs if o not in self.known]
        if all(given):
            how, new = "again", [] if effects_of(e.prim, e.params) else outs
        elif not outs and e.prim.higher is not None:
            r = self.reverse_of(e)
            if r is None or not all(g for g, s in zip(given, r.saved) if s):
                return []
            how, new = "whole", part(e.inputs, r.recovered)
        elif not outs:
            how, new = "inverse", part(e.inputs, self._invertible(e, given))
        else:
            return []
        new = [v for v in dict.fromkeys(new) if v.__class__ is Var and v not in self.known]
        self.order += 1
        for v in new:
            self.known.add(v)
            self.steps[v] = _Step(how, e, given, self.order)
        return new

    def forget(self, found: Iterable[Any]) -> None:
        """Undo the discovery of these values."""
        for v in found:
            self.known.discard(v)
            self.steps.pop(v, None)

    def reverse_of(self, e: Eqn) -> Reverse | None:
        """Return the reversal of an operation with programs as a whole, or None."""
        if e.prim.higher is None:
            return None
        if id(e) not in self.reverses:
            rule = inverse_rules.find(e.prim)
            self.reverses[id(e)] = None if rule is None else rule(e.params)
        return self.reverses[id(e)]

    def _invertible(self, e: Eqn, given: tuple[bool, ...]) -> tuple[bool, ...]:
        """Return which operands an equation gives back, given the others."""
        key = id(e), given
        if key not in self.inverses:
            self.inverses[key] = self._tried(e, given)
        return self.inverses[key]

    def _tried(self, e: Eqn, given: tuple[bool, ...]) -> tuple[bool, ...]:
        rule = inverse_rules.find(e.prim)
        nothing = (False,) * len(e.inputs)
        if rule is None or e.prim.higher is not None:
            return nothing
        got: list = []

        def attempt(*vs: Any) -> list:
            outs, args = vs[: len(e.outputs)], list(vs[len(e.outputs) :])
            for i, there in enumerate(given):
                args[i] = args[i] if there else Unknown(args[i].aval)
            got.extend(rule(list(outs) if e.prim.many else outs[0], *args, **e.params))
            return []

        staged(attempt, [a.aval for a in (*e.outputs, *e.inputs)])
        return tuple([x is not None and not there for x, there in zip(got, given, strict=True)])

    def _active(self) -> dict[int, tuple[bool, ...]]:
        """Map ids of equations to masks of the operands that have derivatives."""
        varies = {v for v in self.program.inputs if v.aval.varies}
        found = {}
        for e in self.program.eqns:
            mask = tuple([a in varies if a.__class__ is Var else False for a in e.inputs])
            if not any(mask):
                continue
            flags = [o.aval.varies for o in e.outputs]
            if self.reverse_of(e) is None:
                flags = self.derivative(e, mask).varies
            if any(flags):
                varies.update(part(e.outputs, flags))
                found[id(e)] = mask
        return found

    # -- values that derivatives need ----------------------------------------------------------

    def needs(self, e: Eqn) -> list[Any]:
        """Return the values that an equation's reversal needs and that are not known."""
        if self.as_a_whole(e):
            return []
        d = self.derivative(e, self.active[id(e)])
        wanted = _vars(part(e.inputs, d.needs))
        wanted += [e.outputs[i] for i in d.results if i is not None]
        return [v for v in wanted if v not in self.known]

    def derivative(self, e: Eqn, active: tuple[bool, ...]) -> EquationDerivative:
        """Return the derivative of one of the equations."""
        key = id(e), active
        if key not in self.derivatives:
            self.derivatives[key] = differential(e, active)
        return self.derivatives[key]

    def as_a_whole(self, e: Eqn) -> bool:
        """Return whether an equation is reversed together with the recovery of its operands."""
        r = self.reverse_of(e)
        if r is None:
            return False
        wanted = [*e.outputs, *_vars(part(e.inputs, r.saved))]
        return all(v in self.known for v in wanted)

    def missing(self) -> list[Any]:
        """Return the values that derivatives need and that are not known."""
        each = [(e, self.needs(e)) for e in self.lacking]
        self.lacking = [e for e, needs in each if needs]
        return [v for _, needs in each for v in needs]

    def complete(self, keep: tuple[bool, ...]) -> bool:
        """Save inputs until nothing is missing; return whether that succeeded.

        Each round saves the input by which most other values can be recovered.
        """
        may = [v for v, k in zip(self.program.inputs, keep, strict=True) if k]
        must = [v for v, k in zip(self.program.inputs, keep) if not k]
        while True:
            missing = [*self.missing(), *(v for v in must if v not in self.known)]
            if not missing:
                return True
            left = [v for v in may if v not in self.known]
            if not left:
                return False
            asked = set(missing)
            best = max(left, key=lambda v: (self.gain(v), v in asked, -_weight(v.aval)))
            self.save(best)

    def save(self, v: Value) -> None:
        """Save an input, and recover the values that follow from it."""
        self.known.add(v)
        self.saved.add(v)
        for user in self.users.get(v, ()):
            for a in _vars(user.inputs):
                self.gains.pop(a, None)
        self.spread(self.users.get(v, ()))

    def gain(self, v: Var) -> int:
        """Return how many other values could be recovered if an input were saved."""
        if v not in self.gains:
            # The trial is undone, so gains that `spread` drops from the cache are still valid.
            self.known.add(v)
            gains = dict(self.gains)
            found = self.spread(self.users.get(v, ()))
            self.forget([v, *found])
            self.gains = {**gains, v: len(found)}
        return self.gains[v]


def _vars(xs: Iterable[Any]) -> list[Any]:
    return [a for a in xs if a.__class__ is Var]


def _weight(aval: Aval) -> int:
    size = 1
    for d in aval.shape:
        size *= d if d.__class__ is int else 1 << 20
    return size * aval.dtype.itemsize


# ---- executing the plan --------------------------------------------------------------------


class _Recovery:
    """One reversal, on values of the current interpreter.

    The walk is `pull_back`, as for linear programs; the rules of its steps are the methods `alone`
    and `whole`, which recover the operands that they need.
    """

    def __init__(self, plan: _Plan, known: dict[Any, Any]):
        self.plan, self.env = plan, known
        self.env.update(plan.program.consts)

    def run(self, cts: Sequence[Any], recovered: Sequence[bool]) -> list:
        """Compute the recovered inputs, then the cotangents of inexact inputs."""
        program, plan = self.plan.program, self.plan
        steps: list[Step] = []
        for e in program.eqns:
            active = plan.active.get(id(e))
            if active is not None:
                ins = [Linear(a.aval) if m else a for a, m in zip(e.inputs, active)]
                rule = self.whole if plan.as_a_whole(e) else self.alone
                rule = partial(rule, e, active)
                if any(a.aval.division is not None for a in (*e.outputs, *e.inputs)):
                    rule = free_of_shardings(e, rule)
                steps.append((e, ins, rule))
        with with_lines() as self.recorders:
            total = pull_back(program.outputs, cts, steps)
            back = [self.want(v) for v in part(program.inputs, recovered)]
        inexact = [v for v in program.inputs if v.aval.varies]
        return [*back, *(solid_ct(total.get(v), v.aval.tangent_type) for v in inexact)]

    def alone(
        self, e: Eqn, active: tuple[bool, ...], ct: Value, *_: Value | Linear, **__: object
    ) -> list:
        """Pull back through an equation, recovering what its derivative needs."""
        d = self.plan.derivative(e, active)
        made = iter(evaluate(d.known, [self.want(a) for a in part(e.inputs, d.needs)]))
        residuals = [next(made) if i is None else self.want(e.outputs[i]) for i in d.results]
        args = [*residuals, *map(Linear, d.linear.in_avals[len(residuals) :])]
        got = backward(d.linear, args, part(as_list(ct), d.varies))[len(residuals) :]
        return merge(active, got, repeat(None))

    def whole(
        self, e: Eqn, active: tuple[bool, ...], ct: list[Value], *_: Linear, **__: object
    ) -> list:
        """Pull back through an equation that gives its operands with their cotangents."""
        pairs = zip(as_list(ct), e.outputs, strict=True)
        cts = [solid_ct(c, o.aval.tangent_type) for c, o in pairs if o.aval.varies]
        got = iter(self.together(e, self.want, cts))
        return [next(got) if a.aval.varies else None for a in e.inputs]

    def together(self, e: Eqn, value: Callable[[Any], Any], cts: Sequence[Any] | None) -> list:
        """Recover the operands of an equation that is reversed as a whole; return their
        cotangents, if those of the results are given."""
        r = self.plan.reverse_of(e)
        assert r is not None
        n, program = r.recovered.count(True), r.program
        if cts is None:
            program = choose(program, tuple([i < n for i in range(len(program.outputs))]))
            cts = [Literal(0, o.aval.tangent_type) for o in e.outputs if o.aval.varies]
        known = [value(a) for a in (*part(e.inputs, r.saved), *e.outputs)]
        got = evaluate(program, [*known, *cts])
        self.learn(part(e.inputs, r.recovered), got)
        return got[n:]

    def learn(self, vs: Iterable[Any], xs: Iterable[Any]) -> None:
        """Record the values of variables that have none yet."""
        for v, x in zip(vs, xs):
            if v.__class__ is Var:
                self.env.setdefault(v, x)

    def read(self, a: Value) -> Any:
        """Return the value of a literal or of a known variable."""
        return self.env[a] if a.__class__ is Var else a

    def want(self, a: Value) -> Any:
        """Return the value of a literal or variable; recover it if it is not known."""
        if a.__class__ is not Var or a in self.env:
            return self.read(a)
        steps: dict[int, _Step] = {}
        todo = [a]
        while todo:
            step = self.plan.steps[todo.pop()]
            if step.order not in steps:
                steps[step.order] = step
                todo += [x for x in _vars(step.reads()) if x not in self.env]
        for order in sorted(steps):
            self.do(steps[order])
        return self.env[a]

    def do(self, step: _Step) -> None:
        """Carry out one step."""
        e = step.eqn
        for p in self.recorders:
            p.where = e.where
        if step.how == "again":
            out = current().apply(e.prim, [self.read(a) for a in e.inputs], e.params)
            self.learn(e.outputs, out if e.prim.many else [out])
        elif step.how == "inverse":
            pairs = zip(e.inputs, step.given)
            args = [self.read(a) if there else Unknown(a.aval) for a, there in pairs]
            outs = [self.read(o) for o in e.outputs]
            got = inverse_rules[e.prim](outs if e.prim.many else outs[0], *args, **e.params)
            told = [x is not None for x in got]
            self.learn(part(e.inputs, told), part(got, told))
        else:
            self.together(e, self.read, None)
