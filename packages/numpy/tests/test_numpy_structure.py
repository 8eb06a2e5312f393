"""plait.numpy's rearranging functions against numpy: each case is one expression for both.

Invariant: a case is a function of a namespace and arrays; numpy says what is right, in every dtype
it can; each case runs at once and compiled.
"""

import inspect
import io

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import AxisError, ConcretizationError, TypeRule

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
    same(f(pnp, *map(pnp.asarray, xs)), want)
    if xs:
        same(plait.jit(lambda *ys: f(pnp, *ys))(*xs), want)


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
    # positions
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
    (lambda m, x: m.diff(x, 0, prepend=1, append=V), V),
    (lambda m, x: m.diff(x, 0, axis=0, append=X), X),
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
    *[(lambda m, x, a=a: m.unwrap(x, axis=a), np.zeros((0, 3), np.float32)) for a in (0, 1)],
    (lambda m, x: m.unwrap(x, period=4), np.zeros(0, np.int32)),
    *[
        (lambda m, x: m.unwrap(x, period=4), np.array([0, 1, 5, -3], t))
        for t in (np.int8, np.int16)
    ],
    *[(lambda m, x, a=a: m.repeat(x, 3, a), np.float32(2)) for a in (0, -1)],
    (lambda m, x: m.repeat(x, [2], 0), np.array(2.0, np.float32)),
    (lambda m, x: m.insert(x, 1, np.array([7, 8, 9]), axis=1), np.arange(6).reshape(3, 2)),
    (
        lambda m, x: m.insert(x, np.array(1), np.array([7, 8, 9]), axis=1),
        np.arange(6).reshape(3, 2),
    ),
    (lambda m, x: m.insert(x, 1, np.array([7, 8, 9]), axis=0), np.arange(6).reshape(2, 3)),
    (lambda m, x: m.insert(x, -1, np.ones((2, 4)), axis=1), X),
    (lambda m, x: m.transpose(x, 0), np.arange(3)),
    (lambda m, x: m.permute_dims(x, -1), np.arange(3)),
    (lambda m, x: x.transpose(0), np.arange(3)),
    *[
        (lambda m, x, a=a, s=s: m.rollaxis(x, a, s), np.arange(24.0).reshape(1, 2, 3, 4))
        for a in range(-4, 4)
        for s in range(-4, 5)
    ],
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("case", CASES, ids=lambda c: None)
def test_rearranging_is_numpys(case):
    f, *xs = case
    check(f, *xs)


PADS = [
    (V, 2), (V, (1, 3)), (M, ((1, 2), (0, 3))), (M, ((2,), (1,))), (M, 0),
    (X, ((0, 0), (1, 1), (2, 0))), (V, 9), (V[:1], 3),
]  # fmt: skip


@pytest.mark.sampled(10)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap", "maximum",
                                  "minimum", "mean", "median", "linear_ramp"])  # fmt: skip
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
        lambda m, x: m.pad(x, 3, "median", stat_length=((2, 1), (1, 3))),
    ):
        check(f, M)
        check(f, M.astype(np.float32))
    same(pnp.pad(M, {1: (1, 2)}), np.pad(M, ((0, 0), (1, 2))))
    for bad, text in (
        (lambda: pnp.pad(V, 1, "nonsense"), "no mode"),
        (lambda: pnp.pad(V, -1), "negative"),
        (lambda: pnp.pad(M, (1, 2, 3)), "does not fit"),
        (lambda: pnp.pad(M, [[1, 2, 3]]), "does not fit"),
        (lambda: pnp.pad(M, [[1, 2, 3], [1, 2]]), "does not fit"),
        (lambda: pnp.pad(M, [[], [1, 2]]), "does not fit"),
        (lambda: pnp.pad(V, 1, "edge", constant_values=1), "does not take"),
        (lambda: pnp.pad(V[:0], 1, "edge"), "empty"),
        (lambda: pnp.pad(V, 1, "reflect", reflect_type="x"), "reflect_type"),
    ):
        with pytest.raises(TypeRule, match=text):
            bad()


def test_pad_by_a_function_of_vectors():
    def written(vector, width, axis, options):
        vector[: width[0]] = options.get("fill", 10) + axis
        vector[len(vector) - width[1] :] = -1

    def returned(vector, width, axis, options):
        vector = vector.at[: width[0]].set(options.get("fill", 10) + axis)
        return vector.at[len(vector) - width[1] :].set(-1)

    for x, width, options in ((V, 2, {}), (M, ((1, 0), (0, 2)), {"fill": 5}), (X, 1, {})):
        want = np.pad(x, width, written, **options)
        same(pnp.pad(x, width, returned, **options), want)
        same(plait.jit(lambda x: pnp.pad(x, width, returned, **options))(x), want)


@pytest.mark.parametrize("name", ["eye", "tri"])
def test_diagonals_may_be_traced(name):
    made = plait.jit(lambda k: getattr(pnp, name)(3, 4, k, np.int32))
    for k in range(-4, 6):
        same(made(k), getattr(np, name)(3, 4, k, np.int32))
    below = plait.jit(lambda x, k: (pnp.tril(x, k), pnp.triu(x, k)))
    for k in (-2, 0, 1, 3):
        same(below(M, k), (np.tril(M, k), np.triu(M, k)))
    with pytest.raises(plait.errors.PlaitError):
        plait.jit(lambda k: pnp.eye(3, k=k))(1.5)


def test_trim_zeros_of_a_number():
    for x in (np.float32(0), np.float32(2)):
        same(pnp.trim_zeros(x), np.trim_zeros(x))


@pytest.mark.parametrize("f", ["array_equal", "array_equiv"])
def test_sequences_are_compared_as_arrays(f):
    for a, b in (
        ([1, 2], [1, 2]),
        ([1, 2], (1, 3)),
        ([1, 2], [1, 2, 3]),
        ([1, 2], [[1, 2], [1, 2]]),
        ([1, 2], np.array([1, 2])),
        (1, [1, 1]),
    ):
        assert bool(getattr(pnp, f)(a, b)) == getattr(np, f)(a, b), (a, b)
    with pytest.raises(TypeRule):
        getattr(pnp, f)("a", [1])


def test_sequences_have_a_kind():
    for x in ([1, 2], [1j], (1.0, 2j), [True]):
        assert pnp.iscomplexobj(x) == np.iscomplexobj(x)
        assert pnp.isrealobj(x) == np.isrealobj(x)


def test_bfloat16_is_read_from_files():
    x = pnp.asarray([1.5, -2.0], dtype="bfloat16")
    for save, get in ((pnp.save, lambda found: found), (pnp.savez, lambda found: found["arr_0"])):
        file = io.BytesIO()
        save(file, x)
        file.seek(0)
        back = get(pnp.load(file))
        assert back.dtype == x.dtype and back.tolist() == [1.5, -2.0]


def test_interpolation_goes_on_beyond_the_ends():
    xp, fp = np.array([1.0, 2.0, 3.0], np.float32), np.array([10.0, 20.0, 35.0], np.float32)
    for kind in (fp, fp * (1 + 2j)):
        kind = kind.astype(np.result_type(kind, np.float32) if kind is fp else np.complex64)
        f = plait.jit(lambda x: pnp.interp(x, xp, kind, left="extrapolate", right="extrapolate"))
        want = np.array([kind[0] - 5 * (kind[1] - kind[0]), kind[2] + 2 * (kind[2] - kind[1])])
        same(f(np.float32([-4, 5])), want.astype(kind.dtype))
        one = pnp.interp(np.float32([-4, 5]), xp, kind, left="extrapolate", right=7)
        same(one, np.array([want[0], 7]).astype(kind.dtype))
    with pytest.raises(TypeRule, match="left must be a number or 'extrapolate'"):
        pnp.interp(0.0, xp, fp, left="onward")


def test_traced_amounts():
    roll = plait.jit(lambda x, k: pnp.roll(x, k, axis=0))
    for k in (-7, -1, 0, 3, 5):
        same(roll(V, k), np.roll(V, k, 0))
    flat = plait.jit(lambda x, k: pnp.roll(x, k))
    same(flat(M, 5), np.roll(M, 5))
    repeat = plait.jit(lambda x, r: pnp.repeat(x, r, axis=0, total_repeat_length=6))
    for r in ([1, 0, 2, 3, 0], [2, 2, 2, 2, 2], [0, 1, 0, 1, 0]):
        want = np.repeat(V, r)
        want = np.concatenate([want, np.full(max(0, 6 - len(want)), V[-1])])[:6]
        same(repeat(V, np.array(r)), want.astype(np.float32))
    assert pnp.repeat(V, 2, total_repeat_length=4).tolist() == [3.0, 3.0, 1.0, 1.0]
    with pytest.raises(ConcretizationError, match="total_repeat_length"):
        plait.jit(lambda r: pnp.repeat(V, r))(np.array([1, 2, 3, 4, 5]))


def test_insert_of_several_positions():
    same(pnp.insert(V, np.array([1, 3]), np.array([7.0, 8.0], np.float32)),
         np.insert(V, [1, 3], [7.0, 8.0]))  # fmt: skip
    column = np.array([[1], [2], [3]], np.int32)
    same(pnp.insert(M, 1, column, axis=1), np.insert(M, 1, column, axis=1))
    same(pnp.insert(M, np.array([1]), column, axis=1), np.insert(M, [1], column, axis=1))


# ---- making arrays -------------------------------------------------------------------------


def test_ranges():
    for args in ((5,), (2, 9), (2, 9, 3), (9, 2, -2), (0,), (5, 2), (0.5, 3.0, 0.5), (3.5,),
                 (0, 1, 0.1)):  # fmt: skip
        same(pnp.arange(*args), np.arange(*args).astype(
            np.float32 if np.arange(*args).dtype.kind == "f" else np.int32))  # fmt: skip
    assert pnp.arange(3, dtype="int8").dtype == np.int8 and pnp.arange(3.0).dtype == np.float32
    assert pnp.arange(np.int64(3)).dtype == np.int64
    assert pnp.arange(0, 2, dtype=float).dtype == np.float32
    same(plait.jit(lambda: pnp.arange(4))(), np.arange(4))
    with pytest.raises(ConcretizationError, match="static"):
        plait.jit(pnp.arange)(3)
    with pytest.raises(TypeRule, match="step of zero"):
        pnp.arange(0, 3, 0)


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
    want, got = f(np), f(pnp)
    for g, w in zip(plait.tree.leaves(got), plait.tree.leaves(want), strict=True):
        assert g.shape == np.shape(w)
        np.testing.assert_allclose(np.asarray(g), w, rtol=2e-6, atol=1e-6)


SPIRALS = [(1j, 8j), (-1j, -27j), (8j, 1j), (-1 + 1j, -1000 - 5j), (1, 8 + 0j), (2 - 1j, -3 + 4j),
           (-1 + 0j, -8), (1.0, 8.0), (-1.0, -8.0)]  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("ends", SPIRALS, ids=str)
def test_geometric_spirals(ends, endpoint):
    for num in (1, 2, 4, 7):
        want = np.geomspace(*ends, num, endpoint=endpoint)
        narrow = np.complex64 if np.iscomplexobj(want) else np.float32
        same(pnp.geomspace(*ends, num, endpoint=endpoint), want.astype(narrow))
        wide = [np.asarray(e, np.complex128) for e in ends]
        f = plait.jit(lambda a, b: pnp.geomspace(a, b, num, endpoint=endpoint))  # noqa: B023
        want = np.geomspace(*wide, num, endpoint=endpoint)
        np.testing.assert_allclose(np.asarray(f(*wide)), want, 1e-12, 1e-12)
    start, stop = np.array([1j, -2.0]), np.array([3 + 1j, -5j])
    want = np.geomspace(start, stop, 5, axis=1)
    np.testing.assert_allclose(np.asarray(pnp.geomspace(start, stop, 5, axis=1)), want, 1e-12)


def test_lines_between_traced_ends():
    f = plait.jit(lambda a, b: pnp.linspace(a, b, 7))
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
        same(f(pnp), f(np))
        same(plait.jit(lambda f=f: f(pnp))(), f(np))
    assert pnp.zeros(3).dtype == np.float32 and pnp.full(3, 1).dtype == np.int32
    assert pnp.full(3, 1.0).weak_type and not pnp.zeros(3).weak_type
    assert pnp.zeros(3, int).dtype == np.int32 and pnp.ones(3, float).dtype == np.float32
    assert pnp.empty((2, 3)).shape == (2, 3) and pnp.empty_like(M).dtype == np.int32
    assert pnp.zeros_like(1.0).dtype == np.float32
    assert pnp.zeros_like(plait.ShapeDtypeStruct((2, 3), "int8")).dtype == np.int8
    same(plait.jit(lambda: pnp.eye(300))(), np.eye(300))
    same(pnp.eye(300, 310, 5), np.eye(300, 310, 5))
    same(pnp.tri(300, k=2), np.tri(300, k=2))


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
        same(f(pnp), [np.asarray(v) for v in f(np)] if isinstance(f(np), tuple | list) else f(np))


def test_array_of_lists_and_scalars():
    assert pnp.array([1, 2]).dtype == np.int32 and pnp.array([1, 2.5]).dtype == np.float32
    assert pnp.array([[True, False]]).dtype == bool and pnp.array([]).dtype == np.float32
    assert pnp.array([1j]).dtype == np.complex64 and pnp.array([True, 2]).dtype == np.int32
    assert pnp.array([np.int8(1), np.int8(2)]).dtype == np.int8
    assert pnp.array([np.float64(1), 2]).dtype == np.float64
    assert pnp.array([V, V]).dtype == np.float32 and pnp.array([V, V]).shape == (2, 5)
    assert pnp.array([1, 2], dtype="bfloat16").dtype.name == "bfloat16"
    assert pnp.array(V, dtype=np.int32).tolist() == [3, 1, 2, 5, 4]
    assert pnp.array(2.0, ndmin=2).shape == (1, 1) and pnp.array([1, 2], ndmin=3).shape == (1, 1, 2)
    assert pnp.array(np.arange(3.0)).dtype == np.float64
    x = pnp.arange(3)
    same(pnp.array([x, x + 1]), [[0, 1, 2], [1, 2, 3]])
    same(plait.jit(lambda a, b: pnp.array([[a, 1], [2, b]]))(3.0, 4.0), [[3, 1], [2, 4]])
    assert plait.jit(lambda a: pnp.array([a, 2]))(1).dtype == np.int32
    for bad, text in (([[1, 2], [3]], "different lengths"), ("abc", "is not an array"),
                      ([2**40], "do not fit"), ({1: 2}, "is not an array")):  # fmt: skip
        with pytest.raises(TypeRule, match=text):
            pnp.array(bad)
    same(pnp.frombuffer(np.arange(3, dtype=np.int32).tobytes(), np.int32), np.arange(3))
    same(pnp.from_dlpack(np.arange(3, dtype=np.float32)), np.arange(3))
    same(pnp.copy(V), V)
    y = pnp.asarray(V)
    assert pnp.copy(y).unsafe_buffer_pointer() != y.unsafe_buffer_pointer()
    assert pnp.asarray(y) is y
    assert pnp.astype(y, "int32").tolist() == [3, 1, 2, 5, 4]


NUMBERS = [0, 1, -1, 127, 128, 255, 256, -128, -129, 300, 70000, 2**31 - 1, 2**31, 2**32, -(2**31),
           2**40, 2**63 - 1, 2**63, 2**64, 2**70, 2.7, -0.5, -1.5, 300.5, 1e10, 1e300, np.nan,
           np.inf, 1j, True]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                                   "uint64", "float16", "float32", "float64", "complex64",
                                   "bool"])  # fmt: skip
def test_python_numbers_with_a_dtype_are_numpys_or_refused(dtype):
    def outcome(make):
        with np.errstate(all="ignore"):
            try:
                return np.asarray(make())
            except (OverflowError, ValueError, TypeError) as error:
                assert make is not ours or isinstance(error, TypeRule)
                return OverflowError if isinstance(error, OverflowError) else TypeError

    for number in NUMBERS:
        shapes = [lambda n: [n], lambda n: (0, n), lambda n: [[1, 2], [n, 0]]]
        for shaped in [*shapes, *([lambda n: n] if number.__class__ is not int else [])]:
            theirs = lambda: np.array(shaped(number), dtype)  # noqa: B023, E731
            for name in ("array", "asarray"):
                ours = lambda: getattr(pnp, name)(shaped(number), dtype)  # noqa: B023, E731
                want, got = outcome(theirs), outcome(ours)
                if isinstance(want, np.ndarray):
                    assert isinstance(got, np.ndarray), (number, got)
                    same(pnp.asarray(got), want)
                else:
                    assert not isinstance(got, np.ndarray), (number, got)
                    if want is OverflowError:
                        assert got is OverflowError
    beside = pnp.arange(2).astype(dtype)  # among arrays numbers are refused, too
    if dtype in ("int8", "uint8", "int16", "uint16", "int32"):
        for n in (2**40, -(2**40), 1e13):
            with pytest.raises(OverflowError):
                pnp.array([beside[0], n], dtype)
            with pytest.raises(OverflowError):
                plait.jit(lambda v: pnp.array([v, n], dtype))(beside[0])  # noqa: B023
        same(pnp.array([beside[1], 3, 2.7], dtype), np.array([1, 3, 2.7], dtype))
    same(pnp.array([np.int64(3), np.arange(3)[2]], dtype), np.array([3, 2], dtype))


def test_integers_that_no_array_holds_are_refused():
    for make in (lambda: pnp.array([8], "int4"), lambda: pnp.array([-1], "uint4"),
                 lambda: pnp.array([2**40], dtype=int), lambda: pnp.array([2**40]),
                 lambda: pnp.asarray([[1], [2**31]], int), lambda: pnp.full(2, 300, "uint8"),
                 lambda: pnp.full_like(pnp.zeros(2, "int8"), -129)):  # fmt: skip
        with pytest.raises(OverflowError, match="fit"):
            make()
    assert np.asarray(pnp.array([7, -8], "int4")).astype(int).tolist() == [7, -8]
    narrowed = pytest.warns(UserWarning, match="int64 becomes int32")
    with plait.config(x64=False), narrowed, pytest.raises(OverflowError):
        pnp.array([2**40], "int64")


def test_array_copies_and_asarray_does_not():
    x = pnp.arange(3.0)
    for f in (pnp.array, lambda v: pnp.array(v, copy=True), lambda v: pnp.asarray(v, copy=True),
              lambda v: pnp.array(v, x.dtype), pnp.copy):  # fmt: skip
        y = f(x)
        assert y is not x and y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert pnp.asarray(x) is x and pnp.array(x, copy=False) is x
    kept = pnp.array(x)
    plait.jit(lambda v: v * 2, donate_argnums=0)(x)
    assert x.is_deleted() and kept.tolist() == [0, 1, 2]
    assert plait.jit(lambda v: pnp.array(v) + 1)(1).item() == 2


MASKED = np.ma.masked_array([1.0, 1e9], [False, True])
PLACES_MASKED = np.ma.masked_array([0, 1], [False, True])


@pytest.mark.parametrize("f", [
    pnp.array, pnp.asarray, pnp.mean, pnp.sin, pnp.copy, pnp.unique, pnp.from_dlpack,
    plait.jit(pnp.sum), plait.nn.relu, lambda m: pnp.array([m, m]),
    lambda m: pnp.array([m[0], m[1]]),
    lambda m: pnp.array([m[0], m[1]], "int8"), lambda m: pnp.arange(2.0) + m,
    lambda m: m * pnp.arange(2.0), lambda m: pnp.arange(2.0).at[:].set(m),
    lambda m: pnp.where(m > 1, 1, 2), lambda m: pnp.arange(3)[PLACES_MASKED],
    lambda m: pnp.arange(3).at[PLACES_MASKED].set(1), lambda m: pnp.arange(2)[m > 0],
    lambda m: pnp.take(pnp.arange(3), PLACES_MASKED), lambda m: plait.lax.add(m, m),
    lambda m: pnp.stack([m, m]),
], ids=lambda f: None)  # fmt: skip
def test_masked_arrays_are_refused(f):
    with pytest.raises(TypeRule, match="lose its mask.*\n(.*\n)*.*filled"):
        f(MASKED)


@pytest.mark.feature("C15")
def test_a_python_number_alone_stays_weak():
    assert pnp.array(1).weak_type and pnp.asarray(1.5).weak_type and not pnp.array([1]).weak_type
    assert (pnp.array(2.0) * pnp.ones(2, "bfloat16")).dtype.name == "bfloat16"
    out = plait.eval_shape(pnp.array, 1)
    assert out.weak_type is True


def test_questions():
    assert pnp.shape(X) == (2, 3, 4) and pnp.shape([[1, 2]]) == (1, 2) and pnp.shape(1) == ()
    assert pnp.ndim(X) == 3 and pnp.ndim(1.0) == 0 and pnp.size(X) == 24 and pnp.size(X, 1) == 3
    assert pnp.size(X, (0, 2)) == 8 and pnp.isscalar(1) and pnp.isscalar(pnp.array(1))
    assert not pnp.isscalar(V) and not pnp.isscalar("text") and not pnp.isscalar([1])
    assert pnp.broadcast_shapes((2, 1), (3,), 1) == (2, 3)
    assert pnp.iterable(V) and not pnp.iterable(1) and pnp.can_cast("int8", "int32")
    assert pnp.result_type("int8", 1.5) == np.float32
    assert pnp.promote_types("int8", "uint8") == np.int16
    assert isinstance(pnp.zeros(1), pnp.ndarray) and not isinstance(V, pnp.ndarray)
    assert plait.jit(lambda x: pnp.zeros(int(isinstance(x, pnp.ndarray))))(1.0).shape == (1,)
    with pytest.raises(TypeError, match="plait.numpy.asarray"):
        pnp.ndarray((2, 3))
    assert pnp.array_str(pnp.array([1, 2])) == "[1 2]"
    assert pnp.array_repr(pnp.array([1, 2])) == "array([1, 2], dtype=int32)"


def test_scalar_types():
    assert pnp.float32(3).dtype == np.float32 and pnp.int8(300 - 256).dtype == np.int8
    assert np.dtype(pnp.bfloat16).name == "bfloat16" and np.dtype("float32") == pnp.float32
    assert pnp.float32 == np.float32 and pnp.float32 != np.float64 and pnp.float32 == pnp.single
    assert len({pnp.float32, pnp.single}) == 1 and pnp.float32 != "x" and pnp.int32 is pnp.int_
    assert plait.jit(lambda x: pnp.float32(x))(1).dtype == np.float32
    assert isinstance(np.dtype("int8"), pnp.dtype) and pnp.dtype(pnp.int8) == np.int8
    assert pnp.zeros(2, pnp.bool_).dtype == bool and pnp.zeros(2, pnp.int4).dtype.name == "int4"
    assert pnp.issubdtype(pnp.bfloat16, pnp.floating) and pnp.issubdtype("int4", pnp.signedinteger)
    assert not pnp.issubdtype("uint4", pnp.signedinteger)
    assert pnp.issubdtype(pnp.floating, pnp.inexact)
    assert pnp.issubdtype(np.float32, np.float32) and not pnp.issubdtype(np.float32, np.float64)
    assert pnp.isdtype("float32", ("integral", "real floating")) and not pnp.isdtype("int8", "bool")
    assert float(pnp.finfo("float16").max) == 65504 and pnp.iinfo("int8").min == -128
    assert pnp.pi == np.pi and pnp.newaxis is None and pnp.inf == np.inf
    with pytest.raises(TypeRule, match="not a kind"):
        pnp.isdtype("int8", "nonsense")


# ---- positions where something is ----------------------------------------------------------


def test_nonzero():
    x = np.array([[0, 3, 0], [4, 0, 5]])
    for f in (lambda m: m.nonzero(x), lambda m: m.argwhere(x), lambda m: m.flatnonzero(x),
              lambda m: m.where(x), lambda m: m.count_nonzero(x, axis=1)):  # fmt: skip
        same(f(pnp), f(np))
    padded = plait.jit(lambda x: pnp.nonzero(x, size=5))(x)
    same(padded, ([0, 1, 1, 0, 0], [1, 0, 2, 0, 0]))
    filled = plait.jit(lambda x: pnp.nonzero(x, size=4, fill_value=(8, 9)))(x)
    same(filled, ([0, 1, 1, 8], [1, 0, 2, 9]))
    same(plait.jit(lambda x: pnp.nonzero(x, size=2))(x), ([0, 1], [1, 0]))
    same(plait.jit(lambda x: pnp.flatnonzero(x, size=2, fill_value=-1))(x * 0), [-1, -1])
    same(plait.jit(lambda x: pnp.argwhere(x, size=3))(x), np.argwhere(x))
    same(plait.jit(lambda x: pnp.where(x, size=3))(x), np.where(x))
    compress = plait.jit(lambda c, x: pnp.compress(c, x, size=3, fill_value=-1))
    same(compress(x[1] > 0, V[:3]), np.float32([3, 2, -1]))
    same(plait.jit(lambda x: pnp.extract(x > 1, x, size=3))(x), [3, 4, 5])
    for f in (pnp.nonzero, pnp.argwhere, pnp.flatnonzero):
        with pytest.raises(ConcretizationError, match="size"):
            plait.jit(f)(x)
    with pytest.raises(TypeRule, match="both x and y"):
        pnp.where(x, 1)


def test_writing_by_number():
    flat = V.copy()
    np.put(flat, [0, -1], [9, 8])
    same(pnp.put(V, np.array([0, -1]), np.array([9, 8])), flat)
    flat = M.copy()
    np.put(flat, [1, 14], [7, 6], mode="wrap")
    same(pnp.put(M, np.array([1, 14]), np.array([7, 6]), mode="wrap"), flat)
    flat = M.copy()
    np.put_along_axis(flat, np.array([[0], [2], [1]]), -1, 1)
    same(pnp.put_along_axis(M, np.array([[0], [2], [1]]), -1, 1), flat)
    flat = M.copy()
    np.place(flat, flat % 2 == 0, [1, 2, 3])
    same(pnp.place(M, M % 2 == 0, np.array([1, 2, 3])), flat)
    flat = M.copy()
    np.fill_diagonal(flat, 9)
    same(pnp.fill_diagonal(M, 9), flat)
    tall = np.zeros((5, 2), np.int32)
    np.fill_diagonal(tall, [1, 2, 3], wrap=True)
    same(pnp.fill_diagonal(np.zeros((5, 2), np.int32), np.array([1, 2, 3]), wrap=True), tall)
    for f in (lambda: pnp.put(V, 0, 1, inplace=True), lambda: pnp.fill_diagonal(M, 1, inplace=True),
              lambda: pnp.place(M, M > 0, 1, inplace=True)):  # fmt: skip
        with pytest.raises(TypeRule, match="never written to"):
            f()


# ---- errors --------------------------------------------------------------------------------

ERRORS = [
    (lambda: pnp.reshape(V, (2, 3)), TypeRule, "cannot be reshaped"),
    (lambda: pnp.reshape(V, (-1, -1)), TypeRule, "not determined"),
    (lambda: pnp.reshape(V, (5,), order="K"), TypeRule, "order"),
    (lambda: pnp.transpose(M, (0, 0)), AxisError, "twice"),
    (lambda: pnp.swapaxes(M, 0, 2), AxisError, "axis2 2 is out of range"),
    (lambda: pnp.squeeze(M, 0), TypeRule, "size 3, not 1"),
    (lambda: pnp.expand_dims(M, 5), AxisError, "out of range"),
    (lambda: pnp.broadcast_to(V, (4,)), TypeRule, "does not broadcast"),
    (lambda: pnp.concatenate([V, M]), TypeRule, "concatenated"),
    (lambda: pnp.concatenate([]), TypeRule, "nothing"),
    (lambda: pnp.stack([V, V[:2]]), TypeRule, "stacked"),
    (lambda: pnp.split(V, 2), TypeRule, "does not divide"),
    (lambda: pnp.flip(M, 2), AxisError, "out of range"),
    (lambda: pnp.rot90(M, 1, (0, 0)), AxisError, "twice"),
    (lambda: pnp.roll(M, (1, 2, 3), (0, 1)), TypeRule, "roll by 3"),
    (lambda: pnp.diagonal(V), AxisError, "diagonal takes matrices"),
    (lambda: pnp.tril(V), TypeRule, "tril takes matrices"),
    (lambda: pnp.diag(X), TypeRule, "vector or a matrix"),
    (lambda: pnp.select([], []), TypeRule, "0 conditions"),
    (lambda: pnp.meshgrid(M), TypeRule, "vectors"),
    (lambda: pnp.meshgrid(V, indexing="zz"), TypeRule, "indexing"),
    (lambda: pnp.delete(V, 9), AxisError, "out of range"),
    (lambda: pnp.take(V, 0.5), TypeRule, "integers"),
    (lambda: pnp.gradient(V[:1]), TypeRule, "two values"),
    (lambda: pnp.linspace(0, 1, -1), TypeRule, "-1 numbers"),
    (lambda: pnp.block([[V], V]), TypeRule, "equally deep"),
    (lambda: pnp.sum(V, out=V), TypeRule, "out"),
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
    for name in pnp.__all__:
        f, ref = getattr(pnp, name), getattr(np, name, None)
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
    for name in pnp.__all__:
        f = getattr(pnp, name)
        if inspect.isfunction(f):
            assert f.__doc__ and len(f.__doc__) > 10, name


# ---- settings ------------------------------------------------------------------------------


def test_default_dtypes_follow_the_settings():
    x = pnp.arange(4)
    functions = (
        lambda: pnp.zeros(2),
        lambda: pnp.array([1.5]),
        lambda: pnp.array(1.5),
        lambda: pnp.asarray(x, float),
        lambda: pnp.linspace(0, 1, 3),
        lambda: pnp.sin(x),
        lambda: pnp.divide(x, x),
        lambda: pnp.mean(x),
        lambda: pnp.var(x),
        lambda: pnp.median(x),
        lambda: pnp.hypot(x, x),
        lambda: plait.nn.gelu(x),
        lambda: plait.nn.one_hot(x, 3),
    )
    for f in functions:
        assert f().dtype == np.float32
        with plait.config(default_float="float64"):
            assert f().dtype == np.float64
        assert f().dtype == np.float32
    with plait.config(default_int="int64"):
        for f in (
            lambda: pnp.arange(3),
            lambda: pnp.array([1, 2]),
            lambda: pnp.sum(np.int8([1])),
            lambda: pnp.argsort(V),
            lambda: pnp.nonzero(V)[0],
            lambda: pnp.zeros(2, int),
        ):
            assert f().dtype == np.int64
    with plait.config(x64=False):
        for f in (
            lambda: pnp.array(np.ones(2)),
            lambda: pnp.float64(1),
            lambda: pnp.zeros_like(np.ones(2)),
            lambda: pnp.zeros(2, float),
        ):
            assert f().dtype == np.float32


def test_trim_zeros_of_a_number_is_an_array():
    """Python's and traced numbers, too."""
    for x in (0.0, 3.0):
        for got in (pnp.trim_zeros(x), plait.jit(pnp.trim_zeros)(x)):
            assert type(got) is type(pnp.ones(1)) and got.shape == () and got == x


def test_a_request_for_64_bits_that_is_not_met_is_warned_of():
    requests = (
        lambda: pnp.zeros(2, "float64"), lambda: pnp.arange(3.0, dtype=np.float64),
        lambda: pnp.sum(V, dtype="float64"), lambda: pnp.asarray(V).astype("float64"),
        lambda: pnp.ones_like(V, "float64"), lambda: plait.lax.full((2,), 1, np.float64),
        lambda: plait.lax.convert_element_type(pnp.asarray(V), np.float64),
        lambda: plait.jit(lambda x: x.astype("float64"))(V),
    )  # fmt: skip
    with plait.config(x64=False):
        for request in requests:
            with pytest.warns(UserWarning, match="float64 becomes float32") as caught:
                assert request().dtype == np.float32
            assert {w.filename for w in caught} == {__file__}
