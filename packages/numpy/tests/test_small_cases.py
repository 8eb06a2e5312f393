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
