"""Derivatives of custom_vmap functions: when mapped, they are the derivatives of the mapping rule.

A derivative of such a function has a mapping rule itself, so every order of transformations keeps
the rule.  Reverse mode computes its residuals again from the arguments, since the mapping rule need
not compute the values that the function does.

Invariant: only the rule tables of plait_autodiff load this module.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.ir import Program, dce, derived, evaluate
from plait.ext.ops.shape import broadcast_in_dim, reshape, slice_
from plait.ext.trace import Deferred, staged, use
from plait.ext.types import Aval
from plait.ext.values import Literal
from plait_autodiff.ext import (
    ZERO,
    along,
    choose,
    divide,
    is_linear,
    jvp_rules,
    merge,
    part,
    split_program,
    split_rules,
    transpose_divided,
    transpose_rules,
)

from .interpreter import Batch, batching_rules
from .overrides import Flags, Stacked, custom_vmap_call


def _stack(x: Any, size: Any) -> Any:
    """Return `size` copies of `x`, stacked along a new first axis."""
    shape = (size, *x.aval.shape)
    if x.__class__ is Literal:
        return Literal(x.value, x.aval.with_shape(shape))
    return broadcast_in_dim.bind(x, shape=shape, dims=tuple(range(1, len(shape))))


def _stacks(xs: Sequence[Any], have: Flags, want: Sequence[bool], size: Any) -> list:
    return [_stack(x, size) if w and not h else x for x, h, w in zip(xs, have, want, strict=True)]


def _types(avals: Sequence[Aval], flags: Sequence[bool], size: Any) -> list[Aval]:
    return [a.with_shape((size, *a.shape)) if f else a for a, f in zip(avals, flags, strict=True)]


def _of(program: Program, key: Any, make: Callable[[], Program], rule: Any, at: Callable) -> dict:
    """Return the parameters `program` and `rule` of an operation derived from another one."""
    made = derived(program, ("mapped", *key), make)
    new = rule.lifted.get(("mapped", *key))
    if new is None:
        new = rule.lifted["mapped", *key] = Stacked(at, made.in_avals, rule.user)
    return {"program": made, "rule": new}


# ---- forward -------------------------------------------------------------------------------


@jvp_rules.rule(custom_vmap_call)
def _(jvp, args, params):
    program = params["program"]
    if isinstance(program, Deferred):
        if not _is_mapped(jvp.parent):
            with use(jvp):
                return program.f(*args)
        args, params = custom_vmap_call.higher.settle(params, args)  # type: ignore[union-attr]
    program, rule = params["program"], params["rule"]
    xs, ts = jvp.halves(args)
    active = tuple([t is not ZERO for t in ts])
    varies = tuple([o.varies for o in program.out_avals])

    def at(size: int, flags: Flags) -> tuple[Program, Flags]:
        return _along(rule, size, flags, active, varies)

    new = _of(program, ("along", active), lambda: along(program, active), rule, at)
    operands = [*xs, *part(ts, active)]
    outs = custom_vmap_call.bind(*operands, **new, consts=params["consts"])
    dots = iter(outs[len(varies) :])
    return jvp.duals(outs[: len(varies)], [next(dots) if v else ZERO for v in varies])


def _along(
    rule: Any, size: Any, flags: Flags, active: Flags, varies: Flags
) -> tuple[Program, Flags]:
    """Return the derivative of a mapping rule, and which of its results are stacks.

    Args:
      rule: the mapping rule, a `Stacked`.
      size: the size of the mapped axis.
      flags: for each argument, then for each tangent, whether it is a stack.
      active: for each argument whether it has a tangent.
      varies: for each result whether it has a tangent.
    """
    n = len(active)
    values, moved = flags[:n], iter(flags[n:])
    types = _types([*rule.in_avals, *part(rule.in_avals, active)], flags, size)
    if not any(values) and rule.user not in _at_one_point():
        found = _along_directions(rule, size, flags, active)
        if found is not None:
            return found
    both = tuple([bool(f or (a and next(moved))) for f, a in zip(values, active)])
    made, out_flags = rule.at(size, both)
    wanted = (*both, *part(both, active))
    whole = along(made, active)
    many = out_flags + tuple(part(out_flags, varies))
    rows = [f and not _is_level(whole, i, flags) for i, f in enumerate(many)]

    def stacks(*vs: Any) -> list:
        outs = evaluate(whole, _stacks(vs, flags, wanted, size))
        return [
            _first(o) if f and not row else o for o, f, row in zip(outs, many, rows, strict=True)
        ]

    return staged(stacks, types), tuple(rows)


def _along_directions(
    rule: Any, size: Any, flags: Flags, active: Flags
) -> tuple[Program, Flags] | None:
    """Return the same where the function is at one point, and only directions are mapped.

    The rule gets that point without a mapped argument, and its results are mapped along the
    directions.  None if the rule returns stacks all the same.
    """
    # A rule that calls its own function would get this point again, for ever.  Inside of it,
    # therefore, values are stacked wherever their directions are.
    _at_one_point().append(rule.user)
    try:
        made, out_flags = rule.at(size, flags[: len(active)])
        if any(out_flags):
            return None
        forms = tuple([0 if f else None for f in flags])
        whole, batch = along(made, active), Batch(None, size, None)
        ends = [None if f is None else 0 for f in batch.lift_program(whole, forms)[1]]
        p = batch.lift_program(whole, forms, tuple(ends))[0]
        return p, tuple([f is not None for f in ends])
    finally:
        _at_one_point().pop()


_local = threading.local()


def _at_one_point() -> list[Callable[..., Any]]:
    """Return the rules that run in this thread without a mapped argument."""
    if not hasattr(_local, "rules"):
        _local.rules = []
    return _local.rules


def _is_level(program: Program, i: int, flags: Flags) -> bool:
    """Return whether all rows of result `i` are equal, since no input that differs between rows
    reaches it."""
    keep = [k == i for k in range(len(program.outputs))]
    used = dce(program, keep)[1]
    return not any(u and f for u, f in zip(used, flags, strict=True))


def _first(x: Any) -> Any:
    """Return the first row of a stack."""
    shape = x.aval.shape
    zeros, ones = (0,) * len(shape), (1,) * len(shape)
    row = slice_.bind(x, starts=zeros, limits=(1, *shape[1:]), strides=ones)
    return reshape(row, shape[1:])


def _is_mapped(by: Any) -> bool:
    """Return whether an outer interpreter maps, or stages a program that may be mapped later."""
    while by is not None:
        if by.staging or getattr(by.kind, "rules", None) is batching_rules:
            return True
        by = by.parent
    return False


# ---- division and reversal -----------------------------------------------------------------


def _only(program: Program, known: Sequence[bool], keep: tuple[bool, ...]) -> Program:
    """Return the program of the results `keep`, which depend on the inputs `known` alone."""

    def some(*vs: Any) -> list:
        it = iter(vs)
        xs = [next(it) if k else Literal(0, a) for k, a in zip(known, program.in_avals)]
        return part(evaluate(program, xs), keep)

    return staged(some, part(program.in_avals, known), program.name, prune=True)


@split_rules.rule(custom_vmap_call)
def _(split, args, params):
    program, rule, consts = params["program"], params["rule"], params["consts"]
    unknown = divide(split, args)
    h = split_program(program, unknown)
    known, now = [not u for u in unknown], tuple([not u for u in h.out_unknown])

    def first(size: int, flags: Flags) -> tuple[Program, Flags]:
        given = iter(flags)
        made, out_flags = rule.at(size, tuple([bool(k and next(given)) for k in known]))
        return _only(made, known, now), tuple(part(out_flags, now))

    def later(size: int, flags: Flags) -> tuple[Program, Flags]:
        made, out_flags = rule.at(size, flags)
        return choose(made, h.out_unknown), tuple(part(out_flags, h.out_unknown))

    key = unknown, h.out_unknown
    outs: list = []
    if any(now):
        new = _of(program, ("known", *key), lambda: _only(program, known, now), rule, first)
        outs = custom_vmap_call.bind(*part(args, known), **new, consts=known[:consts].count(True))
    rest: list = []
    if any(h.out_unknown):
        new = _of(program, ("later", *key), lambda: choose(program, h.out_unknown), rule, later)
        rest = split.stage.apply(custom_vmap_call, args, {**new, "consts": consts})
    return merge(h.out_unknown, rest, outs)


@transpose_rules.rule(custom_vmap_call)
def _(cts, *args, program, rule, consts):
    linear = tuple(map(is_linear, args))
    given = tuple([c is not None for c in cts])
    n = linear.count(False)
    avals = [*part(program.in_avals, linear, False), *part(program.out_avals, given)]

    def at(size: int, flags: Flags) -> tuple[Program, Flags]:
        """Transpose the mapped program.  Every linear input is a stack; a result that is not a
        stack does not depend on linear inputs."""
        it = iter(flags[:n])
        made, out_flags = rule.at(size, tuple([True if f else next(it) for f in linear]))
        there = tuple([bool(g and f) for g, f in zip(given, out_flags)])
        back = transpose_divided(made, linear, there)

        def stacked(*vs: Any) -> list:
            chosen = part(out_flags, given)
            cts = _stacks(vs[n:], flags[n:], chosen, size)
            return evaluate(back, [*vs[:n], *part(cts, chosen)])

        return staged(stacked, _types(avals, flags, size)), (True,) * linear.count(True)

    key = "transpose", linear, given
    new = _of(program, key, lambda: transpose_divided(program, linear, given), rule, at)
    operands = [*part(args, linear, False), *part(cts, given)]
    known = linear[:consts].count(False)
    got = iter(custom_vmap_call.bind(*operands, **new, consts=known))
    return [next(got) if f else None for f in linear]
