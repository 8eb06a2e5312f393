"""Matrices with a structure, as arguments of functions that were written for arrays.

    structured(lambda w, x: x @ w + 1)(LowRank(w, a, b), x)    # never makes w + a @ b
    structured(lambda d, e: d @ e)(Diagonal(x), Diagonal(y))   # Diagonal(x * y)

`register(primitive, kinds...)` gives a rule for operands of these kinds (Any: an array).  Where no
rule applies, or it returns NotImplemented, operands become arrays first.

Invariant: a function of matrices gives what it gives for `dense()` of these matrices.
"""

import os
from dataclasses import dataclass
from typing import Any

from plait import ext, tree
from plait import numpy as pnp
from plait.ext.ops import elementwise as el
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.shape import transpose_

ext.errors.hide(os.path.dirname(__file__))  # errors name the line of the caller


@tree.register_dataclass
@dataclass
class LowRank:
    """`w + a @ b`, as in LoRA: `a` has few columns, and `b` as many rows."""

    w: Any
    a: Any
    b: Any

    def dense(self):
        return self.w + self.a @ self.b


@tree.register_dataclass
@dataclass
class Diagonal:
    """A square matrix by its diagonal."""

    d: Any

    def dense(self):
        return pnp.where(pnp.eye(self.d.shape[-1], dtype=bool), self.d[..., None], 0)


KINDS = {LowRank: lambda m: ("low rank", 0, m.a.shape[-1]), Diagonal: lambda m: ("diagonal", 0)}
"""The form of each kind: its name, and how many axes of a stack are before those of the matrix.
"dense" is that of an array."""
RULES: dict[Any, list] = {}

structured_rules = ext.RuleTable(
    "structured",
    signature="(*operands, **params)",
    doc="an array, LowRank or Diagonal; NotImplemented: operands become arrays",
    default=lambda prim, /, *operands, **params: NotImplemented,
)


def structure(form):
    """Return how many axes a stack of structured matrices has; None for arrays."""
    return None if form in (None, "dense") else form[1]


class Structured(ext.Carrier):
    """Carries the arrays of a matrix; the form is its structure."""

    rules, does = structured_rules, "structured"
    commutes = frozenset(("derivative", "mapping"))

    def part_avals(self, aval, form):
        if form == "dense":
            return (aval,)
        *stack, m, n = aval.shape
        if form[0] == "diagonal":
            return (aval.with_shape((*stack, n)),)
        rank = form[2]
        return aval, aval.with_shape((*stack, m, rank)), aval.with_shape((*stack, rank, n))

    def part_axes(self, aval, form):
        m, n = aval.ndim - 2, aval.ndim - 1
        stack = tuple(range(m))
        if form == "dense":
            return (tuple(range(aval.ndim)),)
        if form[0] == "diagonal":
            return ((*stack, m, None),)
        return (*stack, m, n), (*stack, m, None), (*stack, None, n)

    def coerce(self, aval, parts, f, g):
        return parts if structure(f) is None else (self.made(f, parts).dense(),)

    def join(self, aval, f, g):
        return "dense"

    def least(self, aval):
        return "dense"

    def whole(self, aval):
        return "dense"

    # A stack of matrices has stacks of their arrays.  A row or a piece of one is an array.
    def grow(self, form, axis):
        inner = form == "dense" or axis > form[1]
        return "dense" if inner else (form[0], form[1] + 1, *form[2:])

    def drop(self, form, axis):
        inner = form == "dense" or axis >= form[1]
        return "dense" if inner else (form[0], form[1] - 1, *form[2:])

    def cut(self, form, axis):
        return "dense" if form == "dense" or axis >= form[1] else form

    def shown(self, x):
        return self.array(x)

    def made(self, form, parts):
        """Return the matrix of this form."""
        return (Diagonal if form[0] == "diagonal" else LowRank)(*parts)

    def operand(self, x):
        """Return an array, or the matrix that a value stands for."""
        form, parts = self.split(x)
        return self.made(form, parts) if structure(form) == 0 else self.array(x)

    def array(self, x):
        """Return the array that a value stands for."""
        form, parts = self.split(x)
        return parts[0] if structure(form) is None else self.made(form, parts).dense()

    def run(self, prim, rule, args, params):
        out = NotImplemented
        if any(structure(self.form_of(a)) == 0 for a in args):
            out = rule(*map(self.operand, args), **params)
        if out is NotImplemented:
            out = prim.bind(*map(self.array, args), **params)
        return [self.lifted(y) for y in out] if prim.many else self.lifted(out)

    def lifted(self, x):
        """Return the value that stands for an array or a matrix."""
        if type(x) not in KINDS:
            return ext.as_value(x)
        parts = tuple(map(ext.as_value, tree.leaves(x)))
        n = parts[0].aval.shape[-1]
        aval = parts[0].aval if len(parts) > 1 else parts[0].aval.with_shape((n, n))
        return self.lift(aval, KINDS[type(x)](x), parts)


def register(prim, *kinds):
    """Give a rule for operands of these kinds; `Any` is an array."""

    def add(f):
        if prim not in RULES:
            structured_rules.rule(prim)(lambda *xs, **params: dispatch(prim, xs, params))
        RULES.setdefault(prim, []).append((kinds, f))
        return f

    return add


def dispatch(prim, operands, params):
    """Call the first rule for the kinds of these operands."""
    have = tuple([type(x) if type(x) in KINDS else Any for x in operands])
    for kinds, f in RULES[prim]:
        if kinds == have:
            return f(*operands, **params)
    return NotImplemented


def product(left, right, /, *, contract, **params):
    """Return the product if it is one of matrices, `left @ right`, and else NotImplemented."""
    sides = [x.ndim if type(x) not in KINDS else 2 for x in (left, right)]
    if contract != ((sides[0] - 1,), (0,)) or params["shared"] != ((), ()):
        return NotImplemented
    times = lambda a, b: dot_general.bind(a, b, contract=((a.ndim - 1,), (0,)), **params)  # noqa: E731
    match left, right:
        case Diagonal(d), Diagonal(e):
            return Diagonal(d * e)
        case Diagonal(d), x if type(x) not in KINDS:
            return d.reshape(-1, *[1] * (x.ndim - 1)) * x
        case x, Diagonal(d) if type(x) not in KINDS:
            return x * d
        case x, LowRank(w, a, b) if type(x) not in KINDS:
            return times(x, w) + times(times(x, a), b)
        case LowRank(w, a, b), x if type(x) not in KINDS:
            return times(w, x) + times(a, times(b, x))
    return NotImplemented


for _kinds in (
    (Diagonal, Diagonal),
    (Diagonal, Any),
    (Any, Diagonal),
    (Any, LowRank),
    (LowRank, Any),
):
    register(dot_general, *_kinds)(product)
for _p in (el.add, el.sub, el.mul):
    register(_p, Diagonal, Diagonal)(lambda x, y, _p=_p: Diagonal(_p.bind(x.d, y.d)))
register(el.neg, Diagonal)(lambda x: Diagonal(-x.d))
register(transpose_, Diagonal)(lambda x, perm: x)
register(transpose_, LowRank)(
    lambda x, perm: LowRank(x.w.T, x.b.T, x.a.T) if perm == (1, 0) else NotImplemented
)


def structured(f):
    """`f` of arrays and of structured matrices: arguments and results are trees of both."""
    is_matrix = lambda x: type(x) in KINDS  # noqa: E731

    def of(*args):
        given, kind = ext.flatten(args, is_matrix)
        with ext.opened(Structured(ext.current(), of=f)) as carrier:
            outs, kind = ext.flatten(f(*kind.unflatten([*map(carrier.lifted, given)])))
            found = [carrier.operand(ext.as_value(y)) for y in outs]
        return kind.unflatten([tree.map(ext.materialise_at_ground, y) for y in found])

    return of
