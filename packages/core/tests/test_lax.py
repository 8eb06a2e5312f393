"""plait.lax: strict operands, structure, reductions, windows, control, against numpy and scipy.

Invariant: what is compared with is computed by numpy, scipy or a Python loop; what another system
does is written out as literals.
"""

import inspect
import itertools

import numpy as np
import pytest
import scipy.special

import plait
from plait import lax
from plait.errors import AxisError, TypeRule

RNG = np.random.default_rng(1)
X = RNG.standard_normal((3, 4)).astype(np.float32)
V = np.array([0.3, -1.2, 2.0, 0.0], np.float32)
I = np.array([3, -7, 0, 12], np.int32)
Z = np.array([1 + 2j, -3j], np.complex64)


def same(got, want, rtol=1e-5):
    if isinstance(got, tuple | list):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w, rtol)
        return
    want = np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=rtol)


def check(f, want, *xs, rtol=1e-5):
    same(f(*xs), want, rtol)
    same(plait.jit(f)(*xs), want, rtol)


ONE = {
    "neg": np.negative, "sign": np.sign, "abs": np.abs, "floor": np.floor, "ceil": np.ceil,
    "is_finite": np.isfinite, "exp": np.exp, "expm1": np.expm1, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "cbrt": np.cbrt, "erf": scipy.special.erf, "erfc": scipy.special.erfc,
    "logistic": scipy.special.expit, "square": np.square, "exp2": np.exp2,
}  # fmt: skip
UNIT = {"asin": np.arcsin, "acos": np.arccos, "atanh": np.arctanh, "erf_inv": scipy.special.erfinv}
POSITIVE = {"log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "lgamma": scipy.special.gammaln,
            "digamma": scipy.special.digamma, "rsqrt": lambda x: 1 / np.sqrt(x),
            "reciprocal": np.reciprocal}  # fmt: skip


@pytest.mark.parametrize("name", [*ONE, *UNIT, *POSITIVE, "acosh"])
def test_functions_of_one_array(name):
    f = getattr(lax, name)
    x, ref = V, ONE.get(name)
    if name in UNIT:
        x, ref = np.float32([-0.9, 0.1, 0.5]), UNIT[name]
    elif name in POSITIVE:
        x, ref = np.float32([0.1, 1.0, 3.5]), POSITIVE[name]
    elif name == "acosh":
        x, ref = np.float32([1.0, 1.5, 9.0]), np.arccosh
    check(f, ref(x.astype(np.float64)), x, rtol=2e-5)
    assert f(x).dtype == (bool if name == "is_finite" else np.float32)
    assert f(x.astype(np.float64)).dtype == (bool if name == "is_finite" else np.float64)


def test_nothing_is_converted():
    for f in (lax.sin, lax.exp, lax.sqrt, lax.erf, lax.floor, lax.is_finite, lax.logistic):
        for x in (1, I, True):
            with pytest.raises(TypeRule, match="is for floating"):
                f(x)
    for f in (lax.neg, lax.abs, lax.sign):
        assert f(I).dtype == np.int32
        with pytest.raises(TypeRule, match="is for integer"):
            f(True)
    same(lax.bitwise_not(I), ~I)
    same(lax.population_count(np.uint8([3, 255])), [2, 8])
    same(lax.clz(np.int32([1, 2**30])), [31, 1])
    same(lax.real(Z), Z.real)
    same(lax.imag(Z), Z.imag)
    same(lax.conj(Z), Z.conj())
    assert lax.conj(V).dtype == np.complex64
    with pytest.raises(TypeRule, match="complex"):
        lax.real(V)


TWO = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "rem": np.fmod,
}  # fmt: skip
FLOATS = {"atan2": np.arctan2, "div": np.divide, "nextafter": np.nextafter}
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}


@pytest.mark.parametrize("name", [*TWO, *FLOATS, *BITS])
def test_functions_of_two_arrays(name):
    f, ref = getattr(lax, name), {**TWO, **FLOATS, **BITS}[name]
    if name not in BITS:
        check(f, ref(V, V[::-1] + 1), V, V[::-1] + 1)
        check(f, ref(V, np.float32(2)), V, np.float32(2))
        same(f(V, 2.0), ref(V, np.float32(2)))
        same(f(2, V + 1), ref(np.float32(2), V + 1))
    if name not in FLOATS:
        check(f, ref(I, np.int32(5)), I, np.full(4, 5, np.int32))
        same(f(I, 5), ref(I, np.int32(5)))


def test_integer_division_shifts_and_powers():
    check(lax.div, [-3, 3, -1], np.int32([7, -7, 5]), np.int32([-2, -2, -4]))
    check(lax.rem, [1, -1, 1], np.int32([7, -7, 5]), np.int32([-2, -2, -4]))
    check(lax.shift_left, I << 2, I, np.full(4, 2, np.int32))
    check(lax.shift_right_arithmetic, I >> 1, I, np.full(4, 1, np.int32))
    halved = (I.view(np.uint32) >> 1).view(np.int32)
    check(lax.shift_right_logical, halved, I, np.full(4, 1, np.int32))
    same(lax.integer_pow(V[:3], -2), V[:3].astype(float) ** -2)
    same(lax.integer_pow(I, 3), I**3)
    same(lax.pow(np.abs(V), 1.5), np.abs(V) ** 1.5)
    same(lax.pow(V, 2), V**2)
    same(lax.pow(V, np.int32([1, 2, 3, 0])), V ** np.array([1, 2, 3, 0]))
    assert float(lax.pow(2.0, 3)) == 8.0
    with pytest.raises(TypeRule):
        lax.pow(I, 2.5)
    with pytest.raises(TypeRule, match="negative power"):
        lax.integer_pow(I, -1)
    same(lax.complex(V, V), V + 1j * V)
    x = np.float32([0.5, 1.5, 2.5, -0.5])
    same(lax.round(x), [1, 2, 3, -1])
    same(lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), [0, 2, 2, 0])
    same(lax.reduce_precision(np.float32([1.2345678]), 8, 7), np.float32([1.234375]))


@pytest.mark.parametrize("args", [
    (V, I), (V, np.array(1.0)), (I, 1.5), (1, 1.5), (V, np.int32(1)), (V, True), (Z, V), (I, 1j),
])  # fmt: skip
def test_different_dtypes_are_refused(args):
    for f in (lax.add, lax.mul, lax.max, lax.eq):
        if f is lax.max and any(np.iscomplexobj(a) for a in args):
            continue
        with pytest.raises(TypeRule, match="must have one dtype.*") as e:
            f(*args)
        assert "plait.numpy" in str(e.value)
    if np.ndim(args[0]) == 1:
        for f in (lambda a, b: lax.select(True, a, b), lambda a, b: lax.select_n(False, a, b)):
            with pytest.raises(TypeRule, match="one dtype"):
                f(*args)


def test_weak_scalars_and_ranks():
    assert lax.add(np.ones(2, np.float16), 1.5).dtype == np.float16
    assert lax.add(np.ones(2, np.int8), 1).dtype == np.int8
    assert lax.add(1.0, 2.0).weak_type and lax.add(Z, 1.5).dtype == np.complex64
    assert lax.add(np.ones((2, 3)), np.ones((1, 3))).shape == (2, 3)
    with pytest.raises(TypeRule, match="different numbers of axes"):
        lax.add(X, V)
    with pytest.raises(TypeError, match="is not an array"):
        lax.add([1], [2])
    x = plait.numpy.ones(3)
    assert len(plait.make_program(lambda x: lax.add(lax.neg(x), x))(x).eqns) == 2
    assert len(plait.make_program(lambda x: lax.add(x, 1.0))(x).eqns) == 1


def test_selection():
    check(lambda x, y: lax.select(x > y, x, y), np.maximum(V, 0.5), V, np.full(4, 0.5, np.float32))
    same(lax.select(True, V, -V), V)
    same(lax.select_n(np.array([True, False, True, False]), V, -V), [-0.3, -1.2, -2, 0])
    check(lambda w: lax.select_n(w, V, V + 10, V + 20), V + [20, 0, 10, 20], np.int32([2, 0, 1, 2]))
    same(lax.select_n(np.int32(0), V), V)
    check(lambda x: lax.clamp(-1.0, x, 1.0), np.clip(V, -1, 1), V)
    same(lax.clamp(np.int32(-1), I, np.int32(5)), np.clip(I, -1, 5))
    for f in (lambda: lax.select(V, V, V), lambda: lax.select(np.array([True]), V, V),
              lambda: lax.select_n(np.array([True]), V, V, V), lambda: lax.select_n(0),
              lambda: lax.select_n(1.0, V, V)):  # fmt: skip
        with pytest.raises(TypeRule):
            f()


# ---- structure -----------------------------------------------------------------------------


def test_conversion():
    assert lax.convert_element_type(V, np.int32).tolist() == [0, -1, 2, 0]
    assert lax.convert_element_type(I, float).dtype == np.float32
    assert lax.convert_element_type(2, "bfloat16").dtype.name == "bfloat16"
    same(lax.bitcast_convert_type(V, np.int32), V.view(np.int32))
    assert lax.dtype(V) == np.float32 and lax.dtype(1) == np.int32


STRUCTURE = [
    (lambda x: lax.reshape(x, (2, 6)), lambda x: x.reshape(2, 6)),
    (lambda x: lax.reshape(x, (12,), (1, 0)), lambda x: x.T.reshape(12)),
    (lambda x: lax.transpose(x, (1, 0)), lambda x: x.T),
    (lambda x: lax.squeeze(x[None], (0,)), lambda x: x),
    (lambda x: lax.expand_dims(x, (0, 3)), lambda x: x[None, :, :, None]),
    (lambda x: lax.rev(x, (0,)), lambda x: x[::-1]),
    (lambda x: lax.rev(x, (-1, 0)), lambda x: x[::-1, ::-1]),
    (lambda x: lax.collapse(x[None], 1, 3), lambda x: x.reshape(1, 12)),
    (lambda x: lax.collapse(x, 0), lambda x: x.reshape(12)),
    (lambda x: lax.broadcast(x, (2, 1)), lambda x: np.broadcast_to(x, (2, 1, 3, 4))),
    (lambda x: lax.broadcast_in_dim(x, (4, 5, 3), (2, 0)),
     lambda x: np.broadcast_to(x.T[:, None], (4, 5, 3))),
    (lambda x: lax.broadcast_in_dim(x, (3, 5, 4), (0, 2)),
     lambda x: np.broadcast_to(x[:, None], (3, 5, 4))),
    (lambda x: lax.broadcast_to_rank(x, 4), lambda x: x[None, None]),
    (lambda x: lax.broadcast_like(x[:1], x), lambda x: np.broadcast_to(x[:1], x.shape)),
    (lambda x: lax.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3))),
    (lambda x: lax.slice(x, (1, 0), (3, 4), (1, 2)), lambda x: x[1:3, ::2]),
    (lambda x: lax.slice(x, (0, 0), (0, 4)), lambda x: x[:0]),
    (lambda x: lax.slice_in_dim(x, 1, None, axis=1), lambda x: x[:, 1:]),
    (lambda x: lax.slice_in_dim(x, None, -1, 2, axis=1), lambda x: x[:, :-1:2]),
    (lambda x: lax.split(x, (1, 3), 1), lambda x: [x[:, :1], x[:, 1:]]),
    (lambda x: lax.unstack(x, 1), lambda x: tuple(x.T)),
    (lambda x: lax.concatenate([x, x], 1), lambda x: np.concatenate([x, x], 1)),
    (lambda x: lax.stack([x, x], 1), lambda x: np.stack([x, x], 1)),
    (lambda x: lax.pad(x, 0.0, ((1, 2, 0), (0, 0, 1))), lambda x: _padded(x)),
    (lambda x: lax.pad(x, np.float32(7), ((-1, 0, 0), (0, -2, 0))), lambda x: x[1:, :-2]),
    (lambda x: lax.full_like(x, 3), lambda x: np.full_like(x, 3)),
    (lambda x: lax.dynamic_slice(x, (1, 2), (2, 2)), lambda x: x[1:3, 2:4]),
    (lambda x: lax.dynamic_index_in_dim(x, 1, 1, False), lambda x: x[:, 1]),
    (lambda x: lax.dynamic_update_slice(x, x[:1] * 0, (1, 0)), lambda x: _cleared(x, 1)),
    (lambda x: lax.index_in_dim(x, -1, 0), lambda x: x[-1:]),
    (lambda x: lax.optimization_barrier({"a": x})["a"], lambda x: x),
    (lambda x: lax.stop_gradient([x])[0], lambda x: x),
]  # fmt: skip


def _padded(x):
    out = np.zeros((6, 7), np.float32)
    out[1:4, ::2] = x
    return out


def _cleared(x, i):
    out = x.copy()
    out[i] = 0
    return out


@pytest.mark.parametrize("case", STRUCTURE, ids=lambda c: None)
def test_structure(case):
    f, ref = case
    check(f, ref(X), X)


def test_new_arrays():
    same(lax.iota(np.int8, 4), np.arange(4))
    same(lax.broadcasted_iota("float32", (2, 3), 1), np.broadcast_to(np.arange(3), (2, 3)))
    assert lax.full((2,), 3).dtype == np.int32 and lax.full((2,), 3, "float16").dtype == np.float16
    assert lax.full((2,), 1.5).weak_type and lax.empty((2,), np.int8).shape == (2,)
    assert lax.broadcast_shapes((2, 1), (1, 3)) == (2, 3)


@pytest.mark.parametrize(("f", "kind", "text"), [
    (lambda: lax.slice(X, (0, 0), (4, 4)), TypeRule, "0 <= start"),
    (lambda: lax.slice(X, (2, 0), (1, 4)), TypeRule, "0 <= start"),
    (lambda: lax.slice(X, (0,), (3,)), TypeRule, "2 of each"),
    (lambda: lax.concatenate([X, X.astype(np.float64)], 0), TypeRule, "one dtype"),
    (lambda: lax.stack([V, I]), TypeRule, "one dtype"),
    (lambda: lax.pad(X, np.array(0.0), ((0, 0, 0),) * 2), TypeRule, "with the number"),
    (lambda: lax.pad(X, 0.0, ((0, 0, 0),)), TypeRule, "for each axis"),
    (lambda: lax.full((2,), V), TypeRule, "one number"),
    (lambda: lax.split(X, (1, 1), 0), TypeRule, "add up"),
    (lambda: lax.tile(X, (2,)), TypeRule, "for each axis"),
    (lambda: lax.broadcast_in_dim(X, (4, 4), (1, 1)), AxisError, "an axis twice"),
    (lambda: lax.reduce_sum(X, (2,)), AxisError, "out of range"),
    (lambda: lax.cumsum(X, 2), AxisError, "out of range"),
    (lambda: lax.dot(np.ones((2, 3, 4)), X), TypeRule, "lax.dot of"),
    (lambda: lax.batch_matmul(X, V), TypeRule, "batch_matmul"),
    (lambda: lax.collapse(X, 1, 0), AxisError, "in order"),
])  # fmt: skip
def test_errors(f, kind, text):
    with pytest.raises(kind, match=text):
        f()


# ---- reductions ----------------------------------------------------------------------------


def test_reductions_keep_dtypes():
    for name, ref in (("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min)):
        f = getattr(lax, "reduce_" + name)
        for axes in ((0,), (1,), (0, 1), (-1,), ()):
            check(lambda x, f=f, a=axes: f(x, a), ref(X, axis=axes) if axes else X, X)
        assert f(np.ones(3, np.int8), (0,)).dtype == np.int8
    flags = X > 0
    check(lambda x: lax.reduce_and(x, (0,)), flags.all(0), flags)
    check(lambda x: lax.reduce_or(x, (1,)), flags.any(1), flags)
    check(lambda x: lax.reduce_xor(x, (0, 1)), np.logical_xor.reduce(flags, axis=None), flags)
    check(lambda x: lax.argmax(x, 1, np.int32), X.argmax(1), X)
    assert lax.argmin(X, 0, np.int8).dtype == np.int8
    for name, ref in (
        ("cumsum", np.cumsum),
        ("cumprod", np.cumprod),
        ("cummax", np.maximum.accumulate),
        ("cummin", np.minimum.accumulate),
        ("cumlogsumexp", np.logaddexp.accumulate),
    ):
        f = getattr(lax, name)
        check(lambda x, f=f: f(x, 1), ref(X, axis=1), X)
        check(lambda x, f=f: f(x, 0, True), ref(X[::-1], axis=0)[::-1], X)
    assert lax.cumsum(np.ones(3, np.int8)).dtype == np.int8


def test_reduce_by_a_function():
    for f, ref in ((lax.add, np.sum), (lax.max, np.max), (lax.min, np.min), (lax.mul, np.prod)):
        start = {np.sum: 0.0, np.max: -np.inf, np.min: np.inf, np.prod: 1.0}[ref]
        check(lambda x, f=f, s=start: lax.reduce(x, s, f, (0,)), ref(X, 0), X)
    assert float(lax.reduce(V, 10.0, lax.add, (0,))) == pytest.approx(float(V.sum()) + 10)
    program = plait.make_program(lambda x: lax.reduce(x, 0.0, lax.add, (0,)))(X)
    assert [e.prim.name for e in program.eqns] == ["core.reduce_sum"]
    # neither of the known ones: the last element that is not zero
    last = lambda a, b: lax.select(lax.ne(b, 0.0), b, a)
    for n in (0, 1, 2, 5, 8):
        x = RNG.integers(0, 3, (n, 2)).astype(np.float32)
        want = [next((v for v in c[::-1] if v), -1.0) for c in x.T]
        check(lambda x: lax.reduce(x, -1.0, last, (0,)), want, x)

    def best(a, b):  # the greatest, and where it is
        (x, i), (y, j) = a, b
        left = lax.ge(x, y)
        return lax.select(left, x, y), lax.select(left, i, j)

    at = np.broadcast_to(np.arange(4, dtype=np.int32), X.shape)
    check(lambda x, i: lax.reduce((x, i), (-np.inf, 0), best, (1,)), (X.max(1), X.argmax(1)), X, at)
    with pytest.raises(TypeRule, match="not elementwise"):
        lax.reduce(V, 0.0, lambda a, b: a + lax.cumsum(b[None])[0], (0,))
    with pytest.raises(TypeRule, match="with the number"):
        lax.reduce(V, V, lax.add, (0,))


def windows(x, f, start, size, stride, pads, base=None, dilation=None):
    """By loops over every window and place."""
    n = x.ndim
    base, dilation = base or (1,) * n, dilation or (1,) * n
    shape = [max((d - 1) * b + 1, 0) + a + c for d, b, (a, c) in zip(x.shape, base, pads)]
    whole = np.full(shape, start, x.dtype)
    box = [slice(a, a + (d - 1) * b + 1, b) for (a, _), d, b in zip(pads, x.shape, base)]
    whole[tuple(box)] = x
    counts = [(d - (k - 1) * e - 1) // s + 1 for d, k, s, e in zip(shape, size, stride, dilation)]
    out = np.zeros(counts, x.dtype)
    for at in itertools.product(*map(range, counts)):
        v = start
        for off in itertools.product(*map(range, size)):
            v = f(v, whole[tuple([a * s + o * e for a, s, o, e in zip(at, stride, off, dilation)])])
        out[at] = v
    return out


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("size", "stride", "padding", "base", "dilation"), [
    ((2, 2), (1, 1), "VALID", None, None), ((2, 3), (2, 1), "SAME", None, None),
    ((3, 1), (1, 2), ((1, 0), (0, 2)), None, None), ((2, 2), (1, 1), "VALID", (2, 1), (1, 2)),
    ((1, 1), (2, 3), "VALID", None, None), ((9, 11), (2, 3), "VALID", None, None),
    ((10, 2), (1, 1), "SAME_LOWER", None, None), ((3, 3), (1, 1), ((2, 2), (0, 0)), None, (3, 2)),
])  # fmt: skip
def test_reduce_window(size, stride, padding, base, dilation):
    x = RNG.integers(-9, 9, (12, 13)).astype(np.int32)
    extent = [(k - 1) * d + 1 for k, d in zip(size, dilation or (1, 1))]
    inside = [(d - 1) * b + 1 for d, b in zip(x.shape, base or (1, 1))]
    pads = lax.padtype_to_pads(inside, extent, stride, padding)
    for f, ref, start in ((lax.add, np.add, 0), (lax.max, np.maximum, -100), (lax.add, np.add, 3)):
        if start == 3 and (base or pads != [(0, 0), (0, 0)]):
            continue  # what pads counts too, as often as it is met
        want = windows(x, ref, start, size, stride, pads, base, dilation)
        if start == 3:
            want = windows(x, ref, 0, size, stride, pads, base, dilation) + 3
        how = (size, stride, padding, base, dilation)
        check(lambda v, f=f, s=start, how=how: lax.reduce_window(v, s, f, *how), want, x)


def test_reduce_window_grows_with_the_sum_of_sizes():
    program = plait.make_program(lambda x: lax.reduce_window(x, 0.0, lax.add, (64, 64)))(
        np.ones((100, 100), np.float32)
    )
    assert len(program.eqns) < 60
    with pytest.raises(TypeRule, match="one for each axis"):
        lax.reduce_window(X, 0.0, lax.add, (2,))


def test_sorting():
    check(lambda x: lax.sort(x), np.sort(X), X)
    check(lambda x: lax.sort(x, 0), np.sort(X, 0), X)
    order = np.argsort(V)
    check(lax.sort_key_val, (V[order], I[order]), V, I)
    keys = np.int32([1, 0, 1, 0])
    got = lax.sort((keys, V, I), num_keys=2)
    order = np.lexsort((V, keys))
    same(got, (keys[order], V[order], I[order]))
    check(lambda x: lax.top_k(x, 2), (np.sort(X)[:, :-3:-1], np.argsort(X)[:, :-3:-1]), X)


def test_contractions():
    y = RNG.standard_normal((4, 5)).astype(np.float32)
    check(lax.dot, X @ y, X, y)
    check(lax.dot, X @ V, X, V)
    check(lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ()))), X @ y, X, y)
    stack = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    other = RNG.standard_normal((2, 4, 3)).astype(np.float32)
    check(lax.batch_matmul, stack @ other, stack, other)
    check(lambda a, b: lax.dot(a, b, dimension_numbers=(((2,), (1,)), ((0,), (0,)))), stack @ other,
          stack, other)  # fmt: skip
    for p in (None, "highest", lax.Precision.HIGHEST, (lax.Precision.HIGH, lax.Precision.DEFAULT)):
        same(lax.dot(X, y, precision=p), X @ y, rtol=1e-4)
    narrow = X.astype(np.float16)
    assert lax.dot(narrow, narrow.T, preferred_element_type=np.float32).dtype == np.float32


# ---- what comes from elsewhere -------------------------------------------------------------


def test_control():
    assert float(lax.cond(True, lambda x: x + 1, lambda x: x - 1, 1.0)) == 2.0
    assert float(lax.switch(2, [lambda x: x, lambda x: -x, lambda x: x * 5], 2.0)) == 10.0
    assert int(lax.while_loop(lambda i: i < 7, lambda i: i + 2, 0)) == 8
    assert int(lax.fori_loop(0, 5, lambda i, s: s + i, 0)) == 10
    total, rows = lax.scan(lambda c, x: (c + x, c), 0.0, V)
    assert float(total) == pytest.approx(float(V.sum())) and rows.shape == (4,)
    same(lax.map(lambda x: x * x, V), V**2)
    same(lax.associative_scan(lax.add, V), np.cumsum(V))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_keeps_the_order_of_operands(n, reverse):
    rng = np.random.default_rng(n)
    xs = rng.integers(-3, 4, (n, 2, 2)).astype(np.int32)  # products of matrices do not commute
    want, order = [], xs[::-1] if reverse else xs
    for x in order:
        want.append(x if not want else want[-1] @ x)
    want = np.array(want, np.int32).reshape(xs.shape)
    want = want[::-1] if reverse else want
    product = lambda a, b: lax.batch_matmul(a, b)  # noqa: E731
    same(lax.associative_scan(product, xs, reverse=reverse), want)
    places = [0] * n if not reverse else [n - 1] * n  # of all that is combined, what came first
    same(lax.associative_scan(lambda a, b: a, np.arange(n), reverse=reverse), places)
    along = np.moveaxis(xs, 0, 2)
    got = lax.associative_scan(lax.add, along, reverse=reverse, axis=2)
    sums = along[..., ::-1].cumsum(2)[..., ::-1] if reverse else along.cumsum(2)
    same(got, sums)


def test_gather_and_scatter():
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    same(lax.gather(X, np.int32([[2], [0]]), numbers, (1, 4)), X[[2, 0]])
    put = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    for name, ref in (
        ("scatter_add", np.add),
        ("scatter_mul", np.multiply),
        ("scatter_max", np.maximum),
        ("scatter_min", np.minimum),
        ("scatter_sub", np.subtract),
    ):
        want = X.copy()
        ref.at(want, [1, 1], X[:2])
        same(getattr(lax, name)(X, np.int32([[1], [1]]), X[:2], put), want)


def test_names_and_arguments():
    assert len(set(lax.__all__)) == len(lax.__all__)
    for name in lax.__all__:
        f = getattr(lax, name)
        if inspect.isfunction(f):
            assert f.__doc__ and len(f.__doc__) > 5, name
    for name, args in {
        "add": "x y", "clamp": "min x max", "select": "pred on_true on_false",
        "broadcast_in_dim": "operand shape broadcast_dimensions", "reshape": "operand new_sizes",
        "transpose": "operand permutation", "pad": "operand padding_value padding_config",
        "slice": "operand start_indices limit_indices strides", "iota": "dtype size",
        "slice_in_dim": "operand start_index limit_index stride axis", "rev": "operand dimensions",
        "broadcasted_iota": "dtype shape dimension", "full": "shape fill_value dtype",
        "reduce": "operands init_values computation dimensions", "squeeze": "array dimensions",
        "concatenate": "operands dimension", "convert_element_type": "operand new_dtype",
        "dot_general": "lhs rhs dimension_numbers precision preferred_element_type",
        "sort": "operand dimension is_stable num_keys", "argmax": "operand axis index_dtype",
        "conv_general_dilated": "lhs rhs window_strides padding lhs_dilation rhs_dilation "
        "dimension_numbers feature_group_count batch_group_count precision preferred_element_type",
        "reduce_window": "operand init_value computation window_dimensions window_strides padding "
        "base_dilation window_dilation", "dynamic_slice": "operand start_indices slice_sizes",
        "while_loop": "cond_fun body_fun init_val", "scan": "f init xs length reverse unroll",
        "fori_loop": "lower upper body_fun init_val", "cumsum": "operand axis reverse",
    }.items():  # fmt: skip
        want = args.split()
        assert list(inspect.signature(getattr(lax, name)).parameters)[: len(want)] == want


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_integers_that_the_compiler_knows_may_be_divided_by_zero(dtype, shape):
    """The compiler folds them in this process, where the machine's division would end it."""
    x, zero = np.full(shape, 7, dtype), np.zeros(shape, dtype)
    nothing = np.full(shape, -1).astype(dtype)  # what lax.div gives where it divides by zero

    def known(f):
        return lambda: f(plait.numpy.full(shape, 7, dtype), plait.numpy.zeros(shape, dtype))

    def inlined(f):
        inner = plait.jit(lambda y: f(plait.numpy.full(shape, 7, dtype), y))
        return lambda: inner(plait.numpy.zeros(shape, dtype))

    def computed(f):
        seven = plait.numpy.full(shape, 7, dtype)
        return lambda: f(lax.add(seven, seven), lax.sub(seven, seven))

    with plait.enable_x64():
        for given in (known, inlined, computed):
            np.testing.assert_array_equal(plait.jit(given(lax.div))(), nothing)
            expected = x + x if given is computed else x
            np.testing.assert_array_equal(plait.jit(given(lax.rem))(), expected)
            np.testing.assert_array_equal(plait.jit(given(plait.numpy.floor_divide))(), zero)
            np.testing.assert_array_equal(plait.jit(given(plait.numpy.remainder))(), zero)
