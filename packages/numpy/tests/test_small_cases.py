"""Arguments at the border of what functions accept: sizes of zero, lists, traced positions.

Invariant: numpy, scipy or a written-out value says what is right.
"""

import math
import warnings

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import plait
import plait.numpy as pnp
from plait import lax
from plait.errors import TypeRule
from plait.scipy import fft, signal
from plait.scipy.sparse import linalg as sparse


def test_sizes_of_zero():
    assert pnp.mgrid[()].shape == np.mgrid[()].shape
    assert plait.nn.initializers.orthogonal()(plait.random.key(0), (3, 0)).shape == (3, 0)
    image = np.ones((5, 3), np.float32)
    for method in ("nearest", "linear", "cubic", "lanczos3"):
        assert plait.image.resize(image, (0, 3), method).shape == (0, 3)
    assert pnp.intersect1d(np.ones(0), np.ones(2), return_indices=True, size=2)[1].tolist() == [
        0,
        0,
    ]


def test_bicubic_interpolation_with_the_other_slope():
    # The weights of Keys's kernel of slope -3/4, half a pixel away from both neighbours.
    x = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], np.float32)
    got = plait.image.resize(x, (16,), "bicubic-pytorch", antialias=False)

    def keys(t, a=-0.75):
        t = abs(t)
        if t <= 1:
            return (a + 2) * t**3 - (a + 3) * t**2 + 1
        return a * (t**3 - 5 * t**2 + 8 * t - 4) if t < 2 else 0.0

    want = [keys((i + 0.5) / 2 - 0.5 - 3) for i in range(16)]
    np.testing.assert_allclose(np.asarray(got)[4:12], want[4:12], 1e-5, 1e-6)


@pytest.mark.parametrize("at", [0, 1, 3, -1, -3])
def test_insertion_and_deletion_at_a_place_known_later(at):
    x, v = np.arange(6.0).reshape(3, 2), np.array([7.0, 8.0])
    f = plait.jit(lambda i: (pnp.insert(x, i, v, 0), pnp.insert(x[:, 0], i, 9.0)))
    got = f(at)
    np.testing.assert_array_equal(np.asarray(got[0]), np.insert(x, at, v, 0))
    np.testing.assert_array_equal(np.asarray(got[1]), np.insert(x[:, 0], at, 9.0))
    if at < 3:
        got = plait.jit(lambda i: pnp.delete(x, i, 0))(at)
        np.testing.assert_array_equal(np.asarray(got), np.delete(x, at, 0))


def test_the_places_of_common_elements_with_a_size():
    x, y = np.array([1, 2, 3, 3]), np.array([2, 3, 4])
    common, i, j = plait.jit(lambda x, y: pnp.intersect1d(x, y, return_indices=True, size=3))(x, y)
    assert common.tolist()[:2] == [2, 3]
    assert (i.tolist(), j.tolist()) == ([1, 2, 4], [0, 1, 3])


@pytest.mark.parametrize("n", [7, 8])
def test_the_triangular_window_without_zeros_at_its_ends(n):
    x = np.random.default_rng(0).normal(size=40)
    got, want = (m.stft(x, nperseg=n, window="triang")[2] for m in (signal, scipy.signal))
    np.testing.assert_allclose(got, want, 1e-6, 1e-8)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_cosine_transforms_of_complex_numbers(kind):
    x = np.array([[1 + 1j, 2, 3j], [0.5, -1j, 2]])
    np.testing.assert_allclose(fft.dctn(x, kind), scipy.fft.dctn(x, kind), 1e-10, 1e-10)
    np.testing.assert_allclose(fft.idct(x, kind), scipy.fft.idct(x, kind), 1e-10, 1e-10)


class _Twice:
    shape = (3, 3)

    def __matmul__(self, x):
        return 2 * x


def test_solvers_take_what_multiplies():
    got = sparse.cg(_Twice(), np.arange(3.0))[0]
    np.testing.assert_allclose(got, [0, 0.5, 1.0], 1e-6)
    with pytest.raises(ValueError, match="structure"):
        sparse.cg(lambda x: x, {"x": pnp.zeros(2)}, {"y": pnp.zeros(2)})


@pytest.mark.parametrize("solve", [sparse.cg, sparse.gmres, sparse.bicgstab])
def test_solvers_refuse_trees_unlike_the_right_hand_side(solve):
    b = {"x": np.ones(2), "y": np.arange(3.0)}
    got = solve(lambda v: {"y": 2 * v["y"], "x": 4 * v["x"]}, b, x0=b)[0]
    np.testing.assert_allclose(got["x"], [0.25, 0.25], 1e-6)
    np.testing.assert_allclose(got["y"], [0, 0.5, 1], 1e-6)
    swapped = {"x": np.arange(3.0), "y": np.ones(2)}
    with pytest.raises(ValueError, match="x0 has the shapes"):
        solve(lambda v: v, b, x0=swapped)
    with pytest.raises(ValueError, match="x0 has the shapes"):
        solve(lambda v: v, np.ones(2), x0=np.ones((2, 1)))
    with pytest.raises(ValueError, match="result of A has the shapes"):
        solve(lambda v: {"x": v["y"], "y": v["x"]}, b)
    with pytest.raises(ValueError, match="result of A has the structure"):
        solve(lambda v: (v["x"], v["y"]), b)
    with pytest.raises(ValueError, match="result of M has the structure"):
        solve(lambda v: v, b, M=lambda v: [v["y"], v["x"]])


def test_eigenvalues_of_a_triangle_or_of_the_mean():
    a = np.array([[1.0, 2, 3], [9, 4, 5], [9, 9, 6]])
    mean = np.linalg.eigvalsh((a + a.T) / 2)
    for side in "LU":
        one = np.linalg.eigvalsh(a, side)
        for given, want in ((None, one), (False, one), (True, mean)):
            got = pnp.linalg.eigh(a, side, symmetrize_input=given).eigenvalues
            np.testing.assert_allclose(got, want, 1e-5)
    np.testing.assert_allclose(pnp.linalg.eigh(a)[0], mean, 1e-5)


def test_arguments_that_have_a_meaning():
    assert plait.nn.one_hot([0, 2], 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert pnp.result_type(None) == np.float32 and pnp.result_type(None, "float64") == np.float64
    assert len(plait.ShapeDtypeStruct((3, 2), "float32")) == 3


WRONG = {
    "a seed": (lambda: plait.random.key(2**63), OverflowError),
    "a shape": (lambda: plait.lax.broadcast_shapes((-1,)), TypeError),
    "no dtype": (lambda: plait.ShapeDtypeStruct((), None), ValueError),
    "excluded": (lambda: pnp.vectorize(math.sin, excluded={1.5}), TypeError),
    "an axis name": (lambda: plait.lax.psum(1.0, "nope"), NameError),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_of_the_class_that_python_has_for_them(name):
    call, kind = WRONG[name]
    with pytest.raises(kind):
        call()


def test_blocks_decorate_functions():
    for block in (plait.debug_nans, plait.log_compiles, plait.debug_infs, plait.check_tracer_leaks,
                  plait.enable_x64, plait.enable_checks):  # fmt: skip
        for value in (True, False):
            assert block(value)(lambda x: x + 1)(1) == 2
    with pytest.raises(ZeroDivisionError):
        plait.debug_nans(True)(lambda x: x / x)(pnp.zeros(()))


# ---- float0 ------------------------------------------------------------------------------------

NOTHING = np.zeros((2, 2), plait.float0)
OF_ONE = (
    "all any argsort argwhere count_nonzero flatnonzero isfinite isinf isnan isneginf isposinf "
    "logical_not nonzero sort unique sum mean sin negative abs exp cumsum max argmax median sqrt"
)
OF_TWO = (
    "add dot inner logical_and logical_or logical_xor matmul matvec tensordot vdot vecdot vecmat "
    "less multiply maximum power arctan2 kron outer"
)
COMPUTING = dict.fromkeys(OF_ONE.split(), 1) | dict.fromkeys(OF_TWO.split(), 2)


@pytest.mark.parametrize("name", COMPUTING)
def test_nothing_is_computed_with_what_has_no_elements(name):
    with pytest.raises(TypeRule, match="float0"):
        getattr(pnp, name)(*[NOTHING] * COMPUTING[name])


def test_bytes_are_an_element_of_float0():
    """numpy writes such elements as bytes, and reads them so."""
    assert NOTHING.tolist()[0][0] == (b"",)
    got, want = pnp.array(b"", dtype=plait.float0), np.array(b"", dtype=plait.float0)
    assert (got.shape, got.dtype) == (want.shape, want.dtype) == ((), plait.float0)
    with pytest.raises(TypeRule, match="bytes"):
        pnp.array(b"", dtype="float32")


ONE = np.zeros((), plait.float0)[()]
X = np.ones(2, np.float32)
TAKING = {
    "cond": lambda z: lax.cond(z, lambda: 1, lambda: 2),
    "fori_loop": lambda z: lax.fori_loop(0, z, lambda i, c: c, 1.0),
    "dynamic_slice": lambda z: lax.dynamic_slice(X, (z,), (1,)),
    "bitcast": lambda z: lax.bitcast_convert_type(z, np.int8),
    "view": lambda z: pnp.asarray(z).view(np.int8),
    "view of several": lambda z: pnp.stack([z, z]).view(np.int8),
    "at.set": lambda z: pnp.asarray(X).at[:].set(z),
    "at.add": lambda z: pnp.asarray(X).at[0].add(z),
    "at.multiply": lambda z: pnp.asarray(X).at[1:].multiply(z),
    "astype": lambda z: pnp.asarray(z).astype(np.float32),
}


@pytest.mark.parametrize("name", TAKING)
@pytest.mark.parametrize("given", [ONE, np.zeros((), plait.float0)], ids=["scalar", "array"])
def test_what_has_no_elements_is_refused_where_numbers_are_taken(name, given):
    """Also where the operation is done at once, and as an element of a numpy array."""
    with pytest.raises(TypeRule, match="float0"):
        TAKING[name](given)
    with pytest.raises(TypeRule, match="float0"):
        plait.jit(TAKING[name])(given)


@pytest.mark.parametrize("f", ["cov", "corrcoef"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_no_variables_have_no_covariances(f, dtype):
    for x, options in ((np.zeros((0, 4), dtype), {}), (np.zeros((4, 0), dtype), {"rowvar": False})):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = getattr(np, f)(x, **options)
        ours = getattr(pnp, f)
        for got in (ours(x, **options), plait.jit(lambda v, o=options: ours(v, **o))(x)):
            assert got.shape == want.shape == (0, 0) and got.dtype == np.float32


@pytest.mark.parametrize("dx", [1.0, 0.5, 3])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "complex64"])
def test_trapezoids_of_one_width(dtype, dx):
    y = (np.random.default_rng(0).normal(size=(3, 40)) * 9).astype(dtype)
    tol = 1e-2 if dtype == "float16" else 1e-5
    for a, axis in ((y, 1), (y, 0), (y[:, :2], 1), (y[:, :1], 1), (y[:0], 1), (y[:0], 0)):
        got = pnp.trapezoid(a, dx=dx, axis=axis)
        np.testing.assert_allclose(got, np.trapezoid(a, dx=dx, axis=axis), tol, tol)


@pytest.mark.full_tier
@pytest.mark.parametrize("axis", [0, 1])
def test_trapezoids_of_one_width_copy_nothing(axis):
    """Slices in front of a sum are copied."""
    x = np.zeros((100, 1000), np.float32)
    text = plait.jit(lambda x: pnp.trapezoid(x, axis=axis)).lower(x).compile().as_text()
    steps = text[text.index("ENTRY") :].splitlines()[1:]
    sizes = [s.split("f32[")[1].split("]")[0] for s in steps if " fusion(" in s and "f32[" in s]
    assert sizes and not any("," in size and "1" not in size.split(",") for size in sizes)


def test_trapezoids_of_what_is_not_finite_or_large():
    inf, nan, big = np.inf, np.nan, 3e38
    for y in ([inf, 1, 2], [1, 2, inf], [1, inf, 2], [inf, 0, -inf], [inf, -1, inf], [nan, 1],
              [big, 0, big], [-big, big, big], [big, 0]):  # fmt: skip
        y = np.array(y, np.float32)
        with np.errstate(all="ignore"):
            want = np.trapezoid(y.astype(float))
        np.testing.assert_allclose(pnp.trapezoid(y), want, rtol=1e-6)
    np.testing.assert_allclose(
        pnp.trapezoid(np.array([big, big, 0], np.float32), dx=0.1), 0.15 * big
    )


def test_trapezoid_counts_a_negative_axis_of_the_positions_from_their_own_end():
    # Positions with fewer axes than the values: axis -2 is another one of each.
    rng = np.random.default_rng(0)
    for shape, places in (((2, 3, 10), (3, 10)), ((2, 2, 2), (2, 2)), ((4, 2, 5), (2, 5))):
        y, x = rng.normal(size=shape), np.sort(rng.normal(size=places), axis=-2)
        for axis in (-1, -2):
            got = pnp.trapezoid(y, x, axis=axis)
            np.testing.assert_allclose(got, np.trapezoid(y, x, axis=axis), rtol=1e-6)


def test_variance_of_too_few_elements_is_nan():
    for name in ("var", "std", "nanvar", "nanstd"):
        for n in (1, 2, 3):
            x = np.arange(n, dtype="float64")
            for ddof in range(n + 3):
                got = float(getattr(pnp, name)(x, ddof=ddof))
                want = float(getattr(np, name)(x, ddof=ddof)) if ddof < n else math.nan
                np.testing.assert_allclose(got, want)
                by_name = float(getattr(pnp, name)(x, correction=ddof))
                np.testing.assert_allclose(by_name, want)
    slope = float(plait.jit(lambda d: pnp.var(np.arange(2.0), ddof=d))(5))
    assert math.isnan(slope)


@pytest.mark.parametrize("make", ["array", "asarray"])
def test_what_is_made_of_a_list_keeps_its_dtype_beside_others(make):
    f = getattr(pnp, make)
    narrow = np.ones(1, "int8")
    for number in (1, 2.5, 1j):
        known = f([number])
        for made in (
            plait.jit(lambda x: f([x]))(number),
            plait.jit(f)([number]),
            f([pnp.array(number)]),
            f([[pnp.array(number), number]])[0, :1],
            f((pnp.array(number),)),
        ):
            assert made.dtype == known.dtype and not made.weak_type
            assert (made + narrow).dtype == (known + narrow).dtype
    assert f([pnp.array(1), np.int16(2)]).dtype == "int16"  # the number gives way to the array
    assert f(pnp.array(1)).weak_type  # a number alone stays one


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "bfloat16"])
def test_a_copy_that_is_asked_for_has_memory_of_its_own(dtype):
    x = pnp.ones(3, dtype)
    for copied in (
        x.astype(dtype, copy=True),
        pnp.astype(x, dtype, copy=True),
        pnp.array(x, dtype),
        pnp.asarray(x, copy=True),
        pnp.copy(x),
        x.copy(),
    ):
        assert copied.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    number = pnp.array(1.0)  # weak; a change of that alone shares memory otherwise
    for copied in (number.astype("float32", copy=True), pnp.array(number, "float32")):
        assert copied.unsafe_buffer_pointer() != number.unsafe_buffer_pointer()
    kept = x.astype(dtype, copy=True)
    x.delete()
    assert not kept.is_deleted() and kept.astype("float32").tolist() == [1, 1, 1]


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64"])
def test_elements_along_an_axis_by_comparison(axis, dtype):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, (3, 4)).astype(dtype) if dtype == "bool" else (
        rng.normal(size=(3, 4)) * 9).astype(dtype)  # fmt: skip
    n = 12 if axis is None else x.shape[axis]
    i = rng.integers(-n, n, {0: (5, 4), None: (7,)}.get(axis, (3, 5)))
    got = pnp.take_along_axis(x, i, axis, mode="one_hot")
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, np.take_along_axis(x, i, axis))
    # No position outside is read, and nan and infinity stay where they are.
    row = np.array([np.nan, 1.0, np.inf], "float32")
    read = pnp.take_along_axis(row, np.array([1, -4, 3, 2, -3]), 0, mode="one_hot")
    np.testing.assert_array_equal(read, np.array([1, 0, 0, np.inf, np.nan], "float32"))
    # Positions that narrow integers do not count to are not read for lesser ones.
    many = np.arange(300)
    for narrow, want in (("int8", [127, 299, 172]), ("uint8", [127, 255, 128])):
        i = np.array([127, -1, -128]).astype(narrow)
        assert pnp.take_along_axis(many, i, 0, mode="one_hot").tolist() == want


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all", "default"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_complex_numbers_in_a_sorted_vector(side, method):
    rng = np.random.default_rng(2)
    parts = np.array([-1.0, 0.0, 2.0, np.inf, np.nan], "float32")
    pick = lambda n: (rng.choice(parts, n) + 0j + 1j * rng.choice(parts[:3], n)).astype("complex64")  # noqa: E731
    a, v = np.sort(pick(40)), pick((5, 6))
    a = a[~np.isnan(a)]
    v = np.where(np.isnan(v), 7, v)
    got = pnp.searchsorted(a, v, side=side, method=method)
    np.testing.assert_array_equal(got, np.searchsorted(a, v, side=side))


def test_keys_without_axes_and_shapes_as_arrays():
    assert pnp.lexsort((3.0, 1.0)).tolist() == np.lexsort((3.0, 1.0)).tolist() == 0
    assert pnp.lexsort(np.array([2, 1])).shape == np.lexsort(np.array([2, 1])).shape == ()
    with pytest.raises(plait.errors.AxisError):
        pnp.lexsort((3.0, 1.0), axis=1)
    assert pnp.broadcast_shapes((1,), np.array([0, 1])) == (0, 1)
    assert pnp.broadcast_shapes(np.array([2, 1]), 3, [1], np.int32(3)) == (2, 3)


@pytest.mark.parametrize("name", ["logical_and", "logical_or"])
def test_logical_folds_begin_with_an_initial_value(name):
    x = np.array([[0, 2, 0], [3, 1, 0]])
    where = np.array([True, False, True])
    for initial in (False, True, 0, 2.5):
        for axis in (0, 1, None):
            for options in ({}, {"where": where}, {"keepdims": True}):
                got = getattr(pnp, name).reduce(x, axis=axis, initial=initial, **options)
                want = getattr(np, name).reduce(x, axis=axis, initial=initial, **options)
                np.testing.assert_array_equal(got, np.asarray(want) != 0)


def test_bitwise_folds_of_unsigned_integers_begin_with_all_bits():
    for dtype in ("uint8", "uint32", "int32", "bool"):
        x = np.array([[7, 5, 13], [3, 0, 6]]).astype(dtype)
        for shape in ((2, 3), (0, 3)):
            part, where = x[: shape[0]], np.array([True, False, True])
            for options in ({}, {"where": where}):
                got = pnp.bitwise_and.reduce(part, axis=0, **options)
                want = np.bitwise_and.reduce(part, axis=0, **options)
                assert got.dtype == want.dtype
                np.testing.assert_array_equal(got, want)


def test_only_functions_with_folds_are_ufuncs():
    assert isinstance(pnp.add, pnp.ufunc) and isinstance(pnp.frompyfunc(max, 2, 1), pnp.ufunc)
    for other in (pnp.sum, 1, pnp.float32, type("Any", (), {"__getattr__": lambda s, n: s})()):
        assert not isinstance(other, pnp.ufunc)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_matrix_directives_of_joined_pieces():
    a = np.arange(6).reshape(2, 3)
    for join, own in ((np.r_, pnp.r_), (np.c_, pnp.c_)):
        for key in (("r", [1, 2], [3]), ("c", [1, 2], [3]), ("r", a, a), ("c", a, a)):
            if join is np.c_ and np.ndim(key[1]) == 1:
                key = (key[0], [1, 2], [3, 4])
            want = np.asarray(join[key])
            assert own[key].shape == want.shape
            np.testing.assert_array_equal(own[key], want)
        with pytest.raises(TypeRule):
            own["x", [1, 2]]


def test_refusals_of_the_kind_that_callers_catch():
    with pytest.raises(IndexError):
        pnp.take(np.ones((2, 0, 4)), np.array([0]), axis=1)
    for axes in (2, ([0], [0, 1]), ("bad", "axes"), "badaxes", (0, 1, 2)):
        with pytest.raises(TypeError):
            pnp.tensordot(np.ones((3, 2, 2)), np.ones(2), axes=axes)
    with pytest.raises(ValueError, match="period"):
        pnp.interp(0.0, np.arange(3.0), np.arange(3.0), period=np.array([1.0]))


def test_equality_of_keys_by_closeness():
    keys = plait.random.split(plait.random.key(0), 3)
    assert pnp.isclose(keys, keys).tolist() == [True, True, True]
    assert pnp.isclose(keys, keys[::-1]).tolist() == [False, True, False]
    assert bool(pnp.allclose(keys, keys)) and not bool(pnp.allclose(keys, keys[0]))


def test_infinitely_many_trials():
    n = np.array([np.inf, np.inf, np.inf, np.inf, -np.inf], "float32")
    p = np.array([0.5, 1.0, 0.0, np.nan, 0.5], "float32")
    got = plait.random.binomial(plait.random.key(0), n, p)
    np.testing.assert_array_equal(got, np.array([np.inf, np.inf, np.nan, np.nan, np.nan]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setxor1d", "setdiff1d"])
def test_missing_elements_of_sets_are_the_least_one(name):
    rng = np.random.default_rng(3)
    for dtype in ("int32", "float32", "uint8", "bool"):
        for n in (0, 1, 6):
            x, y = (rng.integers(2, 7, k).astype(dtype) for k in (n, 5))
            want = getattr(np, name)(x, y)
            fill = want.min() if want.size and name != "setdiff1d" else 0
            for f in (lambda x, y: getattr(pnp, name)(x, y, size=9),
                      plait.jit(lambda x, y: getattr(pnp, name)(x, y, size=9))):  # fmt: skip
                got = f(x, y)
                assert got.dtype == dtype
                np.testing.assert_array_equal(got, np.pad(want, (0, 9 - want.size),
                                                          constant_values=fill))  # fmt: skip
            given = getattr(pnp, name)(x, y, size=9, fill_value=1)
            np.testing.assert_array_equal(given, np.pad(want, (0, 9 - want.size),
                                                        constant_values=1))  # fmt: skip


def test_arguments_that_vectorize_cannot_leave_out():
    with pytest.raises(ValueError, match="negative"):
        pnp.vectorize(lambda x: x, excluded={-1})
    assert pnp.mgrid[()].dtype == pnp.mgrid[:2].dtype == "int32"


Z, V = np.array([1 + 1j, 2, 0.5j], np.complex64), np.arange(3.0)


@pytest.mark.parametrize("f", [
    lambda z: pnp.digitize(z, np.arange(3.0)), lambda z: pnp.digitize(np.arange(3.0), z),
    lambda z: pnp.histogram(z, 3), lambda z: pnp.histogram2d(z, np.ones(3), 3),
    lambda z: pnp.histogramdd(pnp.stack([z, z], 1), 3), lambda z: pnp.interp(z, V, V),
    lambda z: pnp.median(z), lambda z: pnp.quantile(z, 0.5),
])  # fmt: skip
def test_complex_numbers_have_no_place_on_a_line(f):
    """They are refused alike, although `searchsorted` takes them in lexical order."""
    for call in (f, plait.jit(f)):
        with pytest.raises(TypeRule, match="complex ones have no order"):
            call(Z)


@pytest.mark.parametrize("name", ["intersect1d", "setdiff1d", "setxor1d"])
def test_sets_of_elements_that_are_distinct_already(name):
    rng = np.random.default_rng(3)
    for n, m in ((6, 4), (1, 3), (0, 2), (3, 0)):
        values = rng.permutation(8).astype(np.float32)
        x, y = values[:n], rng.permutation(values)[:m]
        want = getattr(np, name)(x, y, assume_unique=True)
        np.testing.assert_array_equal(getattr(pnp, name)(x, y, assume_unique=True), want)
        f = plait.jit(lambda x, y: getattr(pnp, name)(x, y, True, size=9, fill_value=-1))
        padded = np.append(want, np.full(9 - want.size, -1, np.float32))
        np.testing.assert_array_equal(f(x, y), padded)


def test_parts_of_an_empty_axis_are_filled():
    none, matrix = np.zeros(0, np.float32), np.zeros((2, 0), np.float32)
    assert pnp.compress(none > 0, none, size=3, fill_value=7).tolist() == [7, 7, 7]
    assert pnp.extract(none > 0, none, size=0).shape == pnp.extract(none > 0, none).shape == (0,)
    f = plait.jit(lambda c, x: pnp.compress(c, x, 1, size=2, fill_value=5))
    assert f(none > 0, matrix).tolist() == [[5, 5], [5, 5]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_variances_have_the_dtype_that_is_asked_for(name, dtype):
    """Also a complex one, and what is computed is as exact as that dtype."""
    rows = np.array([1.5, 2.6, 7.1])
    for have in ("int32", "float32", "complex64"):
        x = (rows + (1j * rows[::-1] if have == "complex64" else 0)).astype(have)
        got, want = getattr(pnp, name)(x, dtype=dtype), getattr(np, name)(x.astype("complex128"))
        assert got.dtype == np.dtype(dtype)
        tolerance = {"float16": 1e-3, "float32": 1e-6, "complex64": 1e-6}.get(dtype, 1e-13)
        np.testing.assert_allclose(np.asarray(got, "complex128"), want, rtol=tolerance)


@pytest.mark.parametrize("name", ["std", "nanstd"])
def test_deviations_are_not_integers(name):
    """The root of a variance that was cut off would be wrong, in whatever dtype."""
    for x in (np.array([1.5, 2.6, 7.1]), np.array([1, 2, 7])):
        with pytest.raises(TypeError, match=f"{name}: dtype must be a float or complex dtype"):
            getattr(pnp, name)(x, dtype="int32")


def test_variances_may_be_integers():
    x = np.array([1, 2, 9])
    for f in (pnp.var, pnp.nanvar):
        got = f(x, dtype="int32")
        assert got.dtype == np.int32
        assert got == int(np.var(x))
