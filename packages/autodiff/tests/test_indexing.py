"""Derivatives of indexing against finite differences, also where places occur twice or lie outside.

Invariant: everything is in float64; a transposed derivative is checked by the pairing with the
forward one, and second derivatives by differences of first ones.
"""

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
EPS = 1e-6


def draw(*shape):
    return RNG.standard_normal(shape)


def flat(x):
    return np.asarray(x).ravel()


def check(f, *xs, second=True):
    """First derivatives both ways, and second ones, of a function of float64 arrays."""
    ts = [draw(*x.shape) for x in xs]
    ins, tan = [asarray(x) for x in xs], [asarray(t) for t in ts]
    moved = lambda e: [asarray(x + e * t) for x, t in zip(xs, ts)]  # noqa: E731
    out, dot = plait.jvp(f, tuple(ins), tuple(tan))
    np.testing.assert_allclose(flat(out), flat(f(*ins)), rtol=1e-12)
    slope = (flat(f(*moved(EPS))) - flat(f(*moved(-EPS)))) / (2 * EPS)
    np.testing.assert_allclose(flat(dot), slope, rtol=1e-6, atol=1e-7)
    ct = asarray(draw(*out.shape))
    _, pull = plait.vjp(f, *ins)
    back = pull(ct)
    pairing = sum(flat(b) @ flat(t) for b, t in zip(back, ts))
    np.testing.assert_allclose(pairing, flat(ct) @ flat(dot), rtol=1e-9, atol=1e-9)
    compiled = plait.jit(lambda c, *a: plait.vjp(f, *a)[1](c))(ct, *ins)
    for a, b in zip(compiled, back):
        np.testing.assert_allclose(flat(a), flat(b), rtol=1e-9, atol=1e-9)
    if second:
        _pulled_twice(f, ins, tan, moved, ct)


def _pulled_twice(f, ins, tan, moved, ct):
    pulled = lambda *a: plait.vjp(f, *a)[1](ct)  # noqa: E731
    _, dots = plait.jvp(pulled, tuple(ins), tuple(tan))
    for d, hi, lo in zip(dots, pulled(*moved(EPS)), pulled(*moved(-EPS))):
        slope = (flat(hi) - flat(lo)) / (2 * EPS)
        np.testing.assert_allclose(flat(d), slope, rtol=1e-5, atol=1e-6)


def squared(f):
    """With something to differentiate twice."""
    return lambda *xs: f(*[x * x for x in xs])


I = asarray(np.array([2, 0, 2, -1]))  # a place twice, one from the end
OUT = asarray(np.array([1, 9, -9, 1]))
X = draw(3, 4, 2)
READS = {
    "int": lambda x: x[1],
    "negative int": lambda x: x[:, -1],
    "slices": lambda x: x[1:, ::-2],
    "new axes": lambda x: x[None, 0, ..., None],
    "array": lambda x: x[:, I],
    "arrays apart": lambda x: x[I, :, asarray(np.array([0, 1, 1, 0]))],
    "array and slice": lambda x: x[I, 1:3],
    "array and steps": lambda x: x[I, ::-2],
    "computed int": lambda x: x[I[1]],
    "outside": lambda x: x[:, OUT],
    "fill": lambda x: x.at[:, OUT].get(mode="fill", fill_value=7.0),
    "mask": lambda x: x[np.array([True, False, True])],
    "take": lambda x: take(x, I, 1),
    "take wrap": lambda x: take(x, OUT, 1, mode="wrap"),
    "along axis": lambda x: take_along_axis(x, asarray(np.array([[[0], [3]]] * 3)), 1),
    "dynamic slice": lambda x: dynamic_slice(x, (1, I[0], 0), (2, 3, 1)),
    "dynamic slice outside": lambda x: dynamic_slice(x, (asarray(np.int64(5)), -1, 0), (1, 2, 2)),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", READS)
def test_reading(name):
    check(squared(READS[name]), X)


WRITES = {
    "int": (1, (4, 2)),
    "slices": ((slice(1, None), slice(None, None, -1)), (2, 4, 2)),
    "steps": ((slice(None, None, 2), slice(3, None, -3)), (2, 2, 2)),
    "array": (np.array([2, 0]), (2, 4, 2)),
    "array twice": (I, (4, 4, 2)),
    "array twice and a range": ((I, slice(1, 3)), (4, 2, 2)),
    "array twice and steps": ((I, slice(None, None, 2)), (4, 2, 2)),
    "pairs": ((I, I), (4, 2)),
    "outside": ((slice(None), OUT), (3, 4, 2)),
    "computed": (I[1], (4, 2)),
    "mask": (np.array([True, False, True]), (2, 4, 2)),
    "mask of all": (np.arange(24).reshape(3, 4, 2) % 3 == 0, ()),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("op", ["set", "add", "subtract", "multiply", "divide", "min", "max"])
@pytest.mark.parametrize("name", WRITES)
def test_writing(name, op):
    index, shape = WRITES[name]
    v = draw(*shape) + (3.0 if op == "divide" else 0.0)
    check(lambda x, v: getattr(x.at[index], op)(v) * 2.0, X, v, second=op != "divide")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("op", ["set", "add", "multiply"])
def test_writing_twice_differentiated(op):
    check(lambda x, v: squared(lambda x, v: getattr(x.at[I], op)(v))(x, v), X, draw(4, 4, 2))


def test_power_and_apply():
    positive = np.abs(X) + 0.5
    check(lambda x: x.at[I].power(3.0), positive)
    check(lambda x: x.at[1:].apply(lambda v: v * v), X)
    check(lambda x: x.at[asarray(np.array([2, 0]))].apply(lambda v: v * v * v), X)


def test_zeros_in_products():
    """Of several factors for one element, of which one or two are zero."""
    index = asarray(np.array([1, 1, 1, 0, 0, 3]))
    for zeros in ([0], [0, 1], [0, 3, 4]):
        v = draw(6)
        v[zeros] = 0.0
        check(lambda x, v: x.at[index].multiply(v), draw(4), v)


@pytest.mark.wide
def test_overlapping_windows():
    """Windows of size 2 that share elements: one update counts for each element."""
    numbers = ScatterDimensionNumbers((1,), (), (0,))
    index = asarray(np.array([[0], [1], [1], [3], [4]]))  # the last one sticks out
    x, v = draw(5), draw(5, 2)
    for f in (scatter, scatter_add, scatter_mul, scatter_min, scatter_max):
        for mode in ("drop", "clip"):
            check(lambda x, v, f=f, mode=mode: f(x, index, v, numbers, mode=mode), x, v)


def test_ties_share():
    x, v = np.array([1.0, 2.0]), np.array([2.0, 2.0, 5.0])
    index = asarray(np.array([1, 1, 0]))
    _, pull = plait.vjp(lambda x, v: x.at[index].max(v), asarray(x), asarray(v))
    dx, dv = pull(asarray(np.array([1.0, 3.0])))
    np.testing.assert_allclose(np.asarray(dx), [0.0, 1.0])
    np.testing.assert_allclose(np.asarray(dv), [1.0, 1.0, 1.0])


def test_promised_unique():
    index = asarray(np.array([2, 0]))
    for op in ("set", "multiply"):
        f = lambda x, v, op=op: getattr(x.at[index], op)(v, unique_indices=True)  # noqa: E731
        check(squared(f), X, draw(2, 4, 2))


def test_updates():
    check(lambda x, v: dynamic_update_slice(x, v, (1, I[0], 0)), X, draw(2, 2, 1))
    check(squared(lambda x, v: dynamic_update_slice(x, v, (5, -1, 0))), X, draw(2, 2, 1))


def test_gather_of_windows():
    numbers = GatherDimensionNumbers((1, 2), (0,), (0, 1))
    index = asarray(np.array([[0, 1], [2, 3], [1, 0]]))
    for mode in ("clip", "fill"):
        how = dict(mode=mode, fill_value=0.0)
        check(squared(lambda x, how=how: gather(x, index, numbers, (1, 2, 2), **how)), X)


def test_batching_axes():
    numbers = GatherDimensionNumbers((2,), (1,), (1,), (0,), (0,))
    index = asarray(np.array([[[1], [9]], [[3], [0]], [[0], [0]]]))
    for mode in ("clip", "fill"):
        check(lambda x, m=mode: gather(x, index, numbers, (1, 1, 2), mode=m, fill_value=0.0), X)


def test_only_one_varies():
    """A tangent of the array alone, or of the values alone."""
    v = asarray(draw(4, 4, 2))
    for op in ("set", "add", "multiply", "min"):
        check(lambda x, op=op: getattr(x.at[I], op)(v), X)
        check(lambda u, op=op: getattr(asarray(X).at[I], op)(u), draw(4, 4, 2))


def test_places_are_operands():
    """Differentiating at one position after the other compiles once."""
    x = asarray(draw(30))
    for f in (
        lambda x, i: x[i] * x[i],
        lambda x, i: (x[i : i + 3] * x[i : i + 3])[0],
        lambda x, i: (x.at[i].set(2.0) * x)[0],
    ):
        slope = lambda i, f=f: plait.grad(lambda x: f(x, i))(x)  # noqa: E731
        slope(0), slope(1)
        with counting() as seen:
            for i in range(2, 9):
                slope(i)
        assert seen["compile"] == 0


def test_in_a_loop():
    """An update in place at a computed place, turn after turn."""

    def f(x, v):
        def turn(k, x):
            return x.at[k].set(x[k - 1] * v[k])

        return fori_loop(1, 4, turn, x)

    x, t = draw(5), draw(5)
    v = draw(5)
    _, dot = plait.jvp(lambda x: f(x, asarray(v)), (asarray(x),), (asarray(t),))
    want = t.copy()
    for k in range(1, 4):
        want[k] = want[k - 1] * v[k]
    np.testing.assert_allclose(np.asarray(dot), want, rtol=1e-12)
