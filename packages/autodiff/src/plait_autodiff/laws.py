"""Conformance laws of the tables jvp, transpose, split, recompute and inverse, for `plait.testing`.

    jvp:        the derivative along a direction equals central differences
    transpose:  <f(t), c> = <t, f'(c)> for linear f
    split:      the two halves of a divided operation give the results of the whole
    recompute:  values recomputed from those that a policy keeps equal the first ones
    inverse:    operands that are recovered from results equal the operands

Invariant: a law computes the reference with numpy arithmetic on values of the primitive, in double
precision.  It raises AssertionError where the table is wrong, and Inapplicable where it checks
nothing.
"""

from collections.abc import Iterator, Sequence
from itertools import cycle, islice, product
from typing import Any

import numpy as np

from plait import jit
from plait.ext.errors import MissingRule, PlaitError
from plait.ext.ir import Primitive, evaluate
from plait.ext.rules import Linear
from plait.ext.trace import Value, as_list, staged
from plait.ext.types import COMPLEX, FLOATING, Aval, category
from plait.ext.values import from_numpy
from plait_testing.ext import Inapplicable, agree, tolerance

from .api import jvp, linear_transpose
from .inversion.recovery import Unknown, inverse_rules
from .rematerialisation.residuals import economise, recompute_rules
from .split import merge, part, split_program
from .transpose import transpose_rules

__all__ = ["in_double", "inverse_law", "jvp_law", "recompute_law", "split_law", "transpose_law"]

Arrays = list[np.ndarray]


def _inexact(x: np.ndarray) -> bool:
    return category(x.dtype) in (FLOATING, COMPLEX)


def _wide(x: np.ndarray) -> np.ndarray:
    """Return the array in double precision, if it has a derivative."""
    kind = category(x.dtype)
    return x.astype({FLOATING: np.float64, COMPLEX: np.complex128}.get(kind, x.dtype))


def in_double(prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> Arrays:
    """Convert operands to double precision, unless the operation is written for their types: by its
    programs, or by a type rule that refuses others, as that of a foreign function does."""
    wide = [_wide(x) for x in args]
    if prim.higher is not None:
        return list(args)
    try:
        prim.infer(tuple([Aval(x.shape, x.dtype) for x in wide]), params)
    except PlaitError:
        return list(args)
    return wide


def _random(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    y = rng.standard_normal(x.shape)
    if category(x.dtype) == COMPLEX:
        y = y + 1j * rng.standard_normal(x.shape)
    return y.astype(x.dtype)


class _Function:
    """A primitive as a function of some of its operands; the others are fixed."""

    def __init__(self, prim: Primitive, xs: Arrays, params: dict[str, Any], active: Sequence[int]):
        self.prim, self.xs, self.params, self.active = prim, xs, params, active

    def __call__(self, *vs: Value) -> list:
        """Return the inexact results of the primitive; the others have no derivative."""
        full: list[Any] = [from_numpy(x) for x in self.xs]
        for i, v in zip(self.active, vs, strict=True):
            full[i] = v
        outs = as_list(self.prim.bind(*full, **self.params))
        return [y for y in outs if y.aval.inexact]

    def values(self, vs: Arrays) -> Arrays:
        """Do the same for numpy arrays, which keep their dtypes."""
        xs = [self.xs[i] for i in self.active]
        return [
            _wide(np.asarray(y)) for y in self(*[from_numpy(v.astype(x.dtype))
                                                for v, x in zip(vs, xs)])
        ]  # fmt: skip

    def operands(self) -> list:
        return [from_numpy(self.xs[i]) for i in self.active]


def _choices(positions: Sequence[int]) -> list[tuple[int, ...]]:
    """Return all positions together, then each alone."""
    alone = [(i,) for i in positions] if len(positions) > 1 else []
    return [tuple(positions), *alone]


# ---- jvp -----------------------------------------------------------------------------------


def jvp_law(prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> int:
    """Check derivatives along random directions against central differences, eager and staged.

    All inexact operands vary together, then each alone.  Returns the number of comparisons;
    raises AssertionError, or Inapplicable if nothing can vary.
    """
    xs = in_double(prim, args, params)
    positions = [i for i, x in enumerate(xs) if _inexact(x)]
    if not positions:
        raise Inapplicable("no operand has a derivative")
    count = 0
    for active in _choices(positions):
        f = _Function(prim, xs, params, active)
        rng = np.random.default_rng(len(active))
        at = [xs[i] for i in active]
        ts = [_random(rng, x) for x in at]
        if not f.values(at):
            raise Inapplicable("no result has a derivative")
        along = lambda vs, us, f=f: jvp(f, vs, us)[1]  # noqa: E731
        duals = f.operands(), [from_numpy(t) for t in ts]
        dots = [np.asarray(t) for t in along(*duals)]
        want = _differences(f, at, ts)
        for got, near in zip(dots, want, strict=True):
            count += agree(got, near, _slack(got.dtype), f"jvp along operands {active}")
        if len(active) == len(positions):
            count += agree(jit(along)(*duals), dots, None, "jvp, staged")
    return count


def _differences(f: _Function, at: Arrays, ts: Arrays) -> Arrays:
    """Return fourth-order central differences (Fornberg 1988, table 1)."""
    h = 1e-3
    step = lambda k: f.values([x + k * h * t for x, t in zip(at, ts)])  # noqa: E731
    sides = zip(step(1), step(-1), step(2), step(-2), strict=True)
    return [(8 * (a - b) - (c - d)) / (12 * h) for a, b, c, d in sides]


def _slack(dtype: np.dtype) -> float:
    """Return the tolerance for a derivative of this dtype; differences lose three digits."""
    return 1e-6 if tolerance(dtype) < 1e-9 else 1e3 * tolerance(dtype)


# ---- transpose -----------------------------------------------------------------------------


def transpose_law(prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> int:
    """Check <f(t), c> = <t, f'(c)> in the operands that `prim` is linear in, eager and staged.

    Values decide which operands these are: all of them together, or single ones.  Products of
    complex numbers are compared in their real part, without conjugation.  Returns the number of
    comparisons.
    """
    xs = in_double(prim, args, params)
    count = 0
    for f in _linear(prim, xs, params):
        rng = np.random.default_rng(3)
        ts = [_random(rng, xs[i]) for i in f.active]
        cts = [_random(rng, y) for y in map(np.asarray, f(*f.operands()))]
        transposed = linear_transpose(f, *f.operands())
        given = [from_numpy(c) for c in cts]
        try:
            got = transposed(given)
        except MissingRule:
            if Linear in prim.traits or transpose_rules.find(prim) is not None:
                raise
            continue  # linear by accident of these parameters
        left = _inner(f.values(ts), map(_wide, cts))
        tol = 100 * max([tolerance(c.dtype) for c in cts])
        what = f"transpose in operands {tuple(f.active)}"
        count += agree(_inner([np.asarray(g) for g in got], ts), left, tol, what)
        count += agree(jit(transposed)(given), got, None, f"{what}, staged")
    if not count:
        raise Inapplicable("it is linear in no operand")
    return count


def _inner(xs: list[np.ndarray], ys: Any) -> np.ndarray:
    return np.asarray(sum(np.sum(_wide(x) * _wide(y)) for x, y in zip(xs, ys, strict=True)).real)


def _linear(prim: Primitive, xs: Arrays, params: dict[str, Any]) -> Iterator[_Function]:
    """Yield the primitive as a function of operands that it is linear in.

    If it is linear in all together, yield that, then each alone with zeros for the others.
    Otherwise yield each operand in which it is linear.
    """
    positions = [i for i, x in enumerate(xs) if _inexact(x)]
    together = _Function(prim, xs, params, positions)
    if len(positions) > 1 and _is_linear(together):
        yield together
        xs = [np.zeros_like(x) if i in positions else x for i, x in enumerate(xs)]
    for i in positions:
        f = _Function(prim, xs, params, (i,))
        if _is_linear(f):
            yield f


def _is_linear(f: _Function) -> bool:
    """Return whether values satisfy f(a x + b y) = a f(x) + b f(y), and are not all zero."""
    rng = np.random.default_rng(4)
    like = [f.xs[i] for i in f.active]
    x, y = ([_random(rng, v) for v in like] for _ in range(2))
    outs = f.values(x), f.values(y), f.values([0.5 * a - 2 * b for a, b in zip(x, y)])
    if not any(np.any(o) for o in outs[0]):
        return False
    sides = zip(*outs, strict=True)
    return all(np.allclose(0.5 * a - 2 * b, c, 1e-4, 1e-4) for a, b, c in sides)


def _has_transpose(prim: Primitive) -> bool:
    """Return whether reverse mode can reach the primitive: only linear ones are transposed."""
    return Linear in prim.traits or transpose_rules.own(prim) is not None


transpose_law.applies = _has_transpose  # type: ignore[attr-defined]


# ---- split ---------------------------------------------------------------------------------


def split_law(prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> int:
    """Check that the halves of a division by any set of unknown operands give the whole's results.

    Only inexact operands are ever unknown.  Returns the number of comparisons.
    """
    xs = [from_numpy(x) for x in args]
    program = staged(lambda *vs: as_list(prim.bind(*vs, **params)), [x.aval for x in xs])
    want = evaluate(program, xs)
    choices = [(False, True) if _inexact(x) else (False,) for x in args]
    count = 0
    for mask in islice(product(*choices), 16):
        h = split_program(program, mask)
        first = evaluate(h.known, part(xs, mask, False))
        n = h.out_unknown.count(False)
        later = evaluate(h.unknown, [*first[n:], *part(xs, mask)])
        got = merge(h.out_unknown, later, first[:n])
        count += agree(got, want, None, f"split with unknown operands {mask}")
    return count


def _holds_programs(prim: Primitive) -> bool:
    return prim.higher is not None and not prim.higher.custom


split_law.applies = _holds_programs  # type: ignore[attr-defined]


# ---- recompute -----------------------------------------------------------------------------


def recompute_law(prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> int:
    """Check that an operation recomputed under a policy has the same results.

    The policies keep nothing, everything, or every other value.

    Returns the number of comparisons.
    """
    xs = [from_numpy(x) for x in args]
    program = staged(lambda *vs: as_list(prim.bind(*vs, **params)), [x.aval for x in xs])
    want, every = evaluate(program, xs), (True,) * len(program.outputs)
    count = 0
    for name, policy in _policies().items():
        k = economise(program, policy, must=every)
        first = evaluate(k.first, xs)
        again = evaluate(k.again, [*first[len(every) :], *xs])
        count += agree(first[: len(every)], want, None, f"done while {name} is kept")
        count += agree(again, want, None, f"done again, where {name} is kept")
    return count


def _policies() -> dict[str, Any]:
    turn = cycle([True, False])
    return {
        "nothing": lambda *avals, **params: False,
        "everything": lambda *avals, **params: True,
        "every other value": lambda *avals, **params: next(turn),
    }


def _divides(prim: Primitive) -> bool:
    return recompute_rules.own(prim) is not None


recompute_law.applies = _divides  # type: ignore[attr-defined]


# ---- inverse -------------------------------------------------------------------------------


def inverse_law(prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> int:
    """Check that operands recovered from the result and the other operands equal the originals.

    Only elements where the inverse is finite are compared, and each operand must have one.

    Returns the number of comparisons; raises Inapplicable if none is given back.
    """
    if prim.higher is not None:
        raise Inapplicable("programs are reversed as a whole")
    xs = [from_numpy(x) for x in in_double(prim, args, params)]
    outs = as_list(prim.bind(*xs, **params))
    count = 0
    for i, x in enumerate(xs):
        given: list[Any] = [Unknown(v.aval) if k == i else v for k, v in enumerate(xs)]
        back = inverse_rules[prim](outs if prim.many else outs[0], *given, **params)[i]
        if back is not None:
            got, want = np.asarray(back), np.asarray(x)
            finite = np.isfinite(_wide(got))
            what = f"operand {i}, from the result"
            if got.size and not finite.any():
                raise AssertionError(f"{what}, is nowhere finite")
            count += agree(np.where(finite, got, want), want, 1e-6, what)
    if not count:
        raise Inapplicable("no operand is given back")
    return count


def _has_inverse(prim: Primitive) -> bool:
    """Return whether the table has a rule for it; operands of other operations are kept."""
    return inverse_rules.find(prim) is not None


inverse_law.applies = _has_inverse  # type: ignore[attr-defined]
