"""Arguments of weft.numpy's functions that numpy or jax.numpy has: where, out, and single ones.

Invariant: numpy says what is right, or a loop.
"""

import inspect

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
from weft.errors import ConcretizationError, TypeRule

X = np.array([0.5, -1.0, 2.0], np.float32)
I = np.array([1, 0, 3], np.int32)  # noqa: E741
KEEP = np.array([True, False, True])
MASKED = ["add", "subtract", "multiply", "maximum", "minimum", "logaddexp", "logaddexp2",
          "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
          "bitwise_xor"]  # fmt: skip


@pytest.mark.parametrize("name", MASKED)
def test_where(name):
    f, x = getattr(wnp, name), I if name.startswith("bit") else X
    want = np.where(KEEP, getattr(np, name)(x, x), 0)
    np.testing.assert_allclose(f(x, x, where=KEEP, out=None), want, rtol=1e-6)
    assert f(x, x, where=KEEP).dtype == f(x, x).dtype
    taken = inspect.signature(f).parameters
    assert [p.name for p in taken.values() if p.kind is p.KEYWORD_ONLY] == ["out", "where"]


def test_where_of_tracers_and_shapes():
    got = wf.jit(lambda x, k: wnp.add(x, 1, where=k))(X, KEEP)
    np.testing.assert_allclose(got, [1.5, 0, 3])
    assert wnp.add(1.0, 2.0, where=np.ones((2, 3), bool)).shape == (2, 3)
    np.testing.assert_allclose(wnp.negative(X, where=KEEP), [-0.5, 0, -2])
    with pytest.raises(TypeRule, match="give booleans"):
        wnp.add(X, X, where=X)


@pytest.mark.parametrize("call", [
    lambda out: wnp.add(X, X, out=out), lambda out: wnp.negative(X, out=out),
    lambda out: wnp.round(X, 1, out), lambda out: wnp.around(X, 1, out),
    lambda out: wnp.isposinf(X, out), lambda out: wnp.isneginf(X, out),
    lambda out: wnp.modf(X, out), lambda out: wnp.choose(I % 2, (X, X), out),
    lambda out: wnp.compress(KEEP, X, 0, out=out),
])  # fmt: skip
def test_out_is_none(call):
    call(None)
    with pytest.raises(TypeRule, match="must be None"):
        call(np.zeros(3, np.float32))


def test_a_ufunc_with_what_it_has_of_its_own():
    f = wnp.ufunc(
        lambda x, y: x * 10 + y, 2, 1, nargs=3, identity=0,
        reduce=lambda x, axis, keepdims: wnp.sum(x, axis, keepdims=keepdims),
        at=lambda x, i, b: x.at[i].set(b), call=lambda x, y: wnp.multiply(x, 10) + y,
    )  # fmt: skip
    np.testing.assert_array_equal(f(I, I), I * 11)
    assert int(f.reduce(I)) == I.sum() and f.nargs == 3
    np.testing.assert_array_equal(f.at(I, 1, 7), [1, 7, 3])
    np.testing.assert_array_equal(f.accumulate(I), [1, 10, 103])
    np.testing.assert_array_equal(wnp.ufunc(wnp.maximum, 2, 1)(I, 2), [2, 2, 3])
    with pytest.raises(TypeRule, match="not 4"):
        wnp.ufunc(wnp.maximum, 2, 1, nargs=4)


def test_places_that_are_traced_are_deleted():
    x = np.arange(6, dtype=np.float32)
    one = wf.jit(lambda i: wnp.delete(x, i))
    np.testing.assert_array_equal(one(-2), np.delete(x, -2))
    several = wf.jit(lambda i: wnp.delete(x.reshape(2, 3), i, 1, assume_unique_indices=True))
    np.testing.assert_array_equal(several(np.array([2, 0])), np.delete(x.reshape(2, 3), [0, 2], 1))
    with pytest.raises(ConcretizationError):
        wf.jit(lambda i: wnp.delete(x, i))(np.array([0, 1]))


def test_single_ones():
    got = wnp.take_along_axis(X, np.array([-1, 1]), 0, wrap_negative_indices=False)
    np.testing.assert_array_equal(got, [np.nan, -1])
    np.testing.assert_array_equal(wnp.take_along_axis(X, np.array([-1]), 0), [2])
    places = np.array([1, 0]), np.array([2, 1])
    got = wnp.ravel_multi_index(places, (3, 4), dtype="int64")
    np.testing.assert_array_equal(got, np.ravel_multi_index(places, (3, 4)))
    assert got.dtype == np.int64
    zeros = np.array([0.0, 0.0, 1.0, 2.0])
    got = wnp.polymul(zeros, zeros, trim_leading_zeros=True)
    np.testing.assert_allclose(got, np.polymul(zeros, zeros))
    assert wnp.polymul(zeros, zeros).shape == (7,)
    nans = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, np.nan]])
    keep = np.array([[True, True, False], [True, True, True]])
    got = wnp.nanmean(nans, 1, None, None, False, keep)
    np.testing.assert_allclose(got, np.nanmean(nans, 1, where=keep))
    got = wnp.nanstd(nans, 1, None, None, 0, False, keep)
    np.testing.assert_allclose(got, np.nanstd(nans, 1, where=keep))
    q = np.array([[2.0, 1.0], [1.0, 3.0]])
    for method in (None, "lu", "qr"):
        assert float(wnp.linalg.slogdet(q, method=method)[1]) == pytest.approx(np.log(5))
    assert int(wnp.linalg.matrix_rank(M=q)) == 2
    with pytest.raises(TypeRule, match="no method"):
        wnp.linalg.slogdet(q, method="svd")


def test_what_would_be_lost_is_refused():
    for call in (lambda: wnp.put(X, 0, 1j, inplace=False), lambda: wnp.hypot(X, 1j),
                 lambda: wnp.place(X, KEEP, np.array([1j]), inplace=False),
                 lambda: wnp.put_along_axis(X, I[:1], 1j, 0, inplace=False),
                 lambda: wnp.arctan2(1j, X), lambda: wnp.fabs(1j),
                 lambda: wnp.deg2rad(1j)):  # fmt: skip
        with pytest.raises(TypeRule, match=r"take \.real"):
            call()
    with pytest.raises(OverflowError):
        wnp.array_split(X, 2**70)
