"""Every law over elementwise primitives, of real and of complex numbers."""

import numpy as np

from plait.ext.ops import elementwise as el
from plait.ext.ops.elementwise import accurate

X = np.array([0.4, -0.35, 0.7])
Y = np.array([1.5, 2.0, 0.6])
Z, W = X + 1j * Y, Y - 0.5j * X
K, L = np.int32([5, 3, -4]), np.int32([1, 2, 3])
FAR = np.array([3.7, -4.5, 0.8])

ANYWHERE = (
    el.sin, el.cos, el.tan, el.exp, el.expm1, el.tanh, el.sinh, el.cosh, el.asinh, el.logistic,
    el.asin, el.acos, el.atan, el.atanh, el.neg, el.abs_, el.sign, el.once,
)  # fmt: skip
REAL = (el.erf, el.erfc, el.erf_inv, el.relu, el.floor, el.ceil, el.round_away, el.round_even)
POSITIVE = (el.log, el.log1p, el.sqrt, el.rsqrt)
COMPLEX = (el.real, el.imag, el.conj)
TWO = (el.add, el.sub, el.mul, el.div)
COMPARED = (el.eq, el.ne, el.lt, el.le, el.gt, el.ge)
BITS = (el.and_, el.or_, el.xor, el.shift_left, el.shift_right_logical, el.shift_right_arithmetic)

CASES = {
    **{p.name: (p, (X,)) for p in (*ANYWHERE, *REAL)},
    **{p.name: (p, (Y,)) for p in (*POSITIVE, el.cbrt, el.digamma)},
    **{f"{p.name}, complex": (p, (Z,)) for p in (*ANYWHERE, *POSITIVE)},
    **{p.name: (p, (Z,)) for p in COMPLEX},
    **{p.name: (p, (X, Y)) for p in (*TWO, el.atan2, el.maximum, el.minimum)},
    **{f"{p.name}, complex": (p, (Z, W)) for p in TWO},
    "core.cbrt, negative": (el.cbrt, (-Y,)),
    "core.lgamma": (el.lgamma, (Y,)),
    "core.lgamma, negative": (el.lgamma, (X / 2 - 1.5,), {}, {"tol": 1e-4}),
    "core.digamma, negative": (el.digamma, (X / 2 - 1.5,), {}, {"tol": 1e-4}),
    "core.acosh": (el.acosh, (Y + 0.8,)),
    "core.acosh, complex": (el.acosh, (Z,)),
    "core.complex": (el.complex_, (X, Y)),
    "core.pow": (el.pow_, (Y, X)),
    "core.pow, exponent 0": (el.pow_, (Y, 0 * X)),
    "core.pow, complex": (el.pow_, (W, Z)),
    "core.rem": (el.rem, (FAR, Y)),
    "core.nextafter": (el.nextafter, (X, Y)),
    "core.clamp": (el.clamp, (X - 1, np.array([0.0, -2.0, 1.9]), Y)),
    "core.select": (el.select, (X > 0, X, Y)),
    "core.select, complex": (el.select, (X > 0, Z, W)),
    **{f"core.integer_pow, {n}": (el.integer_pow, (X,), {"exponent": n}) for n in range(-2, 6)},
    "core.integer_pow, at 0": (el.integer_pow, (0 * X,), {"exponent": 3}),
    "core.integer_pow, complex": (el.integer_pow, (Z,), {"exponent": -2}),
    "core.once": (el.once, (X,)),
    "core.accurate": (accurate, (X,), {"of": "sin", "mode": "highest", "tolerance": (0., 0., 0)}),
    "core.reduce_precision": (el.reduce_precision, (X,), {"exponent_bits": 11,
                                                          "mantissa_bits": 52}),
}  # fmt: skip
DISCRETE = {
    **{p.name: (p, (X, Y)) for p in COMPARED},
    **{p.name: (p, (K, L)) for p in BITS},
    **{p.name: (p, (K,)) for p in (el.not_, el.clz, el.population_count)},
    "core.is_finite": (el.is_finite, (X,)),
    "core.stop": (el.stop, (X,)),
}


def test_derivatives(judge):
    judge.derivatives(CASES)


def test_mapping(judge):
    judge.mapping({**CASES, **DISCRETE})
