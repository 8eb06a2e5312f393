"""Equal consecutive layers rolled into a scan, which compilers call loop rerolling.

Compile time grows with the equations of a program.  A network of twelve layers written as a Python
loop has the equations of a layer twelve times.  Equations have a kind: the operation, its
parameters, the types of operands and results.  Where kinds repeat with a period, and every operand
comes from the same place in each turn, one turn is the body of a scan:

    from an equation of the same turn        a value of the body;
    from an equation of the turn before      the carry;
    the same from outside in all turns       a constant of the scan;
    others from outside, or literals         rows of one array, stacked in front of the scan, or
                                             of one that another scan reads or writes

Invariant: a program and its rolled form perform the same operations on the same values in the same
order; only the storage of values differs.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core.array import Literal, as_value
from .._core.divided import without_axis
from .._core.interpreter import Value
from .._core.ir import Eqn, Program, Var, derived, evaluate, programs_in
from .._core.staging import staged
from .._core.structures import Unkeyed, literal, parameters
from .._ops.control_flow import scan
from .._ops.shape import broadcast_in_dim, convert_
from .._types.avals import Aval
from .deadcode import dce
from .inlining import copied, typed
from .pieces import equation, replaced, with_programs
from .stacks import Stacks, Stretch, row, whole


class Layers(NamedTuple):
    """Equations `start` to `start + period * times`, the same `period` of them `times` times."""

    start: int
    period: int
    times: int

    @property
    def stop(self) -> int:
        return self.start + self.period * self.times


class Source(NamedTuple):
    """The origin of an operand of the body.

    Attributes:
      kind: "value" (of the same turn), "carry", "constant", "rows", "numbers" (rows of one array
        made of literals) or "literal".
      atoms: atoms from outside: one for all turns, one for the first turn (carry), or one per turn.
      at: the number of an equation in a turn, and of its result (value, carry).
    """

    kind: str
    atoms: tuple[Any, ...] = ()
    at: tuple[int, int] = (0, 0)

    @property
    def key(self) -> Any:
        """A key that is equal for sources that share one operand of the scan."""
        return (
            self.kind,
            self.at,
            tuple([a if a.__class__ is Var else literal(a) for a in self.atoms]),
        )


def rerolled(program: Program, times: int, size: int) -> Program:
    """Return the program with repeated layers as scans, here and in sub-programs.

    Layers must occur at least `times` times in a row and have at least `size` equations each.  The
    program itself is returned if there are none.
    """
    key = "rerolled", times, size
    return derived(program, key, lambda: _Rerolling(program, times, size).program())


class _Rerolling:
    """The state of rerolling one program.

    Attributes:
      eqns: the equations, with their sub-programs rolled.
      kinds: a number for each equation: equal for the same operation on the same types.
      weights: the number of equations in each one, including those of its programs.
      home: variable -> (number of its equation, number of the result).
      last: variable -> number of the last equation that reads it; for outputs, their count.
    """

    def __init__(self, program: Program, times: int, size: int):
        self.old, self.times, self.size = program, times, size
        inner = lambda p: rerolled(p, times, size)  # noqa: E731
        self.eqns = [
            e if e.prim.higher is None else equation(e, e.inputs, with_programs(e.params, inner))
            for e in program.eqns
        ]
        numbers: dict[Any, int] = {}
        self.kinds = np.array([numbers.setdefault(_kind(e), len(numbers)) for e in self.eqns])
        self.weights = np.array([_weight(e) for e in self.eqns])
        self.home = {v: (i, k) for i, e in enumerate(self.eqns) for k, v in enumerate(e.outputs)}
        self.last: dict[Any, int] = {}
        for i, e in enumerate(self.eqns):
            self.last.update((a, i) for a in e.inputs if a.__class__ is Var)
        self.last.update((a, len(self.eqns)) for a in program.outputs if a.__class__ is Var)

    def program(self) -> Program:
        """Return the program with its layers rolled."""
        old = self.old
        env: dict[Any, Any] = {}
        eqns: list[Eqn] = []
        consts = {id(x): (v, x) for v, x in old.consts}
        stacks, rolls = Stacks(), False
        for turns in self.found(0, len(self.eqns)):
            if not isinstance(turns, _Turns):
                eqns.append(equation(turns, _now(turns.inputs, env), turns.params))
                continue
            rolls = True
            scanned = turns.scanned(env, stacks)
            results = copied(scanned.program, scanned.operands, eqns, consts)
            # Weak types are converted, since rows of a stack are never weak.
            fitted = typed(eqns, turns.where)
            env.update({v: fitted(x, v) for v, x in zip(turns.used, results)})
            scanned.record(results[len(turns.used) :], env, stacks)
        if not rolls and all(a is b for a, b in zip(eqns, old.eqns)):
            return old
        outputs = replaced(old.outputs, env)
        new = Program(old.inputs, eqns, outputs, old.name, consts.values())
        # Rows that only went from one scan to the next are read by nothing.
        return dce(new)[0].with_inputs(old.inputs) if rolls else new

    def found(self, low: int, high: int) -> Iterator["Eqn | _Turns"]:
        """Yield the equations of a stretch in order, with layers in place of their equations."""
        for layers in self.candidates(low, high):
            turns = self.turns(layers, high)
            if turns is not None and turns.saving > 0:
                yield from self.found(low, turns.layers.start)
                yield turns
                yield from self.found(turns.layers.stop, high)
                return
        yield from self.eqns[low:high]

    def candidates(self, low: int, high: int) -> list[Layers]:
        """Return the layers where kinds repeat, those that save most equations first."""
        kinds, n = self.kinds[low:high], high - low
        found: list[tuple[int, Layers]] = []
        for period in range(1, n // self.times + 1):
            same = np.concatenate([[False], kinds[:-period] == kinds[period:], [False]])
            edges = np.flatnonzero(same[1:] != same[:-1])
            for begin, end in zip(edges[::2], edges[1::2]):
                times = int(end - begin) // period + 1
                weight = int(self.weights[low + begin : low + begin + period].sum())
                if times >= self.times and weight >= self.size:
                    layers = Layers(low + int(begin), period, times)
                    found.append((weight * (times - 1), layers))
        found.sort(key=lambda f: (-f[0], f[1].period))
        return [layers for _, layers in found[:_TRIED]]

    def turns(self, layers: Layers, high: int) -> "_Turns | None":
        """Return how to roll these layers, in a stretch that ends at `high`; None if impossible.

        The start of a layer is chosen so that the carry is small.
        """
        start, period, times = layers
        end = start + period  # kinds repeat up to here
        while end < high and self.kinds[end] == self.kinds[end - period]:
            end += 1
        best = None
        for first in range(start, min(start + period, end - period * times + 1)):
            made = self.turn(Layers(first, period, times))
            if made is not None and (best is None or made.cost < best.cost):
                best = made
        if best is None and times > self.times:  # the first or the last turn may be unlike the rest
            for less in (
                Layers(start, period, times - 1),
                Layers(start + period, period, times - 1),
            ):
                best = self.turn(less)
                if best is not None:
                    break
        return best

    def turn(self, layers: Layers) -> "_Turns | None":
        """Return how to roll these equations; None if the origin of an operand varies."""
        start, period, times = layers
        weight = int(self.weights[start : start + period].sum())
        turns = _Turns(layers, weight, self.eqns[start].where)
        for j in range(period):
            each = [self.eqns[start + r * period + j] for r in range(times)]
            for q in range(len(each[0].inputs)):
                source = self.source([e.inputs[q] for e in each], layers)
                if source is None:
                    return None
                turns.sources.append(source)
        turns.body = self.eqns[start : start + period]
        for r in range(times):
            for j in range(period):
                for k, v in enumerate(self.eqns[start + r * period + j].outputs):
                    if self.last.get(v, -1) >= layers.stop:
                        turns.used[v] = r, j, k
        return turns

    def source(self, atoms: list[Any], layers: Layers) -> Source | None:
        """Return the source of one operand of the body; None if it varies between turns."""
        start, period, _ = layers
        places = [self.place(a, layers) for a in atoms]
        if all(p is None for p in places):
            return _outside(atoms)
        inside = [p for p in places[1:] if p is not None]
        offsets = {((i - start) % period, k) for i, k in inside}
        if len(inside) == len(atoms) - 1 and len(offsets) == 1:
            (at,) = offsets
            turns = [(i - start) // period for i, _ in inside]
            here = list(range(1, len(atoms)))
            if turns == here and places[0] == (start + at[0], at[1]):
                return Source("value", at=at)
            if turns == [r - 1 for r in here] and places[0] is None:
                return Source("carry", (atoms[0],), at)
        return None

    def place(self, a: Value, layers: Layers) -> tuple[int, int] | None:
        """Return the equation and result number of an atom that the layers compute, else None."""
        at = self.home.get(a) if a.__class__ is Var else None
        return at if at is not None and layers.start <= at[0] < layers.stop else None


_TRIED = 32
"""The most candidates of a stretch that are tried."""


class _Turns:
    """Layers, and the way to roll them.

    Attributes:
      weight: the number of equations of a turn, including those of its programs.
      sources: the source of each operand of the body, in order of the equations and operands.
      body: the equations of the first turn.
      used: variables that are read afterwards -> (turn, equation, number of the result).
    """

    def __init__(self, layers: Layers, weight: int, where: object):
        self.layers, self.weight, self.where = layers, weight, where
        self.sources: list[Source] = []
        self.body: list[Eqn] = []
        self.used: dict[Any, tuple[int, int, int]] = {}

    def of(self, kind: str) -> list[Source]:
        """Return the sources of a kind, each once."""
        return list({s.key: s for s in self.sources if s.kind == kind}.values())

    @property
    def cost(self) -> int:
        """The number of values that go through the scan."""
        return len(self.of("carry")) + len(self.of("rows")) + len(self.stacked())

    @property
    def saving(self) -> int:
        """The number of equations that a scan saves, less those that move rows in and out.

        The update of a parameter is a few operations, and each layer has its own operands: as a
        scan it would be longer.
        """
        moved = len(self.of("rows")) + len(self.stacked())
        return self.weight * (self.layers.times - 1) - self.layers.times * moved

    def stacked(self) -> list[tuple[int, int]]:
        """Return the results of the body that are stacked."""
        last, ends = self.layers.times - 1, {s.at for s in self.of("carry")}
        every = [(j, k) for r, j, k in self.used.values() if r != last or (j, k) not in ends]
        return list(dict.fromkeys(every))

    def scanned(self, env: dict[Any, Any], stacks: Stacks) -> "_Scanned":
        """Return the scan of the layers, in the direction in which most of its rows lie already."""
        rows = [replaced(s.atoms, env) for s in self.of("rows")]
        forward = [stacks.stretches(atoms) for atoms in rows]
        every = [s for stretches in forward for s in stretches if s.length > 1]
        reverse = sum(s.step * s.length for s in every) < 0
        if reverse:
            rows = [atoms[::-1] for atoms in rows]
            forward = [stacks.stretches(atoms) for atoms in rows]
        return _Scanned(self, env, rows, forward, reverse)

    def turn(self, found: dict[Any, Any]) -> dict[tuple[int, int], Any]:
        """Apply the body to operands, by their sources; return its values, by their places."""
        values: dict[tuple[int, int], Any] = {}
        sources = iter(self.sources)
        for j, e in enumerate(self.body):
            operands = []
            for s in (next(sources) for _ in e.inputs):
                if s.kind == "value":
                    operands.append(values[s.at])
                elif s.kind == "numbers":
                    operands.append(_filled(found[s.key], s.atoms[0].aval))
                else:
                    operands.append(s.atoms[0] if s.kind == "literal" else found[s.key])
            ins = [Var() for _ in operands]
            for v, x in zip(ins, operands):
                v.aval = x.aval
            alone = Program(ins, [Eqn(e.prim, ins, e.outputs, e.params, e.where)], e.outputs)
            for k, x in enumerate(evaluate(alone, operands)):
                values[j, k] = x
        return values


class _Scanned:
    """The scan of some layers.

    Attributes:
      rows: the values that each array of rows consists of, in the order of rows.
      stretches: where these are found, for each array.
      reverse: whether the first turn reads the last row.
      operands: the operands of the program: constants, carries, and atoms of the stretches.
      program: maps them to the variables that are read afterwards, the arrays that the scan writes,
        and those that it reads.
    """

    def __init__(
        self,
        turns: _Turns,
        env: dict[Any, Any],
        rows: list[list[Any]],
        stretches: list[list[Stretch]],
        reverse: bool,
    ):
        self.turns, self.rows, self.stretches, self.reverse = turns, rows, stretches, reverse
        self.fixed = [*turns.of("constant"), *turns.of("carry")]
        atoms = [s.atom for found in stretches for s in found]
        self.operands = [*replaced([s.atoms[0] for s in self.fixed], env), *atoms]
        self.kept = turns.stacked()
        self.program = staged(self.run, [a.aval for a in self.operands], "layers")

    def row_of(self, turn: int) -> int:
        """Return the row that a turn reads and writes."""
        return self.turns.layers.times - 1 - turn if self.reverse else turn

    def run(self, *xs: Value) -> list[Any]:
        turns, carries = self.turns, self.turns.of("carry")
        rest = iter(xs[len(self.fixed) :])
        arrays = [whole(found, [next(rest) for _ in found]) for found in self.stretches]
        numbers = turns.of("numbers")
        order = -1 if self.reverse else 1
        read = [*arrays, *[_numbers(s.atoms[::order]) for s in numbers]]
        front = xs[: len(self.fixed)]
        sources = [*self.fixed, *turns.of("rows"), *numbers]

        def step(*xs: Value) -> list[Any]:
            values = turns.turn({s.key: x for s, x in zip(sources, xs, strict=True)})
            return [*[values[s.at] for s in carries], *[values[at] for at in self.kept]]

        slim = [without_axis(x.aval, 0) for x in read]
        out = scan.bind(
            *front, *read, body=staged(step, [*[x.aval for x in front], *slim], "layer"),
            consts=len(front) - len(carries), carry=len(carries), length=turns.layers.times,
            reverse=self.reverse, unroll=1,
        )  # fmt: skip
        ends = {s.at: x for s, x in zip(carries, out)}
        written = out[len(carries) :]
        ys = dict(zip(self.kept, written))
        last = turns.layers.times - 1
        used = [
            ends[j, k] if r == last and (j, k) in ends else row(ys[j, k], self.row_of(r))
            for r, j, k in turns.used.values()
        ]
        return [*used, *written, *arrays]

    def record(self, arrays: Sequence[Any], env: dict[Any, Any], stacks: Stacks) -> None:
        """Record the values that lie in the arrays that the scan writes and reads."""
        values: dict[Any, list[Any]] = {at: [None] * self.turns.layers.times for at in self.kept}
        for v, (r, j, k) in self.turns.used.items():
            if (j, k) in values:
                values[j, k][self.row_of(r)] = env[v]
        for array, lying in zip(arrays, [*values.values(), *self.rows], strict=True):
            stacks.keep(array, lying)


# ---- equations and atoms -----------------------------------------------------------------------


def _kind(e: Eqn) -> Any:
    """Return a key that is equal for equations of the same kind."""
    types = tuple([a.aval for a in e.inputs]), tuple([v.aval for v in e.outputs])
    try:
        key = e.prim, parameters(e.prim, e.params), *types
        hash(key)
    except (Unkeyed, TypeError, KeyError):
        return e  # equal to no other equation
    return key


def _weight(e: Eqn) -> int:
    programs = programs_in(e.params) if e.prim.higher is not None else ()
    return 1 + sum(_weight(inner) for p in programs for inner in p.eqns)


def _outside(atoms: list[Any]) -> Source:
    """Return the source of an operand that no turn computes."""
    keys = {a if a.__class__ is Var else literal(a) for a in atoms}
    numbers = all(a.__class__ is Literal for a in atoms)
    if len(keys) == 1:
        return Source("literal" if numbers else "constant", (atoms[0],))
    return Source("numbers" if numbers else "rows", tuple(atoms))


def _numbers(literals: Sequence[Literal]) -> Any:
    """Return the values of literals as one array."""
    return as_value(np.array([a.value for a in literals], literals[0].aval.dtype))


def _filled(x: Value, aval: Aval) -> Any:
    """Return the number `x` with the type of the literal that it replaces."""
    if x.aval.weak_type != aval.weak_type:
        x = convert_.bind(x, dtype=aval.dtype, weak=aval.weak_type)
    return broadcast_in_dim(x, shape=aval.shape, dims=()) if aval.shape else x


def _now(atoms: Sequence[Any], env: dict[Any, Any]) -> Sequence[Any]:
    """Return the atoms after replacement; the same list if none of them was replaced."""
    return replaced(atoms, env) if any(a.__class__ is Var and a in env for a in atoms) else atoms
