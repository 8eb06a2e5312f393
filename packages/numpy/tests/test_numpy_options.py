"""Arguments of plait.numpy's functions that numpy or jax.numpy has: where, out, and single ones.

Invariant: numpy says what is right, or a loop.
"""

import inspect

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import ConcretizationError, TypeRule

X = np.array([0.5, -1.0, 2.0], np.float32)
I = np.array([1, 0, 3], np.int32)  # noqa: E741
KEEP = np.array([True, False, True])
MASKED = ["add", "subtract", "multiply", "maximum", "minimum", "logaddexp", "logaddexp2",
          "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
          "bitwise_xor"]  # fmt: skip


@pytest.mark.parametrize("name", MASKED)
def test_where(name):
    f, x = getattr(pnp, name), I if name.startswith("bit") else X
    want = np.where(KEEP, getattr(np, name)(x, x), 0)
    np.testing.assert_allclose(f(x, x, where=KEEP, out=None), want, rtol=1e-6)
    assert f(x, x, where=KEEP).dtype == f(x, x).dtype
    taken = inspect.signature(f).parameters
    assert [p.name for p in taken.values() if p.kind is p.KEYWORD_ONLY] == ["out", "where"]


def test_where_of_tracers_and_shapes():
    got = plait.jit(lambda x, k: pnp.add(x, 1, where=k))(X, KEEP)
    np.testing.assert_allclose(got, [1.5, 0, 3])
    assert pnp.add(1.0, 2.0, where=np.ones((2, 3), bool)).shape == (2, 3)
    np.testing.assert_allclose(pnp.negative(X, where=KEEP), [-0.5, 0, -2])
    with pytest.raises(TypeRule, match="give booleans"):
        pnp.add(X, X, where=X)


@pytest.mark.parametrize("call", [
    lambda out: pnp.add(X, X, out=out), lambda out: pnp.negative(X, out=out),
    lambda out: pnp.round(X, 1, out), lambda out: pnp.around(X, 1, out),
    lambda out: pnp.isposinf(X, out), lambda out: pnp.isneginf(X, out),
    lambda out: pnp.modf(X, out), lambda out: pnp.choose(I % 2, (X, X), out),
    lambda out: pnp.compress(KEEP, X, 0, out=out),
])  # fmt: skip
def test_out_is_none(call):
    call(None)
    with pytest.raises(TypeRule, match="must be None"):
        call(np.zeros(3, np.float32))


def test_a_ufunc_with_what_it_has_of_its_own():
    f = pnp.ufunc(
        lambda x, y: x * 10 + y, 2, 1, nargs=3, identity=0,
        reduce=lambda x, axis, keepdims: pnp.sum(x, axis, keepdims=keepdims),
        at=lambda x, i, b: x.at[i].set(b), call=lambda x, y: pnp.multiply(x, 10) + y,
    )  # fmt: skip
    np.testing.assert_array_equal(f(I, I), I * 11)
    assert int(f.reduce(I)) == I.sum() and f.nargs == 3
    np.testing.assert_array_equal(f.at(I, 1, 7), [1, 7, 3])
    np.testing.assert_array_equal(f.accumulate(I), [1, 10, 103])
    np.testing.assert_array_equal(pnp.ufunc(pnp.maximum, 2, 1)(I, 2), [2, 2, 3])
    with pytest.raises(TypeRule, match="not 4"):
        pnp.ufunc(pnp.maximum, 2, 1, nargs=4)


def test_positions_that_are_traced_are_deleted():
    x = np.arange(6, dtype=np.float32)
    one = plait.jit(lambda i: pnp.delete(x, i))
    np.testing.assert_array_equal(one(-2), np.delete(x, -2))
    several = plait.jit(lambda i: pnp.delete(x.reshape(2, 3), i, 1, assume_unique_indices=True))
    np.testing.assert_array_equal(several(np.array([2, 0])), np.delete(x.reshape(2, 3), [0, 2], 1))
    with pytest.raises(ConcretizationError):
        plait.jit(lambda i: pnp.delete(x, i))(np.array([0, 1]))


def test_single_ones():
    got = pnp.take_along_axis(X, np.array([-1, 1]), 0, wrap_negative_indices=False)
    np.testing.assert_array_equal(got, [np.nan, -1])
    np.testing.assert_array_equal(pnp.take_along_axis(X, np.array([-1]), 0), [2])
    positions = np.array([1, 0]), np.array([2, 1])
    got = pnp.ravel_multi_index(positions, (3, 4), dtype="int64")
    np.testing.assert_array_equal(got, np.ravel_multi_index(positions, (3, 4)))
    assert got.dtype == np.int64
    zeros = np.array([0.0, 0.0, 1.0, 2.0])
    got = pnp.polymul(zeros, zeros, trim_leading_zeros=True)
    np.testing.assert_allclose(got, np.polymul(zeros, zeros))
    assert pnp.polymul(zeros, zeros).shape == (7,)
    nans = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, np.nan]])
    keep = np.array([[True, True, False], [True, True, True]])
    got = pnp.nanmean(nans, 1, None, None, False, keep)
    np.testing.assert_allclose(got, np.nanmean(nans, 1, where=keep))
    got = pnp.nanstd(nans, 1, None, None, 0, False, keep)
    np.testing.assert_allclose(got, np.nanstd(nans, 1, where=keep))
    q = np.array([[2.0, 1.0], [1.0, 3.0]])
    for method in (None, "lu", "qr"):
        assert float(pnp.linalg.slogdet(q, method=method)[1]) == pytest.approx(np.log(5))
    assert int(pnp.linalg.matrix_rank(M=q)) == 2
    with pytest.raises(TypeRule, match="no method"):
        pnp.linalg.slogdet(q, method="svd")


def test_what_would_be_lost_is_refused():
    for call in (lambda: pnp.put(X, 0, 1j, inplace=False), lambda: pnp.hypot(X, 1j),
                 lambda: pnp.place(X, KEEP, np.array([1j]), inplace=False),
                 lambda: pnp.put_along_axis(X, I[:1], 1j, 0, inplace=False),
                 lambda: pnp.arctan2(1j, X), lambda: pnp.fabs(1j),
                 lambda: pnp.deg2rad(1j)):  # fmt: skip
        with pytest.raises(TypeRule, match=r"take \.real"):
            call()
    with pytest.raises(OverflowError):
        pnp.array_split(X, 2**70)


@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "nansum", "nanmax"]
)
def test_where_is_of_booleans(name):
    """As numpy, which casts no other numbers to what decides."""
    mask = np.array([1, 0, 1])
    more = {"initial": 0.0} if name in ("max", "min", "nanmax") else {}
    with pytest.raises(TypeError):
        getattr(np, name)(X, where=mask, **more)
    for where in (mask, mask.astype(np.float32), mask.tolist()[0], pnp.asarray(mask)):
        for f in (getattr(pnp, name), plait.jit(getattr(pnp, name))):
            with pytest.raises(TypeRule, match="where"):
                f(X, where=where, **more)
    for where in (mask == 1, True, np.bool_(True), pnp.asarray(mask == 1)):
        want = getattr(np, name)(X, where=np.asarray(where), **more)
        np.testing.assert_allclose(getattr(pnp, name)(X, where=where, **more), want, rtol=1e-6)
