"""Values of elementwise functions in units of the last place, against mpmath.

`python -m tests.laws.last_places --points 3000` is the wide run; a small sample is in
`test_last_places.py`.

Invariant: each function has a number of units that it promises, in both dtypes; arguments are
exactly the floats that were given, of every magnitude.
"""

import argparse

import mpmath
import numpy as np

import plait

pnp, nn, special = plait.numpy, plait.nn, plait.scipy.special
REAL = (-mpmath.inf, mpmath.inf)
POSITIVE = (0, mpmath.inf)


def _sinc(x):
    return mpmath.sinpi(x) / (mpmath.pi * x)


def _boxcox(x, power):
    return mpmath.expm1(power * mpmath.log(x)) / power


# name: (function, truth, where it is defined, units of the last place)
FUNCTIONS = {
    "exp": (pnp.exp, mpmath.exp, (-800, 800), 2),
    "expm1": (pnp.expm1, mpmath.expm1, (-800, 800), 6),
    "exp2": (pnp.exp2, lambda x: mpmath.mpf(2) ** x, (-1100, 1100), 2),
    "log": (pnp.log, mpmath.log, POSITIVE, 2),
    "log1p": (pnp.log1p, mpmath.log1p, (-1, mpmath.inf), 3),
    "log2": (pnp.log2, lambda x: mpmath.log(x, 2), POSITIVE, 4),
    "log10": (pnp.log10, mpmath.log10, POSITIVE, 4),
    "sin": (pnp.sin, mpmath.sin, (-1e6, 1e6), 3),
    "cos": (pnp.cos, mpmath.cos, (-1e6, 1e6), 3),
    "tan": (pnp.tan, mpmath.tan, (-1e6, 1e6), 4),
    "arcsin": (pnp.arcsin, mpmath.asin, (-1, 1), 4),
    "arccos": (pnp.arccos, mpmath.acos, (-1, 1), 4),
    "arctan": (pnp.arctan, mpmath.atan, REAL, 3),
    "sinh": (pnp.sinh, mpmath.sinh, (-800, 800), 6),
    "cosh": (pnp.cosh, mpmath.cosh, (-800, 800), 4),
    "tanh": (pnp.tanh, mpmath.tanh, (-800, 800), 7),
    "arcsinh": (pnp.arcsinh, mpmath.asinh, REAL, 4),
    "arccosh": (pnp.arccosh, mpmath.acosh, (1, mpmath.inf), 4),
    "arctanh": (pnp.arctanh, mpmath.atanh, (-1, 1), 4),
    "sqrt": (pnp.sqrt, mpmath.sqrt, POSITIVE, 1),
    "cbrt": (pnp.cbrt, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), REAL, 3),
    "rsqrt": (plait.lax.rsqrt, lambda x: 1 / mpmath.sqrt(x), POSITIVE, 3),
    "x ** -2": (lambda x: x**-2, lambda x: 1 / x**2, REAL, 3),
    "x ** -5": (lambda x: x**-5, lambda x: 1 / x**5, REAL, 6),
    "x ** 7": (lambda x: x**7, lambda x: x**7, REAL, 6),
    "hypot(x, 3)": (lambda x: pnp.hypot(x, 3), lambda x: mpmath.hypot(x, 3), REAL, 3),
    "sigmoid": (nn.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x)), (-800, 800), 3),
    "softplus": (nn.softplus, lambda x: mpmath.log1p(mpmath.exp(x)), (-800, 800), 4),
    "log_sigmoid": (nn.log_sigmoid, lambda x: -mpmath.log1p(mpmath.exp(-x)), (-800, 800), 4),
    "silu": (nn.silu, lambda x: x / (1 + mpmath.exp(-x)), (-80, 800), 4),
    "soft_sign": (nn.soft_sign, lambda x: x / (1 + abs(x)), REAL, 3),
    "sinc": (pnp.sinc, _sinc, (-1e6, 1e6), 8),
    "logit": (special.logit, lambda x: mpmath.log(x) - mpmath.log1p(-x), (0, 1), 6),
    "boxcox(|x|, 2**-20)": (lambda x: special.boxcox(abs(x), np.asarray(2.0**-20, x.dtype)),
                          lambda x: _boxcox(abs(x), mpmath.mpf(2) ** -20), REAL, 6),
    "boxcox(3, x)": (lambda x: special.boxcox(np.asarray(3, x.dtype), x),
                     lambda x: _boxcox(mpmath.mpf(3), x), (-20, 20), 40),
    "xlogy(3, x)": (lambda x: special.xlogy(3, x), lambda x: 3 * mpmath.log(x), POSITIVE, 3),
    "entr": (special.entr, lambda x: -x * mpmath.log(x), POSITIVE, 3),
    "erf": (special.erf, mpmath.erf, (-30, 30), 4),
    "erfcx": (special.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), (-2, 1e6), 16),
    "i0e": (special.i0e, lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), (-1e4, 1e4), 8),
    "i1e": (special.i1e, lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), (-1e4, 1e4), 10),
}  # fmt: skip


def arguments(dtype, count, seed=0):
    """Numbers of all exponents, and ordinary ones up to where exponentials overflow."""
    info, rng = np.finfo(dtype), np.random.default_rng(seed)
    sign = rng.choice([-1, 1], count)
    every = np.exp(rng.uniform(np.log(info.tiny) + 1, np.log(float(info.max)) - 1, count)) * sign
    most = np.log(float(info.max))
    parts = [every, rng.uniform(-most, most, count), rng.uniform(-1, 1, count),
             rng.uniform(-4, 4, count), 1 + rng.uniform(-1, 1, count) ** 5]  # fmt: skip
    return np.concatenate(parts).astype(dtype)


def units(got, truth, info):
    """Return the error of a value in units of the last place of the dtype."""
    if not mpmath.isfinite(got):
        return np.inf
    exponent = int(mpmath.floor(mpmath.log(abs(truth), 2)))
    return float(abs(got - truth) / mpmath.mpf(2) ** (exponent - info.nmant))


def worst(name, x, values):
    """(units, argument, value, truth) of the worst of the values where there is a normal truth."""
    _, truth, (low, high), _ = FUNCTIONS[name]
    info, found = np.finfo(x.dtype), (0.0, None, None, None)
    with mpmath.workdps(40):
        for at, value in zip(map(float, x), map(float, values)):
            if not low < at < high:
                continue
            want = truth(mpmath.mpf(at))
            if info.tiny <= abs(want) <= float(info.max):
                far = units(mpmath.mpf(value), want, info)
                found = max(found, (far, at, value, float(want)), key=lambda row: row[0])
    return found


def judged(dtype, count, names=None, seed=0):
    """{name: the worst value} of functions that break their promise, compiled together."""
    x = arguments(dtype, count, seed)
    names = list(names or FUNCTIONS)
    values = plait.jit(lambda v: [FUNCTIONS[n][0](v) for n in names])(x)
    found = {n: worst(n, x, np.asarray(v)) for n, v in zip(names, values)}
    return {n: row for n, row in found.items() if row[0] > FUNCTIONS[n][3]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    broken = 0
    for dtype in (np.float32, np.float64):
        report = judged(dtype, given.points, given.names, given.seed)
        broken += len(report)
        for name, row in report.items():
            print(dtype.__name__, name, "promises", FUNCTIONS[name][3], "and has", *row)
    print(f"{broken} promises are broken")
    return broken


if __name__ == "__main__":
    raise SystemExit(main())
