"""Conformance laws of Taylor mode and of forward Laplacians, for `plait.testing`.

    jet:        derivatives along a curve equal those of the polynomial through values on it
    laplacian:  the result equals the sum of the second derivatives by each element

Invariant: the reference uses values alone, with numpy arithmetic in double precision; operations
that numpy has are not compiled.  Elements where the function is not smooth are not compared; if no
element is left, the law is Inapplicable.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.ext.errors import MissingRule
from plait.ext.ir import Primitive, Program, evaluate
from plait.ext.ops.elementwise import complex_
from plait.ext.trace import GROUND, Value, as_list, staged, use
from plait.ext.tree import flatten
from plait.ext.types import COMPLEX, FLOATING, Aval, category
from plait.ext.values import as_value, asarray, from_numpy
from plait_testing.ext import ArrayOracle, Inapplicable, agree

from ..laws import in_double
from .laplacian import fwd_laplacian
from .series import jet

__all__ = [
    "by_numbers", "coefficients", "curve", "jet_law", "laplacian_law", "numerically", "real_parts",
    "seconds",
]  # fmt: skip

Arrays = list[Any]
Values = Callable[[Arrays], Arrays]

ORDER = 4
NODES = 13
NEAR = 1e-4


class _Numbers(ArrayOracle):
    """Evaluates by numpy and scipy; compiles operations that these do not have."""

    def apply(self, prim: Any, args: Any, params: dict[str, Any]) -> Any:
        try:
            outs = super().apply(prim, args, params)
        except MissingRule:
            if prim.higher is not None and "program" in params:
                return evaluate(params["program"], args)
            with use(GROUND):
                outs = prim.bind(*[asarray(np.asarray(x)) for x in args], **params)
        return [np.asarray(o) for o in outs] if prim.many else np.asarray(outs)


def numerically(f: Callable, *args: object) -> Any:
    """Trace f(*args) and evaluate it by numpy as far as possible; return a tree of numpy arrays."""
    trees = []
    leaves, tree = flatten(args)
    xs = [np.asarray(x) for x in leaves]

    def flat(*vs: Value) -> list:
        outs, out_tree = flatten(f(*tree.unflatten(vs)))
        trees.append(out_tree)
        return list(map(as_value, outs))

    program = staged(flat, [Aval(x.shape, x.dtype) for x in xs])
    return trees[-1].unflatten(by_numbers(program, xs))


def by_numbers(program: Program, xs: Sequence[np.ndarray]) -> Arrays:
    """Return a program's results, evaluated by numpy as far as possible."""
    with use(_Numbers()), np.errstate(all="ignore"):
        return [np.asarray(y) for y in evaluate(program, xs)]


def coefficients(values: Values, rows: Sequence[Arrays], order: int, radius: float) -> Arrays:
    """Return Taylor coefficients along a curve, interpolated from values at Chebyshev's points.

    Each result becomes an array with a leading axis of `order` + 1.

    Args:
      values: numpy arrays -> results.
      rows: the coefficients of the curve: rows[k][i] is that of power k of operand i.
      order: the highest power.
      radius: how far along the curve values are taken.
    """
    nodes = np.cos((np.arange(NODES) + 0.5) * np.pi / NODES)
    at = lambda s: [  # noqa: E731
        sum(c * s**k for k, c in enumerate(column)) for column in zip(*rows, strict=True)
    ]
    columns = list(zip(*[values(at(radius * s)) for s in nodes]))
    solve = np.linalg.inv(np.vander(nodes, increasing=True))[: order + 1]
    scale = radius ** -np.arange(order + 1.0)
    with np.errstate(invalid="ignore"):
        return [np.tensordot(scale[:, None] * solve, np.stack(c), 1) for c in columns]


def curve(xs: Arrays, seed: int = 0) -> list[Arrays]:
    """Return the coefficients of a parabola through `xs` with small directions."""
    rng = np.random.default_rng(seed)

    def direction(x: np.ndarray) -> np.ndarray:
        if category(x.dtype) not in (FLOATING, COMPLEX):
            return np.zeros_like(x)
        y = rng.uniform(0.2, 0.5, x.shape) * rng.choice([-1, 1], x.shape)
        if category(x.dtype) == COMPLEX:
            y = y + 1j * rng.uniform(-0.4, 0.4, x.shape)
        return y.astype(x.dtype)

    return [xs, *([direction(x) for x in xs] for _ in range(2))]


def seconds(values: Values, xs: Arrays, h: float = 5e-3) -> Arrays:
    """Return, for each result, the sum of its second derivatives by every real element of `xs`.

    Uses central differences of fourth order.
    """
    middle, total = values(xs), None
    for i, x in enumerate(xs):
        for position in np.ndindex(x.shape) if category(x.dtype) == FLOATING else ():
            unit = np.zeros_like(x)
            unit[position] = h
            side = lambda k: values([*xs[:i], xs[i] + k * unit, *xs[i + 1 :]])  # noqa: B023, E731
            rows = zip(side(1), side(-1), side(2), side(-2), middle, strict=True)
            found = [(16 * (a + b) - (c + d) - 30 * m) / (12 * h * h) for a, b, c, d, m in rows]
            total = found if total is None else [t + f for t, f in zip(total, found)]
    return total or [np.zeros_like(m) for m in middle]


class _Function:
    """A primitive as a function of its inexact operands, in double precision."""

    def __init__(self, prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]):
        self.prim, self.params = prim, params
        self.full = in_double(prim, args, params)
        self.positions = [i for i, x in enumerate(self.full) if _inexact(x)]
        self.at = [self.full[i] for i in self.positions]
        if not self.positions:
            raise Inapplicable("no operand has a derivative")
        if not all(np.isfinite(_wide(x)).all() for x in self.at):
            raise Inapplicable("operands are not finite")
        self.program = staged(self, [Aval(x.shape, x.dtype) for x in self.at])
        if not self.program.outputs:
            raise Inapplicable("no result has a derivative")

    def __call__(self, *vs: Value) -> list:
        xs: list[Any] = [from_numpy(x) for x in self.full]
        for i, v in zip(self.positions, vs, strict=True):
            xs[i] = v
        return [y for y in as_list(self.prim.bind(*xs, **self.params)) if y.aval.inexact]

    def values(self, vs: Arrays) -> Arrays:
        xs = [np.asarray(v, x.dtype) for v, x in zip(vs, self.at, strict=True)]
        return [_wide(y) for y in by_numbers(self.program, xs)]


def _inexact(x: np.ndarray) -> bool:
    return category(x.dtype) in (FLOATING, COMPLEX)


def _wide(x: np.ndarray) -> np.ndarray:
    kind = category(x.dtype)
    return x.astype({FLOATING: np.float64, COMPLEX: np.complex128}.get(kind, x.dtype))


def _judged(got: list[np.ndarray], want: Arrays, other: Arrays, what: str) -> int:
    """Compare with `want` where it agrees with `other`, a second estimate of the same values."""
    count = 0
    for g, w, o in zip(got, want, other, strict=True):
        with np.errstate(invalid="ignore"):
            scale = 1 + np.abs(w)
            sure = np.abs(w - o) <= NEAR * scale
        g = np.asarray(g)
        assert g.shape == w.shape, f"{what}: shape {g.shape}, not {w.shape}"
        if sure.any():
            count += agree((g / scale)[sure], (w / scale)[sure], 10 * NEAR, what)
    return count


# ---- the laws ------------------------------------------------------------------------------


def jet_law(prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> int:
    """Check derivatives along a curve, up to the fourth, against the polynomial through its values.

    All inexact operands vary together.  Returns the number of comparisons; raises AssertionError,
    or Inapplicable if nothing can vary, or nothing varies smoothly.
    """
    f = _Function(prim, args, params)
    if any(x.dtype.itemsize < 8 for x in f.at):
        raise Inapplicable("it is not in double precision")
    rows = curve(f.at)
    ways = [coefficients(f.values, rows, ORDER, r) for r in (0.12, 0.08)]
    zeros = [np.zeros_like(x) for x in f.at]
    series = [list(s) for s in zip(rows[1], [2 * c for c in rows[2]], zeros, zeros)]
    value, derivatives = numerically(lambda xs, ss: jet(f, xs, ss), tuple(f.at), tuple(series))
    count = 0
    for k, got in enumerate([value, *derivatives]):
        want, other = ([math.factorial(k) * c[k] for c in way] for way in ways)
        made = _judged(got, want, other, f"derivative {k} along a curve")
        count += made if k else 0
    if not count:
        raise Inapplicable("it is not smooth at these operands")
    return count


def laplacian_law(prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> int:
    """Check the Laplacian against the sum of the second derivatives by each element.

    Complex operands are made of their real and imaginary parts.  Returns the number of
    comparisons; raises AssertionError, or Inapplicable if nothing can vary, or nothing varies
    smoothly.
    """
    f = _Function(prim, args, params)
    if any(x.dtype.itemsize < 8 for x in f.at):
        raise Inapplicable("it is not in double precision")
    parts, whole = real_parts(f.at)
    values = lambda vs: f.values([np.asarray(x) for x in whole(*map(from_numpy, vs))])  # noqa: E731
    ways = [seconds(values, parts, h) for h in (5e-3, 8e-3)]
    of = fwd_laplacian(lambda *vs: f(*whole(*vs)), tuple(range(len(parts))))
    count = _judged(numerically(of, *parts)[2], ways[0], ways[1], "Laplacian")
    if not count:
        raise Inapplicable("it is not smooth at these operands")
    return count


def real_parts(xs: Arrays) -> tuple[Arrays, Callable[..., list[Any]]]:
    """Return (real arrays, a function that makes values like `xs` from such arrays)."""
    kinds = [category(x.dtype) == COMPLEX for x in xs]
    parts = [p.copy() for x, two in zip(xs, kinds) for p in ((x.real, x.imag) if two else (x,))]

    def whole(*vs: Value) -> list:
        rest = iter(vs)
        return [complex_.bind(next(rest), next(rest)) if two else next(rest) for two in kinds]

    return parts, whole
