"""checkpoint: keep the arguments, compute the rest again when it is needed.

Invariant: no residual of the body outlives the forward pass.  Of a checkpointed call with unknown
operands the whole body is recorded; it is divided when it is transposed, behind a barrier, and
the transposed operation is a checkpoint again, so that higher orders keep no more than the first.
"""

import functools
from collections.abc import Callable
from typing import Any

from weft.errors import TypeRule
from weft.ir import Program, derived, evaluate
from weft.ops.higher import expect
from weft.ops.shape import barrier
from weft.primitive import Primitive
from weft.staging import staged
from weft.tracing import kept, trace
from weft.types import Aval
from weft.wiring import Wiring
from weft.xla.lower import lower_rules

from .split import choose, divide, merge, part, split_program, split_rules
from .transpose import Linear, backward, is_linear, solid_ct, transpose_rules


def _rule(*xs: Aval, program: Program) -> list[Aval]:
    """Apply a program, to be computed again in reverse."""
    expect("checkpoint", program.in_avals, xs)
    for e in program.effects:
        if not e.repeatable:
            raise TypeRule(
                f"checkpoint would do {e.name!r} again in reverse",
                fix="keep what acts on the world outside the checkpointed function",
            )
    return program.out_avals


checkpoint_p = Primitive("autodiff.checkpoint", _rule, many=True, higher=Wiring())


@lower_rules.rule(checkpoint_p)
def _(e, xs, ins, outs, program):
    return e.call(program, xs)


def checkpoint(fun: Callable | None = None) -> Callable:
    """`fun`, whose intermediate values are computed again in reverse mode instead of being kept.

    Args:
      fun: takes and returns trees of arrays; without it, a decorator is returned.

    Raises TypeRule if `fun` acts on the world in a way that must not happen twice.

    >>> import weft as wf
    >>> wf.grad(wf.checkpoint(lambda x: wf.lax.sin(wf.lax.sin(x))))(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    if fun is None:
        return checkpoint

    @functools.wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        traced = trace(fun, args, kwargs, "checkpoint", kept(fun))
        outs = checkpoint_p.bind(*traced.captured, *traced.values, program=traced.program)
        return traced.tree.unflatten(outs)

    return checkpointed


@split_rules.rule(checkpoint_p)
def _(split, args, params):
    program, unknown = params["program"], divide(split, args)
    h = split_program(program, unknown)
    n = h.out_unknown.count(False)
    now = choose(h.known, tuple([i < n for i in range(len(h.known.outputs))]))
    outs = checkpoint_p.bind(*part(args, unknown, False), program=now) if n else []
    later = choose(program, h.out_unknown)
    rest = split.stage.apply(checkpoint_p, args, {"program": later}) if later.outputs else []
    return merge(h.out_unknown, rest, outs)


@transpose_rules.rule(checkpoint_p)
def _(cts, *args, program):
    linear = tuple(map(is_linear, args))
    given = tuple([c is not None for c in cts])
    avals = program.in_avals
    wanted = part(avals, linear)

    def back(*vs: Any) -> list:
        n = linear.count(False)
        h = split_program(program, linear, (True,) * len(program.outputs))
        known = barrier.bind(*vs[:n]) if n else []
        residuals = evaluate(h.known, known)
        it = iter(vs[n:])
        operands = [*residuals, *(Linear(a) for a in wanted)]
        got = backward(h.unknown, operands, [next(it) if g else None for g in given])
        return [solid_ct(c, a) for c, a in zip(got[len(residuals) :], wanted)]

    def make() -> Program:
        types = [*part(avals, linear, False), *part(program.out_avals, given)]
        return staged(back, types, program.name + "_t", prune=True)

    p = derived(program, ("transpose checkpoint", linear, given), make)
    operands = [*part(args, linear, False), *part(cts, given)]
    got = iter(checkpoint_p.bind(*operands, program=p))
    return [next(got) if flag else None for flag in linear]
