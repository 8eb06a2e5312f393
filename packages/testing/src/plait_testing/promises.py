"""Checks of the traits of a primitive, by its results.

Invariant: a promise is judged by results alone, on operands near the samples; a violation is found
with certainty only if the samples show it.
"""

from collections.abc import Callable, Sequence

import numpy as np

from plait.ext import rules as traits
from plait.ext.types import FLOATING, category

from .report import Inapplicable, agree, tolerance

__all__ = ["PROMISES"]

Compute = Callable[..., list[np.ndarray]]
"""A function from numpy arrays to results, as numpy arrays."""


def _inexact(x: np.ndarray) -> bool:
    return x.dtype.kind == "c" or category(x.dtype) == FLOATING


def _with(xs: Sequence[np.ndarray], i: int, x: np.ndarray) -> list[np.ndarray]:
    return [x if k == i else old for k, old in enumerate(xs)]


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return where two arrays are equal, nan being equal to nan."""
    with np.errstate(invalid="ignore"):
        return (a == b) | ((a != a) & (b != b))


def elementwise(f: Compute, xs: Sequence[np.ndarray], params: dict) -> int:
    """Check that changing one element of all operands changes nothing else."""
    before = f(*xs)
    for y in before:
        assert y.shape == xs[0].shape, f"shape {y.shape} of operands of shape {xs[0].shape}"
    rng = np.random.default_rng(0)
    places = [tuple(p) for p in np.argwhere(np.ones(xs[0].shape, bool))]
    if len(places) < 2:
        raise Inapplicable("samples of one element cannot show it")
    picked = [places[i] for i in rng.choice(len(places), min(3, len(places)), replace=False)]
    for at in picked:
        changed = []
        for x in xs:
            x = x.copy()
            others = [p for p in places if not np.array_equal(x[p], x[at])]
            x[at] = x[others[0]] if others else x[at]
            changed.append(x)
        for a, b in zip(before, f(*changed), strict=True):
            apart = ~_same(a, b)
            apart[at] = False
            assert not apart.any(), f"a change at {at} is seen at {np.argwhere(apart)[0]}"
    return len(picked)


def linear(f: Compute, xs: Sequence[np.ndarray], params: dict) -> int:
    """Check f(a x + b y) = a f(x) + b f(y), for real a and b."""
    if not all(map(_inexact, xs)):
        raise Inapplicable("only of real and complex operands")
    rng = np.random.default_rng(1)
    ys = [_noise(rng, x) for x in xs]
    a, b = 0.75, -1.5
    both = f(*[(a * x + b * y).astype(x.dtype) for x, y in zip(xs, ys)])
    ends = zip(f(*xs), f(*ys), strict=True)
    apart = [(a * p + b * q).astype(r.dtype) for r, (p, q) in zip(both, ends)]
    tol = 10 * max([tolerance(x.dtype) for x in (*xs, *both)])
    return agree(both, apart, tol, "not linear")


def _noise(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    y = rng.standard_normal(x.shape)
    if x.dtype.kind == "c":
        y = y + 1j * rng.standard_normal(x.shape)
    return y.astype(x.dtype)


def zero_preserving(f: Compute, xs: Sequence[np.ndarray], params: dict) -> int:
    """Check that zeros of the first operand are zeros of the result."""
    first = np.zeros_like(xs[0])
    for y in f(first, *xs[1:]):
        assert not (_wide(y) != 0).any(), f"{y} for an operand of zeros"
    return 1


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) if x.dtype.kind not in "c" else x


def _monotone(up: bool) -> Callable[[Compute, Sequence[np.ndarray], dict], int]:
    def monotone(f: Compute, xs: Sequence[np.ndarray], params: dict) -> int:
        if any(x.dtype.kind == "c" for x in xs):
            raise Inapplicable("complex numbers have no order")
        rng = np.random.default_rng(2)
        low = f(*xs)
        for i, x in enumerate(xs):
            with np.errstate(all="ignore"):
                more = np.maximum(_raised(rng, x), x)
            high = f(*_with(xs, i, more))
            for a, b in zip(low, high, strict=True):
                a, b = (a, b) if up else (b, a)
                near = tolerance(a.dtype) * (1 + np.abs(_wide(a)))
                fell = _wide(b) + near < _wide(a)  # False where either is nan
                assert not fell.any(), f"raising operand {i} takes {a[fell]} to {b[fell]}"
        return len(xs)

    return monotone


def _raised(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Return elements that are not below those of `x`."""
    if x.dtype == bool:
        return x | (rng.random(x.shape) < 0.5)
    if _inexact(x):
        return (_wide(x) + rng.random(x.shape) * 0.3).astype(x.dtype)
    return x + rng.integers(0, 2, x.shape).astype(x.dtype)


def structural(f: Compute, xs: Sequence[np.ndarray], params: dict) -> int:
    """Find the source of each result by operands with distinct elements; the samples must have
    the same sources."""
    tags, n = [], 1
    for x in xs:
        tags.append(np.arange(n, n + x.size).reshape(x.shape))
        n += x.size
    if n > 120:
        raise Inapplicable("samples of more than 120 elements")
    narrow = [t.astype(x.dtype) for t, x in zip(tags, xs)]
    if any(x.dtype == bool for x in xs):
        raise Inapplicable("booleans cannot be told apart")
    if not all(np.array_equal(a.astype(np.complex128), t) for a, t in zip(narrow, tags)):
        raise Inapplicable("the dtype of the samples has too few numbers to tell them apart")
    flat = np.concatenate([np.zeros(1, xs[0].dtype), *(x.reshape(-1) for x in xs)])
    for came, y in zip(f(*narrow), f(*xs), strict=True):
        if came.dtype == bool:
            raise Inapplicable("booleans cannot be told apart")
        with np.errstate(invalid="ignore"):
            at = np.real(came).astype(int)
        assert ((at > 0) & (at < n)).all(), f"{came} is not made of elements of the operands"
        with np.errstate(all="ignore"):
            moved = flat[at].astype(y.dtype)
        assert _same(moved, y).all(), f"{y} is not {moved}, its operands moved"
    return 1


def reduction(f: Compute, xs: Sequence[np.ndarray], params: dict) -> int:
    """Check that the axes of the parameter `axes` are dropped from the shape."""
    axes = params["axes"]
    want = tuple([d for i, d in enumerate(xs[0].shape) if i not in axes])
    for y in f(*xs):
        assert y.shape == want, f"shape {y.shape} of {xs[0].shape} without axes {axes}"
    return 1


def cumulative(f: Compute, xs: Sequence[np.ndarray], params: dict) -> int:
    """Check that the shape stays, and results depend on earlier elements only (later if
    reversed)."""
    axis, reverse = params["axis"], params["reverse"]
    before = f(*xs)
    n = xs[0].shape[axis]
    if n < 2:
        raise Inapplicable("samples of one element along the axis cannot show it")
    edge = 0 if reverse else n - 1
    rest = np.delete(np.arange(n), edge)
    changed = [x.copy() for x in xs]
    for x in changed:
        place = tuple([edge if i == axis else slice(None) for i in range(x.ndim)])
        x[place] = x.take(rest[0], axis)
    for a, b, x in zip(before, f(*changed), xs):
        assert a.shape == x.shape, f"shape {a.shape} of an operand of shape {x.shape}"
        same = _same(a.take(rest, axis), b.take(rest, axis))
        assert same.all(), "the last element is seen by results that come before it"
    return 1


def discrete(f: Compute, xs: Sequence[np.ndarray], params: dict) -> int:
    """Check that a step to the next number, up or down, changes nothing (except at a jump)."""
    near = [x for x in xs if _inexact(x) and x.dtype.kind == "f"]
    if not near:
        raise Inapplicable("no operand that can vary a little")
    before = f(*xs)
    for i, x in enumerate(xs):
        if x.dtype.kind != "f":
            continue
        up, down = (f(*_with(xs, i, np.nextafter(x, x.dtype.type(e)))) for e in (np.inf, -np.inf))
        for a, b, c in zip(before, up, down, strict=True):
            moved = ~_same(a, b) & ~_same(a, c)
            assert not moved.any(), f"a small step of operand {i} changes {a[moved]}"
    return len(near)


PROMISES = {
    traits.Elementwise: elementwise,
    traits.Linear: linear,
    traits.ZeroPreserving: zero_preserving,
    traits.Increasing: _monotone(True),
    traits.Decreasing: _monotone(False),
    traits.Structural: structural,
    traits.Reduction: reduction,
    traits.Cumulative: cumulative,
    traits.Discrete: discrete,
}
"""The check of each trait: check(f, operands, parameters) -> number of comparisons.  Missing
traits describe roles of operands and axes, which results do not show."""
