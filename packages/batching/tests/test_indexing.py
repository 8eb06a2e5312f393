"""Indexing mapped over axes, against a Python loop over the examples.

Invariant: every case runs with the mapped axis at every position of every operand, and with
operands that do not vary; some again inside another map.
"""

import itertools

import numpy as np
import pytest

import plait
from plait.events import counting
from plait.ext.ops.indexing import GatherDimensionNumbers, ScatterDimensionNumbers
from plait.ext.values import asarray
from plait.lax import (
    dynamic_slice,
    dynamic_update_slice,
    fori_loop,
    gather,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
)
from plait.numpy import take, take_along_axis

RNG = np.random.default_rng(0)
SIZE = 3


def draw(*shape):
    return np.round(RNG.standard_normal(shape), 3)


def whole(*shape, low=-4, high=6):
    """Places, of which some are negative and some outside."""
    return RNG.integers(low, high, shape).astype(np.int32)


def stacked(x, axis):
    """Examples like `x`, along an axis; they differ."""
    make = whole if x.dtype.kind == "i" else draw
    return np.stack([x, *[make(*x.shape) for _ in range(SIZE - 1)]], axis)


def axes_of(x):
    return [None, *range(x.ndim + 1)]


def check(f, *xs, limit=40):
    """`f` mapped, for combinations of axes, against a loop."""
    combos = [c for c in itertools.product(*map(axes_of, xs)) if any(a is not None for a in c)]
    if len(combos) > limit:
        combos = [combos[i] for i in sorted(RNG.choice(len(combos), limit, replace=False))]
    for axes in combos:
        args = [asarray(x if a is None else stacked(x, a)) for x, a in zip(xs, axes)]
        got = plait.vmap(f, in_axes=axes)(*args)
        rows = [
            [x if a is None else asarray(np.take(np.asarray(x), i, a)) for x, a in zip(args, axes)]
            for i in range(SIZE)
        ]
        want = np.stack([np.asarray(f(*row)) for row in rows])
        np.testing.assert_array_equal(np.asarray(got), want, err_msg=str(axes))


X = draw(4, 5)
CASES = {
    "dynamic slice": (lambda x, i, j: dynamic_slice(x, (i, j), (2, 3)), X, whole(), whole()),
    "dynamic update slice": (
        lambda x, v, i, j: dynamic_update_slice(x, v, (i, j)), X, draw(2, 3), whole(), whole(),
    ),
    "int": (lambda x, i: x[i], X, whole()),
    "two ints": (lambda x, i, j: x[i, j], X, whole(), whole()),
    "int after a range": (lambda x, i: x[1:, i], X, whole()),
    "static": (lambda x: x[1:, ::-2], X),
    "array": (lambda x, i: x[i], X, whole(3)),
    "array of two axes": (lambda x, i: x[:, i], X, whole(2, 2)),
    "pairs": (lambda x, i, j: x[i, j], X, whole(3), whole(3)),
    "array and steps": (lambda x, i: x[i, ::2], X, whole(3)),
    "array apart": (lambda x, i: x[i, None, i], X, whole(3)),
    "fill": (lambda x, i: x.at[i].get(mode="fill", fill_value=-7.0), X, whole(3)),
    "fill an int": (lambda x, i: x.at[i, 1:].get(mode="fill", fill_value=-7.0), X, whole()),
    "take": (lambda x, i: take(x, i, 1, mode="clip"), X, whole(2, 2)),
    "take wrap": (lambda x, i: take(x, i, 0, mode="wrap"), X, whole(3)),
    "along axis": (
        lambda x, i: take_along_axis(x, i, 1, mode="fill", fill_value=0.5), X, whole(4, 2),
    ),
}  # fmt: skip
for _op in ("set", "add", "multiply", "min", "max"):
    CASES[f"{_op} at int"] = (
        lambda x, i, v, op=_op: getattr(x.at[i], op)(v), X, whole(), draw(5),
    )  # fmt: skip
    CASES[f"{_op} at array"] = (
        lambda x, i, v, op=_op: getattr(x.at[:, i], op)(v), X, whole(3), draw(4, 3),
    )  # fmt: skip
    CASES[f"{_op} at array and steps"] = (
        lambda x, i, v, op=_op: getattr(x.at[i, ::-2], op)(v), X, whole(2), draw(2, 3),
    )  # fmt: skip
CASES["set in a range"] = (lambda x, v: x.at[1:3, ::2].set(v), X, draw(2, 3))
CASES["clipped"] = (lambda x, i, v: x.at[i].add(v, mode="clip"), X, whole(3), draw(3, 5))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", CASES)
def test_against_a_loop(name):
    f, *xs = CASES[name]
    check(f, *xs)


WINDOWS = GatherDimensionNumbers((1, 2), (0,), (0, 1))
TOGETHER = GatherDimensionNumbers((2,), (1,), (1,), (0,), (0,))


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_gather(mode):
    x = draw(3, 4, 2)
    how = dict(mode=mode, fill_value=0.5)
    check(lambda x, i: gather(x, i, WINDOWS, (1, 2, 2), **how), x, whole(3, 2, low=-1, high=5))
    check(lambda x, i: gather(x, i, TOGETHER, (1, 1, 2), **how), x, whole(3, 2, 1))


@pytest.mark.parametrize("f", [scatter, scatter_add, scatter_mul, scatter_min, scatter_max])
def test_scatter(f):
    numbers = ScatterDimensionNumbers((1,), (0,), (0, 1))
    places = lambda *s: whole(*s, low=-1, high=5)  # noqa: E731
    for mode in ("drop", "clip"):
        g = lambda x, i, v, mode=mode: f(x, i, v, numbers, mode=mode)  # noqa: E731
        check(g, draw(3, 4), places(3, 2), draw(3, 2), limit=20)
    together = ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
    check(lambda x, i, v: f(x, i, v, together), draw(3, 4), whole(3, 2, 1), draw(3, 2), limit=20)


def test_nested():
    """Two maps, over different axes of the same operands."""
    x, i = draw(2, 3, 4, 5), whole(3, 2)
    for f in (
        lambda x, i: x[i],
        lambda x, i: x.at[i].add(1.0),
        lambda x, i: dynamic_slice(x, (i, 1), (2, 2)),
        lambda x, i: x.at[i, 2:4].set(0.0),
    ):
        got = plait.vmap(plait.vmap(f, in_axes=(0, 0)), in_axes=(1, 0))(asarray(x), asarray(i))
        want = [
            [np.asarray(f(asarray(x[b, a]), asarray(i[a, b]))) for b in range(2)] for a in range(3)
        ]
        np.testing.assert_array_equal(np.asarray(got), want)


def test_one_example_and_none():
    for n in (1, 0):
        x, i = asarray(draw(n, 4, 5)), asarray(whole(n))
        assert plait.vmap(lambda x, i: x[i])(x, i).shape == (n, 5)
        assert plait.vmap(lambda x, i: x.at[i].set(2.0))(x, i).shape == (n, 4, 5)


def test_outside_reads_no_neighbour():
    """Each example holds its own number: whatever a place is, only that number comes out."""
    x = asarray(np.repeat(np.arange(3.0)[:, None], 4, 1))
    for k in (-100, -5, -4, -1, 0, 3, 4, 5, 100):
        i = asarray(np.full(3, k, np.int32))
        got = plait.vmap(lambda x, i: x[i])(x, i)
        np.testing.assert_array_equal(np.asarray(got), np.arange(3.0))
        rows = plait.vmap(lambda x, i: dynamic_slice(x, (i,), (2,)))(x, i)
        np.testing.assert_array_equal(np.asarray(rows), np.repeat(np.arange(3.0)[:, None], 2, 1))
        wrote = np.asarray(plait.vmap(lambda x, i: x.at[i].add(10.0))(x, i))
        inside = -4 <= k < 4
        np.testing.assert_array_equal(wrote.sum(1), np.arange(3.0) * 4 + 10.0 * inside)


def test_places_are_operands():
    """Mapping a function of one position after the other compiles once."""
    x = asarray(draw(3, 30))
    for f in (lambda x, i: x[i], lambda x, i: x.at[i].add(1.0), lambda x, i: x[i : i + 2]):
        mapped = lambda i, f=f: plait.vmap(lambda x: f(x, i))(x)  # noqa: E731
        mapped(0), mapped(1)
        with counting() as seen:
            for i in range(2, 9):
                mapped(i)
        assert seen["compile"] == 0


def test_compiled_and_in_a_loop():
    x, v = draw(3, 5), draw(3, 5)

    def f(x, v):
        return fori_loop(1, 5, lambda k, x: x.at[k].set(x[k - 1] + v[k]), x)

    got = plait.jit(plait.vmap(f))(asarray(x), asarray(v))
    want = x.copy()
    for k in range(1, 5):
        want[:, k] = want[:, k - 1] + v[:, k]
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)
