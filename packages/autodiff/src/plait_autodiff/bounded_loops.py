"""Reverse mode of `while_loop` with `max_steps`: bounded loops as nested scans.

A bounded `while` is rewritten as nested scans over checkpoints.  A step of an inner scan is a turn,
a step of an outer one is a whole inner scan; steps are skipped once the predicate is false.  With
at most n turns and d levels, some d n**(1/d) carries are kept.  Values between two of them are
recomputed, at most d times.  Source: Griewank, "Achieving logarithmic growth of temporal and
spatial complexity in reverse automatic differentiation", 1992.

Invariant: the program has the results of the loop; a skipped step costs a comparison.
"""

from collections.abc import Callable
from typing import Any

from plait.ext.ir import Program, derived, evaluate, registered
from plait.ext.ops.control_flow import cond as cond_p
from plait.ext.ops.control_flow import scan
from plait.ext.ops.elementwise import add, and_, lt
from plait.ext.ops.shape import convert
from plait.ext.trace import Value, staged
from plait.ext.types import INT32, Aval
from plait.ext.values import Literal

_WIDTH = 32
"""The most steps of one scan."""

_I = Aval((), INT32)


def levels(most: int) -> list[int]:
    """Return lengths of nested scans, the innermost first, with `most` steps or more in all.

    >>> levels(1000)
    [32, 32]
    """
    depth = 1
    while _WIDTH**depth < most:
        depth += 1
    width = max(1, round(most ** (1 / depth)))
    while width**depth < most:
        width += 1
    return [width] * depth


def bounded(
    cond: Program, body: Program, cond_consts: int, body_consts: int, max_steps: int
) -> Program:
    """Return the loop without `while`, on the same operands (constants of `cond`, of `body`,
    carry)."""
    key = "bounded", cond_consts, body_consts, max_steps
    make = lambda: _nested(cond, body, cond_consts, body_consts, max_steps)  # noqa: E731
    return derived(body, key, make, [cond])


def _nested(cond: Program, body: Program, c: int, b: int, most: int) -> Program:
    k = c + b
    consts = [*cond.in_avals[:c], *body.in_avals[:b]]
    carry = [_I, *body.in_avals[b:]]
    types = [*consts, *carry]

    def going(xs: tuple[Value, ...]) -> Any:
        """Return whether there is another turn, as the index of a branch."""
        i, state = xs[k], xs[k + 1 :]
        (more,) = evaluate(cond, [*xs[:c], *state])
        return convert(and_.bind(more, lt.bind(i, Literal(most, _I))), INT32)

    def turn(*xs: Value) -> list:
        new = evaluate(body, [*xs[c:k], *xs[k + 1 :]])
        return [add.bind(xs[k], Literal(1, _I)), *new]

    stay = staged(lambda *xs: [*xs[k:]], types, "stay")
    step = staged(turn, types, body.name)
    for length in levels(most):
        step = _repeated(going, stay, step, types, k, length)
    outer = lambda *xs: evaluate(step, [*xs[:k], Literal(0, _I), *xs[k:]])[1:]  # noqa: E731
    return staged(outer, [*consts, *carry[1:]], body.name)


def _repeated(
    going: Callable[..., Any], stay: Program, step: Program, types: list, k: int, length: int
) -> Program:
    """Return `length` steps, each of them skipped once the loop has ended."""

    def guarded(*xs: Value) -> list:
        return cond_p.bind(going(xs), *xs, branches=(stay, step))

    guarded_p = staged(guarded, types, step.name)
    once = {"program": guarded_p, "policy": None, "prevent_cse": False, "again": False}
    # Found by name: most programs have no bounded loop, and need not load checkpoints.
    checkpoint_p = registered("autodiff.checkpoint")
    assert checkpoint_p is not None
    kept = staged(lambda *xs: checkpoint_p.bind(*xs, **once), types, step.name)
    params = {"carry": len(types) - k, "length": length, "reverse": False, "unroll": 1}
    return staged(lambda *xs: scan.bind(*xs, body=kept, consts=k, **params), types, step.name)
