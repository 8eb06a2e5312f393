"""The sign of a nan, which instructions choose freely, decides nothing of what a function returns.

Invariant: two arguments that differ in signs of nan alone give the same bits, but for nan.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax

PARTS = np.float32([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])
UNARY = [
    "sign",
    "sqrt",
    "exp",
    "log",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "square",
    "abs",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "expm1",
    "log1p",
    "exp2",
    "logistic",
]
BINARY = ["add", "sub", "mul", "pow"]
# Quotients are the compiler's own: the sign of a zero in x / w may be that of a nan in w.


def both_signs(dtype):
    """Return complex numbers of all pairs of parts, with nans of either sign."""
    x, y = np.meshgrid(PARTS, PARTS)
    part = np.float32 if dtype == "complex64" else np.float64
    plus = np.empty(x.size, dtype)
    plus.real, plus.imag = x.ravel().astype(part), y.ravel().astype(part)
    minus = plus.copy()
    for of in (plus, minus):
        for v in (of.real, of.imag):
            v[np.isnan(v)] = np.copysign(part(np.nan), 1 if of is plus else -1)
    assert np.signbit(minus.real[np.isnan(minus.real)]).all()
    return plus, minus


def alike(f, *pairs):
    """Assert that `f` returns the same for the first and for the second of each pair."""
    one, two = (np.asarray(plait.jit(f)(*[p[i] for p in pairs])) for i in (0, 1))
    for v, w in ((one.real, two.real), (one.imag, two.imag)):
        np.testing.assert_array_equal(v, w)
        known = ~np.isnan(v)
        np.testing.assert_array_equal(np.signbit(v)[known], np.signbit(w)[known])


@pytest.mark.sampled(4)
@pytest.mark.full_tier
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", UNARY)
def test_a_complex_function(name, dtype):
    alike(getattr(lax, name), both_signs(dtype))


@pytest.mark.full_tier
@pytest.mark.parametrize("name", BINARY)
def test_a_complex_operation(name):
    pair = both_signs("complex64")
    rows = [np.repeat(v, v.size) for v in pair], [np.tile(v, v.size) for v in pair]
    alike(getattr(lax, name), *rows)


def test_the_sign_of_infinite_numbers_is_that_of_numpy():
    for z in both_signs("complex64"):
        want = np.sign(z)
        one = np.isinf(z.real) ^ np.isinf(z.imag)
        np.testing.assert_array_equal(np.asarray(pnp.sign(z))[one], want[one])
