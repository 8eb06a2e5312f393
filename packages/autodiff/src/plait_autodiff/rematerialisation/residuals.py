"""Residuals chosen by a policy: which values are kept, and which are computed again.

A policy divides a program of known values into two.  The first does everything and returns the
kept values besides its results.  The second computes the results again from the kept values and
the inputs.  Operations with programs divide inside, by their rules.

Invariant: the second program never repeats a side effect, reads nothing that it does not need, and
computes the same values.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numpy import bool_

from plait.ext.errors import ArgumentError
from plait.ext.ir import Primitive, Program, Var, dce, derived, effects_of, evaluate, primitive
from plait.ext.lower import Emitter, IrValue, attr
from plait.ext.ops.control_flow import call, cond, scan
from plait.ext.rules import Elementwise, Increasing, Linear, RuleTable, ZeroPreserving, lower_rules
from plait.ext.trace import Interpreter, Stage, Value, collector_paused, open_under, use
from plait.ext.types import Aval

from ..custom.vjp import forward_call
from ..split import choose, part, pooled, steady
from .policies import Offload, Saveable, passed_by

recompute_rules = RuleTable(
    "recompute",
    programs="(twice, prim, args, params)",
    doc="results: an operation with programs, done under "
    "twice.parent with what the policy keeps as further results, and done again from these in "
    "twice.stage; twice.pair(results, repeated) says what is what.",
)

# ---- other memories ------------------------------------------------------------------------


@primitive("autodiff.move", traits=(Elementwise, ZeroPreserving, Increasing, Linear))
def move_(x: Aval, *, memory: str) -> Aval:
    """Move a value to another memory of its device; the CPU has only one."""
    return x


@lower_rules.rule(move_)
def _(e: Emitter, xs: list[IrValue], ins: object, outs: list[Aval], memory: object):
    if e.unit.platforms == ("cpu",):
        return xs[0]
    return e.op(
        "stablehlo.custom_call",
        xs,
        *outs,
        call_target_name=attr('"annotate_device_placement"'),
        has_side_effect=attr("true"),
        **{"mhlo.frontend_attributes": attr(f'{{_xla_buffer_placement = "{memory}"}}')},
    )


passed_by(move_)


def asked(
    policy: Callable[..., Any], prim: Primitive, avals: list[Any], params: dict[str, Any]
) -> bool | Offload:
    """Return a policy's answer for an operation; raise TypeRule unless it is a bool or Offload."""
    said = policy(prim, *avals, **params)
    if isinstance(said, bool | Offload):
        return said
    if isinstance(said, bool_):
        return bool(said)
    raise ArgumentError(
        f"a policy of checkpoint says {said!r} of {prim.name}",
        fix="return True to keep its result, False to compute it again",
    )


# ---- doing it twice ------------------------------------------------------------------------


class Twice(Interpreter):
    """Runs operations in `parent`, and those with results that are not kept again in `stage`."""

    does = "checkpoint"

    def __init__(self, parent: Stage, stage: Stage, policy: Callable[..., Any]):
        open_under(self, parent)
        self.stage, self.beside, self.policy = stage, stage, policy
        self.twins: dict[Any, Any] = {}

    def twin(self, x: Value) -> Any:
        """Return the recomputed version of a value, or the value itself if it is kept."""
        return self.twins.get(x, x) if x.__class__ is Var else x

    def pair(self, outs: Sequence[Any], twins: Sequence[Any]) -> None:
        """Record the recomputed versions of results."""
        self.twins.update(zip(outs, twins, strict=True))

    def apply(self, prim: Any, args: Any, params: dict[str, Any]) -> Any:
        parent: Any = self.parent
        if prim.higher is not None:
            rule = recompute_rules.find(prim)
            if rule is not None:
                return rule(self, prim, args, params)
        out = parent.apply(prim, args, params)
        outs = out if prim.many else [out]
        if effects_of(prim, params):
            return out
        keep = asked(self.policy, prim, [a.aval for a in args], params)
        if isinstance(keep, Offload):
            self.pair(outs, [self.moved(o, keep) for o in outs])
        elif not keep:
            again = self.stage.apply(prim, [self.twin(a) for a in args], params)
            self.pair(outs, again if prim.many else [again])
        return out

    def moved(self, x: Value, to: Offload) -> Any:
        """Keep a value in another memory; return it as it is after it was moved back."""
        away = self.parent.apply(move_, [x], {"memory": to.dst})  # type: ignore[union-attr]
        return self.stage.apply(move_, [away], {"memory": to.src})


class Kept(NamedTuple):
    """A program divided by a policy.

    first: inputs -> outputs, then kept values.
    again: kept values, then inputs -> the outputs marked in `redone`.
    kept: the number of kept values.
    """

    first: Program
    again: Program
    redone: tuple[bool, ...]
    kept: int


def economise(
    program: Program,
    policy: Callable[..., Any],
    wanted: tuple[bool, ...] | None = None,
    must: tuple[bool, ...] | None = None,
    inst: tuple[bool, ...] | None = None,
) -> Kept:
    """Divide a program by what a policy keeps.

    Args:
      wanted: for each output whether it is needed again; by default all are.
      must: outputs that `again` returns even if they are kept; by default none.
      inst: inputs that are still available at recomputation; by default all.  `again` takes these,
        in order; other inputs are kept if they are needed.
    """
    n = len(program.outputs)
    wanted = wanted or (True,) * n
    must = must or (False,) * n
    inst = inst or (True,) * len(program.inputs)
    key = ("economise", policy, wanted, must, inst)
    return derived(program, key, lambda: _economised(program, policy, wanted, must, inst))


def _economised(
    program: Program, policy: Saveable | Callable[..., Any], wanted: tuple, must: tuple, inst: tuple
) -> Kept:
    first, second = Stage(None, "checkpoint"), Stage(None, "checkpoint")
    second.parent = first  # the recomputation may capture values of the first pass
    twice = Twice(first, second, policy)
    try:
        with collector_paused():
            xs = [first.input(v.aval) for v in program.inputs]
            there = part(xs, inst)
            twice.pair(there, [second.input(x.aval) for x in there])
            with use(twice):
                outs = evaluate(program, xs)
            redone = tuple(
                [
                    m or (w and o.__class__ is Var and o in twice.twins)
                    for o, w, m in zip(outs, wanted, must)
                ]
            )
            results = [twice.twin(o) for o in part(outs, redone)]
            full, captured = second.close(results, program.name, prune=True)
            k = len(captured)
            again, used = dce(full)
            kept = part(captured, used[:k])
            again = again.with_inputs([*part(full.inputs[:k], used[:k]), *full.inputs[k:]])
            now, _ = first.close([*outs, *kept], program.name, prune=True)
            # Callers pass all inputs, also those that dce finds unused.
            now = dce(now)[0].with_inputs(now.inputs)
            return Kept(now, again, redone, len(kept))
    finally:
        first.abandon()
        second.abandon()


# ---- operations with programs --------------------------------------------------------------


def divide_call(twice: Twice, prim: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Divide an operation that calls `params["program"]`, possibly in a special way."""
    k = economise(params["program"], twice.policy)
    n = len(k.redone)
    outs = twice.parent.apply(prim, args, {**params, "program": k.first})  # type: ignore[union-attr]
    if k.again.outputs:
        operands = [*outs[n:], *map(twice.twin, args)]
        again = twice.stage.apply(prim, operands, {**params, "program": k.again})
        twice.pair(part(outs[:n], k.redone), again)
    return outs[:n]


recompute_rules.rule(call)(divide_call)


@recompute_rules.rule(forward_call)
def _(twice, prim, args, params):
    """Divide the forward rule of a custom function.

    If nothing is kept, the recomputation stays a forward rule.
    """
    k = economise(params["fwd"], twice.policy)
    n, twins = len(k.redone), list(map(twice.twin, args))
    outs = twice.parent.apply(prim, args, {**params, "fwd": k.first})
    if not k.kept and all(k.redone) and not params["fwd"].effects:
        twice.pair(outs, twice.stage.apply(prim, twins, params))
    elif k.again.outputs:
        again = twice.stage.apply(call, [*outs[n:], *twins], {"program": k.again})
        twice.pair(part(outs[:n], k.redone), again)
    return outs[:n]


@recompute_rules.rule(scan)
def _(twice, prim, args, params):
    """Divide a scan.

    Kept values are stacked over the turns, except those that are the same in every turn.  The
    carry is always recomputed.
    """
    body, c, count = params["body"], params["carry"], params["consts"]
    n = len(body.outputs)
    k = economise(body, twice.policy, must=tuple([i < c for i in range(n)]))
    same = tuple(steady(k.first, n, count))
    stacked = tuple([not s for s in same])
    now = choose(k.first, (*(True,) * n, *stacked))
    outs = twice.parent.apply(prim, args, {**params, "body": now})
    if k.again.outputs:
        once, reads = dce(k.first, (*(False,) * n, *same))
        fixed = twice.parent.apply(call, part(args, reads), {"program": once}) if any(same) else []
        front, rest = k.again.inputs[: k.kept], k.again.inputs[k.kept :]
        step = k.again.with_inputs([*part(front, same), *rest, *part(front, stacked)])
        later = {**params, "body": step, "consts": count + len(fixed)}
        operands = [*fixed, *map(twice.twin, args), *outs[n:]]
        twice.pair(part(outs[:n], k.redone), twice.stage.apply(prim, operands, later))
    return outs[:n]


@recompute_rules.rule(cond)
def _(twice, prim, args, params):
    branches, policy = params["branches"], twice.policy
    redone = [economise(b, policy).redone for b in branches]
    must = tuple([any(marks) for marks in zip(*redone)])
    each = [economise(b, policy, must, must) for b in branches]
    n = len(must)
    firsts, seconds, forwarded = derived(
        branches[0],
        ("economise cond", policy),
        lambda: pooled([(k.first, k.again, k.kept) for k in each], n),
        branches[1:],
    )
    outs = twice.parent.apply(prim, args, {"branches": firsts})
    if any(must):
        index, *operands = map(twice.twin, args)
        kept = [*outs[n:], *(operands[i] for i in forwarded)]
        again = twice.stage.apply(prim, [index, *kept, *operands], {"branches": seconds})
        twice.pair(part(outs[:n], must), again)
    return outs[:n]
