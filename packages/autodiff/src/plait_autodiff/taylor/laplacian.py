"""fwd_laplacian, forward Laplacians: values become (value, Jacobian, Laplacian).

Let J be the derivative of x in N directions, L its Laplacian, and y = f(x).  Then J_y = f' J and
L_y = f' L + sum over n of f''[J_n, J_n].  The sum is taken at every operation, so one Laplacian is
carried instead of N second derivatives.  Source: Li et al., "A computational framework for neural
network-based variational Monte Carlo with Forward Laplacian", 2023.

Invariant: the directions are the last axis of the Jacobian part, so that code that cuts leading
axes (a scan) works unchanged.  Second derivatives of a primitive are those of its series of order
two.  The carrier mechanism handles loops, branches and calls.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait import map_axes
from plait.ext.errors import OperandTypeError, border
from plait.ext.ir import Primitive
from plait.ext.ops.elementwise import add
from plait.ext.ops.reduction import reduce_sum
from plait.ext.ops.shape import materialise_at_ground, moveaxis
from plait.ext.rules import RuleTable
from plait.ext.trace import Carrier, Value, admitted, as_list, current, opened, wraps
from plait.ext.tree import flatten
from plait.ext.types import Aval
from plait.ext.values import Literal, as_value, is_literal_zero
from plait.typing import Array

from ..forward import JVP
from ..jacobian import basis, columns_of, of_differentiable
from ..tangents import expect_function
from .series import SERIES, Jet, jet_rules, scaled

__all__ = ["Laplacian", "fwd_laplacian", "laplacian_rules"]

LAPLACIAN = "laplacian"
Parts = tuple[Any, Any, Any]


laplacian_rules = RuleTable(
    "laplacian",
    doc="rule(parts, **params) -> parts, a list of them if the primitive has many: from the "
    "(value, jacobian, laplacian) of each operand, those of the result; directions are the last "
    "axis of a jacobian.  A primitive without a rule is done by its 'jet' rule.",
    default=lambda prim, _, parts, /, **params: by_taylor(prim, parts, **params),
    fallback=jet_rules,
)


class Laplacian(Carrier):
    """Carries derivatives in `count` directions, and the sum of the second ones."""

    rules = laplacian_rules
    does = "fwd_laplacian"
    fields = ("count",)
    commutes = frozenset(("mapping",))
    loses = frozenset(("derivative",))
    count: int

    def part_avals(self, aval: Aval, form: str) -> tuple[Aval, ...]:
        return aval, aval.with_shape((*aval.shape, self.count)), aval

    def part_axes(self, aval: Aval, form: str) -> tuple[Any, ...]:
        return (tuple(range(aval.ndim)),) * 3

    def coerce(self, aval: Aval, parts: tuple[Any, ...], f: object, g: str) -> tuple[Any, ...]:
        return parts[0], *[Literal(0, a) for a in self.part_avals(aval, g)[1:]]

    def whole(self, aval: Aval) -> Any:
        return LAPLACIAN if aval.inexact else None

    def carried(self, parts: Parts) -> Any:
        """Return a value with its derivatives; a plain value if it does not vary."""
        x, jacobian, laplacian = parts
        if not x.aval.inexact or (is_literal_zero(jacobian) and is_literal_zero(laplacian)):
            return x
        return self.lift(x.aval, LAPLACIAN, parts)

    def run(self, prim: Any, rule: Any, args: Sequence[Array], params: dict[str, Any]) -> Any:
        out = rule([self.to_form(a, LAPLACIAN) for a in args], **params)
        return [self.carried(p) for p in out] if prim.many else self.carried(out)


def by_taylor(prim: Primitive, parts: Sequence[Parts], /, **params: object) -> Any:
    """Return the parts of the results of any primitive.

    The Laplacian is the sum of second derivatives along every direction, by series of order two,
    plus the derivative along the operands' Laplacian.
    """
    outs, dots = _along_laplacian(prim, parts, params)
    moving = [i for i, p in enumerate(parts) if not is_literal_zero(p[1])]
    firsts, seconds = _along_directions(prim, parts, moving, params)
    made = []
    for k, (y, t) in enumerate(zip(outs, dots, strict=True)):
        jacobian, second = firsts.get(k), seconds.get(k)
        if jacobian is None:
            count = parts[0][1].aval.shape[-1]
            jacobian = Literal(0, y.aval.with_shape((*y.aval.shape, count)))
        made.append((y, jacobian, t if second is None else _plus(t, second)))
    return made if prim.many else made[0]


def _plus(a: Value, b: Value) -> Any:
    return b if is_literal_zero(a) else add.bind(a, b)


def _along_laplacian(prim: Primitive, parts: Sequence[Parts], params: dict) -> tuple[list, list]:
    """Return (results, their derivatives along the Laplacian of the operands)."""
    j = JVP(current())
    with opened(j):
        duals = [x if is_literal_zero(lap) else j.dual(x, lap) for x, _, lap in parts]
        outs = as_list(prim.bind(*duals, **params))
    halves = [j.split(o) for o in outs]
    ys = [p[0] for _, p in halves]
    return ys, [Literal(0, p[0].aval) if f is None else p[1] for f, p in halves]


def _along_directions(
    prim: Primitive, parts: Sequence[Parts], moving: Sequence[int], params: dict
) -> tuple[dict[int, Any], dict[int, Any]]:
    """Return, by number of the result, derivatives and sums of second ones; zeros are left out."""
    firsts: list[int] = []
    seconds: list[int] = []
    if not moving:
        return {}, {}

    def one(*rows: Value) -> list:
        j = Jet(current(), 2)
        xs = [p[0] for p in parts]
        for i, row in zip(moving, rows, strict=True):
            xs[i] = j.series((xs[i], row, Literal(0, xs[i].aval)))
        with opened(j):
            outs = as_list(prim.bind(*xs, **params))
        series = [j.to_form(o, SERIES) for o in outs]
        firsts[:] = [k for k, s in enumerate(series) if not is_literal_zero(s[1])]
        seconds[:] = [k for k, s in enumerate(series) if not is_literal_zero(s[2])]
        return [*(series[k][1] for k in firsts), *(scaled(series[k][2], 2) for k in seconds)]

    got = map_axes(one, -1, -1, parallel=True)(*[parts[i][1] for i in moving])
    n = len(firsts)
    sums = [reduce_sum.bind(v, axes=(v.aval.ndim - 1,)) for v in got[n:]]
    return dict(zip(firsts, got[:n])), dict(zip(seconds, sums))


# ---- the user's interface ------------------------------------------------------------------


@border
def fwd_laplacian(fun: Callable, argnums: int | Sequence[int] = 0) -> Callable:
    """Return a function that computes `fun`'s value, Jacobian and Laplacian in one forward pass.

    Args:
      fun: takes and returns trees of arrays.
      argnums: the arguments to differentiate, trees of real arrays.  The Laplacian is the sum of
        second derivatives by each of their elements.

    Returns:
      A function whose result is (value, jacobian, laplacian).  The value and the Laplacian are
      trees like `fun`'s result; the Jacobian is structured as by `jacfwd`.

    Raises TypeRule if an argument is not real.

    >>> import plait
    >>> value, slope, laplacian = plait.fwd_laplacian(lambda x: (x ** 3).sum())(
    ...     plait.numpy.array([1.0, 2.0]))
    >>> laplacian
    Array(18., dtype=float32)
    """
    expect_function(fun, "fwd_laplacian")

    @border
    @wraps(fun)
    def derivatives(*args: object, **kwargs: object) -> tuple:
        of, chosen = of_differentiable(fun, argnums, args, kwargs, "fwd_laplacian", False)
        leaves, tree = flatten(chosen)
        xs = [admitted(x) for x in leaves]
        units = [moveaxis(as_value(e), 0, -1) for e in basis(xs)]
        if not xs:
            raise OperandTypeError("fwd_laplacian: the arguments have no arrays")
        by = Laplacian(current(), units[0].aval.shape[-1], of=fun)
        with opened(by):
            given = [by.carried((x, e, Literal(0, x.aval))) for x, e in zip(xs, units)]
            outs, out_tree = flatten(of(*tree.unflatten(given)))
            outs = [admitted(o) for o in outs]
        parts = [by.to_form(o, LAPLACIAN) for o in outs]
        value, jacobian, laplacian = (
            [materialise_at_ground(p[i]) for p in parts] for i in range(3)
        )
        blocks = [columns_of(moveaxis(j, -1, 0), xs, tree, argnums) for j in jacobian]
        return tuple(out_tree.unflatten(part) for part in (value, blocks, laplacian))

    return derivatives
