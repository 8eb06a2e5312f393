"""Reductions and scans of functions of elements, pieces between brackets, bits, files: numpy's.

Invariant: numpy says what is right.
"""

# pyright: reportFunctionMemberAccess=false

import io

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import TypeRule

RNG = np.random.default_rng(0)
X = RNG.integers(-3, 4, (4, 5)).astype(np.int32)
F = RNG.normal(size=(4, 5))
INTEGERS = ["add", "maximum", "bitwise_xor", "gcd"]
FLOATS = ["divide", "logaddexp"]


def same(got, want):
    want = np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-12)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_methods(name):
    x = X if name in INTEGERS else F
    ours, numpys = getattr(pnp, name), getattr(np, name)
    assert isinstance(ours, pnp.ufunc) and (ours.nin, ours.nout, ours.nargs) == (2, 1, 3)
    same(ours.reduce(x), numpys.reduce(x))
    same(ours.reduce(x, axis=1, keepdims=True), numpys.reduce(x, axis=1, keepdims=True))
    same(ours.accumulate(x, axis=1), numpys.accumulate(x, axis=1))
    same(ours.outer(x[0], x[:, 1]), numpys.outer(x[0], x[:, 1]))
    same(ours.reduceat(x, np.array([0, 3, 1, 2])), numpys.reduceat(x, [0, 3, 1, 2]))
    want, positions, b = x[0].copy(), np.array([1, 1, 3]), x[0, 2:]
    numpys.at(want, positions, b)
    same(ours.at(x[0], positions, b), want)
    same(plait.jit(lambda v: ours.reduce(v, axis=None) if ours.identity is not None else v)(x),
         numpys.reduce(x, axis=None) if numpys.identity is not None else x)  # fmt: skip


def test_what_a_fold_starts_with():
    same(pnp.divide.reduce(F, initial=2.0), np.divide.reduce(np.concatenate([F[:1] * 0 + 2, F])))
    kept = F > 0
    same(pnp.hypot.reduce(F, where=kept), np.hypot.reduce(F, where=kept))
    same(pnp.add.reduce(F, where=kept, initial=3.0), np.add.reduce(F, where=kept, initial=3.0))
    same(pnp.hypot.reduce(F[:0]), np.hypot.reduce(F[:0]))
    same(pnp.multiply.reduce(F, axis=(0, 1), dtype="float32"), np.float32(F.prod()))
    with pytest.raises(TypeRule, match="nothing to start with"):
        pnp.divide.reduce(F[:0])
    with pytest.raises(TypeRule, match="arrays are never written to"):
        pnp.add.at(F, 0, 1.0, inplace=True)
    with pytest.raises(TypeRule, match="function of two arrays"):
        pnp.negative.reduce(F)
    same(pnp.negative.at(F[0], np.array([1, 1, 2])), F[0] * [1, 1, -1, 1, 1])


@pytest.mark.sampled(16)
@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (3, 0, 2), (0, 0)])
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_xor", "hypot", "add"])
def test_folds_of_no_elements(shape, name):
    x = np.zeros(shape, "float64" if name == "hypot" else "int32")
    for axis in range(len(shape)):
        same(getattr(pnp, name).reduce(x, axis), getattr(np, name).reduce(x, axis))


def test_functions_of_users():
    f = pnp.frompyfunc(lambda x, y: 2 * x + y, 2, 1, identity=0)
    g = np.frompyfunc(lambda x, y: 2 * x + y, 2, 1)
    same(f(X, X[0]), g(X, X[0]).astype(np.int32))
    same(f.reduce(X), g.reduce(X).astype(np.int32))
    same(f.accumulate(X), g.accumulate(X).astype(np.int32))
    same(f(X, X, where=X > 0), np.where(X > 0, 3 * X, 0))
    pair = pnp.frompyfunc(lambda x: (x, -x), 1, 2)
    same(pair(X)[1], -X)
    assert repr(f) == "<ufunc '<lambda>'>"


def test_pieces_between_brackets():
    v, m = np.arange(3.0), np.arange(6.0).reshape(2, 3)
    for key in ((slice(1, 4), 0, v), (slice(0, 1, 5j), 2.0), ("0,2", v, v), ("-1", m, m),
                ("0,2,0", v, v), ("1,2,0", v, v), ("0,3,-1", v, v), ("0,3,1", m, m),
                ("1,3,0", m, m), ("0,2,0", slice(0, 3), v)):  # fmt: skip
        same(pnp.r_[key], np.r_[key])
    same(pnp.c_[v, v], np.c_[v, v])
    same(pnp.c_[m, m], np.c_[m, m])
    same(pnp.c_[0:3, v], np.c_[0:3, v])
    assert pnp.r_[1:3, 0.5].dtype == np.float32
    with pytest.raises(TypeRule, match="not a directive"):
        pnp.r_["x", v]


@pytest.mark.parametrize("order", ["big", "little"])
def test_bits(order):
    bits = RNG.integers(0, 2, (3, 11)).astype(np.uint8)
    for axis in (None, 0, 1):
        packed = np.packbits(bits, axis, order)
        same(pnp.packbits(bits, axis, order), packed)
        for count in (None, 5, -3, 30):
            want = np.unpackbits(packed, axis, count, order)
            same(pnp.unpackbits(packed, axis, count, order), want)
    assert pnp.packbits(bits.astype(bool)).dtype == np.uint8
    with pytest.raises(TypeRule):
        pnp.packbits(F)
    with pytest.raises(TypeRule):
        pnp.unpackbits(X)


def test_files_and_iterators(tmp_path):
    held = io.BytesIO()
    pnp.save(held, pnp.asarray(X))
    held.seek(0)
    same(pnp.load(held), X)
    pnp.savez(tmp_path / "two.npz", X, b=F)
    found = pnp.load(tmp_path / "two.npz")
    assert sorted(found) == ["arr_0", "b"]
    same(found["b"], F)
    F.tofile(tmp_path / "raw")
    same(pnp.fromfile(tmp_path / "raw", "float64", 3, offset=8), F.ravel()[1:4])
    same(pnp.fromstring("1, 2.5", sep=","), [1, 2.5])
    same(pnp.fromiter((i * i for i in range(4)), int), [0, 1, 4, 9])


def test_masks_by_functions():
    same(pnp.mask_indices(3, pnp.triu, 1)[0], np.mask_indices(3, np.triu, 1)[0])
    positions = plait.jit(lambda: pnp.mask_indices(3, pnp.tril, size=6))()
    same(positions[1], np.mask_indices(3, np.tril)[1])


def test_late_comers():
    same(pnp.i0(F), np.i0(F))
    w, q = np.abs(F) * (F < 1), [0.0, 0.3, 1.0]
    how = {"method": "inverted_cdf", "weights": w}
    same(pnp.quantile(F, np.array(q), axis=1, **how), np.quantile(F, q, axis=1, **how))
    same(pnp.nanpercentile(np.where(F > 1, np.nan, F), 40.0, keepdims=True, **how),
         np.nanpercentile(np.where(F > 1, np.nan, F), 40.0, keepdims=True, **how))  # fmt: skip
    how["weights"] = w[0]
    same(pnp.quantile(F, 0.5, axis=1, **how), np.quantile(F, 0.5, axis=1, **how))
    with pytest.raises(TypeRule, match="inverted_cdf"):
        pnp.quantile(F, 0.5, weights=w)
    m = np.zeros((5, 4))
    m[1:3, 2] = 1
    for trim, axis in (("fb", None), ("fb", 0), ("f", None), ("b", 1)):
        same(pnp.trim_zeros(m, trim, axis), np.trim_zeros(m, trim, axis))  # type: ignore
    same(pnp.trim_zeros(np.zeros(3)), np.trim_zeros(np.zeros(3)))


def test_quotients_of_polynomials():
    for u, v in (([1.0, 2, 3, 4], [1.0, 1]), ([1.0], [1.0, 2]), ([2.0, 1], [4.0])):
        u, v = np.array(u), np.array(v)
        q, r = pnp.polydiv(u, v)
        same(q, np.polydiv(u, v)[0])
        same(pnp.polyadd(pnp.polymul(q, v), r)[-len(u) :], u)
        same(pnp.polydiv(u, v, trim_leading_zeros=True)[1], np.polydiv(u, v)[1])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "out", ["int8", "int16", "uint8", "int32", "float16", "float32", "complex64"]
)
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "subtract", "bitwise_and"])
def test_folds_have_the_dtype_asked_for(name, out):
    ours, numpys = getattr(pnp, name), getattr(np, name)
    if name == "bitwise_and" and np.dtype(out).kind not in "iu":
        return
    for dtype in ("int8", "uint8", "int32", "bool"):
        x = np.array([[1, 0, 1], [1, 1, 0]], dtype)
        for axis in (0, -1):
            got, want = ours.reduce(x, axis, dtype=out), numpys.reduce(x, axis, dtype=out)
            assert got.dtype == want.dtype == out
            same(got, want)
            got, want = ours.accumulate(x, axis, dtype=out), numpys.accumulate(x, axis, dtype=out)
            assert got.dtype == want.dtype == out
            same(got, want)
            got = ours.reduceat(x, np.array([0, 1]), axis, dtype=out)
            assert got.dtype == out
            same(got, numpys.reduceat(x, [0, 1], axis, dtype=out))
    full = np.full(4, 100, "int8")  # 400 has the low eight bits of -112.
    assert int(pnp.add.reduce(full, dtype="int8")) == int(np.add.reduce(full, dtype="int8")) == -112


@pytest.mark.parametrize("name", ["logical_and", "logical_or"])
def test_folds_of_truth_values_stay_so(name):
    x = np.array([0, 2, 3], np.int32)
    got = getattr(pnp, name).reduce(x, initial=1)
    assert got.dtype == np.bool_ and bool(got) == bool(getattr(np, name).reduce(x, initial=1))


@pytest.mark.parametrize("name", ["add", "divide", "maximum", "logaddexp"])
@pytest.mark.parametrize(("shape", "axis"), [((3,), 0), ((4, 3), 1), ((0, 3), 0), ((4, 0), 0)])
def test_pieces_at_no_positions(name, shape, axis):
    none, x = np.zeros(0, np.int32), np.ones(shape, np.float32)
    want = getattr(np, name).reduceat(x, none, axis)
    for f in (
        getattr(pnp, name).reduceat,
        plait.jit(getattr(pnp, name).reduceat, static_argnums=2),
    ):
        got = f(x, none, axis)
        assert got.dtype == want.dtype
        same(got, want)
