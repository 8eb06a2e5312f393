"""Conversion of programs to common types: of branches' operands and results, and of loop carries.

Invariant: a result is converted only if that loses nothing; if types cannot agree, an error names
the value.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._base.errors import ArgumentError, DimMismatch, OperandTypeError, ShapeError, TreeMismatch
from .._base.source import defined_at, line_if_known
from .._base.wrapping import name_of
from .._core.divided import lie_as
from .._core.fitting import fitted
from .._core.interpreter import GROUND, Value
from .._core.ir import Program, Var, derived, evaluate
from .._core.staging import staged
from .._core.varying import union
from .._ops.collective import varied
from .._ops.shape import fit
from .._types.avals import Aval, broadcast_shapes, promote
from ..tree import TreeDef, difference, flatten, in_words, key_paths

# ---- branches ------------------------------------------------------------------------------


class Branches(NamedTuple):
    """The functions of a choice, for messages.

    Attributes:
      does: the operation.
      functions: the branches.
      labels: how a user tells them apart: "true_fun", "branch 0".
      tree: the structure of the results.
    """

    does: str
    functions: Sequence[Any]
    labels: Sequence[str]
    tree: TreeDef

    def names(self) -> list[str]:
        """Return the name of each branch."""
        return [f"{label} `{name_of(f)}`" for f, label in zip(self.functions, self.labels)]

    def of_result(self, i: int, avals: Sequence[Aval]) -> str:
        """Return the name of result `i`, and its type in each branch."""
        path = key_paths(self.tree.unflatten([0] * self.tree.num_leaves))[i]
        types = ", ".join([f"{a!r} from {name}" for name, a in zip(self.names(), avals)])
        return f"the result{path} is {types}"


def _to_one_shape(shapes: Sequence[tuple[Any, ...]]) -> str:
    """Return what to write for branches that return these shapes."""
    with contextlib.suppress(DimMismatch):
        common = broadcast_shapes(shapes)
        if common in shapes:
            return (
                f"return arrays of one shape, for instance by plait.numpy.broadcast_to(x, {common})"
            )
    return "return arrays of one shape"


def agreed_type(branches: Branches, i: int, avals: Sequence[Aval]) -> Aval:
    """Return the common type of result `i` of all branches; Python numbers take that of arrays."""
    does = branches.does
    if len({a.shape for a in avals}) > 1:
        raise ShapeError(
            f"the branches of {does} return different shapes: {branches.of_result(i, avals)}",
            fix=_to_one_shape([a.shape for a in avals]),
        )
    strong = {a.dtype for a in avals if not a.weak_type}
    dtype, weak = promote(avals) if len(strong) < 2 else (None, False)
    if strong and dtype not in strong:
        raise OperandTypeError(
            f"the branches of {does} return different dtypes: {branches.of_result(i, avals)}",
            fix=f"convert in the branches, for instance with .astype({str(avals[-1].dtype)!r}), so "
            "that all return one dtype; a Python number takes that of an array of the same or a "
            "wider kind",
        )
    divided = {a.division for a in avals if a.division is not None}
    if len(divided) > 1:
        raise ArgumentError(
            f"the branches of {does} return values that are divided differently over explicit "
            f"axes: {branches.of_result(i, avals)}",
            fix="bring them to one sharding in the branches, by plait.sharding.reshard(x, P(...))",
        )
    agreed = Aval(avals[0].shape, dtype, weak and all(a.weak_type for a in avals))
    return agreed.with_vma(union(avals)).with_sharding(divided.pop() if divided else None)


def recast(program: Program, want: Sequence[Aval]) -> Program:
    """Return the program with its results converted to these types."""
    if all(o is w for o, w in zip(program.out_avals, want)):
        return program
    return staged(
        lambda *xs: [
            lie_as(varied(fit(o, w), w.vma), w.division)
            for o, w in zip(evaluate(program, xs), want)
        ],
        program.in_avals,
        program.name,
    )


def returning(traced: Any, want: TreeDef) -> Any:
    """Return a trace whose results have the capacities of a structure that holds them."""
    if traced.tree == want:
        return traced
    program = traced.program

    def f(*xs: Any) -> list[Any]:
        out = fitted(traced.tree.unflatten(evaluate(program, xs)), want)
        return flatten(out)[0]

    return traced._replace(program=staged(f, program.in_avals, program.name), tree=want)


def aligned(parts: Sequence[tuple[Program, list]]) -> tuple[list[Program], list]:
    """Return programs that all take every captured value, and these values."""
    every = {id(c): c for _, captured in parts for c in captured}
    out: list[Program] = []
    for program, captured in parts:
        if list(every) == [id(c) for c in captured]:
            out.append(program)
            continue
        mine = dict(zip(map(id, captured), program.inputs))
        front = [mine[k] if k in mine else _unused(c.aval) for k, c in every.items()]
        out.append(program.with_inputs([*front, *program.inputs[len(captured) :]]))
    return out, list(every.values())


def passed_on(programs: Sequence[Program]) -> list[int | None]:
    """Return, for each result, the number of the input that every program returns as it is, or
    None."""
    numbers = [{id(v): i for i, v in enumerate(p.inputs)} for p in programs]
    found = []
    for outs in zip(*[p.outputs for p in programs]):
        places = {held.get(id(o)) for held, o in zip(numbers, outs)}
        found.append(places.pop() if len(places) == 1 else None)
    return found


def without_results(program: Program, passed: Sequence[int | None]) -> Program:
    """Return the program without the results that are passed on.

    It is the same object at each call, since executables are kept by program.
    """
    kept = tuple([i is None for i in passed])

    def make() -> Program:
        outputs = [o for o, k in zip(program.outputs, kept) if k]
        return Program(program.inputs, program.eqns, outputs, program.name, program.consts)

    return derived(program, ("without results", kept), make)


def _unused(aval: Aval) -> Var:
    v = Var()
    v.by, v.aval, v.where = GROUND, aval, None
    return v


# ---- loops ---------------------------------------------------------------------------------


def fixed_first(program: Program, consts: int, fixed: Sequence[bool], body: bool) -> Program:
    """Return a program of a loop that takes the `fixed` parts of the carry before the others, after
    its first inputs; the `body` does not return them."""

    def make() -> Program:
        front, carry = program.inputs[:consts], program.inputs[consts:]
        stay = [v for v, f in zip(carry, fixed) if f]
        move = [v for v, f in zip(carry, fixed) if not f]
        outputs = program.outputs
        if body:
            outputs = [o for o, f in zip(outputs, fixed) if not f]
        inputs = [*front, *stay, *move]
        return Program(inputs, program.eqns, outputs, program.name, program.consts)

    return derived(program, ("fixed first", consts, tuple(fixed), body), make)


class Loop(NamedTuple):
    """A loop as its user wrote it, for messages.

    Attributes:
      does: the operation.
      f: the user's function of one turn.
      carry: returns the path in the user's carry, for a path in that of the operation.
    """

    does: str
    f: Any
    carry: Callable[[str], str] = str

    def part(self, init: Value | tuple[Value, ...], i: int) -> str:
        """Return the name of part `i` of the carry."""
        return f"carry{self.carry(key_paths(init)[i])}"


def steady(
    loop: Loop, carry: list, step: Callable[[list], tuple[Program, Sequence[Aval]]], init: Any
) -> tuple[list, Program]:
    """Return (carry, program) such that the carry has the type that the step returns.

    A weak carry (a Python number) takes the dtype that the step gives it; that needs another
    trace only if the dtype, not mere weakness, differs.  Other results are converted to the type
    of the carry if that loses nothing.  A carry that the step makes vary along axes of a mesh
    varies along them from the start.

    Args:
      loop: the loop, for messages.
      carry: the flat carry.
      step: traces the step for a carry, and returns its program and the types of its new carry.
      init: the carry as a tree, for messages.
    """
    rounds = 0
    while True:
        program, outs = step(carry)
        new = [_settled(x, o) for x, o in zip(carry, outs, strict=True)]
        rounds += 1
        grown = any(
            n.aval.vma is not x.aval.vma or n.aval.division != x.aval.division
            for n, x in zip(new, carry)
        )
        # A step may change the dtype in every round.  So the search stops after four, and the check
        # below converts the result or raises.
        same = rounds >= 4 or all(n.aval.dtype == x.aval.dtype for n, x in zip(new, carry))
        if same and not grown:
            break
        carry = new
    want = [x.aval if o.same_type(x.aval) else x.aval.strong() for x, o in zip(new, outs)]
    for i, (o, w) in enumerate(zip(outs, want)):
        loses = o.category > w.category or not (o.weak_type or o.dtype == w.dtype)
        if o.shape != w.shape or (o.dtype != w.dtype and loses):
            raise ArgumentError(
                f"what {loop.does} carries must keep its type: {loop.part(init, i)} comes in as "
                f"{carry[i].aval!r} and goes out as {o!r} from `{name_of(loop.f)}`",
                where=_line_of(program.outputs[i]),
                fix=f"start with that type, or convert in the step: .astype({w.dtype.name!r})"
                if o.shape == w.shape
                else "start with an array of that shape, or of the greatest it may get, and say "
                "by a number, carried beside it, how much of it counts",
            )
        if o.division not in (None, w.division):
            raise ArgumentError(
                f"what {loop.does} carries must stay divided as it is over explicit axes: "
                f"{loop.part(init, i)} comes in as {carry[i].aval!r} and goes out as {o!r} from "
                f"`{name_of(loop.f)}`",
                where=_line_of(program.outputs[i]),
                fix="start with that sharding, or bring it back in the step, by "
                "plait.sharding.reshard(x, P(...))",
            )
    rest = program.out_avals[len(want) :]
    keep = [o.with_sharding(w.division) if o.same_type(w) else w for o, w in zip(outs, want)]
    return carry, recast(program, [*keep, *rest])


def _line_of(result: object) -> Any:
    """Return the line that computed a result of a program; None for a constant, which none did."""
    return line_if_known(getattr(result, "where", None))


def _settled(x: Value, out: Aval) -> Any:
    x = varied(x, out.vma)
    if x.aval.division is None and out.division is not None and x.aval.shape == out.shape:
        x = lie_as(x, out.division)  # the carry has no sharding in its type, so it adopts this one
    a = x.aval
    if a.weak_type and a.shape == out.shape and a.dtype != out.dtype:
        if out.category >= a.category and not (out.weak_type and out.category == a.category):
            return fit(x, Aval(a.shape, out.dtype, out.weak_type))
    return x


def same_carry(loop: Loop, want: TreeDef, got: TreeDef) -> None:
    """Raise TreeMismatch unless a turn returns the structure that it is given."""
    if want != got:
        a, b = (t.unflatten([0] * t.num_leaves) for t in (want, got))
        raise TreeMismatch(
            f"{loop.does}: `{name_of(loop.f)}` returns another structure than the carry that it is "
            f"given: {difference(a, b, 'carry')}",
            where=defined_at(loop.f),
            fix=f"return a carry like {in_words(want)}",
        )
