"""weft.numpy's rearranging functions against numpy: each case is one expression for both.

Invariant: a case is a function of a namespace and arrays; numpy says what is right, in every dtype
it can; each case runs at once and compiled.
"""

import inspect

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
from weft.errors import AxisError, ConcretizationError, TypeRule

X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
M = np.arange(12, dtype=np.int32).reshape(3, 4)
V = np.array([3.0, 1.0, 2.0, 5.0, 4.0], np.float32)
S = np.float32(7)
Z = (np.arange(6) + 1j * np.arange(6)[::-1]).astype(np.complex64).reshape(2, 3)
E0 = np.zeros((0, 3), np.float32)


def same(got, want):
    if isinstance(got, tuple | list):
        assert isinstance(want, tuple | list) and len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
        return
    want = np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    if want.dtype not in (np.int64, np.float64):  # numpy's defaults; ours are narrower
        assert got.dtype == want.dtype
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6, atol=1e-6)


def check(f, *xs):
    want = f(np, *xs)
    same(f(wnp, *map(wnp.asarray, xs)), want)
    if xs:
        same(wf.jit(lambda *ys: f(wnp, *ys))(*xs), want)


CASES = [
    # shapes
    (lambda m, x: m.reshape(x, (4, 6)), X),
    (lambda m, x: m.reshape(x, -1), X),
    (lambda m, x: m.reshape(x, (-1, 2, 2)), X),
    (lambda m, x: m.reshape(x, (4, 6), order="F"), X),
    (lambda m, x: m.ravel(x), X),
    (lambda m, x: m.ravel(x, order="F"), X),
    (lambda m, x: m.ravel(x), S),
    (lambda m, x: m.ravel(x), E0),
    (lambda m, x: m.transpose(x), X),
    (lambda m, x: m.transpose(x, (1, 2, 0)), X),
    (lambda m, x: m.transpose(x, (-1, 0, 1)), X),
    (lambda m, x: m.permute_dims(x, (2, 0, 1)), X),
    (lambda m, x: m.matrix_transpose(x), X),
    (lambda m, x: m.swapaxes(x, 0, -1), X),
    (lambda m, x: m.moveaxis(x, 0, -1), X),
    (lambda m, x: m.moveaxis(x, (0, 1), (-1, 0)), X),
    (lambda m, x: m.rollaxis(x, 2), X),
    (lambda m, x: m.rollaxis(x, 0, 3), X),
    (lambda m, x: m.rollaxis(x, 1, 1), X),
    (lambda m, x: m.squeeze(x[:1]), X),
    (lambda m, x: m.squeeze(x[:1], 0), X),
    (lambda m, x: m.squeeze(x[:1, :, :1], (0, 2)), X),
    (lambda m, x: m.expand_dims(x, 1), X),
    (lambda m, x: m.expand_dims(x, (0, -1)), X),
    (lambda m, x: m.broadcast_to(x, (2, 3, 4)), M),
    (lambda m, x: m.broadcast_to(x, (2, 2)), S),
    (lambda m, x, y: m.broadcast_arrays(x, y), V[:4], M),
    (lambda m, x: m.atleast_1d(x), S),
    (lambda m, x: m.atleast_2d(x), V),
    (lambda m, x: m.atleast_2d(x), S),
    (lambda m, x: m.atleast_3d(x), S),
    (lambda m, x: m.atleast_3d(x), V),
    (lambda m, x: m.atleast_3d(x), M),
    (lambda m, x, y: list(m.atleast_1d(x, y)), S, V),
    # joining
    (lambda m, x: m.concatenate([x, x + 1]), X),
    (lambda m, x: m.concatenate((x, x), axis=-1), X),
    (lambda m, x: m.concatenate((x, x), axis=None), X),
    (lambda m, x: m.concatenate(x, axis=0), X),
    (lambda m, x, y: m.concatenate([x, y[:, :3].astype(np.float32)]), E0, M),
    (lambda m, x: m.concat([x, x], axis=1), X),
    (lambda m, x, y: m.concatenate([x, y]), M[0], V),
    (lambda m, x: m.stack([x, x * 2]), X),
    (lambda m, x: m.stack([x, x * 2], axis=-1), X),
    (lambda m, x: m.stack(x, axis=1), X),
    (lambda m, x: m.unstack(x, axis=1), X),
    (lambda m, x: m.vstack([x, x]), V),
    (lambda m, x: m.vstack([x, x]), X),
    (lambda m, x: m.hstack([x, x]), V),
    (lambda m, x: m.hstack([x, x]), X),
    (lambda m, x: m.hstack([x, x]), S),
    (lambda m, x: m.dstack([x, x]), V),
    (lambda m, x: m.dstack([x, x]), M),
    (lambda m, x: m.column_stack([x, x]), V),
    (lambda m, x, y: m.column_stack([x, y]), V[:3], M),
    (lambda m, x: m.block([[x, x * 2], [x * 3, x * 4]]), M),
    (lambda m, x, y: m.block([x, y]), V, V[:2]),
    (lambda m, x: m.block(x), V),
    (lambda m, x: m.block([[x], [x]]), V),
    (lambda m, x: m.append(x, 1.0), V),
    (lambda m, x: m.append(x, x, axis=1), M),
    # splitting
    (lambda m, x: m.split(x, 3, axis=1), X),
    (lambda m, x: m.split(x, [1, 3], axis=-1), X),
    (lambda m, x: m.split(x, [2, 10]), V),
    (lambda m, x: m.split(x, [-2]), V),
    (lambda m, x: m.split(x, [3, 2]), V),
    (lambda m, x: m.array_split(x, 3), V),
    (lambda m, x: m.array_split(x, 7), V),
    (lambda m, x: m.vsplit(x, 3), M),
    (lambda m, x: m.hsplit(x, 2), M),
    (lambda m, x: m.hsplit(x, 5), V),
    (lambda m, x: m.dsplit(x, 2), X),
    # repeating
    (lambda m, x: m.tile(x, 2), V),
    (lambda m, x: m.tile(x, (2, 1, 3)), M),
    (lambda m, x: m.tile(x, (2,)), X),
    (lambda m, x: m.tile(x, 0), V),
    (lambda m, x: m.tile(x, (2, 2)), S),
    (lambda m, x: m.repeat(x, 3), M),
    (lambda m, x: m.repeat(x, 2, axis=1), X),
    (lambda m, x: m.repeat(x, np.array([1, 0, 2]), axis=0), M),
    (lambda m, x: m.repeat(x, [2]), V),
    (lambda m, x: m.resize(x, (3, 4)), V),
    (lambda m, x: m.resize(x, (2,)), X),
    (lambda m, x: m.resize(x, (2, 0)), X),
    # turning
    (lambda m, x: m.flip(x), X),
    (lambda m, x: m.flip(x, 1), X),
    (lambda m, x: m.flip(x, (0, -1)), X),
    (lambda m, x: m.fliplr(x), X),
    (lambda m, x: m.flipud(x), V),
    *[(lambda m, x, k=k: m.rot90(x, k), M) for k in range(-1, 5)],
    (lambda m, x: m.rot90(x, 1, (1, 2)), X),
    (lambda m, x: m.roll(x, 2), X),
    (lambda m, x: m.roll(x, -1, axis=1), X),
    (lambda m, x: m.roll(x, (1, 2), axis=(0, 1)), M),
    (lambda m, x: m.roll(x, 1, axis=(0, 1)), M),
    (lambda m, x: m.roll(x, 17, axis=0), V),
    (lambda m, x: m.roll(x, 1), E0),
    # inserting and deleting
    (lambda m, x: m.delete(x, 1), V),
    (lambda m, x: m.delete(x, [0, -1]), V),
    (lambda m, x: m.delete(x, slice(0, 2), axis=1), M),
    (lambda m, x: m.delete(x, np.array([True, False, True]), axis=0), M),
    (lambda m, x: m.insert(x, 1, 9.0), V),
    (lambda m, x: m.insert(x, 0, 1), M),
    (lambda m, x: m.insert(x, 1, 5, axis=1), M),
    (lambda m, x, y: m.insert(x, 1, y, axis=0), M, M[0]),
    (lambda m, x, y: m.insert(x, np.array([0, 2]), y), V, V[:2]),
    (lambda m, x, y: m.insert(x, slice(0, 2), y), V, V[:2]),
    # triangles and diagonals
    *[(lambda m, x, k=k: m.tril(x, k), M) for k in (-3, -1, 0, 2, 5)],
    *[(lambda m, x, k=k: m.triu(x, k), X) for k in (-3, -1, 0, 2, 5)],
    *[(lambda m, x, k=k: m.diagonal(x, k), M) for k in (-4, -3, -2, 0, 1, 3, 4, 5)],
    (lambda m, x: m.diagonal(x, 1, 0, 2), X),
    (lambda m, x: m.diagonal(x, -1, 2, 1), X),
    *[(lambda m, x, k=k: m.diag(x, k), V) for k in (-2, 0, 1)],
    (lambda m, x: m.diag(x, 1), M),
    (lambda m, x: m.diag(x[:0]), V),
    (lambda m, x: m.diag(x[:0], 2), V),
    (lambda m, x: m.diagflat(x, 1), M),
    (lambda m, x: m.trace(x), M),
    (lambda m, x: m.trace(x, 1, 1, 2), X),
    (lambda m, x: m.vander(x), V),
    (lambda m, x: m.vander(x, 3, increasing=True), V),
    (lambda m, x: m.vander(x, 0), V),
    # places
    (lambda m, x: m.take(x, np.array([0, -1, 1])), V),
    (lambda m, x: m.take(x, np.array([[0, 2], [1, 1]]), axis=1), M),
    (lambda m, x: m.take(x, 1, axis=-1), X),
    (lambda m, x: m.take(x, np.array([5, 9, -7]), mode="wrap"), V),
    (lambda m, x: m.take(x, np.array([5, 9, -7]), mode="clip"), V),
    (lambda m, x: m.take_along_axis(x, np.argsort(-M, axis=1), 1), M),
    (lambda m, x: m.take_along_axis(x, np.array([3, 1]), None), M),
    (lambda m, x: m.compress(np.array([True, False, True]), x, axis=0), M),
    (lambda m, x: m.compress(np.array([False, True]), x), M),
    (lambda m, x: m.extract(M % 3 == 0, x), M),
    (lambda m, x: m.unravel_index(x, (3, 2, 4)), M),
    (lambda m, x: m.ravel_multi_index((x % 3, x % 4), (3, 4), mode="clip"), M),
    (lambda m, x: m.ravel_multi_index((x, x), (3, 4), mode="wrap", order="F"), M),
    (lambda m, x: m.select([x > 3, x > 1], [x, -x], 9.0), V),
    (lambda m, x: m.where(x > 2, x, -x), V),
    (lambda m, x: m.where(x, 1, 0), M),
    (lambda m, x, y: m.where(x > 2, x, y), V[:, None], V),
    (lambda m, x: m.piecewise(x, [x < 2, x > 3], [lambda v: -v, lambda v: v * 2]), V),
    (lambda m, x: m.piecewise(x, [x < 2, x > 3], [1, 2, lambda v: v + 10]), V),
    (lambda m, x: m.choose(x % 2, [x * 10, -x], mode="clip"), M),
    (lambda m, x: m.choose(x, [x * 10, -x], mode="wrap"), M),
    # sorting
    (lambda m, x: m.sort(x), np.array([3, np.nan, -1, np.inf, -0.0])),
    (lambda m, x: m.sort(x, axis=0), X[:, ::-1]),
    (lambda m, x: m.sort(x, axis=None), X),
    (lambda m, x: m.sort(x), Z),
    (lambda m, x: m.argsort(x, stable=True), V),
    (lambda m, x: m.argsort(x, axis=0, stable=True), M % 5),
    (lambda m, x, y: m.lexsort((x, y)), M[0] % 3, M[1] % 2),
    (lambda m, x: m.lexsort(x), M % 3),
    (lambda m, x: m.sort_complex(x), Z),
    # differences
    (lambda m, x: m.diff(x), V),
    (lambda m, x: m.diff(x, 2, axis=0), X),
    (lambda m, x: m.diff(x, n=3), X),
    (lambda m, x: m.diff(x, prepend=0, append=np.float32(9)), V),
    (lambda m, x: m.diff(x > 2), V),
    (lambda m, x: m.diff(x, 0), V),
    (lambda m, x: m.ediff1d(x), M),
    (lambda m, x: m.ediff1d(x, to_end=np.array([1, 2], np.int32), to_begin=np.int32(0)), M),
    (lambda m, x: m.trapezoid(x), V),
    (lambda m, x: m.trapezoid(x, dx=0.5, axis=0), X),
    (lambda m, x, y: m.trapezoid(x, y), V, np.sort(V)),
    (lambda m, x, y: m.trapezoid(x, y, axis=1), X, V[:3]),
    (lambda m, x: m.gradient(x), V),
    (lambda m, x: m.gradient(x), X),
    (lambda m, x: m.gradient(x, 0.5, axis=1), X),
    (lambda m, x, y: m.gradient(x, y), V, np.cumsum(V)),
    (lambda m, x: m.gradient(x, 1.0, 2.0, 0.5), X),
    (lambda m, x: m.unwrap(x), np.array([0, 3, 6.5, 0.2, -3.2, 3.2], np.float32)),
    (lambda m, x: m.unwrap(x, period=4), np.array([0, 1, 2, 3, 0, 1, 0, 3])),
    (lambda m, x: m.unwrap(x, 4.0, axis=0), X),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: None)
def test_rearranging_is_numpys(case):
    f, *xs = case
    check(f, *xs)


PADS = [
    (V, 2), (V, (1, 3)), (M, ((1, 2), (0, 3))), (M, ((2,), (1,))), (M, 0),
    (X, ((0, 0), (1, 1), (2, 0))), (V, 9), (V[:1], 3),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap", "maximum",
                                  "minimum", "mean", "linear_ramp"])  # fmt: skip
def test_pad(mode):
    for x, width in PADS:
        check(lambda m, x: m.pad(x, width, mode), x)


def test_options_of_pad():
    for f in (
        lambda m, x: m.pad(x, 2, constant_values=7),
        lambda m, x: m.pad(x, 2, constant_values=(1, 2)),
        lambda m, x: m.pad(x, ((1, 1), (2, 2)), constant_values=((1, 2), (3, 4))),
        lambda m, x: m.pad(x, 2, "linear_ramp", end_values=(5, -4)),
        lambda m, x: m.pad(x, 3, "reflect", reflect_type="odd"),
        lambda m, x: m.pad(x, 7, "reflect", reflect_type="odd"),
        lambda m, x: m.pad(x, 3, "symmetric", reflect_type="odd"),
        lambda m, x: m.pad(x, 3, "maximum", stat_length=2),
        lambda m, x: m.pad(x, 3, "mean", stat_length=((2, 1), (1, 3))),
    ):
        check(f, M)
        check(f, M.astype(np.float32))
    same(wnp.pad(M, {1: (1, 2)}), np.pad(M, ((0, 0), (1, 2))))
    for bad, text in (
        (lambda: wnp.pad(V, 1, "nonsense"), "no mode"),
        (lambda: wnp.pad(V, -1), "negative"),
        (lambda: wnp.pad(M, (1, 2, 3)), "does not fit"),
        (lambda: wnp.pad(V, 1, "edge", constant_values=1), "does not take"),
        (lambda: wnp.pad(V[:0], 1, "edge"), "empty"),
        (lambda: wnp.pad(V, 1, "reflect", reflect_type="x"), "reflect_type"),
    ):
        with pytest.raises(TypeRule, match=text):
            bad()


def test_traced_amounts():
    roll = wf.jit(lambda x, k: wnp.roll(x, k, axis=0))
    for k in (-7, -1, 0, 3, 5):
        same(roll(V, k), np.roll(V, k, 0))
    flat = wf.jit(lambda x, k: wnp.roll(x, k))
    same(flat(M, 5), np.roll(M, 5))
    repeat = wf.jit(lambda x, r: wnp.repeat(x, r, axis=0, total_repeat_length=6))
    for r in ([1, 0, 2, 3, 0], [2, 2, 2, 2, 2], [0, 1, 0, 1, 0]):
        want = np.repeat(V, r)
        want = np.concatenate([want, np.full(max(0, 6 - len(want)), V[-1])])[:6]
        same(repeat(V, np.array(r)), want.astype(np.float32))
    assert wnp.repeat(V, 2, total_repeat_length=4).tolist() == [3.0, 3.0, 1.0, 1.0]
    with pytest.raises(ConcretizationError, match="total_repeat_length"):
        wf.jit(lambda r: wnp.repeat(V, r))(np.array([1, 2, 3, 4, 5]))


def test_insert_of_several_places():
    same(wnp.insert(V, np.array([1, 3]), np.array([7.0, 8.0], np.float32)),
         np.insert(V, [1, 3], [7.0, 8.0]))  # fmt: skip
    column = np.array([[1], [2], [3]], np.int32)
    same(wnp.insert(M, 1, column, axis=1), np.insert(M, 1, column, axis=1))
    same(wnp.insert(M, np.array([1]), column, axis=1), np.insert(M, [1], column, axis=1))


# ---- making arrays -------------------------------------------------------------------------


def test_ranges():
    for args in ((5,), (2, 9), (2, 9, 3), (9, 2, -2), (0,), (5, 2), (0.5, 3.0, 0.5), (3.5,),
                 (0, 1, 0.1)):  # fmt: skip
        same(wnp.arange(*args), np.arange(*args).astype(
            np.float32 if np.arange(*args).dtype.kind == "f" else np.int32))  # fmt: skip
    assert wnp.arange(3, dtype="int8").dtype == np.int8 and wnp.arange(3.0).dtype == np.float32
    assert wnp.arange(np.int64(3)).dtype == np.int64
    assert wnp.arange(0, 2, dtype=float).dtype == np.float32
    same(wf.jit(lambda: wnp.arange(4))(), np.arange(4))
    with pytest.raises(ConcretizationError, match="static"):
        wf.jit(wnp.arange)(3)
    with pytest.raises(TypeRule, match="step of zero"):
        wnp.arange(0, 3, 0)


LINES = [
    lambda m: m.linspace(0, 1, 5),
    lambda m: m.linspace(2, -1, 7, endpoint=False),
    lambda m: m.linspace(0, 10, 1),
    lambda m: m.linspace(0, 10, 0),
    lambda m: m.linspace(0, 5, 4, dtype="int32"),
    lambda m: m.linspace(np.array([0.0, 1.0]), np.array([[5.0], [3.0]]), 4),
    lambda m: m.linspace(np.array([0.0, 1.0]), 3.0, 4, axis=1),
    lambda m: m.linspace(np.array([0.0, 1.0]), 3.0, 4, endpoint=False, axis=-1),
    lambda m: m.linspace(1.0, 3.0, 4, retstep=True),
    lambda m: m.logspace(0, 2, 5),
    lambda m: m.logspace(0, 3, 4, base=2.0),
    lambda m: m.logspace(np.array([0.0, 1.0]), 2.0, 3),
    lambda m: m.geomspace(1, 1000, 4),
    lambda m: m.geomspace(-1.0, -8.0, 4),
    lambda m: m.geomspace(np.array([1.0, 2.0]), 8.0, 3, axis=1),
    lambda m: m.geomspace(1.0, 16.0, 4, endpoint=False),
]


@pytest.mark.parametrize("f", LINES)
def test_lines(f):
    want, got = f(np), f(wnp)
    for g, w in zip(wf.tree.leaves(got), wf.tree.leaves(want), strict=True):
        assert g.shape == np.shape(w)
        np.testing.assert_allclose(np.asarray(g), w, rtol=2e-6, atol=1e-6)


def test_lines_between_traced_ends():
    f = wf.jit(lambda a, b: wnp.linspace(a, b, 7))
    got = np.asarray(f(np.float32(0.1), np.float32(0.7)))
    np.testing.assert_allclose(got, np.linspace(0.1, 0.7, 7), rtol=1e-6)
    assert got[-1] == np.float32(0.7) and got[0] == np.float32(0.1)


def test_filled_arrays():
    for f in (
        lambda m: m.zeros((2, 3)), lambda m: m.ones(4), lambda m: m.zeros((), np.int32),
        lambda m: m.full((2, 2), 7), lambda m: m.full(3, np.float32(2.5)),
        lambda m: m.full((2, 3), V[:3]), lambda m: m.ones((2, 0), bool),
        lambda m: m.full((2,), 3, np.int8), lambda m: m.zeros_like(M),
        lambda m: m.ones_like(V, dtype=np.int32), lambda m: m.full_like(M, 2.7),
        lambda m: m.full_like(V, 2, shape=(2, 2)), lambda m: m.zeros_like(X, shape=(3,)),
        lambda m: m.eye(3), lambda m: m.eye(2, 4, 1), lambda m: m.eye(3, k=-1, dtype=np.int32),
        lambda m: m.identity(3), lambda m: m.tri(3), lambda m: m.tri(3, 5, 1, dtype=bool),
        lambda m: m.tri(4, k=-1),
    ):  # fmt: skip
        same(f(wnp), f(np))
        same(wf.jit(lambda f=f: f(wnp))(), f(np))
    assert wnp.zeros(3).dtype == np.float32 and wnp.full(3, 1).dtype == np.int32
    assert wnp.full(3, 1.0).weak_type and not wnp.zeros(3).weak_type
    assert wnp.zeros(3, int).dtype == np.int32 and wnp.ones(3, float).dtype == np.float32
    assert wnp.empty((2, 3)).shape == (2, 3) and wnp.empty_like(M).dtype == np.int32
    assert wnp.zeros_like(1.0).dtype == np.float32
    assert wnp.zeros_like(wf.ShapeDtypeStruct((2, 3), "int8")).dtype == np.int8
    same(wf.jit(lambda: wnp.eye(300))(), np.eye(300))
    same(wnp.eye(300, 310, 5), np.eye(300, 310, 5))
    same(wnp.tri(300, k=2), np.tri(300, k=2))


def test_grids():
    for f in (
        lambda m: m.meshgrid(V, M[0]), lambda m: m.meshgrid(V, M[0], indexing="ij"),
        lambda m: m.meshgrid(V, M[0], V[:2], sparse=True), lambda m: m.meshgrid(V),
        lambda m: m.meshgrid(V, M[0], V[:2]), lambda m: m.indices((2, 3)),
        lambda m: m.indices((2, 3), sparse=True), lambda m: m.mgrid[0:3, 1:3],
        lambda m: m.mgrid[0:1:5j], lambda m: m.ogrid[0:3, 0:1:3j], lambda m: m.tril_indices(3),
        lambda m: m.triu_indices(3, 1, 4), lambda m: m.tril_indices_from(M[:, :3]),
        lambda m: m.triu_indices_from(M, 1), lambda m: m.diag_indices(3),
        lambda m: m.diag_indices_from(M[:, :3]), lambda m: m.ix_(np.array([0, 2]), np.array([1])),
        lambda m: m.ix_(np.array([True, False, True]), np.array([1, 3])),
        lambda m: m.fromfunction(lambda i, j: i * 10 + j, (2, 3)),
    ):  # fmt: skip
        same(f(wnp), [np.asarray(v) for v in f(np)] if isinstance(f(np), tuple | list) else f(np))


def test_array_of_lists_and_scalars():
    assert wnp.array([1, 2]).dtype == np.int32 and wnp.array([1, 2.5]).dtype == np.float32
    assert wnp.array([[True, False]]).dtype == bool and wnp.array([]).dtype == np.float32
    assert wnp.array([1j]).dtype == np.complex64 and wnp.array([True, 2]).dtype == np.int32
    assert wnp.array([np.int8(1), np.int8(2)]).dtype == np.int8
    assert wnp.array([np.float64(1), 2]).dtype == np.float64
    assert wnp.array([V, V]).dtype == np.float32 and wnp.array([V, V]).shape == (2, 5)
    assert wnp.array([1, 2], dtype="bfloat16").dtype.name == "bfloat16"
    assert wnp.array(V, dtype=np.int32).tolist() == [3, 1, 2, 5, 4]
    assert wnp.array(2.0, ndmin=2).shape == (1, 1) and wnp.array([1, 2], ndmin=3).shape == (1, 1, 2)
    assert wnp.array(np.arange(3.0)).dtype == np.float64
    x = wnp.arange(3)
    same(wnp.array([x, x + 1]), [[0, 1, 2], [1, 2, 3]])
    same(wf.jit(lambda a, b: wnp.array([[a, 1], [2, b]]))(3.0, 4.0), [[3, 1], [2, 4]])
    assert wf.jit(lambda a: wnp.array([a, 2]))(1).dtype == np.int32
    for bad, text in (([[1, 2], [3]], "different lengths"), ("abc", "not a valid"),
                      ([2**40], "do not fit"), ({1: 2}, "not a valid")):  # fmt: skip
        with pytest.raises(TypeRule, match=text):
            wnp.array(bad)
    same(wnp.frombuffer(np.arange(3, dtype=np.int32).tobytes(), np.int32), np.arange(3))
    same(wnp.from_dlpack(np.arange(3, dtype=np.float32)), np.arange(3))
    same(wnp.copy(V), V)
    y = wnp.asarray(V)
    assert wnp.copy(y).unsafe_buffer_pointer() != y.unsafe_buffer_pointer()
    assert wnp.asarray(y) is y
    assert wnp.astype(y, "int32").tolist() == [3, 1, 2, 5, 4]


@pytest.mark.feature("C15")
def test_a_python_number_alone_stays_weak():
    assert wnp.array(1).weak_type and wnp.asarray(1.5).weak_type and not wnp.array([1]).weak_type
    assert (wnp.array(2.0) * wnp.ones(2, "bfloat16")).dtype.name == "bfloat16"
    out = wf.eval_shape(wnp.array, 1)
    assert out.weak_type is True


def test_questions():
    assert wnp.shape(X) == (2, 3, 4) and wnp.shape([[1, 2]]) == (1, 2) and wnp.shape(1) == ()
    assert wnp.ndim(X) == 3 and wnp.ndim(1.0) == 0 and wnp.size(X) == 24 and wnp.size(X, 1) == 3
    assert wnp.size(X, (0, 2)) == 8 and wnp.isscalar(1) and wnp.isscalar(wnp.array(1))
    assert not wnp.isscalar(V) and not wnp.isscalar("text") and not wnp.isscalar([1])
    assert wnp.broadcast_shapes((2, 1), (3,), 1) == (2, 3)
    assert wnp.iterable(V) and not wnp.iterable(1) and wnp.can_cast("int8", "int32")
    assert wnp.result_type("int8", 1.5) == np.float32
    assert wnp.promote_types("int8", "uint8") == np.int16
    assert isinstance(wnp.zeros(1), wnp.ndarray) and not isinstance(V, wnp.ndarray)
    assert wf.jit(lambda x: wnp.zeros(int(isinstance(x, wnp.ndarray))))(1.0).shape == (1,)
    with pytest.raises(TypeError, match="weft.numpy.asarray"):
        wnp.ndarray((2, 3))
    assert wnp.array_str(wnp.array([1, 2])) == "[1 2]"
    assert wnp.array_repr(wnp.array([1, 2])) == "array([1, 2], dtype=int32)"


def test_scalar_types():
    assert wnp.float32(3).dtype == np.float32 and wnp.int8(300 - 256).dtype == np.int8
    assert np.dtype(wnp.bfloat16).name == "bfloat16" and np.dtype("float32") == wnp.float32
    assert wnp.float32 == np.float32 and wnp.float32 != np.float64 and wnp.float32 == wnp.single
    assert len({wnp.float32, wnp.single}) == 1 and wnp.float32 != "x" and wnp.int32 is wnp.int_
    assert wf.jit(lambda x: wnp.float32(x))(1).dtype == np.float32
    assert isinstance(np.dtype("int8"), wnp.dtype) and wnp.dtype(wnp.int8) == np.int8
    assert wnp.zeros(2, wnp.bool_).dtype == bool and wnp.zeros(2, wnp.int4).dtype.name == "int4"
    assert wnp.issubdtype(wnp.bfloat16, wnp.floating) and wnp.issubdtype("int4", wnp.signedinteger)
    assert not wnp.issubdtype("uint4", wnp.signedinteger)
    assert wnp.issubdtype(wnp.floating, wnp.inexact)
    assert wnp.issubdtype(np.float32, np.float32) and not wnp.issubdtype(np.float32, np.float64)
    assert wnp.isdtype("float32", ("integral", "real floating")) and not wnp.isdtype("int8", "bool")
    assert float(wnp.finfo("float16").max) == 65504 and wnp.iinfo("int8").min == -128
    assert wnp.pi == np.pi and wnp.newaxis is None and wnp.inf == np.inf
    with pytest.raises(TypeRule, match="no kind"):
        wnp.isdtype("int8", "nonsense")


# ---- places where something is -------------------------------------------------------------


def test_nonzero():
    x = np.array([[0, 3, 0], [4, 0, 5]])
    for f in (lambda m: m.nonzero(x), lambda m: m.argwhere(x), lambda m: m.flatnonzero(x),
              lambda m: m.where(x), lambda m: m.count_nonzero(x, axis=1)):  # fmt: skip
        same(f(wnp), f(np))
    padded = wf.jit(lambda x: wnp.nonzero(x, size=5))(x)
    same(padded, ([0, 1, 1, 0, 0], [1, 0, 2, 0, 0]))
    filled = wf.jit(lambda x: wnp.nonzero(x, size=4, fill_value=(8, 9)))(x)
    same(filled, ([0, 1, 1, 8], [1, 0, 2, 9]))
    same(wf.jit(lambda x: wnp.nonzero(x, size=2))(x), ([0, 1], [1, 0]))
    same(wf.jit(lambda x: wnp.flatnonzero(x, size=2, fill_value=-1))(x * 0), [-1, -1])
    same(wf.jit(lambda x: wnp.argwhere(x, size=3))(x), np.argwhere(x))
    same(wf.jit(lambda x: wnp.where(x, size=3))(x), np.where(x))
    compress = wf.jit(lambda c, x: wnp.compress(c, x, size=3, fill_value=-1))
    same(compress(x[1] > 0, V[:3]), np.float32([3, 2, -1]))
    same(wf.jit(lambda x: wnp.extract(x > 1, x, size=3))(x), [3, 4, 5])
    for f in (wnp.nonzero, wnp.argwhere, wnp.flatnonzero):
        with pytest.raises(ConcretizationError, match="size"):
            wf.jit(f)(x)
    with pytest.raises(TypeRule, match="both x and y"):
        wnp.where(x, 1)


def test_writing_by_number():
    flat = V.copy()
    np.put(flat, [0, -1], [9, 8])
    same(wnp.put(V, np.array([0, -1]), np.array([9, 8])), flat)
    flat = M.copy()
    np.put(flat, [1, 14], [7, 6], mode="wrap")
    same(wnp.put(M, np.array([1, 14]), np.array([7, 6]), mode="wrap"), flat)
    flat = M.copy()
    np.put_along_axis(flat, np.array([[0], [2], [1]]), -1, 1)
    same(wnp.put_along_axis(M, np.array([[0], [2], [1]]), -1, 1), flat)
    flat = M.copy()
    np.place(flat, flat % 2 == 0, [1, 2, 3])
    same(wnp.place(M, M % 2 == 0, np.array([1, 2, 3])), flat)
    flat = M.copy()
    np.fill_diagonal(flat, 9)
    same(wnp.fill_diagonal(M, 9), flat)
    tall = np.zeros((5, 2), np.int32)
    np.fill_diagonal(tall, [1, 2, 3], wrap=True)
    same(wnp.fill_diagonal(np.zeros((5, 2), np.int32), np.array([1, 2, 3]), wrap=True), tall)
    for f in (lambda: wnp.put(V, 0, 1, inplace=True), lambda: wnp.fill_diagonal(M, 1, inplace=True),
              lambda: wnp.place(M, M > 0, 1, inplace=True)):  # fmt: skip
        with pytest.raises(TypeRule, match="never written to"):
            f()


# ---- errors --------------------------------------------------------------------------------

ERRORS = [
    (lambda: wnp.reshape(V, (2, 3)), TypeRule, "can not be reshaped"),
    (lambda: wnp.reshape(V, (-1, -1)), TypeRule, "not determined"),
    (lambda: wnp.reshape(V, (5,), order="K"), TypeRule, "order"),
    (lambda: wnp.transpose(M, (0, 0)), AxisError, "twice"),
    (lambda: wnp.swapaxes(M, 0, 2), AxisError, "axis2 2 is out of range"),
    (lambda: wnp.squeeze(M, 0), TypeRule, "size 3, not 1"),
    (lambda: wnp.expand_dims(M, 5), AxisError, "out of range"),
    (lambda: wnp.broadcast_to(V, (4,)), TypeRule, "does not broadcast"),
    (lambda: wnp.concatenate([V, M]), TypeRule, "concatenated"),
    (lambda: wnp.concatenate([]), TypeRule, "nothing"),
    (lambda: wnp.stack([V, V[:2]]), TypeRule, "stacked"),
    (lambda: wnp.split(V, 2), TypeRule, "does not divide"),
    (lambda: wnp.flip(M, 2), AxisError, "out of range"),
    (lambda: wnp.rot90(M, 1, (0, 0)), AxisError, "twice"),
    (lambda: wnp.roll(M, (1, 2, 3), (0, 1)), TypeRule, "roll by 3"),
    (lambda: wnp.diagonal(V), AxisError, "diagonal takes matrices"),
    (lambda: wnp.tril(V), TypeRule, "tril takes matrices"),
    (lambda: wnp.diag(X), TypeRule, "vector or a matrix"),
    (lambda: wnp.select([], []), TypeRule, "0 conditions"),
    (lambda: wnp.meshgrid(M), TypeRule, "vectors"),
    (lambda: wnp.meshgrid(V, indexing="zz"), TypeRule, "indexing"),
    (lambda: wnp.delete(V, 9), AxisError, "out of range"),
    (lambda: wnp.take(V, 0.5), TypeRule, "integers"),
    (lambda: wnp.gradient(V[:1]), TypeRule, "two values"),
    (lambda: wnp.linspace(0, 1, -1), TypeRule, "-1 numbers"),
    (lambda: wnp.block([[V], V]), TypeRule, "equally deep"),
    (lambda: wnp.sum(V, out=V), TypeRule, "out"),
]


@pytest.mark.parametrize("case", ERRORS, ids=lambda c: None)
def test_errors(case):
    f, kind, text = case
    with pytest.raises(kind, match=text):
        f()


# ---- signatures ----------------------------------------------------------------------------

RENAMED = {"array", "concatenate", "matmul", "einsum", "clip", "where", "arange", "insert",
           "atleast_1d", "atleast_2d", "atleast_3d", "from_dlpack", "frombuffer"}  # fmt: skip


def test_arguments_have_numpys_names():
    """In numpy's order, as far as both have them; ours may have more, after these."""
    for name in wnp.__all__:
        f, ref = getattr(wnp, name), getattr(np, name, None)
        if not inspect.isfunction(f) or ref is None or isinstance(ref, np.ufunc) or name in RENAMED:
            continue
        try:
            theirs = list(inspect.signature(ref).parameters.values())
        except (TypeError, ValueError):
            continue
        mine = inspect.signature(f).parameters
        either = inspect.Parameter.POSITIONAL_OR_KEYWORD
        first = [p.name for p in theirs if p.kind is either and p.default is p.empty]
        assert [n for n in first if n in mine] == [n for n in mine if n in first], name
        missing = [n for n in first if n not in mine]
        assert not missing, (name, missing, list(mine))


def test_every_function_is_documented():
    for name in wnp.__all__:
        f = getattr(wnp, name)
        if inspect.isfunction(f):
            assert f.__doc__ and len(f.__doc__) > 10, name


# ---- settings ------------------------------------------------------------------------------


def test_default_dtypes_follow_the_settings():
    x = wnp.arange(4)
    functions = (
        lambda: wnp.zeros(2),
        lambda: wnp.array([1.5]),
        lambda: wnp.array(1.5),
        lambda: wnp.asarray(x, float),
        lambda: wnp.linspace(0, 1, 3),
        lambda: wnp.sin(x),
        lambda: wnp.divide(x, x),
        lambda: wnp.mean(x),
        lambda: wnp.var(x),
        lambda: wnp.median(x),
        lambda: wnp.hypot(x, x),
        lambda: wf.nn.gelu(x),
        lambda: wf.nn.one_hot(x, 3),
    )
    for f in functions:
        assert f().dtype == np.float32
        with wf.config(default_float="float64"):
            assert f().dtype == np.float64
        assert f().dtype == np.float32
    with wf.config(default_int="int64"):
        for f in (
            lambda: wnp.arange(3),
            lambda: wnp.array([1, 2]),
            lambda: wnp.sum(np.int8([1])),
            lambda: wnp.argsort(V),
            lambda: wnp.nonzero(V)[0],
            lambda: wnp.zeros(2, int),
        ):
            assert f().dtype == np.int64
    with wf.config(x64=False):
        for f in (
            lambda: wnp.zeros(2, "float64"),
            lambda: wnp.array(np.ones(2)),
            lambda: wnp.float64(1),
            lambda: wnp.arange(3.0, dtype="float64"),
            lambda: wnp.sum(V, dtype="float64"),
        ):
            assert f().dtype == np.float32
