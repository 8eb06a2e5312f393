"""Identities: of arithmetic, of operations that move elements, and of conversions.

Invariant: importing this module registers them and does nothing else.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.jaxlib_api import limits
from .._core.array import Literal
from .._core.ir import Eqn, Var
from .._core.primitive import Primitive
from .._core.structures import literal
from .._ops import elementwise as el
from .._ops import shape as sh
from .._plugins.traits import Structural
from .._types.avals import BOOLEAN, COMPLEX, FLOATING, INTEGER, Aval
from .rewriting import Instead, Made, rule

# ---- identities: arithmetic ----------------------------------------------------------------


def _is(a: Any, value: Any) -> bool:
    return a.__class__ is Literal and a.value == value


def _is_neutral(a: Any, negative: bool) -> bool:
    """Return whether `a` is a zero that changes no number when it is added or subtracted.

    Floats need the right sign: -0.0 to add (`negative`), 0.0 to subtract.
    """
    if a.__class__ is not Literal or a.value != 0:
        return False
    if a.aval.category != FLOATING:
        return a.aval.category != COMPLEX
    return (math.copysign(1, a.value) < 0) is negative


def _made_by(a: Any, prim: Primitive, made: Made) -> Eqn | None:
    """Return the equation that defines `a`, if it is of this primitive."""
    e = made.get(a) if a.__class__ is Var else None
    return e if e is not None and e.prim is prim else None


@rule(el.add)
def _(ins, params: object, out: object, made: object):
    x, y = ins
    return y if _is_neutral(x, True) else x if _is_neutral(y, True) else None


@rule(el.sub)
def _(ins, params: object, out, made: object):
    x, y = ins
    if x is y and out.category == INTEGER:
        return Literal(0, out)
    return x if _is_neutral(y, False) else None


@rule(el.mul)
def _(ins, params: object, out, made: object):
    if out.category == COMPLEX:  # (inf + 0i)(1 + 0i) has a nan
        return None
    for x, y in (ins, ins[::-1]):
        if _is(y, 1):
            return x
        if _is(y, 0) and out.category != FLOATING:
            return Literal(_zero(out), out)
    return None


def _zero(aval: Aval) -> Any:
    return False if aval.category == BOOLEAN else 0


@rule(el.div)
def _(ins, params: object, out, made: object):
    return ins[0] if _is(ins[1], 1) and out.category != COMPLEX else None


@rule(el.integer_pow)
def _(ins, params, out, made: object):
    n = params["exponent"]
    return ins[0] if n == 1 else Literal(1, out) if n == 0 else None


def _involution(prim: Primitive) -> None:
    @rule(prim)
    def _(ins, params: object, out: object, made):
        e = _made_by(ins[0], prim, made)
        return None if e is None else e.inputs[0]


for _prim in (el.neg, el.not_, el.conj):
    _involution(_prim)


@rule(el.maximum, el.minimum)
def _(ins, params: object, out: object, made: object):
    return ins[0] if ins[0] is ins[1] else None


def _logic(zero: Callable[[Any, Aval], Any], ones: Callable[[Any, Aval], Any]) -> Callable:
    """Return the rule of an idempotent operation, given its results beside all bits 0 or 1."""

    def logic(ins, params: object, out, made: object):
        if ins[0] is ins[1]:
            return ins[0]
        for x, y in (ins, ins[::-1]):
            if _is(y, 0):
                return zero(x, out)
            if y.__class__ is Literal and y.value == _ones(out):
                return ones(x, out)
        return None

    return logic


def _ones(aval: Aval) -> Any:
    if aval.category == BOOLEAN:
        return True
    low, high = map(int, limits(aval.dtype))
    return -1 if low < 0 else high


_same = lambda x, out: x  # noqa: E731
rule(el.and_)(_logic(lambda x, out: Literal(_zero(out), out), _same))
rule(el.or_)(_logic(_same, lambda x, out: Literal(_ones(out), out)))


@rule(el.xor)
def _(ins, params: object, out, made: object):
    x, y = ins
    if x is y:
        return Literal(_zero(out), out)
    return x if _is(y, 0) else y if _is(x, 0) else None


@rule(el.shift_left, el.shift_right_arithmetic, el.shift_right_logical)
def _(ins, params: object, out: object, made: object):
    return ins[0] if _is(ins[1], 0) else None


@rule(el.select)
def _(ins, params, out, made):
    p, x, y = ins
    if p.__class__ is Literal:
        return x if p.value else y
    return x if _equal(x, y) else None


def _equal(x: Any, y: Any) -> bool:
    if x is y:
        return True
    both = x.__class__ is Literal and y.__class__ is Literal
    return both and literal(x) == literal(y)


@rule(el.stop)
def _(ins, params: object, out: object, made: object):
    return ins[0] if ins[0].__class__ is Literal else None


# ---- identities: operations that move elements ---------------------------------------------


def _spread(ins: Sequence[Any], out: Aval) -> Literal | None:
    """Return a literal of type `out`, if all operands are the same scalar."""
    first: Any = ins[0] if ins else None
    if first.__class__ is not Literal or first.aval.dtype != out.dtype:
        return None
    if len(ins) > 1 and not all(_same_scalar(first, x) for x in ins[1:]):
        return None
    return Literal(first.value, out)


def _same_scalar(x: Any, y: Any) -> bool:
    return y.__class__ is Literal and literal(x)[0] == literal(y)[0]


@rule(Structural)
def _(prim: Primitive, ins, params: object, out, made: object):
    return _spread(ins, out)


def _chain(prim: Primitive, whole: Callable[[Any, dict], bool], join: Callable | None) -> None:
    """Register the rule of a primitive that moves elements of its one operand.

    If `whole` holds, the operand itself is the result.  Two such operations in sequence become one
    with the parameters `join(first, second)`.
    """

    @rule(prim)
    def _(ins, params, out, made):
        (x,) = ins
        if x.__class__ is Literal:
            return _spread(ins, out)
        if whole(x.aval, params):
            return x
        e = _made_by(x, prim, made)
        if e is None or join is None:
            return None
        (x,), params = e.inputs, join(e.params, params)
        if x.aval is out and whole(x.aval, params):
            return x
        return Instead([x], params)


_chain(
    sh.broadcast_in_dim,
    lambda x, p: p["shape"] == x.shape and p["dims"] == tuple(range(x.ndim)),
    lambda p, q: {**q, "dims": tuple([q["dims"][i] for i in p["dims"]])},
)
_chain(sh.reshape_, lambda x, p: p["shape"] == x.shape, lambda p, q: q)
_chain(
    sh.transpose_,
    lambda x, p: p["perm"] == tuple(range(x.ndim)),
    lambda p, q: {"perm": tuple([p["perm"][i] for i in q["perm"]])},
)
_chain(
    sh.rev,
    lambda x, p: not p["axes"],
    lambda p, q: {"axes": tuple(sorted({*p["axes"]} ^ {*q["axes"]}))},
)
_chain(sh.squeeze_, lambda x, p: not p["axes"], None)
_chain(
    sh.slice_,
    lambda x, p: p["limits"] == x.shape and not any(_differ(p["starts"], 0))
    and not any(_differ(p["strides"], 1)),
    None,
)  # fmt: skip


def _differ(sizes: Sequence[Any], n: int) -> list[bool]:
    return [d != n for d in sizes]


@rule(sh.pad_)
def _(ins, params, out, made: object):
    if ins[0].__class__ is Literal:
        return _spread(ins, out)
    around = (*params["low"], *params["high"], *params["interior"])
    return None if any(_differ(around, 0)) else ins[0]


@rule(sh.concatenate_)
def _(ins, params: object, out, made: object):
    return ins[0] if len(ins) == 1 else _spread(ins, out)


# ---- identities: conversion ----------------------------------------------------------------


@rule(sh.convert_)
def _(ins, params, out, made):
    (x,) = ins
    if x.aval is out:
        return x
    if x.__class__ is Literal:
        return _converted(x, out)
    e = _made_by(x, sh.convert_, made)
    if e is not None and e.inputs[0].aval is out and _holds(x.aval, out):
        return e.inputs[0]
    return None


def _converted(x: Literal, out: Aval) -> Literal | None:
    """Return the literal in another dtype, if Python and the machine agree on its value."""
    kinds = x.aval.category, out.category
    if COMPLEX in kinds or kinds == (FLOATING, INTEGER):
        return None
    with np.errstate(all="ignore"):
        cell = np.asarray(x.value).astype(x.aval.dtype).astype(out.dtype)
    if out.category == BOOLEAN:
        return Literal(bool(cell), out)
    return Literal(int(cell) if out.category == INTEGER else float(cell), out)


_WIDE = {"float64": 3, "float32": 2, "complex128": 2}


def _holds(wide: Aval, narrow: Aval) -> bool:
    """Return whether every value of `narrow` survives a conversion to `wide` and back."""
    if narrow.category == BOOLEAN:
        return True
    if wide.category != narrow.category:
        return False
    if wide.category == INTEGER:
        (a, b), (c, d) = limits(wide.dtype), limits(narrow.dtype)
        return int(a) <= int(c) and int(d) <= int(b)
    return _WIDE.get(wide.dtype.name, 1) > _WIDE.get(narrow.dtype.name, 1)
