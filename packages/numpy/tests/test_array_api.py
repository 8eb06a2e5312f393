"""The array API standard, 2024.12: its names and calls, its special cases, what it asks of arrays.

Special cases of real functions are numpy's (C99, annex F), those of complex functions are the
standard's own tables, written out.  Where the standard leaves a choice, ours is written down.

Invariant: tables say what the standard says, not what we do.
"""

import inspect
import math

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import CopyError, TypeRule

# ---- names and calls -----------------------------------------------------------------------

CALLS = {
    "x /": "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor "
    "imag isfinite isinf isnan log log10 log1p log2 logical_not matrix_transpose negative nonzero "
    "positive real reciprocal round sign signbit sin sinh sqrt square tan tanh trunc unique_all "
    "unique_counts unique_inverse unique_values",
    "x1 x2 /": "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift "
    "bitwise_xor copysign divide equal floor_divide greater greater_equal hypot less less_equal "
    "logaddexp logical_and logical_or logical_xor matmul maximum minimum multiply nextafter "
    "not_equal pow remainder subtract",
    "x / axis=None keepdims=False": "all any argmax argmin count_nonzero max mean min",
    "shape dtype=None device=None": "empty ones zeros",
    "x / dtype=None device=None": "empty_like ones_like zeros_like",
    "x / axis=-1 descending=False stable=True": "argsort sort",
    "arrays / axis=0": "concat stack",
    "x / axis=None dtype=None include_initial=False": "cumulative_prod cumulative_sum",
    "x / axis": "expand_dims squeeze",
    "type /": "finfo iinfo",
    "x / axis=None dtype=None keepdims=False": "prod sum",
    "x / axis=None correction=0.0 keepdims=False": "std var",
    "x / k=0": "tril triu",
    "start / stop=None step=1 dtype=None device=None": "arange",
    "obj / dtype=None device=None copy=None": "asarray",
    "x dtype / copy=True device=None": "astype",
    "x / shape": "broadcast_to reshape",
    "from_ to /": "can_cast",
    "x / min=None max=None": "clip",
    "x / axis=-1 n=1 prepend=None append=None": "diff",
    "n_rows n_cols / k=0 dtype=None device=None": "eye",
    "x / axis=None": "flip",
    "x / device=None copy=None": "from_dlpack",
    "shape fill_value dtype=None device=None": "full",
    "x / fill_value dtype=None device=None": "full_like",
    "dtype kind": "isdtype",
    "x1 x2 / invert=False": "isin",
    "start stop / num=1 dtype=None device=None endpoint=True": "linspace",
    "x source destination /": "moveaxis",
    "x / axes": "permute_dims",
    "x repeats / axis=None": "repeat",
    "x / shift axis=None": "roll",
    "x1 x2 / side='left' sorter=None": "searchsorted",
    "x indices / axis=None": "take",
    "x indices / axis=-1": "take_along_axis",
    "x1 x2 / axes=2": "tensordot",
    "x repetitions /": "tile",
    "x / axis=0": "unstack",
    "x1 x2 / axis=-1": "vecdot",
    "condition x1 x2 /": "where",
}
"""Calls that the standard has, and the functions that take them; names after / may be given."""
REST = "broadcast_arrays broadcast_shapes meshgrid result_type bool int8 int16 int32 int64 uint8"
REST += " uint16 uint32 uint64 float32 float64 complex64 complex128 e inf nan newaxis pi"
FFT = "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift"
LINALG = "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank"
LINALG += " matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot"
LINALG += " vector_norm"


@pytest.mark.parametrize("call", CALLS)
def test_calls(call):
    """Every call of the standard binds, by position before / and by name after."""
    before, _, after = call.partition("/")
    values = lambda words: [w.partition("=")[0] for w in words.split()]  # noqa: E731
    for name in CALLS[call].split():
        found = inspect.signature(getattr(pnp, name))
        named = values(after) if "/" in call else values(before)
        found.bind(*(values(before) if "/" in call else ()), **dict.fromkeys(named))


def test_names():
    for name in REST.split():
        assert hasattr(pnp, name), name
    for name in FFT.split():
        assert callable(getattr(pnp.fft, name))
    for name in LINALG.split():
        assert callable(getattr(pnp.linalg, name))
    assert pnp.__array_api_version__ == "2024.12"


# ---- special cases of real functions -------------------------------------------------------

INF, NAN, PI = math.inf, math.nan, math.pi
ONE = "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor log log1p log2 log10"
ONE += " negative reciprocal round sin sinh sqrt square tan tanh trunc isfinite isinf isnan signbit"
TWO = "add subtract multiply divide floor_divide remainder pow atan2 hypot copysign nextafter"
TWO += " logaddexp maximum minimum"
GRID = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -2.5, INF, -INF, NAN, 1e30, -1e30, 1e-5,
        1 + 2**-20, 1 - 2**-20]  # fmt: skip


def agree(name, got, want, tol, xs):
    """Values, and signs of zeros; nan is nan."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype, name
    if got.dtype == bool:
        np.testing.assert_array_equal(got, want, err_msg=name)
        return
    with np.errstate(all="ignore"):
        close = np.isclose(got, want, rtol=tol, atol=0, equal_nan=True)
        close &= np.isnan(want) | (np.signbit(got) == np.signbit(want))
    bad = [tuple(float(x[i]) for x in xs) for i in np.flatnonzero(~close)]
    assert not bad, f"{name}{bad}: {got[~close]}, not {want[~close]}"


def ours_where_the_standard_lets_choose(name, want, x, y):
    """Divided by an infinity is zero, an infinity divided infinite; of zeros the positive one is
    greater."""
    want = want.copy()
    zeros = (x == 0) & (y == 0)
    if name == "floor_divide":
        far = np.isinf(x) != np.isinf(y)
        want[far] = (x / y)[far]
    elif name == "maximum":
        want[zeros] = np.where(np.signbit(x) & np.signbit(y), -0.0, 0.0)[zeros]
    elif name == "minimum":
        want[zeros] = np.where(np.signbit(x) | np.signbit(y), -0.0, 0.0)[zeros]
    return want


@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-5), (np.float64, 1e-12)])
def test_special_cases_of_real_functions(dtype, tol):
    v = np.array(GRID, dtype)
    x, y = (g.ravel() for g in np.meshgrid(v, v, indexing="ij"))
    run = plait.jit(lambda v, x, y: ([getattr(pnp, n)(v) for n in ONE.split()],
                                  [getattr(pnp, n)(x, y) for n in TWO.split()]))  # fmt: skip
    ones, twos = run(v, x, y)
    with np.errstate(all="ignore"):
        for name, got in zip(ONE.split(), ones):
            agree(name, got, getattr(np, name)(v), tol, (v,))
        for name, got in zip(TWO.split(), twos):
            want = ours_where_the_standard_lets_choose(name, getattr(np, name)(x, y), x, y)
            agree(name, got, want, tol, (x, y))


def test_the_sign_of_zeros_and_nan():
    zeros = np.array([0.0, -0.0])
    whole = zeros[:, None] + 1j * zeros
    whole.real, whole.imag = zeros[:, None], zeros
    for x in (zeros, zeros.astype(np.float32), whole, whole.astype(np.complex64)):
        for f in (pnp.sign, plait.jit(pnp.sign)):
            got = np.asarray(f(x))
            assert got.dtype == x.dtype and not got.any()
            if x.dtype.kind == "f":  # a zero keeps its sign, as JAX has it
                np.testing.assert_array_equal(np.signbit(got), np.signbit(x))
    assert math.isnan(float(pnp.sign(np.float32(NAN))))


def test_remainders_of_zero_vary_with_the_dividend():
    """The correction of their sign is none of their derivative."""
    f = lambda x: pnp.remainder(x, -2.0)  # noqa: E731
    x = np.array([4.0, 3.5])
    assert np.signbit(np.asarray(f(x)))[0]
    step = plait.jit(lambda x: (f(x + 1e-6) - f(x - 1e-6)) / 2e-6)(x[1:])
    np.testing.assert_allclose(np.asarray(step), 1.0, rtol=1e-6)


# ---- special cases of complex functions ----------------------------------------------------

FREE = "free"
"""Marks parts whose sign the standard does not say."""
ANY = (NAN, NAN)
TABLES = {
    "acosh": [
        (0.0, 0.0, 0.0, PI / 2), (1.0, INF, INF, PI / 2), (2.5, NAN, *ANY),
        (0.0, NAN, NAN, PI / 2, FREE), (-INF, 1.0, INF, PI), (INF, 1.0, INF, 0.0),
        (-INF, INF, INF, 3 * PI / 4), (INF, INF, INF, PI / 4), (INF, NAN, INF, NAN),
        (-INF, NAN, INF, NAN), (NAN, 1.0, *ANY), (NAN, INF, INF, NAN), (NAN, NAN, *ANY),
        (-2.0, 0.0, math.acosh(2), PI),
    ],
    "asinh": [
        (0.0, 0.0, 0.0, 0.0), (1.0, INF, INF, PI / 2), (1.0, NAN, *ANY), (INF, 1.0, INF, 0.0),
        (INF, INF, INF, PI / 4), (INF, NAN, INF, NAN), (NAN, 0.0, NAN, 0.0), (NAN, 1e30, *ANY),
        (NAN, INF, INF, NAN, FREE), (NAN, NAN, *ANY), (0.0, 2.0, math.acosh(2), PI / 2),
    ],
    "atanh": [
        (0.0, 0.0, 0.0, 0.0), (0.0, NAN, 0.0, NAN), (1.0, 0.0, INF, 0.0), (1.0, INF, 0.0, PI / 2),
        (2.0, NAN, *ANY), (INF, 1.0, 0.0, PI / 2), (INF, INF, 0.0, PI / 2), (INF, NAN, 0.0, NAN),
        (NAN, 1.0, *ANY), (NAN, INF, 0.0, PI / 2, FREE), (NAN, NAN, *ANY),
    ],
    "cosh": [
        (0.0, 0.0, 1.0, 0.0), (0.0, INF, NAN, 0.0, FREE), (0.0, NAN, NAN, 0.0, FREE),
        (1.0, INF, *ANY), (1.0, NAN, *ANY), (INF, 0.0, INF, 0.0), (INF, 2.0, -INF, INF),
        (INF, INF, INF, NAN, FREE), (INF, NAN, INF, NAN), (NAN, 0.0, NAN, 0.0, FREE),
        (NAN, 1.0, *ANY), (NAN, NAN, *ANY),
    ],
    "exp": [
        (0.0, 0.0, 1.0, 0.0), (-0.0, 0.0, 1.0, 0.0), (1.0, INF, *ANY), (1.0, NAN, *ANY),
        (INF, 0.0, INF, 0.0), (-INF, 2.0, -0.0, 0.0), (INF, 2.0, -INF, INF),
        (-INF, INF, 0.0, 0.0, FREE), (INF, INF, INF, NAN, FREE), (-INF, NAN, 0.0, 0.0, FREE),
        (INF, NAN, INF, NAN, FREE), (NAN, 0.0, NAN, 0.0), (NAN, 1.0, *ANY), (NAN, NAN, *ANY),
    ],
    "expm1": [
        (0.0, 0.0, 0.0, 0.0), (-0.0, 0.0, 0.0, 0.0), (1.0, INF, *ANY), (1.0, NAN, *ANY),
        (INF, 0.0, INF, 0.0), (-INF, 2.0, -1.0, 0.0), (INF, 2.0, -INF, INF),
        (-INF, INF, -1.0, 0.0, FREE), (INF, INF, INF, NAN, FREE), (-INF, NAN, -1.0, 0.0, FREE),
        (INF, NAN, INF, NAN, FREE), (NAN, 0.0, NAN, 0.0), (NAN, 1.0, *ANY), (NAN, NAN, *ANY),
    ],
    "log": [
        (-0.0, 0.0, -INF, PI), (0.0, 0.0, -INF, 0.0), (1.0, INF, INF, PI / 2), (1.0, NAN, *ANY),
        (-INF, 1.0, INF, PI), (INF, 1.0, INF, 0.0), (-INF, INF, INF, 3 * PI / 4),
        (INF, INF, INF, PI / 4), (INF, NAN, INF, NAN), (-INF, NAN, INF, NAN), (NAN, 1.0, *ANY),
        (NAN, INF, INF, NAN), (NAN, NAN, *ANY), (-1.0, 0.0, 0.0, PI),
    ],
    "log1p": [
        (-1.0, 0.0, -INF, 0.0), (1.0, INF, INF, PI / 2), (1.0, NAN, *ANY), (-INF, 1.0, INF, PI),
        (INF, 1.0, INF, 0.0), (-INF, INF, INF, 3 * PI / 4), (INF, INF, INF, PI / 4),
        (INF, NAN, INF, NAN), (-INF, NAN, INF, NAN), (NAN, 1.0, *ANY), (NAN, INF, INF, NAN),
        (NAN, NAN, *ANY), (-2.0, 0.0, 0.0, PI),
    ],
    "sinh": [
        (0.0, 0.0, 0.0, 0.0), (0.0, INF, 0.0, NAN, FREE), (0.0, NAN, 0.0, NAN, FREE),
        (1.0, INF, *ANY), (1.0, NAN, *ANY), (INF, 0.0, INF, 0.0), (INF, 2.0, -INF, INF),
        (INF, INF, INF, NAN, FREE), (INF, NAN, INF, NAN, FREE), (NAN, 0.0, NAN, 0.0),
        (NAN, 1.0, *ANY), (NAN, NAN, *ANY),
    ],
    "sqrt": [
        (0.0, 0.0, 0.0, 0.0), (-0.0, 0.0, 0.0, 0.0), (1.0, INF, INF, INF), (-INF, INF, INF, INF),
        (NAN, INF, INF, INF), (1.0, NAN, *ANY), (-INF, 1.0, 0.0, INF), (INF, 1.0, INF, 0.0),
        (-INF, NAN, NAN, INF, FREE), (INF, NAN, INF, NAN), (NAN, 1.0, *ANY), (NAN, NAN, *ANY),
        (-4.0, 0.0, 0.0, 2.0),
    ],
    "tanh": [
        (0.0, 0.0, 0.0, 0.0), (1.0, INF, *ANY), (0.0, INF, 0.0, NAN), (1.0, NAN, *ANY),
        (0.0, NAN, 0.0, NAN), (INF, 1.0, 1.0, 0.0), (INF, 2.0, 1.0, 0.0),
        (INF, INF, 1.0, 0.0, FREE),
        (INF, NAN, 1.0, 0.0, FREE), (NAN, 0.0, NAN, 0.0), (NAN, 1.0, *ANY), (NAN, NAN, *ANY),
    ],
    "acos": [
        (0.0, 0.0, PI / 2, -0.0), (0.0, NAN, PI / 2, NAN), (1.0, INF, PI / 2, -INF),
        (2.0, NAN, *ANY), (-INF, 1.0, PI, -INF), (INF, 1.0, 0.0, -INF),
        (-INF, INF, 3 * PI / 4, -INF), (INF, INF, PI / 4, -INF), (INF, NAN, NAN, INF, FREE),
        (NAN, 1.0, *ANY), (NAN, INF, NAN, -INF), (NAN, NAN, *ANY), (2.0, 0.0, 0.0, -math.acosh(2)),
    ],
}  # fmt: skip
ODD = ("asinh", "atanh", "sinh", "tanh")
CIRCULAR = {"sin": "sinh", "tan": "tanh", "asin": "asinh", "atan": "atanh"}


def rows_of(name):
    """The table, with what follows by conjugation, negation and turning."""
    turned = name in CIRCULAR
    rows = TABLES[CIRCULAR[name] if turned else name]
    odd = turned or name in ODD
    out = []
    for x, y, a, b, *free in rows:
        cases = [(x, y, a, b), (x, -y, a, -b)]
        if odd:
            cases += [(-u, -v, -c, -d) for u, v, c, d in cases]
        if name == "cosh":
            cases += [(-u, -v, c, d) for u, v, c, d in cases]
        out += [((v, u, d, c) if turned else (u, v, c, d), bool(free)) for u, v, c, d in cases]
    return out


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_special_cases_of_complex_functions(dtype):
    names = [*TABLES, *CIRCULAR]
    tables = {n: rows_of(n) for n in names}
    zs = [np.array([complex(x, y) for (x, y, _, _), _ in tables[n]], dtype) for n in names]
    results = plait.jit(lambda zs: [getattr(pnp, n)(z) for n, z in zip(names, zs)])(zs)
    wrong = []
    for name, got in zip(names, results):
        assert got.dtype == dtype
        for ((x, y, a, b), free), w in zip(tables[name], np.asarray(got)):
            for have, want in ((w.real, a), (w.imag, b)):
                if free and not math.isnan(want):
                    have, want = abs(have), abs(want)
                same = (
                    math.isnan(have)
                    if math.isnan(want)
                    else (
                        math.isclose(have, want, rel_tol=1e-5)
                        and (free or math.copysign(1, have) == math.copysign(1, want))
                    )
                )
                if not same:
                    wrong.append((name, (x, y), w, (a, b)))
    assert not wrong, wrong


def test_moduli_and_directions():
    z = np.array([complex(INF, NAN), complex(NAN, -INF), complex(NAN, 1), complex(3, -4)])
    np.testing.assert_array_equal(np.asarray(pnp.abs(z)), [INF, INF, NAN, 5])
    z = np.array([0j, 3 - 4j, complex(NAN, 1), complex(INF, 2)])
    np.testing.assert_allclose(np.asarray(pnp.sign(z)), [0, 0.6 - 0.8j, complex(NAN, NAN), 1])


def test_complex_functions_where_nothing_is_special():
    rng = np.random.default_rng(0)
    z = rng.normal(size=50) + 1j * rng.normal(size=50)
    z[:4] = [1e-9 + 1e-9j, 800 + 1e-200j, 20 - 3j, -1e200 + 5j]
    names = [*TABLES, *CIRCULAR, "cos", "exp2", "log2", "log10"]
    results = plait.jit(lambda z: [getattr(pnp, n)(z) for n in names])(z)
    with np.errstate(all="ignore"):
        for name, got in zip(names, results):
            w = z[4:] if name in ("log1p", "expm1") else z  # numpy's are inexact near zero
            n = len(w)
            np.testing.assert_allclose(np.asarray(got)[-n:], getattr(np, name)(w), rtol=1e-11,
                                       err_msg=name)  # fmt: skip


# ---- what is asked of arrays and of the namespace ------------------------------------------


def test_the_namespace_of_arrays():
    x = pnp.ones(3)
    assert x.__array_namespace__() is pnp
    assert x.__array_namespace__(api_version="2022.12") is pnp
    with pytest.raises(TypeRule, match="is not known"):
        x.__array_namespace__(api_version="2099.12")
    assert plait.jit(lambda v: v.__array_namespace__().sum(v))(x) == 3


def test_the_info_of_the_namespace():
    info = pnp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] and info.capabilities()["data-dependent shapes"]
    assert info.default_device() == plait.devices()[0] and info.devices() == plait.devices()
    assert info.default_dtypes() == {
        "real floating": np.float32, "complex floating": np.complex64, "integral": np.int32,
        "indexing": np.int32,
    }  # fmt: skip
    assert sorted(info.dtypes(kind="real floating")) == ["float32", "float64"]
    assert sorted(info.dtypes(kind=("bool", "signed integer"))) == [
        "bool", "int16", "int32", "int64", "int8"
    ]  # fmt: skip
    assert len(info.dtypes()) == 13


def test_devices():
    first = plait.devices()[0]
    x = pnp.asarray(np.arange(3), device=first)
    assert x.device == first and x.to_device(first) is x
    for made in (
        pnp.zeros(2, device=first),
        pnp.arange(3, device=first),
        pnp.eye(2, device=first),
        pnp.full_like(x, 1, device=first),
        pnp.linspace(0, 1, 3, device=first),
    ):
        assert made.device == first
    assert plait.jit(lambda v: v * (v.device is None))(x).tolist() == [0, 1, 2]


def test_copies_by_choice():
    x = pnp.ones(3)
    assert pnp.asarray(x, copy=False) is x and pnp.asarray(x) is x
    assert pnp.asarray(x, copy=True) is not x
    for refused in (lambda: pnp.asarray([1.0], copy=False),
                    lambda: pnp.asarray(x, dtype="float64", copy=False)):  # fmt: skip
        with pytest.raises(CopyError, match="leave out copy=False"):
            refused()


def test_another_implementation_of_the_standard_says_the_same():
    """The functions that take arrays only, on one array, against array-api-strict."""
    strict = pytest.importorskip("array_api_strict")
    x = np.array([[0.5, -1.25, 2.0], [3.0, 0.25, -0.75]])
    left_out = ("bitwise_invert", "logical_not", "imag", "real", "conj", "nonzero")
    names = [n for n in CALLS["x /"].split() if n not in left_out and not n.startswith("unique")]
    results = plait.jit(lambda x: [getattr(pnp, n)(x) for n in names])(x)
    with np.errstate(all="ignore"):
        for name, got in zip(names, results):
            want = getattr(strict, name)(strict.asarray(x))
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-12, err_msg=name)


# ---- limits and dtypes -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "float8_e5m2"])
def test_finfo(name):
    """Limits are Python numbers, found here by halving and by the next number of the dtype."""
    info, dtype = pnp.finfo(name), pnp.dtype(name).type
    kinds = {type(getattr(info, n)) for n in ("eps", "max", "min", "tiny", "smallest_normal")}
    assert kinds == {float} and type(info.bits) is int and info.dtype == name
    assert info.bits == 8 * pnp.dtype(name).itemsize and info.min == -info.max
    eps = 1.0
    while dtype(1 + eps / 2) != dtype(1):
        eps /= 2
    assert info.eps == eps
    with np.errstate(over="ignore"):
        assert float(dtype(info.max)) == info.max and not np.isfinite(dtype(info.max) * dtype(2))
    x = pnp.ones(2, name)
    assert (x * info.eps).dtype == x.dtype  # a Python number takes the dtype it meets


def test_finfo_of_complex_and_of_none():
    assert pnp.finfo("complex128").dtype == np.float64
    assert pnp.finfo(pnp.ones(1, "complex64")).eps == 2.0**-23
    for f, wrong in ((pnp.finfo, "int8"), (pnp.finfo, bool), (pnp.iinfo, "float32")):
        with pytest.raises(TypeRule, match="is no"):
            f(wrong)


@pytest.mark.parametrize(
    "other", [{}, {"a": 1}, [], [("a", int)], "float32", None, 3, object(), np.ones(2), {1: 2}]
)
def test_scalar_types_are_not_equal_to_others(other):
    assert not np.any(pnp.float32 == other) and np.all(pnp.float32 != other)


def test_scalar_types_are_equal_to_their_dtypes():
    for name in ("bool", "int8", "uint64", "float32", "complex128"):
        one = getattr(pnp, name)
        assert one == np.dtype(name) == one and one == np.dtype(name).type and hash(one)
        assert [n for n in ("int8", "float32") if getattr(pnp, n) == one] in ([], [name])
