"""Compiled programs return what their operations return: the patterns of the compiler's.

Invariant: results are compared with numpy's, operation by operation.
"""

import re

import ml_dtypes
import numpy as np
import pytest

import plait
from plait import lax
from plait._xla import apart, mlir, value_numbers
from plait.ext.ir import Var
from plait.ext.lower import module_of

pnp = plait.numpy
F16, F32, F64 = np.float16, np.float32, np.float64
BF16 = ml_dtypes.bfloat16


def either(m, v):
    """Return the values, chosen among themselves."""
    return m.where(m.isfinite(v), v, v)


def twice(m, v):
    """Return the values, the greater of each and itself."""
    return m.maximum(v, v)


def bounded(m, v):
    """Return the values, between two numbers."""
    return m.minimum(m.maximum(v, F32(0)), F32(1)) if m is np else lax.clamp(F32(0), v, F32(1))


SAME = {
    "quotient of quotient": (lambda m, x, y, z: x / y / z, F16, (60000, 300, 300)),
    "by a quotient": (lambda m, x, y, z: x / (y / z), F16, (500, 300, 200)),
    "quotients": (lambda m, x, y, z, w: (x / y) / (z / w), F16, (500, 400, 300, 200)),
    "reciprocals": (lambda m, x: 1 / (1 / x), F32, (1e39,)),
    "in float32": (lambda m, x, y: x / y / y, F32, (1e30, 1e20)),
    "in float64": (lambda m, x, y: x / y / y, F64, (1e300, 1e200)),
    "in bfloat16": (lambda m, x, y: x / y / y, BF16, (1e30, 1e20)),
    "by a root": (lambda m, x, y: x / m.sqrt(y), F32, (1.0, np.inf)),
    "by the greatest": (lambda m, x: x / F32(3e38), F32, (3e38,)),
    "by a number": (lambda m, x: m.floor(x / F32(49)), F32, (49.0,)),
    "of products": (lambda m, x: x * F16(300) * F16(300), F16, (1e-3,)),
    "product of small": (lambda m, x: x * F32(1e-30) * F32(1e-30), F32, (1e30,)),
    "by numbers": (lambda m, x: x / F32(1e25) / F32(1e25), F32, (1e30,)),
    "to whole numbers": (lambda m, x: (x + F32(12582912)) - F32(12582912), F32, (1.4,)),
    "means": (lambda m, x, y: x * F32(0.5) + y * F32(0.5), F32, (3e38, 3e38)),
    "zero": (lambda m, x: 1 / (x + F32(0)), F32, (-0.0,)),
    "abs and nan": (lambda m, x: m.where(abs(x) >= 0, F32(1), F32(2)), F32, (np.nan,)),
    "square and nan": (lambda m, x: m.where(x * x >= 0, F32(1), F32(2)), F32, (np.nan,)),
    "greater and nan": (lambda m, x: m.maximum(abs(x), F32(1)) >= 0, F32, (np.nan,)),
    "at least 1 and nan": (lambda m, x: m.maximum(x, F32(1)) >= 0, F32, (np.nan,)),
    "bounded and nan": (lambda m, x: bounded(m, x) >= 0, F32, (np.nan,)),
    "root of a square": (lambda m, x: m.sqrt(x * x), F32, (1e30,)),
    "mask of infinity": (lambda m, x: x * (x < 0).astype(F32), F32, (np.inf,)),
    "log of a power": (lambda m, x, y: m.log(m.power(x, y)), F32, (-2, 3)),
    "log of a power of 1": (lambda m, x, y: m.log(m.power(x, y)), F32, (1, np.nan)),
    "log of exp": (lambda m, x: m.log(m.exp(x)), F32, (200,)),
    "quotient of exp": (lambda m, x, y: m.exp(x) / m.exp(y), F32, (100, 99)),
    "product of exp": (lambda m, x, y: m.exp(x) * m.exp(y), F32, (90, -80)),
    "rounded between": (lambda m, x, y: (x * y) * y, F16, (300, 300)),
    "square": (lambda m, x: abs(x * x), np.int32, (50000,)),
    "square of int8": (lambda m, x: abs(x * x), np.int8, (12,)),
    "sign of a square": (lambda m, x: m.where(x * x < 0, -1, 1), np.int32, (50000,)),
    "half of a square": (lambda m, x: x * x // 2, np.int32, (50000,)),
    "half of the least": (lambda m, x: abs(x) // 2, np.int32, (-(2**31),)),
    "quotient behind a choice": (
        lambda m, x, y, z: either(m, x / y) / z, F16, (60000, 300, 300)),
    "quotient behind an extreme": (
        lambda m, x, y, z: m.maximum(x / y, x / y) / z, F16, (60000, 300, 300)),
    "quotient behind 1": (lambda m, x, y, z: x / y * F16(1) / z, F16, (60000, 300, 300)),
    "negated product": (lambda m, x: -(x * F32(1e30)) * F32(1e-30), F32, (1e20,)),
    "negated quotient": (lambda m, x, y, z: -(x / y) / z, F16, (60000, 300, 300)),
    "halved product": (lambda m, x: x * F16(-65504) / F16(2), F16, (2,)),
    "mask behind an extreme": (
        lambda m, x: 1 / (twice(m, m.isfinite(x).astype(F32)) * F32(-1e-13)), F32, (np.inf,)),
    "mask as a whole number": (
        lambda m, x: x * (x < 0).astype(np.int32).astype(F32), F32, (np.inf,)),
    "mask by itself": (
        lambda m, x: (lambda v: v / v)((x > x).astype(F32)), np.int32, (3,)),
    "chosen mask by a mask": (
        lambda m, x: (lambda v: m.where(x < x, v, v) / v)((x < x).astype(F16)), np.int32, (3,)),
    "sum in a function": (
        lambda m, x: m.arccosh(m.maximum(x, x) + F16(1.001)), F16, (1.2e-4,)),
    "complex sums of numbers": (
        lambda m, x: ((x + np.complex64(1e8)) - np.complex64(1e8)).real, np.complex64, (1.4,)),
    "sum of one sum": (
        lambda m, x: m.sum((x + F32(12582912)).reshape(3, 1), axis=1) - F32(12582912),
        F32, (1.4,)),
    "dot of a product": (
        lambda m, x: (x * F32(1e30)).reshape(3, 1) @ m.full((1, 2), 1e30, F32) * F32(1e-30),
        F32, (1e-30,)),
    "product of a dot": (
        lambda m, x: (x.reshape(3, 1) @ m.full((1, 1), 1e30, F32)) * F32(1e-30), F32, (1e20,)),
}  # fmt: skip


def compared(f, dtype, values, way):
    """Compare a function of numpy's or ours, applied in one way, with numpy's."""
    given = [np.full(3, v, dtype) for v in values]
    with np.errstate(all="ignore"):
        want = np.asarray(f(np, *given))
    got = np.asarray(way(lambda *xs: f(pnp, *xs))(*given))
    np.testing.assert_allclose(got.astype(F64), want.astype(F64), rtol=2e-3, atol=0)


def branch(f):
    return plait.jit(lambda *xs: lax.cond(xs[0].sum() != 12345, f, f, *xs))


def inner(f):
    return plait.jit(lambda *xs: plait.jit(f)(*xs))


def loop(f):
    return plait.jit(lambda *xs: lax.scan(lambda c, _: (c, f(*xs)), 0, None, length=2)[1][1])


@pytest.mark.parametrize("name", SAME)
def test_jit(name):
    with np.errstate(all="ignore"):
        compared(*SAME[name], plait.jit)


@pytest.mark.parametrize("way", [branch, inner, loop], ids=lambda w: w.__name__)
@pytest.mark.parametrize("name", ["quotient of quotient", "abs and nan", "sign of a square"])
def test_inside(name, way):
    compared(*SAME[name], way)


def by_parts(program, wrap):
    """Return a function that computes a program, each operation in one of `wrap`'s making."""
    made = {}

    def run(*xs):
        env = {**dict(zip(program.inputs, xs, strict=True)), **dict(program.consts)}
        read = lambda a: env[a] if isinstance(a, Var) else a.numpy()  # noqa: E731
        for e in program.eqns:
            one = made.setdefault(
                (e.prim.name, str(e.params)), wrap(lambda *ys, e=e: e.prim.bind(*ys, **e.params))
            )
            out = one(*map(read, e.inputs))
            env.update(zip(e.outputs, out if e.prim.many else [out], strict=True))
        return list(map(read, program.outputs))

    return run


def one_turn(f):
    return lambda *ys: plait.tree.map(
        lambda a: a[0],
        lax.scan(lambda c, xs: (c, f(*xs)), 0, [pnp.asarray(y)[None] for y in ys])[1],
    )


ARRAYS = {
    "arrays": lambda xs: xs,
    "broadcasts": lambda xs: [pnp.broadcast_to(x[0], x.shape) for x in xs],
    "constants": lambda xs: [np.full(3, np.asarray(x)[0]) for x in xs],
}


@pytest.mark.parametrize("wrap", [plait.jit, one_turn])
@pytest.mark.parametrize("how", ARRAYS)
@pytest.mark.parametrize("name", SAME)
def test_each_operation_in_a_function_with_several_calls_or_in_a_loop(name, how, wrap):
    f, dtype, values = SAME[name]

    def way(g):
        def call(*given):
            run = by_parts(plait.jit(g).trace(*given).program, wrap)
            others = [np.ones(3, dtype)] * len(given)
            if how == "constants":
                return plait.jit(lambda ys: (run(*ARRAYS[how](given)), run(*ys)))(others)[0][0]
            return plait.jit(lambda xs, ys: (run(*ARRAYS[how](xs)), run(*ys)))(given, others)[0][0]

        return call

    with np.errstate(all="ignore"):
        compared(f, dtype, values, way)


def test_patterns_that_functions_make_once_they_are_inlined():
    divided = plait.jit(lambda x, y: x / y)
    plus = plait.jit(lambda x, y: x + y)
    passes = plait.jit(lambda x, y: x >= y)
    f = plait.jit(lambda x, y: divided(divided(x, y), y))
    assert f(F32(1e30), F32(1e20)).item() == pytest.approx(1e-10)
    g = plait.jit(lambda x: plus(plus(x, 12582912.0), -12582912.0))
    assert g(F32(1.4)).item() == 1
    assert not plait.jit(lambda x: passes(abs(x), 0.0))(F32(np.nan)).item()


def test_a_function_whose_arguments_are_constants_in_all_calls():
    """The compiler finds its results, although a walk for any arguments would hide them."""
    less = plait.jit(lambda x, y: (pnp.sqrt(y), x - pnp.sqrt(y)))

    def f(x):
        root, rest = less(x, pnp.ones_like(x))
        return rest + root, less(x, pnp.ones_like(x))

    x = F32([0.41441459400363234, 1e-9])
    np.testing.assert_array_equal(plait.jit(f)(x)[0], (x - F32(1)) + F32(1))


CROSSING = {  # a pattern that begins in a function or before it, and ends in it or after it
    "into": lambda q, x, y: q(x / y, y),
    "out of": lambda q, x, y: q(x, y) / y,
    "into one of two calls": lambda q, x, y: q(x / y, y) + 0 * q(x, y),
    "into both calls": lambda q, x, y: q(x / y, y) + 0 * q(x / y, x),
    "from call to call": lambda q, x, y: q(q(x, y), y),
    "through another function": lambda q, x, y: plait.jit(lambda a, b: q(a, b))(x / y, y),
}


@pytest.mark.parametrize("tier", ["full", "fast"])
@pytest.mark.parametrize("way", CROSSING)
def test_patterns_across_the_border_of_a_function(way, tier):
    quotient = plait.jit(lambda x, y: x / y)
    f = plait.jit(lambda x, y: CROSSING[way](quotient, x, y), tier=tier)
    assert f(F32(1e30), F32(1e20)).item() == pytest.approx(1e-10)  # and not 1e30 / 1e40


PLAIN = {
    "one call": lambda q, x, y: q(x, y),
    "two calls": lambda q, x, y: (q(x, y), q(y, x)),
    "a call in a function": lambda q, x, y: plait.jit(lambda a, b: q(a, b))(x, y),
}


@pytest.mark.parametrize("way", PLAIN)
def test_functions_of_arrays_are_left_as_they_are(way):
    quotient = plait.jit(lambda x, y: x / y)
    lowered = plait.jit(lambda x, y: PLAIN[way](quotient, x, y)).lower(*[np.ones(6, F32)] * 2)
    code = lowered.module().code
    assert "call @" in mlir.text(code)
    assert apart.kept_apart(code, 1) == code


def test_the_terms_of_a_depthwise_convolution_are_left_as_they_are():
    names = ("NHWC", "HWIO", "NHWC")
    f = plait.jit(lambda x, k: lax.conv_general_dilated(
        x, k, (1, 1), "VALID", dimension_numbers=names, feature_group_count=4))  # fmt: skip
    code = f.lower(np.ones((1, 6, 6, 4), F32), np.ones((3, 3, 1, 4), F32)).module().code
    assert mlir.text(code).count("stablehlo.multiply") == 9
    assert apart.kept_apart(code, 1) == code


@pytest.mark.parametrize("tier", ["full", "fast"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: pnp.exp(x * np.nan),
        lambda x: plait.nn.softmax(x * np.nan),
        lambda x: lax.logistic(x * np.nan),
        lambda x: pnp.exp(x / 0 * 0),
        lambda x: pnp.tanh(x * np.nan) + pnp.expm1(x * np.nan) + lax.erf(x * np.nan),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_functions_of_what_is_known_to_be_nan(f, dtype, tier):
    assert np.isnan(np.asarray(plait.jit(f, tier=tier)(pnp.ones(3, dtype))).astype(F64)).all()


def test_float16_is_rounded_after_each_operation():
    f = lambda x, y: (x + y) - x  # noqa: E731
    for dtype, values in ((F16, (2048, 1)), (BF16, (256, 1))):
        x, y = (np.asarray(v, dtype) for v in values)
        assert float(plait.jit(f)(x, y)) == float((x + y) - x) == 0


def test_complex_differences_are_not_undone():
    x, y = np.complex64(1), np.complex64(1e30)
    assert plait.jit(lambda x, y: (x - y) + y)(x, y).item() == 0


@pytest.mark.sampled(16)
@pytest.mark.parametrize("tier", ["full", "fast"])
@pytest.mark.parametrize("number", [0.0, -0.0, 1.0, 2.0])
@pytest.mark.parametrize(
    ("move", "moved"),
    [
        (lambda x, n: lax.pad(x, n, [(1, 2, 0)]), lambda x, n: np.r_[n, x, n, n]),
        (lambda x, n: pnp.concatenate([pnp.full(1, n), x]), lambda x, n: np.r_[n, x]),
        (lambda x, n: pnp.concatenate([x, pnp.full(2, n)]), lambda x, n: np.r_[x, n, n]),
        (lambda x, n: lax.dynamic_slice(x, (int(n),), (1,)), lambda x, n: x[int(n) :][:1]),
        (lambda x, n: lax.dynamic_update_slice(pnp.full(5, n), x, (1,)),
         lambda x, n: np.r_[n, x, n]),
    ],
    ids=["pad", "after a number", "before a number", "at a position", "into numbers"],
)  # fmt: skip
def test_elements_beside_a_number_are_not_that_number(move, moved, number, tier):
    """Padding, and positions, are operands too: what is moved keeps its elements."""
    x, number = F32([3, np.nan, 5e30]), F32(number)
    for f in (lambda m, a, b: b + a, lambda m, a, b: b - a, lambda m, a, b: b * a,
              lambda m, a, b: b / a, lambda m, a, b: a / b):  # fmt: skip
        got = plait.jit(lambda x, y, f=f: f(pnp, move(x, number), y), tier=tier)
        with np.errstate(all="ignore"):
            a = moved(x, number).astype(F32)
            y = np.arange(2, 2 + a.size, dtype=F32)
            np.testing.assert_array_equal(got(x, y), f(np, a, y))


def test_sums_of_equal_complex_numbers_keep_their_parts():
    """The compiler would multiply by 4 + 0j, where an infinite part makes the other one nan."""
    x = np.complex64([complex(-1, np.inf), complex(np.inf, 2), 3])
    got = plait.jit(lambda x: pnp.sum(pnp.broadcast_to(x, (4, 3)), axis=0))(x)
    np.testing.assert_array_equal(got.real, [-4, np.inf, 12])
    np.testing.assert_array_equal(got.imag, [np.inf, 8, 0])


@pytest.mark.parametrize("wrap", [plait.jit, one_turn])
def test_sums_of_equal_complex_numbers_that_a_function_makes(wrap):
    x = np.complex64([complex(-1, np.inf), complex(np.inf, 2), 3])
    minus = wrap(lambda y: -y)
    f = plait.jit(lambda x, y: (pnp.sum(minus(pnp.broadcast_to(x, (4, 3))), axis=0), minus(y)))
    got, _ = f(x, np.ones((4, 3), np.complex64))
    np.testing.assert_array_equal(got.real, [4, -np.inf, -12])
    np.testing.assert_array_equal(got.imag, [-np.inf, -8, 0])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint16", "int8"])
def test_bounds_of_a_clamp_in_the_wrong_order(dtype):
    x, low, high = (np.full(3, v, dtype) for v in (7, 9, 5))
    for extreme in (lax.max, lax.min):
        for a, b, c in ((low, x, high), (low, high, high), (x, high, high), (low, x, x)):
            f = plait.jit(lambda a, b, c, z, f=extreme: f(lax.clamp(a, b, c), z))
            for z in (a, b, c):
                want = getattr(np, f"{extreme.__name__}imum")(np.minimum(np.maximum(a, b), c), z)
                np.testing.assert_array_equal(f(a, b, c, z), want)
    same = plait.jit(lambda a, b: lax.max(lax.clamp(a, b, b), a))(low, high)
    np.testing.assert_array_equal(same, np.maximum(high, low))


QUOTIENTS = {
    "number by rows": lambda m, x: F32(-0.1) / m.broadcast_to(x[:, None], (300, 3)),
    "numbers by rows": lambda m, x: (
        m.full((300, 3), F32(3e30)) / m.broadcast_to(x[:, None], (300, 3))),
    "part of rows by itself": lambda m, x: (
        (lambda v: v / v)(m.broadcast_to((F32(7) - x)[:, None], (300, 3))[:, 1])),
    "row by rows": lambda m, x: x[:3] / m.broadcast_to(x[:, None], (300, 3)),
    "rows by themselves": lambda m, x: (lambda v: v / v)(m.broadcast_to(x[:, None], (300, 3))),
    "part of rows": lambda m, x: F32(7) / m.broadcast_to(x[:, None], (300, 3))[:, 1],
    "number by one": lambda m, x: m.full((300,), F32(0.3)) / m.broadcast_to(x[5], (300,)),
    "one by numbers": lambda m, x: m.broadcast_to(x[5], (300,)) / m.full((300,), F32(0.3)),
    "columns by a sum": lambda m, x: (
        m.broadcast_to(x[:3], (300, 3)) / m.broadcast_to(x.max(), (300, 3))),
    "through float64": lambda m, x: (
        (x * F32(1e30)).astype(F64).astype(F32) * F32(1e-30)),
}  # fmt: skip


@pytest.mark.parametrize("name", QUOTIENTS)
def test_quotients_are_rounded_once(name):
    """IEEE 754 rounds each quotient and product to the nearest number, as numpy does."""
    f, x = QUOTIENTS[name], np.random.RandomState(0).uniform(1, 9, 300).astype(F32)
    np.testing.assert_array_equal(plait.jit(lambda x: f(pnp, x))(x), f(np, x))


AFTER_BROADCASTS = {
    "abs": lambda m, v: abs(v),
    "and a number": lambda m, v: v + F32(1e-3),
    "times a number": lambda m, v: v * F32(1.7),
    "square": lambda m, v: v * v,
    "root": lambda m, v: m.sqrt(v),
    "floor": lambda m, v: m.floor(v),
    "greater": lambda m, v: m.maximum(v, F32(2)),
    "sum of one": lambda m, v: m.sum(v.reshape(*v.shape, 1), axis=-1),
    "chosen": lambda m, v: m.where(v > 3, v, F32(3)),
    "sum": lambda m, v: m.broadcast_to(v.max(axis=1)[:, None], v.shape) + v,
}


@pytest.mark.parametrize("name", AFTER_BROADCASTS)
@pytest.mark.parametrize("spread", ["rows", "one"])
def test_operations_between_a_broadcast_and_a_quotient(name, spread):
    """The compiler computes them before the broadcast, and so divides by a broadcast."""
    r = np.random.RandomState(0)
    x, v = r.uniform(1, 9, (300, 7)).astype(F32), r.uniform(1, 9, 300).astype(F32)

    def quotients(m, x, v):
        divisor = m.broadcast_to(v[:, None] if spread == "rows" else v[3], (300, 7))
        divisor = AFTER_BROADCASTS[name](m, divisor)
        return x / divisor, F32(-0.1) / divisor

    got = plait.jit(lambda x, v: quotients(pnp, x, v))(x, v)
    for g, w in zip(got, quotients(np, x, v), strict=True):
        np.testing.assert_array_equal(g, w)


def shares(m, x, y):
    return x / m.broadcast_to(y[:, None], x.shape)


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("shape", [(64, 256), (8, 1000)])
def test_quotients_by_numbers_of_rows_that_are_nan_or_infinite(dtype, shape):
    """Libraries of kernels compute such quotients where sums follow: their extremes keep nan."""
    x = np.random.RandomState(0).uniform(1, 9, shape).astype(dtype)
    y = x[:, 0].copy()
    x[:8, :8] = y[:8] = [np.nan, np.inf, -np.inf, 0, -0.0, 1, -3e38, 1e-37]

    def with_sums(m, x, y):
        q = shares(m, x, y)
        return q, m.sum(q * q, axis=1)

    with np.errstate(all="ignore"):
        want = with_sums(np, x, y)[0]
    want[abs(want) < np.finfo(dtype).tiny] = 0  # the processor may round these to zero
    for tier in ("full", "fast"):
        got = np.array(plait.jit(lambda x, y: with_sums(pnp, x, y), tier=tier)(x, y)[0])
        got[abs(got) < np.finfo(dtype).tiny] = 0
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "f, arrays",
    [
        (lambda x: x / pnp.sum(x, axis=1, keepdims=True), 1),
        (lambda x: pnp.exp(x - pnp.sum(x, axis=1, keepdims=True)), 1),
        (lambda x: plait.nn.softmax(x), 2),
    ],
    ids=["shares", "exponentials", "softmax"],
)
def test_sums_of_rows_are_not_spread_in_memory(f, arrays):
    """Neither the sums, once for each element, nor the differences from them become arrays."""
    with plait.config(cache_dir=None):
        text = plait.jit(f, tier="full").lower(np.ones((64, 1000), F32)).compile().as_text()
    steps = text[text.index("ENTRY") :].splitlines()[1:]
    made = [line for line in steps if "= f32[64,1000]" in line and " parameter(" not in line]
    assert len(made) == arrays, made


def test_quotients_by_numbers_of_rows_are_summed_as_they_are_made():
    """The guard against other roundings does not make an array of the quotients."""
    x, y = np.ones((64, 1000), F32), np.ones(64, F32)
    with plait.config(cache_dir=None):
        f = plait.jit(lambda x, y: pnp.sum(shares(pnp, x, y) ** 2, axis=1), tier="full")
        taken = f.lower(x, y).compile().memory_analysis().temp_size_in_bytes
    assert taken < x.nbytes / 2


def test_what_has_no_pattern_is_left_as_it_is():
    code = plait.jit(lambda x: pnp.sin(x).reshape(3, 2).T).lower(np.ones(6, F32)).module().code
    assert apart.kept_apart(code) == code


def test_reducers_are_left_as_they_are():
    """The compiler takes a reduction for a sum, or for the place of the greatest, by its region."""
    lowered = plait.jit(lambda x: (pnp.sum(x), pnp.argmax(x))).lower(np.ones(6, F32))
    text = mlir.text(apart.kept_apart(lowered.module().code))
    assert "reduce_precision" not in text


ZEROS_OF = {
    "written": lambda n, v: pnp.full(4, n, v.dtype),
    "from a row": lambda n, v: pnp.broadcast_to(pnp.full(4, n, v.dtype)[0], (4,)),
    "before others": lambda n, v: pnp.concatenate([pnp.full(4, n, v.dtype), v * v])[:4],
    "around others": lambda n, v: pnp.broadcast_to(
        lax.pad(v * v, v.dtype.type(n), [(1, 1, 0)])[0], (4,)
    ),
    "under others": lambda n, v: pnp.broadcast_to(
        lax.dynamic_update_slice(pnp.full(6, n, v.dtype), v * v, (1,))[0], (4,)
    ),
    "at a position": lambda n, v: lax.dynamic_slice(
        pnp.concatenate([v * v, pnp.full(4, n, v.dtype)]), (np.int32(4),), (4,)
    ),
    "chosen by positions": lambda n, v: pnp.concatenate([v * v, pnp.full(4, n, v.dtype)])[
        np.array([4, 5, 6, 7])
    ],
    "of a part": lambda n, v: pnp.concatenate([pnp.full((1, 4), n, v.dtype), (v * v)[None]])[0],
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64, np.complex64, np.complex128])
@pytest.mark.parametrize("way", ZEROS_OF)
def test_sums_with_zeros_keep_their_signs(way, dtype):
    """x + 0 is 0 for -0, of complex numbers in both parts; the compiler takes it for x."""
    kind = np.dtype(dtype)
    signs = [0.0, -0.0]
    values = [complex(a, b) for a in signs for b in signs] if kind.kind == "c" else [*signs, 1, -3]
    x, y = np.array(values, dtype), np.array([np.nan, 1, 2, 3], dtype)
    for zero in values[:2] if kind.kind != "c" else values:
        for f in (lambda a, b: a + b, lambda a, b: b + a, lambda a, b: a - b, lambda a, b: b - a):
            got = plait.jit(lambda x, y, f=f, n=zero: f(x, ZEROS_OF[way](n, y)))(x, y).numpy()
            want = f(x, np.full(4, zero, dtype))
            for part in ("real", "imag") if kind.kind == "c" else ("real",):
                one, other = (np.asarray(getattr(a, part), F64) for a in (got, want))
                np.testing.assert_array_equal(np.signbit(one), np.signbit(other), err_msg=str(zero))
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("tier", ["full", "fast"])
def test_zeros_keep_their_signs_as_divisors_and_terms(zero, tier):
    """The guards of divisors and of terms are sums, which the compiler would drop from zeros."""
    x = np.full((64, 96), 2, F32)
    run = lambda f: np.asarray(plait.jit(f, tier=tier)(x))  # noqa: E731
    sign = np.copysign(1, F32(zero))
    np.testing.assert_array_equal(run(lambda x: x / F32(zero)), sign * np.inf)
    np.testing.assert_array_equal(run(lambda x: x / pnp.full(x.shape, zero, F32)), sign * np.inf)
    np.testing.assert_array_equal(run(lambda x: x[0] / F32(zero)), sign * np.inf)

    def with_sums(x):
        # A selection that is a constant zero only later, in a block with sums of rows.
        zeros = pnp.where(x.sum(-1, keepdims=True) > -9e9, F32(zero), F32(zero))
        small = zeros * F32(0.3) * F32(0.3), zeros / F32(3) / F32(7)
        return x / zeros, x / (zeros / F32(3)), *(1 / s / x for s in small)

    for got in plait.jit(with_sums, tier=tier)(x):
        np.testing.assert_array_equal(got, np.full_like(got, sign * np.inf))


def rewritten(f, *xs):
    """Return the text that the compiler gets for a function on one CPU."""
    return mlir.text(apart.kept_apart(plait.jit(f).lower(*xs).module().code, 1))


def test_what_the_library_does_not_compute_is_rounded_as_elsewhere():
    """A convnet's sums over all but the last axis gain nothing from the library's own guards, which
    took half of its time to compile."""
    x, y = np.ones((4096, 8), F32), np.ones((8, 4096), F32)
    f = lambda x, axis: x / pnp.sqrt(x.sum(axis, keepdims=True)) / F32(3)  # noqa: E731
    assert "iota" not in rewritten(lambda x: f(x, 0), x)
    assert "iota" in rewritten(lambda y: f(y, 1), y)


def exponential_of(x):
    """Return exponentials beside a sum of rows, which decides what guards they have."""
    return pnp.exp(x) * (1 / pnp.exp(x).sum(-1, keepdims=True))


@pytest.mark.full_tier
def test_equal_values_have_equal_guards():
    """The compiler merges what two functions compute from the same rows."""

    def by_rows(x):
        c = x - x.mean(-1, keepdims=True)
        scores = c / pnp.sqrt((c * c).mean(-1, keepdims=True)) / 3
        return pnp.where(x > 0, pnp.exp(scores - scores.max(-1, keepdims=True)), 0)

    def again(x):
        return (x / 3 / 7).sum(-1) - by_rows(x)[:, 0]

    x = np.random.RandomState(0).normal(size=(64, 96)).astype(F32)
    count = lambda f: plait.jit(f).lower(x).compile().as_text().count("exponential(")  # noqa: E731
    both = lambda x: plait.jit(by_rows)(x).sum(-1) + plait.jit(again)(x)  # noqa: E731
    assert count(both) == count(lambda x: by_rows(x).sum(-1)) == 1
    want = np.asarray(by_rows(x))
    want = want.sum(-1) + x.sum(-1) / 21 - want[:, 0]
    np.testing.assert_allclose(plait.jit(both)(x), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "dtype", ["complex64", "complex128", "int32", "bool", "bfloat16", "float8_e4m3fn", "int4"]
)
def test_constants_of_all_types_beside_sums_of_rows(dtype):
    """The bindings cannot read some of them."""
    c = (np.arange(64 * 96).reshape(64, 96) % 5).astype(pnp.dtype(dtype))
    f = lambda x: pnp.real(x * pnp.asarray(c)).sum(-1) / 3 / 7  # noqa: E731
    code = module_of(plait.make_program(f)(np.ones((64, 96), F32)), embed=True).code
    assert "reduce" in mlir.text(apart.kept_apart(code, 1))


def masked_sum(m, x):
    return pnp.where(m, x, F32(3e38)).sum(-1, keepdims=True)


LATER_NAN = {
    "of booleans": lambda m, x: exponential_of(m.astype(F32) / m.astype(F32)),
    "selected": lambda m, x: exponential_of(pnp.where(m, x, np.nan)),
    "differences": lambda m, x: exponential_of(pnp.where(m, x, np.inf) - pnp.where(m, x, np.inf)),
    "of sums": lambda m, x: exponential_of(
        (pnp.where(m, x, F32(3e38)) - F32(-3e38)) - (pnp.where(m, x, F32(3e38)) - F32(-3e38))),
    "of products": lambda m, x: exponential_of(
        pnp.where(m, x, F32(-3e38)) * pnp.where(m, x, F32(3e38)) * pnp.where(m, x, 0)),
    "of quotients": lambda m, x: exponential_of(pnp.where(m, x, 0) / pnp.where(m, x, 0)),
    "of rows": lambda m, x: exponential_of(
        pnp.broadcast_to(masked_sum(m, x) - masked_sum(m, x + 1), x.shape)),
    "with an infinite mask": lambda m, x: exponential_of(
        pnp.where(m.all(), x, -np.inf) - pnp.where(m.all(), x, -np.inf).max(-1, keepdims=True)),
    "of a loop": lambda m, x: exponential_of(
        lax.fori_loop(0, 1, lambda i, c: pnp.full_like(c, np.nan), x)),
    "padded": lambda m, x: exponential_of(lax.pad(x[:, 1:], F32(np.nan), [(0, 0, 0), (1, 0, 0)])),
}  # fmt: skip


@pytest.mark.parametrize("name", LATER_NAN)
@pytest.mark.parametrize("tier", ["full", "fast"])
def test_exponentials_of_nan_that_the_compiler_may_foresee(name, tier):
    """They have their guard, also beside sums of rows."""
    f = LATER_NAN[name]
    x = np.random.RandomState(0).normal(size=(64, 96)).astype(F32)
    m = x > -1
    text = rewritten(f, m, x)
    for made in re.findall(r"(%\w+) = stablehlo.exponential ", text):
        assert re.search(rf"stablehlo.select %\w+, %\w+, {made} ", text)
    got = np.asarray(plait.jit(f, tier=tier)(m, x))
    nan = np.asarray(f(pnp.asarray(m), pnp.asarray(x)))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(nan))
    assert np.isnan(nan).any()


def test_operations_with_many_operands_are_looked_at_once(monkeypatch):
    looked = []
    maker = value_numbers.maker
    monkeypatch.setattr(value_numbers, "maker", lambda x: looked.append(x) or maker(x))

    def f(x):
        for pieces in (60, 60, 20):
            x = pnp.concatenate([x] * pieces)
        return (x / x.sum(-1, keepdims=True) / 3).sum(-1)

    apart.kept_apart(plait.jit(f).lower(F32([[1, 2]])).module().code, 1)
    assert 0 < len(looked) < 200


ROWS = np.linspace(0, 1, 1 << 13, dtype=F32).reshape(64, 128)
KNOWN = {  # nan, as the compiler can find out for any rows
    "a number": lambda x: pnp.full_like(x, np.nan),
    "times nan": lambda x: x * F32(np.nan),
    "times infinity and 0": lambda x: x * F32(np.inf) * F32(0),
    "by 0, times 0": lambda x: x / F32(0) * F32(0),
    "by chosen zeros, times 0": lambda x: x / pnp.where(lax.iota(F32, 128) < 0, F32(1), F32(0)) * 0,
    "by 0 and by infinity": lambda x: x / F32(0) / F32(np.inf) * F32(np.inf) * F32(0),
    "zero by zero": lambda x: (x * F32(0)) / F32(0),
    "a number by a zero, times 0": lambda x: F32(1) / (x * F32(0)) * F32(0),
    "a difference of infinities": lambda x: (x + F32(np.inf)) - F32(np.inf),
    "a difference of quotients": lambda x: abs(x) / F32(0) - abs(x) / F32(0),
    "of a function": lambda x: plait.jit(lambda x, y: x / y)(x, pnp.zeros_like(x)) * F32(0),
}  # fmt: skip
OF_ROWS = {
    "exp": pnp.exp,
    "rows of exp": lambda x: pnp.exp(x).sum(-1),
    "exp and its rows": lambda x: (pnp.exp(x), pnp.exp(x).sum(-1)),
    "softmax": plait.nn.softmax,
    "log_softmax": plait.nn.log_softmax,
    "gradient": lambda x: lax.logistic(x) * (1 - lax.logistic(x)) + pnp.tanh(x),
}


@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["", "in a function"])
@pytest.mark.parametrize("made", KNOWN)
@pytest.mark.parametrize("name", OF_ROWS)
def test_functions_of_rows_that_are_known_to_be_nan(name, made, wrap):
    """Beside sums of rows, exponentials are left as they are unless nan can be foreseen."""
    f = wrap(OF_ROWS[name])
    known, lost, _ = plait.jit(lambda x: (f(x), f(KNOWN[made](x)), x.sum(-1)))(ROWS)
    for y in plait.tree.leaves(lost):
        assert np.isnan(y).all()
    for y in plait.tree.leaves(known):
        assert np.isfinite(y).all()
