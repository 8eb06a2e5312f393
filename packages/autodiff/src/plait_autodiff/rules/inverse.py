"""Inverse rules: recover operands of operations from their results.

Invariant: a rule returns an operand only where the given values determine it, up to rounding.  It
need not be right where it is not finite (a product with zero is not undone).  Operands to recover
are passed as `Unknown`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.ir import Primitive, Program, derived, evaluate
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.control_flow import scan
from plait.ext.trace import Value, staged
from plait.ext.values import Literal

from ..inversion.recovery import Reverse, Unknown, inverse_rules, is_unknown, reverse
from ..rematerialisation.policies import name_
from ..rematerialisation.residuals import move_
from ..split import part
from ..sums import added, rounded, summed_in

# ---- operations with one operand -----------------------------------------------------------


def _undone_by(prim: Primitive, inverse: Callable[..., Any]) -> None:
    @inverse_rules.rule(prim)
    def _(y: Value, x: Unknown):
        return [inverse(y)]


for _prim in (el.neg, el.conj, el.not_):
    _undone_by(_prim, _prim.bind)
_undone_by(el.stop, lambda y: y)
_undone_by(el.once, lambda y: y)
_undone_by(el.exp, lambda y: el.log.bind(y))
_undone_by(el.log, lambda y: el.exp.bind(y))
_undone_by(el.expm1, lambda y: el.log1p.bind(y))
_undone_by(el.log1p, lambda y: el.expm1.bind(y))
_undone_by(el.tanh, lambda y: el.atanh.bind(y))
_undone_by(el.atanh, lambda y: el.tanh.bind(y))
_undone_by(el.sinh, lambda y: el.asinh.bind(y))
_undone_by(el.asinh, lambda y: el.sinh.bind(y))
_undone_by(el.acosh, lambda y: el.cosh.bind(y))
_undone_by(el.sqrt, lambda y: el.mul.bind(y, y))
_undone_by(el.logistic, lambda y: el.sub.bind(el.log.bind(y), el.log1p.bind(el.neg.bind(y))))


@inverse_rules.rule(sh.barrier)
def _(ys, *xs: object):
    return ys


@inverse_rules.rule(name_, move_)
def _(y: Value, x: object, **_: object):
    return [y]


# ---- operations with two operands ----------------------------------------------------------


def _either_undone_by(
    prim: Primitive, first: Callable[..., Any], second: Callable[..., Any], kinds: Sequence[int]
) -> None:
    """Register an inverse for elements of these categories.

    first: (result, y) -> x; second: (x, result) -> y.
    """

    @inverse_rules.rule(prim)
    def _(z: Value, x: Value | Unknown, y: Value | Unknown):
        if z.aval.category not in kinds or is_unknown(x) and is_unknown(y):
            return [None, None]
        return [first(z, y), None] if is_unknown(x) else [None, second(x, z)]


_either_undone_by(el.add, el.sub.bind, lambda x, z: el.sub.bind(z, x), el.NUMBER)
_either_undone_by(el.sub, el.add.bind, el.sub.bind, el.NUMBER)
_either_undone_by(el.mul, el.div.bind, lambda x, z: el.div.bind(z, x), el.INEXACT)
_either_undone_by(el.div, el.mul.bind, el.div.bind, el.INEXACT)
_either_undone_by(el.xor, el.xor.bind, el.xor.bind, el.LOGIC)


@inverse_rules.rule(el.complex_)
def _(z, x, y: Value):
    return [el.real.bind(z) if is_unknown(x) else None, el.imag.bind(z) if is_unknown(y) else None]


@inverse_rules.rule(el.select)
def _(z, which, x: object, y: Value):
    """Undo only a choice by a literal: elements that were not chosen cannot be recovered."""
    if which.__class__ is not Literal:
        return [None, None, None]
    return [None, z, None] if which.value else [None, None, z]


# ---- operations that move elements ---------------------------------------------------------


@inverse_rules.rule(sh.transpose_)
def _(y: Value, x: Unknown, *, perm: tuple[int, ...]):
    return [sh.transpose_.bind(y, perm=tuple([perm.index(i) for i in range(len(perm))]))]


@inverse_rules.rule(sh.reshape_)
def _(y: Value, x: Unknown, *, shape: tuple[int, ...]):
    return [sh.reshape_.bind(y, shape=x.aval.shape)]


@inverse_rules.rule(sh.squeeze_)
def _(y: Value, x, *, axes: object):
    return [sh.reshape_.bind(y, shape=x.aval.shape)]


@inverse_rules.rule(sh.rev)
def _(y: Value, x: Unknown, *, axes: tuple[int, ...]):
    return [sh.rev.bind(y, axes=axes)]


@inverse_rules.rule(sh.broadcast_in_dim)
def _(y: Value, x: Unknown, *, shape: tuple[int, ...], dims: tuple[int, ...]):
    """Return one of the copies."""
    if any(d.__class__ is not int or d == 0 for d in shape):
        return [None]
    limits = [1] * len(shape)
    for d, k in zip(x.aval.shape, dims):
        limits[k] = d
    one = _cut(y, [0] * len(shape), limits)
    order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
    flat = sh.reshape_.bind(one, shape=tuple([x.aval.shape[i] for i in order]))
    perm = tuple([order.index(i) for i in range(len(order))])
    return [flat if perm == tuple(range(len(perm))) else sh.transpose_.bind(flat, perm=perm)]


def _cut(y: Value, starts: list, limits: list) -> Any:
    return sh.slice_.bind(y, starts=tuple(starts), limits=tuple(limits), strides=(1,) * len(starts))


@inverse_rules.rule(sh.concatenate_)
def _(y: Value, *xs: Unknown, axis: int):
    out, at = [], 0
    for x in xs:
        end = at + x.aval.shape[axis]
        if is_unknown(x):
            starts, limits = [0] * y.aval.ndim, list(y.aval.shape)
            starts[axis], limits[axis] = at, end
            out.append(_cut(y, starts, limits))
        else:
            out.append(None)
        at = end
    return out


@inverse_rules.rule(sh.pad_)
def _(
    y: Value,
    x: Unknown,
    value: Value,
    *,
    low: tuple[int, ...],
    high: tuple[int, ...],
    interior: tuple[int, ...],
):
    if not is_unknown(x) or any(n < 0 for n in (*low, *high)) or any(interior):
        return [None, None]
    limits = [a + d for a, d in zip(low, x.aval.shape)]
    return [_cut(y, list(low), limits), None]


@inverse_rules.rule(sh.convert_)
def _(y: Value, x: Unknown, *, dtype: object, weak: bool):
    """Undo a conversion only if it changes no number."""
    have, got = x.aval, y.aval
    wider = got.dtype.itemsize >= have.dtype.itemsize and got.category == have.category
    if not wider or have.dtype.kind != got.dtype.kind and have.dtype != got.dtype:
        return [None]
    return [sh.convert_.bind(y, dtype=have.dtype, weak=have.weak_type)]


# ---- loops ---------------------------------------------------------------------------------


@inverse_rules.rule(scan)
def _(params: dict[str, Any]) -> Reverse | None:
    """Undo steps from the last to the first, if the carry can be recovered without saving it."""
    body, k, c = params["body"], params["consts"], params["carry"]
    n = len(body.inputs)
    keep = (*(True,) * k, *(False,) * c, *(True,) * (n - k - c))
    r = reverse(body, keep)
    if r is None or not all(r.recovered[k : k + c]):
        return None
    key = "reverse scan", k, c, params["length"], params["reverse"], params["unroll"]
    return derived(r.program, key, lambda: _scan_reversed(r, body, params))


def _scan_reversed(r: Reverse, body: Program, params: dict) -> Reverse:
    k, c = params["consts"], params["carry"]
    length = params["length"]
    saved, back = r.saved, (*(False,) * k, *r.recovered[k:])
    ins, outs = body.in_avals, body.out_avals
    rows = lambda avals: [a.with_shape((length, *a.shape)) for a in avals]  # noqa: E731
    consts, xs = part(ins[:k], saved[:k]), part(ins[k + c :], saved[k + c :])
    ends, ys = outs[:c], outs[c:]
    moving = [a for a in ins if a.inexact]
    k_cts, c_cts = [sum(a.inexact for a in avals) for avals in (ins[:k], ins[k : k + c])]
    c_ends, y_cts = [a for a in ends if a.inexact], [a for a in ys if a.inexact]
    lost = r.recovered[:k].count(True)

    def step(*vs: Value) -> list:
        """Undo one step.

        Its operands: saved constants; carry, its cotangents, sums of those of constants; saved
        rows, rows of results and of their cotangents.
        """
        it = iter(vs)
        take = lambda m: [next(it) for _ in range(m)]  # noqa: E731
        held, carry, d_carry, sums = take(len(consts)), take(c), take(len(c_ends)), take(k_cts)
        row, y, d_y = take(len(xs)), take(len(ys)), take(len(y_cts))
        got = evaluate(r.program, [*held, *row, *carry, *y, *d_carry, *d_y])[lost:]
        m = len(got) - len(moving)
        values, cts = got[:m], got[m:]
        sums = [added(s, g) for s, g in zip(sums, cts[:k_cts])]
        ahead = cts[k_cts : k_cts + c_cts]
        return [*values[:c], *ahead, *sums, *values[c:], *cts[k_cts + c_cts :]]

    totals = [a for a in ins[:k] if a.inexact]
    types = [*consts, *ends, *c_ends, *map(summed_in, totals), *xs, *ys, *y_cts]
    program = staged(step, types, body.name + "_inverse", prune=True)

    def whole(*vs: Value) -> list:
        """Map saved operands, results and their cotangents to recovered operands and cotangents."""
        it = iter(vs)
        take = lambda m: [next(it) for _ in range(m)]  # noqa: E731
        held, row, carry, y = take(len(consts)), take(len(xs)), take(c), take(len(ys))
        d_carry, d_y = take(len(c_ends)), take(len(y_cts))
        zeros = [Literal(0, summed_in(a)) for a in totals]
        got = scan.bind(
            *[*held, *carry, *d_carry, *zeros, *row, *y, *d_y],
            body=program,
            consts=len(held),
            carry=c + len(d_carry) + len(zeros),
            length=length,
            reverse=not params["reverse"],
            unroll=params["unroll"],
        )
        first, more = got[:c], got[c + c_cts + k_cts :]
        m = back[k + c :].count(True)
        d_first, sums = got[c : c + c_cts], got[c + c_cts : c + c_cts + k_cts]
        return [*first, *more[:m], *rounded(sums, totals), *d_first, *more[m:]]

    types = [*consts, *rows(xs), *ends, *rows(ys), *c_ends, *rows(y_cts)]
    return Reverse(saved, back, staged(whole, types, body.name + "_inverse"))
