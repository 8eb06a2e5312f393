"""plait.numpy, element by element, against numpy: dtypes, edge values, broadcasting, errors.

Invariant: what is compared with is computed by numpy, in float64 or complex128; every function
runs at once and compiled.
"""

import inspect
import itertools
import operator

import ml_dtypes
import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import TypeRule

BF16 = np.dtype(ml_dtypes.bfloat16)
RTOL = {"float64": 1e-12, "complex128": 1e-12, "float32": 3e-6, "complex64": 3e-6,
        "float16": 2e-3, "bfloat16": 2e-2}  # fmt: skip
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-30, 3.7e4, np.inf, -np.inf, np.nan]


def wide(x):
    """As numpy computes best with it."""
    x = np.asarray(x)
    if x.dtype == BF16 or x.dtype.kind == "f":
        return x.astype(np.float64)
    return x.astype(np.complex128) if x.dtype.kind == "c" else x


def same(got, want, rtol=None, dtype=None):
    """Equal in shape, dtype and, within `rtol`, in value."""
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w, rtol, dtype)
        return
    got_dtype, want = got.dtype, np.asarray(want)
    assert got.shape == want.shape
    if dtype is not None:
        assert got_dtype == dtype, (got_dtype, dtype)
    got = wide(got)
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    tol = RTOL[got_dtype.name] if rtol is None else rtol
    with np.errstate(all="ignore"):
        want = wide(want.astype(got_dtype)) if want.dtype.kind in "fc" else want
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def both(f, *args, **how):
    """`f` at once and compiled, which agree; returns the former."""
    eager = f(*args, **how)
    compiled = plait.jit(lambda *xs: f(*xs, **how))(*args)
    for a, b in zip(plait.tree.leaves(eager), plait.tree.leaves(compiled), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.weak_type == b.weak_type
        x, y = wide(a), wide(b)
        if x.dtype.kind in "fc":
            tol = RTOL[a.dtype.name]
            np.testing.assert_allclose(x, y, rtol=tol, atol=tol)
        else:
            np.testing.assert_array_equal(x, y)
    return eager


def floats(dtype):
    """float32 for integers and booleans."""
    d = np.dtype(dtype)
    return d if d == BF16 or d.kind in "fc" else np.dtype(np.float32)


# ---- functions of one array ----------------------------------------------------------------

POINTS = np.array([0.0, 0.3, -0.3, 0.9, 1.0, 2.5, -1.7, 7.0], np.float64)
SMALL = POINTS.clip(-1, 1)
POSITIVE = np.abs(POINTS)
LARGE = POSITIVE + 1

TRANSCENDENTAL = {
    "exp": POINTS, "expm1": POINTS, "log": POSITIVE, "log1p": POSITIVE, "sin": POINTS,
    "cos": POINTS, "tan": SMALL, "arcsin": SMALL, "arccos": SMALL, "arctan": POINTS,
    "sinh": POINTS, "cosh": POINTS, "tanh": POINTS, "arcsinh": POINTS, "arccosh": LARGE,
    "arctanh": SMALL * 0.9, "sqrt": POSITIVE, "exp2": POINTS, "log2": POSITIVE,
    "log10": POSITIVE, "sinc": POINTS,
}  # fmt: skip
REAL_ONLY = {"cbrt": POINTS, "deg2rad": POINTS, "rad2deg": POINTS, "radians": POINTS,
             "degrees": POINTS, "fabs": POINTS, "rint": POINTS}  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", [*TRANSCENDENTAL, *REAL_ONLY])
def test_functions_of_one_array(name):
    points = {**TRANSCENDENTAL, **REAL_ONLY}[name]
    f, ref = getattr(pnp, name), getattr(np, name)
    dtypes = [np.float32, np.float64, BF16, np.float16, np.int32, np.bool_]
    dtypes += [np.complex64, np.complex128] if name in TRANSCENDENTAL else []
    for d in dtypes:
        x = points.astype(d)
        with np.errstate(all="ignore"):
            want = ref(wide(x).astype(float) if np.dtype(d).kind in "ib" else wide(x))
        want = np.asarray(want)
        finite = np.isfinite(want)
        tol = 20 * RTOL[floats(d).name] if np.dtype(d).kind == "c" else 2 * RTOL[floats(d).name]
        got = both(f, x) if d in (np.float32, np.complex64) else f(x)
        assert got.dtype == floats(d), (name, d)
        np.testing.assert_allclose(wide(got)[finite], want[finite], rtol=tol, atol=tol)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", [
    "exp", "log", "log1p", "sin", "cos", "tanh", "arcsin", "arctan", "sqrt", "cbrt", "exp2", "log2",
    "log10", "sinh", "expm1", "sinc", "floor", "ceil", "trunc", "rint", "fix", "abs", "sign",
    "negative", "square", "reciprocal", "positive", "isnan", "isinf", "isfinite", "signbit",
    "isposinf", "isneginf", "logical_not", "fabs", "nan_to_num", "modf", "frexp", "spacing",
])  # fmt: skip
def test_edge_values(name):
    for dtype in (np.float32, np.float64):
        x = np.array(EDGES, dtype)
        if name == "fabs" or name == "fix":
            x = x[np.isfinite(x)]
        with np.errstate(all="ignore"):
            want = getattr(np, name)(x)
        got = both(getattr(pnp, name), x)
        same(got, want)
        for g, w in zip(plait.tree.leaves(got), plait.tree.leaves(want)):
            w = np.asarray(w)
            if w.dtype.kind == "f" and name not in ("sinc", "spacing", "sign"):
                zero = (np.asarray(w) == 0) & (np.asarray(g) == 0)
                assert (np.signbit(np.asarray(g)) == np.signbit(w))[zero].all(), "sign of zeros"


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "abs", "positive", "sign",
                                  "negative", "square"])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint32])
def test_integers_stay_integers(name, dtype):
    x = np.array([0, 1, 5, 7], dtype) if dtype == np.uint32 else np.array([0, 1, -5, 7], dtype)
    got = getattr(pnp, name)(x)
    same(got, getattr(np, name)(x), dtype=dtype)


def test_booleans():
    x = np.array([True, False])
    for name in ("abs", "floor", "ceil", "trunc", "round", "logical_not", "invert"):
        got = getattr(pnp, name)(x)
        assert got.dtype == bool, name
    for name in ("negative", "positive", "sign", "subtract"):
        with pytest.raises(TypeRule):
            getattr(pnp, name)(*([x, x] if name == "subtract" else [x]))


@pytest.mark.parametrize("decimals", [0, 1, 3, -1, -2])
def test_round(decimals):
    x = np.array([0.5, 1.5, 2.5, -0.5, 12.345, 1234.5678, 1e30, np.inf, np.nan])
    same(both(pnp.round, x, decimals=decimals), np.round(x, decimals))
    same(pnp.around(x.astype(np.float32), decimals), np.round(x, decimals), rtol=1e-5)
    whole = np.array([0, 5, 14, 15, 25, 26, -15, -25, 1250, 150], np.int32)
    same(both(pnp.round, whole, decimals=decimals), np.round(whole, decimals), dtype=np.int32)
    z = np.array([1.234 + 5.678j])
    same(pnp.round(z, decimals), np.round(z, decimals))
    assert pnp.round(np.float32(3e38), 3) == np.float32(3e38)
    assert pnp.round(np.array([2.5, 3.5], BF16)).dtype == BF16


def test_complex_parts():
    z = np.array([1 + 2j, -3 - 0.5j, 0j, -1 + 0j], np.complex64)
    for name in ("real", "imag", "conj", "conjugate", "abs", "angle", "square", "sign", "exp",
                 "isreal", "iscomplex", "isnan", "isfinite", "isinf"):  # fmt: skip
        same(both(getattr(pnp, name), z), getattr(np, name)(z))
    same(pnp.angle(z, deg=True), np.angle(z, deg=True))
    x = np.array([1.0, -2.0], np.float32)
    for name in ("real", "imag", "conj", "angle", "isreal", "iscomplex"):
        same(both(getattr(pnp, name), x), getattr(np, name)(x), dtype=getattr(np, name)(x).dtype)
    assert pnp.iscomplexobj(z) and not pnp.iscomplexobj(1.0) and pnp.isrealobj(x)
    for m in (pnp, np):  # numpy looks for a dtype, and None has none
        assert m.iscomplexobj(None) is False and m.isrealobj(None) is True
    odd = np.array([complex(np.nan, 1), complex(1, np.inf), complex(1, 2)])
    for name in ("isnan", "isinf", "isfinite"):
        same(getattr(pnp, name)(odd), getattr(np, name)(odd))


def test_exp2_and_logarithms_of_powers_of_two_are_exact():
    n = np.arange(-20, 21)
    np.testing.assert_array_equal(np.asarray(pnp.exp2(n.astype(np.float32))), 2.0**n)
    np.testing.assert_allclose(np.asarray(pnp.log2((2.0**n).astype(np.float32))), n, rtol=3e-7)


# ---- functions of two arrays ---------------------------------------------------------------

A = np.array([0.0, 1.0, -1.0, 2.5, -7.25, 3.0], np.float64)
B = np.array([1.0, -2.0, 0.5, 3.0, 4.0], np.float64)
NUMBERS = ["add", "subtract", "multiply", "divide", "true_divide"]
REALS = ["floor_divide", "remainder", "mod", "fmod", "maximum", "minimum", "fmax", "fmin",
         "arctan2", "hypot", "logaddexp", "logaddexp2", "copysign", "heaviside",
         "divmod"]  # fmt: skip
COMPARE = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and",
           "logical_or", "logical_xor"]  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", [*NUMBERS, *REALS, *COMPARE])
def test_functions_of_two_arrays(name):
    f, ref = getattr(pnp, name), getattr(np, name)
    dtypes = [np.float32, np.float64, np.float16, BF16, np.int32, np.int8]
    for d in dtypes:
        x, y = A.astype(d)[:, None], B.astype(d)
        if np.dtype(d).kind == "i":
            y = np.array([1, -2, 3, 4, -5], d)
        inexact = name in ("divide", "true_divide", "arctan2", "hypot", "logaddexp", "logaddexp2",
                           "copysign", "heaviside")  # fmt: skip
        want = ref(*[wide(v).astype(float) if inexact else wide(v) for v in (x, y)])
        got = both(f, x, y) if d in (np.float32, np.int32) else f(x, y)
        tol = None
        if np.asarray(plait.tree.leaves(got)[0]).dtype.kind not in "biu":
            tol = 2 * RTOL[plait.tree.leaves(got)[0].dtype.name]
        same(got, want, rtol=tol)
        if name in REALS and name in ("maximum", "minimum", "fmax", "fmin", "remainder", "fmod"):
            assert got.dtype == d


@pytest.mark.parametrize("name", [*NUMBERS, "power", "equal", "less", "greater_equal", "maximum"])
def test_complex_operands(name):
    if name == "maximum":
        return
    x = np.array([1 + 2j, 1 - 2j, -0.5j, 2], np.complex128)[:, None]
    y = np.array([1 + 2j, 1 + 1j, 3, -2j], np.complex128)
    same(both(getattr(pnp, name), x, y), getattr(np, name)(x, y), rtol=1e-10)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "maximum", "minimum", "fmax",
                                  "fmin", "arctan2", "hypot", "copysign", "heaviside", "logaddexp",
                                  "less", "equal", "nextafter"])  # fmt: skip
def test_edge_values_of_pairs(name):
    x, y = np.array(EDGES)[:, None], np.array(EDGES)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    if name == "floor_divide":  # numpy: nan or inf where the quotient is; ours: the same
        ok = np.isfinite(x) & np.isfinite(y) & (y != 0)
        got = both(pnp.floor_divide, x, y)
        np.testing.assert_array_equal(np.asarray(got)[ok], want[ok])
        return
    same(both(getattr(pnp, name), x, y), want)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32])
def test_integer_division_is_numpys(dtype):
    values = [0, 1, 2, 3, 7, 100] if np.dtype(dtype).kind == "u" else [0, 1, -1, 3, -7, 100]
    x = np.array(values, dtype)[:, None]
    y = np.array([v for v in values if v], dtype)
    for name in ("floor_divide", "remainder", "fmod", "divmod"):
        same(getattr(pnp, name)(x, y), getattr(np, name)(x, y), dtype=dtype)


INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_divided_by_zero_are_zero_as_numpys(dtype):
    info = np.iinfo(dtype)
    x = np.array([0, 1, 5, 7, info.max, info.max - 1, info.min], dtype)[:, None]
    y = np.array([0, 1, 3, info.max, info.min, 0], dtype)
    with np.errstate(all="ignore"):
        for name in ("floor_divide", "remainder", "mod", "fmod", "divmod"):
            want = getattr(np, name)(x, y)
            same(both(getattr(pnp, name), x, y), want, dtype=dtype)
        for f in (lambda a, b: a // b, lambda a, b: a % b, divmod):
            same(f(pnp.asarray(x), pnp.asarray(y)), f(x, y), dtype=dtype)
            same(f(pnp.asarray(x), 0), f(x, np.zeros((), dtype)), dtype=dtype)
            same(f(pnp.asarray(x), 3), f(x, np.asarray(3, dtype)), dtype=dtype)
        same(pnp.remainder.outer(x[:, 0], y), np.remainder.outer(x[:, 0], y))
    same(pnp.fmod(5, 0), 0)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_negative_powers_of_integers_are_cut_off_at_the_point(dtype):
    bases = np.array([0, 1, -1, 2, -2, 3, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    exponents = np.array(
        [-1, -2, -3, -8, -127, np.iinfo(dtype).min, np.iinfo(dtype).min + 1], dtype
    )
    # 1 / x ** n, towards zero; of zero nothing is left, as in jax
    want = [[1 if b == 1 else (-1) ** (int(n) % 2) if b == -1 else 0 for n in exponents]
            for b in bases]  # fmt: skip
    got = both(pnp.power, bases[:, None], exponents)
    same(got, np.array(want, dtype), dtype=dtype)
    same(pnp.asarray(bases)[:, None] ** exponents, np.array(want, dtype), dtype=dtype)
    whole = np.array([0, 1, 2, 3], dtype)  # others beside negative ones are numpy's
    mixed = pnp.power(bases[:, None], np.concatenate([exponents, whole]))
    same(mixed[:, -4:], np.power(bases[:, None], whole), dtype=dtype)


def test_power():
    x = np.array([0.5, 2.0, 3.0], np.float32)
    for y in (0, 1, 2, 3, -1, -2, 0.5, np.float32(1.5)):
        same(both(lambda v, y=y: pnp.power(v, y), x), np.power(x, y))
    same(pnp.power(2, np.arange(5)), 2 ** np.arange(5))
    same(pnp.power(np.array([-3, 2], np.int32), np.array([3, 10], np.int32)), [-27, 1024])
    same(pnp.float_power(np.array([2, 3]), 2), [4.0, 9.0], dtype=np.float32)
    same(pnp.float_power(np.array([2, 4]), -1), [0.5, 0.25])
    with pytest.raises(TypeRule, match="negative power"):
        pnp.power(np.array([2, 3]), -1)


def test_clip():
    x = np.array([-5.0, 0.5, np.nan, 9.0, np.inf])
    for low, high in ((0, 1), (None, 1), (0, None), (2, 1), (np.array([0, 1, 2, 3, 4]), 3.5)):
        same(both(pnp.clip, x, min=low, max=high) if not isinstance(low, np.ndarray)
             else pnp.clip(x, low, high), np.clip(x, low, high))  # fmt: skip
    assert pnp.clip(np.arange(4, dtype=np.int8), 1, 2).dtype == np.int8
    assert pnp.clip(np.arange(4), 0.5, 2).tolist() == [0.5, 1.0, 2.0, 2.0]
    with pytest.raises(TypeRule, match="complex numbers cannot be clipped"):
        pnp.clip(1j, 0, 1)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift",
                                  "right_shift"])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.uint64])
def test_bits(name, dtype):
    x = np.array([0, 1, 6, 100, 127], dtype)[:, None]
    x = x if np.dtype(dtype).kind == "u" else np.concatenate([x, -x])
    y = np.array([0, 1, 3, 5], dtype)
    same(both(getattr(pnp, name), x, y), getattr(np, name)(x, y), dtype=dtype)
    same(pnp.invert(x), np.invert(x))
    same(pnp.bitwise_count(x), np.bitwise_count(x), dtype=np.uint8)
    if "shift" not in name:
        b = np.array([True, False])
        same(getattr(pnp, name)(b, b[::-1]), getattr(np, name)(b, b[::-1]), dtype=bool)
    with pytest.raises(TypeRule):
        getattr(pnp, name)(1.0, 2.0)


def test_gcd_and_lcm():
    x = np.array([0, 12, -18, 7, 100], np.int32)[:, None]
    y = np.array([0, 8, 27, -21], np.int32)
    same(both(pnp.gcd, x, y), np.gcd(x, y), dtype=np.int32)
    same(both(pnp.lcm, x, y), np.lcm(x, y), dtype=np.int32)
    same(pnp.gcd(12, 18), 6)
    with pytest.raises(TypeRule, match="gcd is for integers"):
        pnp.gcd(1.0, 2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_frexp_and_ldexp(dtype):
    info = np.finfo(dtype)
    x = np.array([0.0, -0.0, 1.0, -3.5, info.tiny, info.smallest_subnormal, info.max, 0.1, np.inf,
                  np.nan], dtype)  # fmt: skip
    mantissa, exponent = pnp.frexp(x)
    m, e = np.frexp(x)
    finite = np.isfinite(x)
    subnormal = np.abs(x) == info.smallest_subnormal  # which some compilers flush to zero
    ok = finite & ~subnormal
    np.testing.assert_array_equal(np.asarray(mantissa)[ok], m[ok])
    np.testing.assert_array_equal(np.asarray(exponent)[ok], e[ok])
    back = np.asarray(pnp.ldexp(mantissa, exponent))
    np.testing.assert_array_equal(back[ok], x[ok])
    n = np.array([0, 5, -5, 30, 400, -400])
    with np.errstate(all="ignore"):
        want = np.ldexp(np.array([1.5, -0.75], dtype)[:, None], n)
    got = np.asarray(pnp.ldexp(np.array([1.5, -0.75], dtype)[:, None], n))
    normal = (np.abs(want) >= info.tiny) | (want == 0)
    np.testing.assert_array_equal(got[normal], want[normal])


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint16, np.uint32, np.uint64])
def test_ldexp_of_any_exponent(dtype, kind):
    rng = np.random.default_rng(0)
    ends, info = np.iinfo(kind), np.finfo(dtype)
    far = np.array([ends.min, ends.max, ends.max - 1, 0, 1, 2], kind)
    reach = np.arange(-2200, 2200, 13)
    near = reach[(reach >= ends.min) & (reach <= ends.max)].astype(kind)
    n = np.concatenate([far, near])
    x = np.array([1.0, -1.5, info.max, info.tiny, 0.0, -0.0, np.inf, np.nan], dtype)
    x = np.concatenate(
        [x, np.ldexp(rng.standard_normal(30), rng.integers(-14, 14, 30)).astype(dtype)]
    )
    x = x[:, None]
    with np.errstate(all="ignore"):
        want = np.ldexp(x, np.clip(n.astype(object), -10000, 10000).astype(np.int32))
    got = np.asarray(both(pnp.ldexp, x, n))
    sure = (np.abs(want) >= info.tiny) | (want == 0) | np.isnan(want)  # the rest may be flushed
    np.testing.assert_array_equal(got[sure], want[sure])
    assert (np.abs(got[~sure] - want[~sure]) <= np.abs(want[~sure])).all()
    assert np.isinf(np.asarray(pnp.ldexp(x[0], far[1:2]))).all() or kind is np.int8


def test_nan_to_num():
    x = np.array([np.nan, np.inf, -np.inf, 2.0], np.float32)
    same(both(pnp.nan_to_num, x), np.nan_to_num(x))
    how = dict(nan=1.0, posinf=2.0, neginf=-3.0)
    same(both(pnp.nan_to_num, x, **how), np.nan_to_num(x, **how))
    z = np.array([complex(np.nan, np.inf), 1 - 2j])
    same(pnp.nan_to_num(z), np.nan_to_num(z))
    same(pnp.nan_to_num(np.arange(3)), np.arange(3))


# ---- closeness -----------------------------------------------------------------------------


def test_isclose_and_friends():
    x = np.array([1.0, 1.0 + 1e-9, 2.0, np.nan, np.inf, -np.inf, 0.0])
    y = np.array([1.0, 1.0, 2.1, np.nan, np.inf, np.inf, 1e-9])
    for nan in (False, True):
        same(both(pnp.isclose, x, y, equal_nan=nan), np.isclose(x, y, equal_nan=nan))
        assert bool(pnp.array_equal(x, x, nan)) == np.array_equal(x, x, nan)
    same(pnp.isclose(x, y, rtol=0.1), np.isclose(x, y, rtol=0.1))
    big = np.array([2**31 - 1, -(2**31)], np.int32)
    same(pnp.isclose(big, big[::-1]), [False, False])
    assert bool(pnp.allclose(x[:2], y[:2])) and not bool(pnp.allclose(x, y))
    assert not bool(pnp.array_equal([1, 2] and np.arange(2), np.arange(3)))
    assert bool(pnp.array_equiv(np.ones((2, 3)), np.ones(3)))
    assert not bool(pnp.array_equiv(np.ones(2), np.ones(3)))
    assert pnp.array_equal(np.arange(2), np.arange(2)).dtype == bool


# ---- types ---------------------------------------------------------------------------------


def test_promotion_is_numpys_with_weak_scalars():
    for d in (np.int8, np.float16, np.float32, np.float64, np.complex64):
        x = np.ones(2, d)
        assert pnp.add(x, 1).dtype == d and pnp.multiply(2, x).dtype == d
    assert pnp.add(np.ones(2, np.int8), 1.5).dtype == np.float32
    assert pnp.add(np.ones(2, np.int8), np.ones(2, np.int32)).dtype == np.int32
    assert pnp.add(np.ones(2, np.int32), np.ones(2, np.float16)).dtype == np.float16
    assert pnp.sin(1).dtype == np.float32 and pnp.sin(1).weak_type
    assert pnp.divide(1, 2).dtype == np.float32
    assert pnp.maximum(1, 2.0).weak_type


def test_signatures_are_those_of_ufuncs():
    for name in ("sin", "add", "negative", "floor", "maximum", "arctan2", "bitwise_and"):
        f = getattr(pnp, name)
        assert f.__name__ == name and f.__doc__ and f"numpy.{name}" in f.__doc__
        taken = inspect.signature(f).parameters.values()
        arrays = [p for p in taken if p.kind is p.POSITIONAL_ONLY]
        assert len(arrays) == getattr(np, name).nin
        with pytest.raises(TypeError):
            f()
        with pytest.raises(TypeError):
            f(1, 2, 3)


@pytest.mark.parametrize("bad", [[1, 2], "text", None, (1,), {1: 2}, object()])
def test_what_is_no_array_is_refused(bad):
    for f in (pnp.sin, pnp.floor, pnp.logical_not, lambda x: pnp.add(x, 1), pnp.isnan, pnp.round):
        with pytest.raises(TypeRule, match="is not an array"):
            f(bad)


class Wrapped:
    def __init__(self, x, method):
        self.x = x
        setattr(type(self), method, lambda self: self.x)


@pytest.mark.feature("C04")
@pytest.mark.parametrize("method", ["__plait_array__", "__jax_array__"])
def test_objects_that_convert_are_accepted(method):
    kind = type("Wrapped", (Wrapped,), {})
    x = np.array([0.5, 1.0], np.float32)
    obj = kind(x, method)
    assert pnp.sin(obj).tolist() == pnp.sin(x).tolist()
    assert pnp.add(obj, obj).tolist() == [1.0, 2.0]
    assert plait.jit(pnp.cos)(obj).tolist() == pnp.cos(x).tolist()
    assert float(pnp.sum(obj)) == 1.5 and float(pnp.where(True, obj, obj)[0]) == 0.5


@pytest.mark.feature("C05")
def test_questions_about_objects_that_convert():
    kind = type("Wrapped", (Wrapped,), {})
    obj, x = kind(np.float32(1), "__jax_array__"), pnp.array(np.float32(1))
    for f in (pnp.isscalar, pnp.size, pnp.shape, pnp.ndim, pnp.dtype, pnp.result_type):
        assert f(obj) == f(x), f


def test_broadcasting_errors_say_the_shapes():
    with pytest.raises(Exception, match=r"3.*4|4.*3"):
        pnp.add(np.ones(3), np.ones(4))


def test_nothing_is_added_over_the_primitive():
    """One equation for one function: constants and conversions are literals."""
    x = pnp.ones((3,))
    for f in (lambda x: pnp.sin(x), lambda x: pnp.add(x, 1), lambda x: pnp.where(True, x, 0.0),
              lambda x: pnp.maximum(x, 0), lambda x: pnp.less(x, 1)):  # fmt: skip
        eqns = plait.make_program(f)(x).eqns
        assert len([e for e in eqns if e.prim.name != "core.broadcast_in_dim"]) == 1


def test_derivative_free_edges_of_hypot_and_logaddexp():
    grid = [0.0, 1.0, -2.0, 1e30, -np.inf, np.inf]
    for a, b in itertools.product(grid, grid):
        x, y = np.float32(a), np.float32(b)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(np.asarray(pnp.hypot(x, y)), np.hypot(x, y), rtol=1e-6)
            np.testing.assert_allclose(
                np.asarray(pnp.logaddexp(x, y)), np.logaddexp(x, y), rtol=1e-6
            )


COMPLEX_NUMBERS = [1 + 2j, 1 - 2j, 1 + 2j, -0.5j, 2, complex(np.inf, 1), complex(1, np.inf), 0]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_operators_order_complex_numbers_by_parts(name, dtype):
    """By real part; where these are equal, by imaginary part: also beside real numbers."""
    op, x = getattr(operator, name), np.array(COMPLEX_NUMBERS, dtype)
    others = [x[::-1], x[:, None], x[0], 1, 1.0, True, 1 - 2j, x.real, np.arange(8)]
    for y in others:
        want = op(x, y)
        for f in (op, plait.jit(op)):
            same(f(pnp.asarray(x), y), want)
            same(f(y, pnp.asarray(x)), op(y, x))


def test_keys_have_no_order():
    key = plait.random.key(0)
    for op in (operator.lt, operator.ge):
        for pair in ((key, key), (key, 1), (key, pnp.ones(2)), (pnp.ones(2), key)):
            with pytest.raises(TypeRule):
                op(*pair)


def test_comparing_functions_answer_for_integers_out_of_bounds():
    """As the operators do: 300 is greater than all of uint8."""
    x = np.array([0, 255], np.uint8)
    for name in ("less", "less_equal", "greater", "greater_equal", "equal"):
        same(getattr(pnp, name)(x, 300), getattr(np, name)(x.astype(int), 300))
