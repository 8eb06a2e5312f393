"""What numpy takes, plait.numpy takes: complex numbers with an order, booleans where integers are
asked for, arrays without elements, memory, numbers that only one dtype holds.

Invariant: the reference is numpy (scipy, where numpy has no such function), called with the same
arguments; where both refuse, the class of the error is numpy's.
"""

import array
import inspect
import math

import numpy as np
import pytest
import scipy.signal

import plait
import plait.numpy as pnp
from plait import lax
from plait.errors import ConcretizationError, OutOfBounds, PlaitError, ShapeError

RNG = np.random.default_rng(0)


def same(got, want, tol=0.0):
    got = np.asarray(got)
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


# ---- the order of complex numbers ------------------------------------------------------------

PARTS = [0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan]


def grid(dtype):
    z = np.zeros((len(PARTS), len(PARTS)), dtype)
    z.real, z.imag = np.array(PARTS)[:, None], PARTS
    return z.ravel()


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_the_greater_of_complex_numbers(name, dtype):
    """By real part, then by imaginary part; which nan comes out of two is not said."""
    z = grid(dtype)
    x, y = z[:, None], z[None, :]
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    for f in (getattr(pnp, name), plait.jit(getattr(pnp, name))):
        got = np.asarray(f(x, y))
        assert got.dtype == dtype
        lost = np.isnan(want)
        np.testing.assert_array_equal(np.isnan(got), lost)
        np.testing.assert_array_equal(got[~lost], want[~lost])


def test_the_greater_of_complex_numbers_in_lax():
    rng = np.random.default_rng(1)
    x, y = [rng.integers(-2, 3, 40) + 1j * rng.integers(-2, 3, 40) for _ in range(2)]
    first = [max(p, key=lambda z: (z.real, z.imag)) for p in zip(x, y)]
    last = [min(p, key=lambda z: (z.real, z.imag)) for p in zip(x, y)]
    same(lax.max(x, y), first)
    same(lax.min(x, y), last)
    same(pnp.maximum(x, y, where=x.real > 0), np.where(x.real > 0, first, 0))
    same(pnp.max(x, initial=1 + 9j), np.max([*x, 1 + 9j]))
    assert lax.max(2, 3).item() == 3 and lax.min(np.float32(2), pnp.float32(3)).item() == 2


@pytest.mark.parametrize("base", [math.e, 2.0])
def test_complex_logaddexp(base):
    name = "logaddexp" if base == math.e else "logaddexp2"
    f, log = getattr(pnp, name), math.log(base)
    x, y = [RNG.normal(size=200) * 3 + 1j * RNG.normal(size=200) * 9 for _ in range(2)]
    want = np.log(np.exp(x * log) + np.exp(y * log)) / log
    same(f(x, y), want, 1e-12)
    same(plait.jit(f)(x, y), want, 1e-12)
    far = complex(f(1000 + 1j, 1000.0)) - 1000  # e ** 1000 is more than any float64
    want = np.log(np.exp(1j * log) + 1) / log
    assert abs(far - want) < 1e-3
    assert complex(f(complex(-math.inf, 0), 1 + 1j)) == pytest.approx(1 + 1j)
    assert f(complex(-math.inf, 0), complex(-math.inf, 0)).real == -math.inf
    same(f(np.array([1, 2]), np.array([2, 3])), getattr(np, name)([1, 2], [2, 3]), 1e-6)


# ---- booleans --------------------------------------------------------------------------------


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
@pytest.mark.parametrize("x", [[0.1, 0.1, 0.0], [0.0, 2.0], [1, 2, 3], [0, 0], [True, False], []])
def test_sums_as_booleans(name, x):
    x = np.array(x)
    same(getattr(pnp, name)(x, dtype=bool), getattr(np, name)(x, dtype=bool))
    both = np.stack([x, x + (x == 0)])
    for axis in (0, 1):
        got = plait.jit(lambda v: getattr(pnp, name)(v, axis=axis, dtype=bool))(both)
        assert got.dtype == bool
        same(got, getattr(np, name)(both, axis=axis, dtype=bool))


def test_sums_as_booleans_with_more():
    x = np.array([[0.0, 1.0], [0.0, 0.0]])
    for name in ("sum", "prod"):
        ours, theirs = getattr(pnp, name), getattr(np, name)
        for more in (dict(keepdims=True), dict(initial=True), dict(where=x == 0), dict(axis=1)):
            same(ours(x, dtype=bool, **more), theirs(x, dtype=bool, **more))
    same(pnp.cumulative_sum(x[0], dtype=bool), np.cumsum(x[0], dtype=bool))


def test_powers_of_booleans():
    x, y = np.array([True, False, True, False]), np.array([True, True, False, False])
    for f in (pnp.power, plait.jit(pnp.power), lambda a, b: pnp.asarray(a) ** pnp.asarray(b)):
        same(f(x, y), np.power(x, y))
        assert f(x, y).dtype == np.int32  # numpy's narrowest integer is not ours
    same(pnp.asarray(x) ** True, x)


def test_counts_of_booleans():
    x = np.array([True, False, True])
    same(pnp.bincount(x), np.bincount(x))
    same(pnp.bincount(x, np.array([1.0, 2.0, 4.0])), [2.0, 5.0])
    same(plait.jit(lambda v: pnp.bincount(v, length=3))(x), [1, 2, 0])


# ---- nothing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [[], [2.0], [1.0, 3.0]])
@pytest.mark.parametrize("q", [[], [5.0], [1.0, 0.0, -1.0]])
def test_products_of_polynomials_without_coefficients(p, q):
    same(pnp.polymul(np.array(p), np.array(q)), np.polymul(p, q))


def test_transforms_of_nothing():
    """Over no elements nothing is added up: jax.numpy's choice, where numpy refuses."""
    for f in (pnp.fft.fft, pnp.fft.ifft, pnp.fft.fftn, pnp.fft.ifftn):
        for shape in ((0,), (2, 0), (3, 1, 0)):
            got = plait.jit(f)(np.zeros(shape, np.float32))
            assert got.shape == shape and got.dtype == np.complex64
    assert pnp.fft.fftn(np.zeros((2, 0, 3)), s=(5, -1, 4)).shape == (5, 0, 4)
    same(pnp.fft.fft(np.zeros(0), n=3), np.zeros(3))
    for f in (pnp.fft.rfft, pnp.fft.irfft, lambda x: pnp.fft.fft(np.zeros(3), n=0)):
        with pytest.raises(ValueError, match="elements"):
            f(np.zeros(0))
    x = (np.arange(6) * 1j).reshape(2, 3)
    same(lax.fft(x, "FFT", ()), x)
    assert lax.fft(x[:, :0], lax.FftType.IFFT, (0,)).shape == (2, 0)


# ---- weights and norms -----------------------------------------------------------------------

AXES = [(1, 2), (2, 1), (0,), 1, -1, (0, 2), (2, 0, 1), None]


@pytest.mark.parametrize("axis", AXES, ids=repr)
@pytest.mark.parametrize("keepdims", [False, True])
def test_average_with_weights_of_several_axes(axis, keepdims):
    x = RNG.normal(size=(2, 3, 4))
    sizes = x.shape if axis is None else np.take(x.shape, np.atleast_1d(axis))
    w = RNG.uniform(size=tuple(sizes))
    same(
        pnp.average(x, axis, w, keepdims=keepdims), np.average(x, axis, w, keepdims=keepdims), 1e-12
    )
    got, total = pnp.average(x, axis, w, returned=True)
    assert got.shape == total.shape
    same(total, np.average(x, axis, w, returned=True)[1], 1e-12)


@pytest.mark.parametrize(("axis", "shape"), [((1, 2), (4, 3)), (0, (3,)), (None, (3, 4))])
def test_weights_of_other_sizes(axis, shape):
    x, w = np.ones((2, 3, 4)), np.ones(shape)
    with pytest.raises((TypeError, ValueError)):
        np.average(x, axis, w)
    with pytest.raises(ShapeError, match="weights"):
        pnp.average(x, axis, w)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("order", ["fro", 1, -1, np.inf, -np.inf])
def test_norms_of_narrow_matrices(dtype, order):
    x = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
    got = pnp.linalg.matrix_norm(pnp.asarray(x, dtype), ord=order)
    assert got.dtype == dtype
    assert float(got) == pytest.approx(np.linalg.matrix_norm(x, ord=order), rel=1e-2)


# ---- numbers that only one dtype holds -------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "number"),
    [("uint32", 2**32 - 1), ("uint64", 2**64 - 1), ("int64", -(2**63)), ("int64", 2**40),
     ("float32", 2**40), ("float64", -(2**70)), ("complex64", 2**33)],
)  # fmt: skip
def test_writing_what_the_array_holds(dtype, number):
    x = np.array([1, 2, 3], dtype)
    want = x.copy()
    want[1] = number
    same(pnp.asarray(x).at[1].set(number), want)
    same(plait.jit(lambda v: v.at[1].set(number))(x), want)
    if x.dtype.kind != "c":
        want[1] = max(want[1], x[1])
        same(pnp.asarray(x).at[1].max(number), want)
    assert pnp.zeros(2, "uint32").at[0].add(2**32 - 1).tolist() == [2**32 - 1, 0]


@pytest.mark.parametrize("dtype", ["uint32", "int32", "int8"])
def test_writing_what_the_array_does_not_hold(dtype):
    with pytest.raises(OverflowError, match="does not fit"):
        pnp.zeros(2, dtype).at[0].set(2**32)
    with pytest.raises(OutOfBounds):
        plait.jit(lambda x: x.at[0].add(-(2**40)))(np.zeros(2, dtype))


# ---- memory, ranges and lists ----------------------------------------------------------------

MEMORY = [
    bytearray(b"abc"), memoryview(b"abc"), memoryview(np.arange(3.0)), array.array("d", [1, 2]),
    memoryview(np.arange(6, dtype=np.int16).reshape(2, 3)), array.array("i", []),
]  # fmt: skip


@pytest.mark.parametrize("x", MEMORY, ids=lambda x: type(x).__name__)
def test_arrays_of_memory(x):
    want = np.asarray(memoryview(x))
    for got in (pnp.asarray(x), pnp.array(x)):
        assert got.dtype == want.dtype
        same(got, want)
    assert pnp.asarray(x, "float32").dtype == np.float32


def test_arrays_of_memory_are_copies():
    x = bytearray(b"abc")
    got = pnp.asarray(x)
    x[0] = 0
    assert got.tolist() == list(b"abc")


@pytest.mark.parametrize("x", [b"abc", "abc", None, object(), {1}, memoryview(b"a").cast("c")])
def test_no_arrays(x):
    with pytest.raises(TypeError, match="is not an array"):
        pnp.asarray(x)


@pytest.mark.parametrize("x", [range(3), range(2, 9, 3), range(5, 0, -1), [range(3), range(3)]])
def test_arrays_of_ranges(x):
    same(pnp.asarray(x), np.asarray(x))
    assert pnp.array(x).dtype == np.int32 and pnp.array(x, dtype="float32").dtype == np.float32


def test_arrays_of_deep_lists():
    x = [1.0]
    for depth in range(2, 64):
        x = [x]
        if depth in (32, 33, 63):
            assert pnp.array(x).shape == (1,) * depth == np.array(x).shape
    for _ in range(10):
        x = [x]
    with pytest.raises(ValueError, match="nested 73 deep"):
        pnp.array(x)
    with pytest.raises(ValueError, match="different lengths"):
        pnp.array([[1.0], [1.0, 2.0]])


def test_a_copy_outlives_what_it_was_made_of():
    for copy in (pnp.array, lambda x: pnp.array(x, copy=True), lambda x: pnp.asarray(x, copy=True)):
        x = pnp.arange(3.0)
        kept = copy(x)
        plait.jit(lambda v: v.at[0].set(7.0), donate_argnums=0)(x)
        assert kept.tolist() == [0.0, 1.0, 2.0]
    x = pnp.arange(3.0)
    assert pnp.asarray(x) is x and pnp.array(x, copy=False) is x


# ---- dtypes ----------------------------------------------------------------------------------


def test_the_default_dtype_by_none():
    for x in (pnp.arange(3), pnp.ones(2, "float16"), pnp.array([True])):
        assert x.astype(None).dtype == pnp.astype(x, None).dtype == np.float32
    assert plait.dtypes.canonicalize_dtype(None) == np.float32
    with plait.config(default_float="float64"):
        assert pnp.arange(3).astype(None).dtype == np.float64
        assert plait.dtypes.canonicalize_dtype(None) == np.float64


@pytest.mark.parametrize("like", [np.ones(2), np.arange(2), np.ones(2, complex), np.uint64(3)])
def test_likes_have_the_dtypes_of_arrays(like):
    """Where 64-bit values become 32-bit, so do those that are made like one."""
    makers = [pnp.zeros_like, pnp.ones_like, pnp.empty_like, lambda x: pnp.full_like(x, 1)]
    for make in makers:
        assert make(like).dtype == like.dtype
        with plait.config(x64=False):
            assert make(like).dtype == pnp.asarray(like).dtype
            assert plait.jit(lambda: make(like))().dtype == pnp.asarray(like).dtype


def test_names_of_dtypes_in_lax():
    for given in (
        np.float32,
        "float32",
        float,
        pnp.float32,
        np.dtype("float32"),
        1.5,
        np.float32(1),
    ):
        assert lax.dtype(given) == np.float32
    assert lax.dtype(np.ones(2, np.int8)) == np.int8 and lax.dtype(plait.random.key(0)).name
    with pytest.raises(TypeError):
        lax.dtype("no dtype")


@pytest.mark.parametrize("dtype", ["complex64", "float32", "int8"])
def test_questions_about_types_without_values(dtype):
    kind = np.iscomplexobj(np.zeros(2, dtype))
    for x in (
        plait.ShapeDtypeStruct((2,), np.dtype(dtype)),
        pnp.zeros(2, dtype),
        np.zeros(2, dtype),
    ):
        assert pnp.iscomplexobj(x) is kind and pnp.isrealobj(x) is not kind
    assert pnp.iscomplexobj(1j) and not pnp.iscomplexobj(2.0)


# ---- what arrays can do ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64", "uint8", "complex64", "bool"])
def test_bytes_in_the_opposite_order(dtype):
    x = np.array([[1, 2, 3], [0, 250, 7]]).astype(dtype)
    for f in (lambda v: v.byteswap(), plait.jit(lambda v: v.byteswap())):
        got = np.asarray(f(pnp.asarray(x)))
        assert got.dtype == dtype and got.tobytes() == x.byteswap().tobytes()


def test_flat_and_sizes_in_memory():
    x = np.arange(6.0).reshape(2, 3)
    y = pnp.asarray(x)
    assert [float(v) for v in y.flat] == list(x.flat) and float(y.flat[4]) == x.flat[4]
    assert len(y.flat) == len(x.flat) and y.on_device_size_in_bytes() == x.nbytes


def test_methods_on_the_class():
    x = np.arange(6.0).reshape(2, 3)
    y = pnp.asarray(x)
    for name in ("sum", "all", "mean", "argmax", "ravel", "tolist", "tobytes"):
        got = getattr(plait.Array, name)(y)
        np.testing.assert_array_equal(np.asarray(got), np.asarray(getattr(np.ndarray, name)(x)))
    same(plait.jit(plait.Array.cumsum)(y), x.cumsum())
    with pytest.raises(AttributeError, match="arrays have no 'nothing'"):
        plait.Array.nothing
    assert not hasattr(plait.Array, "_buf")


@pytest.mark.parametrize("leave", [lambda x: x.tobytes(), lambda x: x.item(), lambda x: x.tolist()])
def test_bytes_of_what_has_no_value(leave):
    with pytest.raises(ConcretizationError, match="would take it out of jit"):
        plait.jit(leave)(np.ones(1))


@pytest.mark.parametrize("ndim", [0, 1])
def test_swapping_axes_that_are_not_there(ndim):
    x = np.ones((2,) * ndim)
    with pytest.raises(ValueError):
        x.mT
    for f in (lambda v: v.mT, pnp.matrix_transpose):
        with pytest.raises(ValueError, match="axes|axis") as e:
            f(pnp.asarray(x))
        assert isinstance(e.value, PlaitError) and e.value.fix


# ---- functions of functions ------------------------------------------------------------------


def test_vectorize_passes_none():
    f = lambda x, y: x * 2 if y is None else x + y  # noqa: E731
    x = np.arange(3.0)
    same(pnp.vectorize(f)(x, None), 2 * x)
    same(pnp.vectorize(f)(x, y=None), 2 * x)
    same(pnp.vectorize(f)(x, x), 2 * x)
    g = pnp.vectorize(lambda v, w: v.sum() if w is None else v @ w, signature="(n),(n)->()")
    with pytest.raises(ValueError, match="argument 1 is None"):
        g(np.ones((2, 3)), None)
    with pytest.raises(TypeError, match="for the signature"):
        g(x)


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 3.0), (0.5, 3.0), (3.0, 1.0), (-1.5, 1.25), (0, 2.5)]
)
def test_loops_between_floats(low, high):
    steps, i = [], float(low)
    while i < high:
        steps.append(i)
        i += 1
    body = lambda i, x: x + i * i  # noqa: E731
    for run in (lambda f: f, plait.jit):
        got = run(lambda a, b: lax.fori_loop(a, b, body, np.float32(0)))(low, high)
        assert float(got) == pytest.approx(sum(i * i for i in steps))
    assert float(lax.fori_loop(low, high, body, 0.0, max_steps=1)) == sum(i * i for i in steps[:1])


def test_loops_between_no_numbers():
    for low in (1j, np.ones(2), True):
        with pytest.raises(TypeError, match="bound"):
            lax.fori_loop(low, pnp.int32(3), lambda i, x: x, 0.0)


@pytest.mark.parametrize(
    ("dtype", "text"),
    [(np.dtype(np.float32), "f32"), (np.uint8, "ui8"), (pnp.bfloat16, "bf16"), (np.bool_, "i1")],
)
def test_dtypes_as_attributes_of_composites(dtype, text):
    f = lax.composite(lambda x, **kw: lax.sin(x), "my.sine")
    g = plait.jit(lambda x: f(x, kind=dtype, also=(dtype, 1)))
    assert float(g(1.0)) == pytest.approx(math.sin(1.0))
    assert f"kind = {text}" in g.lower(1.0).as_text()


@pytest.mark.parametrize(
    ("values", "dtype", "text"),
    [
        ([[0.0, 0.0]], "float32", "dense<0.000000e+00> : tensor<1x2xf32>"),
        ([1.5, -2.0], "float64", "dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf64>"),
        ([1, 2], "int8", "dense<[1, 2]> : tensor<2xi8>"),
        ([[3], [4]], "uint32", "dense<[[3], [4]]> : tensor<2x1xui32>"),
        ([True, False], "bool", "dense<[true, false]> : tensor<2xi1>"),
        (7, "int64", "dense<7> : tensor<i64>"),
        ([], "float32", "dense<> : tensor<0xf32>"),
    ],
)
def test_arrays_as_attributes_of_composites_keep_dtype_and_shape(values, dtype, text):
    f = lax.composite(lambda x, **kw: lax.sin(x), "my.sine")
    table = np.array(values, dtype)
    g = plait.jit(lambda x: f(x, table=table))
    assert float(g(1.0)) == pytest.approx(math.sin(1.0))
    assert f"table = {text}" in g.lower(1.0).as_text()


def test_products_of_two_kinds_of_float8():
    x = pnp.asarray([1.5, 2.0, 0.25], "float8_e5m2")
    y = pnp.asarray([1.75, -0.5, 8.0], "float8_e4m3fn")
    want = float(np.dot([1.5, 2.0, 0.25], [1.75, -0.5, 8.0]))
    for a, b in ((x, y), (y, x)):
        assert float(lax.dot(a, b, preferred_element_type=np.float32)) == want
        assert lax.dot(a, b).dtype == "float8_e5m2"
        got = lax.dot_general(a, b, (((0,), (0,)), ((), ())), preferred_element_type=np.float32)
        assert float(got) == want


@pytest.mark.parametrize("scaling", ["density", "spectrum"])
def test_welch_without_lines(scaling):
    t = np.arange(600.0)
    x = np.sin(t * 0.3) + 0.01 * t + RNG.normal(size=600)
    how = dict(detrend="linear", scaling=scaling, nperseg=128)
    got, want = plait.scipy.signal.welch(x, **how), scipy.signal.welch(x, **how)
    same(got[0], want[0], 1e-6)
    same(got[1], want[1], 1e-9)


# ---- einsum by another product ---------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["ij,jk->ik", "bij,bjk->bik", "ij,ij->ij", "i,j->ij", "ij,jk,kl->il"]
)
def test_einsum_by_another_product(text):
    """The function does every product of two operands, with the arguments of `lax.dot_general`."""
    sizes = dict(zip("bijkl", (2, 3, 4, 5, 2)))
    xs = [RNG.normal(size=[sizes[c] for c in t]) for t in text.split("->")[0].split(",")]
    seen = []

    def twice(x, y, axes, precision=None, preferred_element_type=None):
        seen.append(precision)
        return 2 * lax.dot_general(
            x, y, axes, precision, preferred_element_type=preferred_element_type
        )

    got = pnp.einsum(text, *xs, precision="high", _dot_general=twice)
    same(got, 2 ** (len(xs) - 1) * np.einsum(text, *xs), 1e-12)
    assert seen == ["high"] * (len(xs) - 1)
    f = plait.jit(lambda *xs: pnp.einsum(text, *xs, _dot_general=twice))
    same(f(*xs), 2 ** (len(xs) - 1) * np.einsum(text, *xs), 1e-12)


# ---- types as JAX's programs ask them --------------------------------------------------------


def test_questions_about_types():
    t = plait.typeof(pnp.ones((2, 3)))
    assert t.sharding is None and t.tangent_type == t
    assert plait.typeof(pnp.arange(2)).tangent_type.dtype == plait.float0
    assert plait.typeof(1.0).weak_type and not plait.typeof(1.0).strong().weak_type
    other = t.update(shape=(4,), dtype="int8")
    assert (other.shape, other.dtype, other.weak_type) == ((4,), np.int8, False)
    assert t.update(weak_type=True).weak_type and t.update(sharding=None) == t
    assert plait.core.ShapedArray((2, 3), np.float32, sharding=None) == t
    for wrong in (lambda: t.update(sharding=1), lambda: t.update(size=6)):
        with pytest.raises(TypeError, match="says nothing of"):
            wrong()
    with pytest.raises(TypeError, match="says nothing of where"):
        plait.core.ShapedArray((2, 3), np.float32, sharding="x")


@pytest.mark.parametrize("name", ["normal", "uniform", "exponential", "bits", "permutation"])
def test_samples_take_out_sharding(name):
    """None is not a placement; what may be placed is tested with placements."""
    draw, key = getattr(plait.random, name), plait.random.key(0)
    given = 5 if name == "permutation" else (5,)
    want = draw(key, given)
    np.testing.assert_array_equal(draw(key, given, out_sharding=None), want)
    assert "out_sharding" in inspect.signature(draw).parameters


# ---- what only arrays in memory have ---------------------------------------------------------


def test_copies_of_keys():
    key = plait.random.key(7)
    copies = [key.copy(), pnp.copy(key), pnp.array(key), pnp.asarray(key, copy=True)]
    copies.append(plait.jit(lambda k: pnp.copy(k))(key))
    want = np.asarray(plait.random.key_data(key))
    plait.jit(lambda k: plait.random.split(k), donate_argnums=0)(key)
    for copy in copies:
        np.testing.assert_array_equal(plait.random.key_data(copy), want)


@pytest.mark.parametrize("name", ["devices", "sharding", "addressable_shards", "is_deleted"])
def test_memory_of_what_is_traced(name):
    """Neither a crash nor silence: an AttributeError, so that `hasattr` says no."""
    for kind in (AttributeError, ConcretizationError):
        with pytest.raises(kind, match=f".{name} of .*it is being traced"):
            plait.jit(lambda x: getattr(x, name))(np.ones(2))
    assert not plait.eval_shape(lambda x: pnp.int32(hasattr(x, name)), np.ones(2)).shape
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        plait.jit(lambda x: x.nothing)(np.ones(2))


def test_compiled_functions_are_for_arrays():
    compiled = plait.jit(lambda x: x + 4).lower(np.float32(1)).compile()
    assert float(compiled(np.float32(2))) == 6
    for transform in (plait.jit, lambda f: lambda x: plait.eval_shape(f, x)):
        with pytest.raises(TypeError, match="cannot be transformed"):
            transform(lambda x: compiled(x))(np.float32(2))


# ---- numbers and names -----------------------------------------------------------------------


def test_integers_as_other_dtypes():
    assert lax.convert_element_type(2**100, "float32").item() == 2.0**100
    assert lax.convert_element_type(2**32 - 1, np.uint32).item() == 2**32 - 1
    with pytest.raises(OverflowError):
        lax.convert_element_type(2**32, "uint32")


@pytest.mark.parametrize("name", ["std", "var", "nanstd", "nanvar"])
def test_one_name_of_what_is_subtracted(name):
    x = np.array([1.0, 2.0, 4.0])
    same(getattr(pnp, name)(x, correction=1), getattr(np, name)(x, ddof=1), 1e-12)
    for ours in (pnp, np):
        with pytest.raises(ValueError, match="ddof"):
            getattr(ours, name)(x, ddof=1, correction=0)


def test_messages_name_what_was_called():
    with pytest.raises(TypeError, match="lax.conj is for floating or complex"):
        lax.conj(1)
    with pytest.raises(ValueError, match="helmert"):
        plait.scipy.linalg.helmert(0)


# ---- float0 ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (3,), (2, 0)])
def test_equality_of_float0(shape):
    """As numpy has it of what has no bytes: all equal; of other arithmetic there is none."""
    host = np.zeros(shape, plait.float0)
    ours = plait.jit(lambda x: x)(host)
    assert isinstance(ours, plait.Array)
    for f in (lambda x, y: x == y, plait.jit(lambda x, y: x == y), pnp.equal):
        for x, y in ((ours, host), (ours, ours)):
            got = np.asarray(f(x, y))
            assert got.shape == shape and got.dtype == bool and got.all()
    assert not np.asarray(ours != host).any() and np.all((host == ours) == (host == host))
    for f in (lambda x: x + x, lambda x: x < x, lambda x: x == 1.0, lambda x: x == 0, lambda x: -x):
        with pytest.raises(TypeError, match="float0"):
            f(ours)
    with pytest.raises(TypeError, match="key"):
        bool(plait.random.key(0) == 1.0)
