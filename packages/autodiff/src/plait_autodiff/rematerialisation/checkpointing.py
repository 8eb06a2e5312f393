"""checkpoint: keep the arguments and the values that a policy chooses; recompute the rest.

A checkpointed call with unknown operands computes now the values that the policy keeps, and
records the rest of the body.  The recorded part is divided when it is transposed.

Invariant: no other value of the body outlives the forward pass.  The transposed operation is again
a checkpoint, so that higher orders keep no more than the first.  The compiler never merges the
recomputation with the computation that it repeats.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack, overload

from plait.ext.control import InspectableStage
from plait.ext.errors import ArgumentError, border
from plait.ext.ir import Primitive, Program, dce
from plait.ext.lower import Emitter, IrValue
from plait.ext.ops.control_flow import call, expect
from plait.ext.rules import lower_rules, reuse_rules
from plait.ext.trace import Role, Value, Wiring, current, kept, role, trace, without_static, wraps
from plait.ext.tree import flatten
from plait.ext.types import INT32, Aval

from ..partial_evaluation import partial_eval
from ..split import Split, divide, merge, part, split_rules
from ..transpose import Linear, is_linear, transpose_divided, transpose_rules
from .policies import Either, Saveable, nothing_saveable
from .residuals import divide_call, recompute_rules

P = ParamSpec("P")
R = TypeVar("R")
_INDEX = Aval((), INT32)

# ---- the operation -------------------------------------------------------------------------


def _rule(
    *xs: Aval, program: Program, policy: Saveable | Either | None, prevent_cse: bool, again: bool
) -> list[Aval]:
    """Apply a program whose values reverse mode keeps as `policy` chooses; `again` marks its
    recomputation."""
    expect("checkpoint", program.in_avals, xs)
    for e in program.effects:
        if again and not e.repeatable:
            raise ArgumentError(
                f"checkpoint would do {e.name!r} again in reverse",
                fix="keep what acts on the world outside the checkpointed function",
            )
    return program.out_avals


checkpoint_p = Primitive("autodiff.checkpoint", _rule, many=True, higher=Wiring())
recompute_rules.rule(checkpoint_p)(divide_call)


@reuse_rules.rule(checkpoint_p)
def _(walk, e, xs):
    """Allow reuse of keys: the recomputation draws the same numbers again."""
    return walk.repeatable(e, xs)


@lower_rules.rule(checkpoint_p)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    program: Program,
    policy: Saveable | Callable[..., Any] | None,
    prevent_cse: bool,
    again: bool,
):
    if not (again and prevent_cse and xs and outs):
        return e.call(program, xs)
    place = e.unit.place
    many = place is not None and len(place.devices) > 1  # barriers then stay on the CPU
    if many or program.effects or e.unit.platforms != ("cpu",):
        r = e.op("stablehlo.optimization_barrier", xs, *ins)
        return e.call(program, r if len(ins) != 1 else [r])
    return _apart(e, xs, outs, program)


def _apart(e: Emitter, xs: Sequence[Any], outs: Sequence[Aval], program: Program) -> list:
    """Emit a call that the CPU compiler cannot merge with the computation that it repeats.

    For one device this compiler drops barriers before it merges equal computations, and would so
    keep all values.  It merges nothing into a branch.  That the branch is always taken becomes
    known only when the barriers are gone.
    """
    first = e.op("stablehlo.optimization_barrier", [e.constant(0, _INDEX)], _INDEX)
    regions = [
        ((), lambda b, _: b.call(program, xs)),
        ((), lambda b, _: [b.constant(0, a) for a in outs]),
    ]
    r = e.op("stablehlo.case", [first], *outs, regions=regions)
    return r if len(outs) != 1 else [r]


# ---- the user's interface ------------------------------------------------------------------


class CheckpointOptions(TypedDict, total=False):
    """The options of `checkpoint`, for both of its call signatures."""

    prevent_cse: bool | Sequence[bool]
    policy: Callable[..., Any] | None
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Sequence[str] | None


@overload
def checkpoint(fun: Callable[P, R], **options: Unpack[CheckpointOptions]) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = None, **options: Unpack[CheckpointOptions]
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
@border
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """Return `fun` so that reverse mode recomputes its intermediate values instead of keeping them.

    Side effects (a callback, a print) happen once: their results are kept.

    Args:
      fun: takes and returns trees of arrays; without it, a decorator is returned.  It may branch
        on values wherever it could without checkpoint.
      prevent_cse: stop the compiler from merging the recomputation with the first computation,
        which would keep the values after all.  Inside a loop it cannot merge them, so False is
        safe there and saves a little.  A tree of booleans, as of the arguments, counts as True if
        any entry is.
      policy: which values to keep: one of `plait.checkpoint_policies`, or a function that is
        called for every operation, `policy(prim, *avals, **params) -> bool`.  Without it only the
        arguments are kept.
      static_argnums, static_argnames: arguments that are Python values instead of arrays, by
        position or by name.  If a value is not hashable, `fun` is traced at every call.

    Raises TypeRule if the policy is not a function.

    >>> import plait
    >>> plait.grad(plait.checkpoint(lambda x: plait.lax.sin(plait.lax.sin(x))))(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    if fun is None:
        given = {k: v for k, v in locals().items() if k != "fun"}
        return functools.partial(checkpoint, **given)
    if not callable(fun):
        raise ArgumentError(f"checkpoint needs a function, not {fun!r}", fix="write checkpoint(f)")
    if policy is not None and not callable(policy):
        raise ArgumentError(
            f"the policy of checkpoint is {policy!r}",
            fix="choose one of plait.checkpoint_policies, or write a function",
        )
    static = role(fun, static_argnums, static_argnames, "static")
    params = {"policy": policy, "prevent_cse": _apart_at_all(prevent_cse), "again": False}

    @border
    @wraps(fun)
    def checkpointed(*args: object, **kwargs: object) -> Any:
        f, rest, named, traces = _without_static(fun, args, kwargs, static)
        stage = InspectableStage(current(), "checkpoint", fun, rest, named)
        traced = trace(f, rest, named, "checkpoint", traces, on=stage)
        if stage.looked:  # the trace holds for these values only
            for key in [k for k, v in traces.items() if _is_trace(v, traced.program)]:
                del traces[key]
        outs = checkpoint_p.bind(*traced.captured, *traced.values, program=traced.program, **params)
        return traced.tree.unflatten(outs)

    return checkpointed


def _apart_at_all(prevent_cse: object) -> bool:
    """Return whether to keep the recomputation apart; raise TypeRule unless given as booleans."""
    flags = flatten(prevent_cse)[0] or [prevent_cse]
    if not all(isinstance(f, bool) for f in flags):
        raise ArgumentError(
            f"prevent_cse of checkpoint is {prevent_cse!r}", fix="write True or False"
        )
    return any(flags)


def _is_trace(found: tuple[Any, ...], program: Program) -> bool:
    return isinstance(found, tuple) and found[0] is program


def _without_static(fun: Callable[..., Any], args: tuple, kwargs: dict, static: Role) -> tuple:
    """Return (function of the other arguments, these by position, these by name, its traces)."""
    if not static:
        return fun, args, kwargs, kept(fun)
    n = len(args)
    if static.beyond >= n:
        raise ArgumentError(
            f"static_argnums of checkpoint names argument {static.beyond}, and the function was "
            f"called with {n} positional arguments",
            fix="pass that argument by position",
        )
    call = without_static(args, kwargs, static)
    try:
        key = "static", call.key(n)
    except TypeError:  # not hashable, so a stored trace could not be found again
        return call.bind(fun, n), call.args, call.kwargs, {}
    return call.bind(fun, n), call.args, call.kwargs, kept(fun).under(key)


# ---- division ------------------------------------------------------------------------------


@split_rules.rule(checkpoint_p)
def _(split: Split, args: list[Value], params):
    unknown = divide(split, args)
    d = partial_eval(params["program"], unknown, inst_in=True, policy=_policy(params["policy"]))
    later, used = dce(d.staged)
    known = part(args, unknown, False)
    outs = checkpoint_p.bind(*known, **{**params, "program": d.known}) if d.known.outputs else []
    n = len(outs) - d.residuals
    rest: list = []
    if later.outputs:
        operands = part([*outs[n:], *args], used)
        if d.repeats:
            rest = split.stage.apply(
                checkpoint_p, operands, {**params, "program": later, "again": True}
            )
        else:
            rest = split.stage.apply(call, operands, {"program": later})
    return merge(d.out_unknown, rest, outs[:n])


def _policy(policy: Saveable | Callable[..., Any] | None) -> Any:
    return nothing_saveable if policy is None else policy


# ---- transposition -------------------------------------------------------------------------


@transpose_rules.rule(checkpoint_p)
def _(cts: list[Any], /, *args: Value | Linear, program: Program, **params: object):
    linear = tuple(map(is_linear, args))
    given = tuple([c is not None for c in cts])
    p = transpose_divided(program, linear, given)
    operands = [*part(args, linear, False), *part(cts, given)]
    got = iter(checkpoint_p.bind(*operands, program=p, **params))
    return [next(got) if flag else None for flag in linear]
