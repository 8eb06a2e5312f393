"""Partial evaluation of programs and functions: compute known values, and stage the rest.

    partial_eval(program, unknown)    divides a Program
    partial_trace(f, pvals)           runs a Python function on the known values

Invariant: the two halves together compute the results of the program, and the second reads nothing
that it does not need.  Equal divisions of one program give the same object; it is kept on the
program and freed with it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from plait.ext.errors import ArgumentError, OperandTypeError
from plait.ext.ir import Program, Var, dce, derived, evaluate
from plait.ext.ops.shape import materialise_at_ground
from plait.ext.trace import Stage, Value, admitted, current, name_of, opened, staged
from plait.ext.types import Aval
from plait.ext.values import as_value

from .rematerialisation.policies import everything_saveable
from .rematerialisation.residuals import economise
from .split import Split, merge, part, split_program

# ---- programs ------------------------------------------------------------------------------


class PartialProgram(NamedTuple):
    """A divided program.

    Attributes:
      known: known inputs -> known results, then residuals.
      staged: residuals, then instantiated inputs -> instantiated results.
      out_unknown: which results are unknown.
      out_inst: which results `staged` returns: the unknown ones, and those of `ensure_out_inst`.
      residuals: the number of residuals.
      repeats: whether `staged` computes known values again.
    """

    known: Program
    staged: Program
    out_unknown: tuple[bool, ...]
    out_inst: tuple[bool, ...]
    residuals: int
    repeats: bool


Marks = bool | Sequence[bool]


def partial_eval(
    program: Program,
    unknown: Marks,
    *,
    inst_in: Marks | None = None,
    ensure_out_unknowns: Marks = False,
    ensure_out_inst: Marks = False,
    policy: Callable[..., Any] | None = None,
) -> PartialProgram:
    """Divide a program by which of its inputs are known.

    Args:
      program: the program to divide; operations with programs are divided inside.
      unknown: for each input whether it is unknown; one boolean stands for all.
      inst_in: for each input whether `staged` takes it; it always takes unknown ones.  By default
        it takes no known ones, and residuals replace them.
      ensure_out_unknowns: results to make unknown even if they could be known, as a loop needs for
        its carry.
      ensure_out_inst: results that `staged` must return even if they are known.
      policy: which known values may be residuals, as for `checkpoint`; others are computed again
        in `staged`.  By default all may be.

    Returns:
      The division: the same object each time, for as long as the program lives.

    Raises TypeRule if there are not as many marks as inputs or results.

    >>> import plait
    >>> p = plait.make_program(lambda x, y: plait.lax.sin(x) * y)(1.0, 2.0)
    >>> d = plait.ext.partial_eval(p, [False, True])
    >>> d.out_unknown, d.residuals
    ((True,), 1)
    """
    n, m = len(program.inputs), len(program.outputs)
    unk = _marks(unknown, n, "unknown", "inputs")
    inst = unk if inst_in is None else _marks(inst_in, n, "inst_in", "inputs")
    inst = tuple([i or u for i, u in zip(inst, unk)])
    force = _marks(ensure_out_unknowns, m, "ensure_out_unknowns", "results")
    also = _marks(ensure_out_inst, m, "ensure_out_inst", "results")
    policy = everything_saveable if policy is None else policy
    key = ("partial_eval", unk, inst, force, also, policy)
    return derived(program, key, lambda: _divided(program, unk, inst, force, also, policy))


def _marks(given: Marks, count: int, what: str, of: str) -> tuple[bool, ...]:
    if isinstance(given, bool):
        return (given,) * count
    marks = tuple(map(bool, given))
    if len(marks) != count:
        raise ArgumentError(
            f"partial_eval: {what} has {len(marks)} marks, and the program has {count} {of}",
            fix=f"give one boolean for each of the {of}, or one for all",
        )
    return marks


def _divided(
    program: Program, unknown: tuple, inst: tuple, force: tuple, also: tuple, policy: Any
) -> PartialProgram:
    h = split_program(program, unknown, force)
    n = h.out_unknown.count(False)
    wanted = (*part(also, h.out_unknown, False), *(True,) * h.residuals)
    k = economise(h.known, policy, wanted, inst=tuple(part(inst, unknown, False)))
    # A residual is either a wanted value that is not recomputed, or a value that economise keeps.
    passed = [w and not r for w, r in zip(wanted, k.redone)]
    positions = [*(i for i, p in enumerate(passed) if p), *range(len(wanted), len(wanted) + k.kept)]
    positions, at = _distinct(k.first, positions)
    m, own_count = len(positions), passed.count(True)
    out_inst = tuple([u or a for u, a in zip(h.out_unknown, also)])

    def second(*xs: Value) -> list:
        residuals, given = [xs[i] for i in at], iter(xs[m:])
        inputs = [next(given) if i else None for i in inst]
        known = [x for x, u, i in zip(inputs, unknown, inst) if i and not u]
        own = iter(residuals[:own_count])
        again = iter(evaluate(k.again, [*residuals[own_count:], *known]))
        values = [next(again) if r else next(own) if p else None for r, p in zip(k.redone, passed)]
        late = evaluate(h.unknown, [*values[n:], *part(inputs, unknown)])
        return part(merge(h.out_unknown, late, values[:n]), out_inst)

    types = [k.first.outputs[i].aval for i in positions]
    whole = staged(second, [*types, *part(program.in_avals, inst)], program.name, prune=True)
    later, used = dce(whole)
    later = later.with_inputs([*part(whole.inputs[:m], used[:m]), *whole.inputs[m:]])
    positions = part(positions, used[:m])
    now = _returning(k.first, [*range(n), *positions])
    return PartialProgram(now, later, h.out_unknown, out_inst, len(positions), bool(k.again.eqns))


def _distinct(program: Program, positions: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return (positions of results that differ, for each position the index of its value)."""
    first: dict[Any, int] = {}
    keys = [a if a.__class__ is Var else i for i, a in enumerate(program.outputs)]
    for i in positions:
        first.setdefault(keys[i], i)
    order = {v: j for j, v in enumerate(first)}
    return list(first.values()), [order[keys[i]] for i in positions]


def _returning(program: Program, positions: Sequence[int]) -> Program:
    """Return the program with the results at these positions, in order, and all of its inputs."""
    outputs = [program.outputs[i] for i in positions]
    chosen = Program(program.inputs, program.eqns, outputs, program.name, program.consts)
    return dce(chosen)[0].with_inputs(program.inputs)


# ---- functions -----------------------------------------------------------------------------


class PartialVal:
    """A value that is known, or known by its type only.

    >>> import plait
    >>> plait.ext.PartialVal.known(2.0).is_known()
    True
    """

    __slots__ = ("_aval", "_value")

    def __init__(self, aval: Aval, value: Any):
        self._aval, self._value = aval, value

    @classmethod
    def known(cls, value: Any) -> "PartialVal":
        """Return a known value; raise TypeRule if it is not an array."""
        value = as_value(value)
        return cls(value.aval, value)

    @classmethod
    def unknown(cls, aval: object) -> "PartialVal":
        """Return an unknown value of an Aval or ShapeDtypeStruct; raise TypeRule for others."""
        aval = getattr(aval, "aval", aval)
        if not isinstance(aval, Aval):
            raise OperandTypeError(
                f"an unknown value has a type, and {aval!r} is none",
                fix="pass plait.ShapeDtypeStruct(shape, dtype)",
            )
        return cls(aval, None)

    def is_known(self) -> bool:
        """Return whether there is a value."""
        return self._value is not None

    def get_known(self) -> Any:
        """Return the value, or None."""
        return self._value

    def get_aval(self) -> Aval:
        """Return the type."""
        return self._aval

    def __repr__(self) -> str:
        return f"<{'known' if self.is_known() else 'unknown'} {self._aval!r}>"


def partial_trace(
    f: Callable[..., Any], pvals: Sequence[PartialVal], instantiate: Marks = False
) -> tuple[Program, list[PartialVal], list[Any]]:
    """Run `f` on known values, and stage the operations that depend on unknown ones.

    Args:
      f: takes arrays, one for each of `pvals`, and returns a flat sequence of arrays.
      instantiate: results to make unknown even if they are known.

    Returns:
      (program, results, residuals): `program` takes the residuals and then the unknown arguments,
      and returns the unknown results.

    >>> import plait
    >>> f = lambda x, y: [x * x, x * x * y]
    >>> late = plait.ext.PartialVal.unknown(plait.ShapeDtypeStruct((), "float32"))
    >>> p, outs, residuals = plait.ext.partial_trace(f, [plait.ext.PartialVal.known(2.0), late])
    >>> outs
    [<known f32[]*>, <unknown f32[]>]
    >>> residuals
    [Array(4., dtype=float32)]
    """
    for p in pvals:
        if not isinstance(p, PartialVal):
            raise ArgumentError(
                f"partial_trace needs PartialVals, not {p!r}",
                fix="write PartialVal.known(x) or PartialVal.unknown(aval)",
            )
    parent = current()
    stage = Stage(parent, "partial_trace", f)
    split = Split(parent, stage, f)
    try:
        with opened(split):
            args = [p.get_known() if p.is_known() else stage.input(p.get_aval()) for p in pvals]
            outs = [admitted(o) for o in f(*args)]
        force = _marks(instantiate, len(outs), "instantiate", "results")
        late = [split.unknown(o) or w for o, w in zip(outs, force)]
        made, captured = stage.close(part(outs, late), name_of(f, "f"), prune=True)
    finally:
        stage.abandon()
    found = [
        PartialVal.unknown(o.aval) if u else PartialVal.known(materialise_at_ground(o))
        for o, u in zip(outs, late)
    ]
    own = [v for v, _ in made.consts]  # arrays in the program become residuals, too
    program = Program([*own, *made.inputs], made.eqns, made.outputs, made.name)
    return program, found, [*(x for _, x in made.consts), *captured]
