"""jet, Taylor mode: values become truncated power series along a curve.

Invariant: a series is a tuple of Taylor coefficients (value, c1, ..., cK), x(t) = sum of c_k t^k,
each of the type of the value; coefficients known to be zero are Literals.  Users pass and receive
derivatives, c_k times k!.  The carrier mechanism handles loops, branches and calls.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.errors import ArgumentError, TreeMismatch, border, names_of_arguments
from plait.ext.ir import Primitive
from plait.ext.ops.elementwise import mul
from plait.ext.ops.shape import materialise_at_ground
from plait.ext.rules import RuleTable
from plait.ext.trace import Carrier, Value, admitted, admitted_leaves, current, enter, leave, opened
from plait.ext.tree import flatten
from plait.ext.types import Aval
from plait.ext.values import Literal, is_literal_zero
from plait.typing import Array

from ..forward import ZERO, Zero, jvp_rules
from ..tangents import expect_function, matching, no_tangent, tangent

__all__ = ["Jet", "jet", "jet_rules", "scaled"]

Series = tuple[Any, ...]
SERIES = "series"


jet_rules = RuleTable(
    "jet",
    doc="rule(series, **params) -> series, a list of them if the primitive has many: from the "
    "Taylor coefficients of each operand, (value, c1, ..., cK), those of the result.  A primitive "
    "without a rule is done by its 'jvp' rule.",
    default=lambda prim, derivative, series, /, **params: by_derivative(
        prim, derivative, series, **params
    ),
    fallback=jvp_rules,
)


def scaled(x: Any, factor: float) -> Any:
    """Return a coefficient times a number."""
    if x.__class__ is Literal:
        return Literal(x.value * factor, x.aval)
    return x if factor == 1 else mul.bind(x, Literal(factor, x.aval))


class Jet(Carrier):
    """Carries the Taylor coefficients up to `order`."""

    rules = jet_rules
    does = "jet"
    fields = ("order",)
    commutes = frozenset(("mapping",))
    loses = frozenset(("derivative",))
    order: int

    def part_avals(self, aval: Aval, form: str) -> tuple[Aval, ...]:
        return (aval,) * (self.order + 1)

    def coerce(self, aval: Aval, parts: tuple[Any, ...], f: object, g: str) -> tuple[Any, ...]:
        return (parts[0], *[Literal(0, aval)] * self.order)

    def whole(self, aval: Aval) -> Any:
        return SERIES if aval.inexact else None

    def series(self, parts: Sequence[Any]) -> Any:
        """Return a value with its coefficients; a plain value if it does not vary."""
        x = parts[0]
        if not x.aval.inexact or all(map(is_literal_zero, parts[1:])):
            return x
        return self.lift(x.aval, SERIES, tuple(parts))

    def run(self, prim: Any, rule: Any, args: Sequence[Array], params: dict[str, Any]) -> Any:
        given = [self.to_form(a, SERIES) for a in args]
        if all(is_literal_zero(c) for s in given for c in s[1:]):
            return prim.bind(*[s[0] for s in given], **params)
        out = rule(given, **params)
        return [self.series(s) for s in out] if prim.many else self.series(out)


def by_derivative(
    prim: Primitive, derivative: Callable, series: Sequence[Series], /, **params: object
) -> Any:
    """Return the series of any primitive y = f(x) with a derivative.

    dy/dt is the derivative at x(t) along x'(t), a series of one order less; y is its integral.
    """
    order = len(series[0]) - 1
    inner = Jet(current(), order - 1) if order > 1 else None
    lift = inner.series if inner is not None else lambda s: s[0]
    xs = [lift(s[:-1]) for s in series]
    speeds = [tuple([scaled(c, k) for k, c in enumerate(s) if k]) for s in series]
    ts = [
        ZERO if not s[0].aval.inexact or all(map(is_literal_zero, v)) else lift(v)
        for s, v in zip(series, speeds)
    ]
    token = enter(inner) if inner is not None else None
    try:
        out, dot = derivative(xs, ts, **params)
    finally:
        if token is not None:
            leave(token)

    def integral(y: Value, t: Value | Zero) -> Series:
        """Return (y0, d0 / 1, d1 / 2, ...)."""
        y0 = y if inner is None else inner.to_form(y, SERIES)[0]
        if t is ZERO:
            return (y0, *[Literal(0, y0.aval)] * order)
        ds = (t,) if inner is None else inner.to_form(t, SERIES)
        return (y0, *[scaled(d, 1 / (k + 1)) for k, d in enumerate(ds)])

    made = [integral(y, t) for y, t in zip(out, dot)] if prim.many else integral(out, dot)
    if inner is not None:
        inner.closed = True
    return made


# ---- the user's interface ------------------------------------------------------------------


@border
def jet(fun: Callable, primals: Sequence[Any], series: Sequence[Any]) -> tuple[Any, Any]:
    """Return `(fun(*primals), derivatives)`, the derivatives along a curve up to some order K.

    The cost grows like K**2 (Griewank and Walther, "Evaluating Derivatives", 2008, chapter 13).

    Args:
      fun: takes and returns trees of arrays.
      primals: a tuple of arguments x_i.
      series: for each argument the K derivatives [x_i', x_i'', ...] of a curve through it: trees
        like the argument; those of integers have dtype float0.

    Returns:
      The result, and its K derivatives [y', y'', ...] along the curve, trees like the result.

    Raises TypeRule or TreeMismatch if the series do not match.

    >>> import plait
    >>> plait.jet(lambda x: x ** 3, (2.0,), ([1.0, 0.0],))
    (Array(8., dtype=float32, weak_type=True), [Array(12., dtype=float32, weak_type=True), \
Array(12., dtype=float32, weak_type=True)])
    """
    expect_function(fun, "jet")
    order = _order(primals, series)
    if order == 0:
        return fun(*primals), []
    leaves, tree = flatten(tuple(primals))
    xs = admitted_leaves(leaves, tuple(primals), lambda: names_of_arguments(fun))
    columns = []
    for k in range(order):
        kth = tuple([s[k] for s in series])
        given = matching(tuple(primals), kth, tree, "primals and series of jet")
        ts = [
            tangent(t, x.aval, "jet was given a term of a series of another type")
            for t, x in zip(given, xs)
        ]
        factor = 1 / math.factorial(k + 1)
        columns.append(
            [Literal(0, x.aval) if t is ZERO else scaled(t, factor) for t, x in zip(ts, xs)]
        )
    j = Jet(current(), order, of=fun)
    with opened(j):
        outs, out_tree = flatten(fun(*tree.unflatten(list(map(j.series, zip(xs, *columns))))))
        outs = [admitted(o) for o in outs]
    parts = [j.to_form(o, SERIES) for o in outs]
    value = out_tree.unflatten([materialise_at_ground(p[0]) for p in parts])
    return value, [out_tree.unflatten([_derivative(p, k + 1) for p in parts]) for k in range(order)]


def _derivative(parts: Series, k: int) -> Any:
    if not parts[0].aval.inexact:
        return no_tangent(parts[0].aval)
    return materialise_at_ground(scaled(parts[k], math.factorial(k)))


def _order(primals: Sequence[Any], series: Any) -> int:
    for what, x in (("primals", primals), ("series", series)):
        if not isinstance(x, tuple | list):
            raise ArgumentError(
                f"the {what} of jet must be a tuple or list, not {type(x).__name__}",
                fix="write jet(f, (x,), ([x1, x2],))",
            )
    orders = {len(s) if isinstance(s, tuple | list) else None for s in series}
    if len(primals) != len(series) or len(orders) != 1 or None in orders:
        raise TreeMismatch(
            f"jet needs a list of derivatives for each of the {len(primals)} arguments, all of "
            "one length",
            fix="write jet(f, (x, y), ([x1, x2], [y1, y2])), with zeros for what does not vary",
        )
    return orders.pop()  # type: ignore[return-value]
