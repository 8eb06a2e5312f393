"""Derivatives of elementwise functions at arguments of every magnitude, against mpmath.

`python -m tests.laws.magnitudes --points 200 --dtype float64` is the wide run; a small sample is in
`test_magnitudes.py`.

Invariant: the truth is a difference quotient of the function itself, with far more digits than the
dtype has; a rule that squares, cubes or divides what the result does not need is found, since it
is infinite, zero or nan where the truth is an ordinary number.
"""

import argparse

import mpmath
import numpy as np

import plait
from plait_autodiff.taylor.laws import numerically

mp = mpmath.mp
pnp, nn, special = plait.numpy, plait.nn, plait.scipy.special
EVERY = "every"
POSITIVE = (0, mpmath.inf)
UNIT = (-1, 1)


def _gelu_tanh(x):
    inner = mpmath.sqrt(2 / mp.pi) * (x + mpmath.mpf(0.044715) * x**3)
    return x * (1 + mpmath.tanh(inner)) / 2


def _sinc(x):
    return mpmath.mpf(1) if x == 0 else mpmath.sin(mp.pi * x) / (mp.pi * x)


def _sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


def _softplus(x):
    return mpmath.log1p(mpmath.exp(x))


# name: (function, truth, (where it is defined: between these), what its derivative is scaled by:
# 0, an error relative to the derivative itself; 1, to the greatest one, where it is 1 less
# something that is nearly 1)
ONE = {
    "sin": (pnp.sin, mpmath.sin, (-1e8, 1e8), 0),
    "tan": (pnp.tan, mpmath.tan, (-1e8, 1e8), 0),
    "arcsin": (pnp.arcsin, mpmath.asin, UNIT, 0),
    "arccos": (pnp.arccos, mpmath.acos, UNIT, 0),
    "arctan": (pnp.arctan, mpmath.atan, EVERY, 0),
    "sinh": (pnp.sinh, mpmath.sinh, (-1e4, 1e4), 0),
    "cosh": (pnp.cosh, mpmath.cosh, (-1e4, 1e4), 0),
    "tanh": (pnp.tanh, mpmath.tanh, (-1e4, 1e4), 1),
    "arcsinh": (pnp.arcsinh, mpmath.asinh, EVERY, 0),
    "arccosh": (pnp.arccosh, mpmath.acosh, (1, mpmath.inf), 0),
    "arctanh": (pnp.arctanh, mpmath.atanh, UNIT, 0),
    "exp": (pnp.exp, mpmath.exp, (-1e4, 1e4), 0),
    "exp2": (pnp.exp2, lambda x: mpmath.mpf(2) ** x, (-1e4, 1e4), 0),
    "expm1": (pnp.expm1, mpmath.expm1, (-1e4, 1e4), 0),
    "log": (pnp.log, mpmath.log, POSITIVE, 0),
    "log2": (pnp.log2, lambda x: mpmath.log(x, 2), POSITIVE, 0),
    "log10": (pnp.log10, mpmath.log10, POSITIVE, 0),
    "log1p": (pnp.log1p, mpmath.log1p, (-1, mpmath.inf), 0),
    "sqrt": (pnp.sqrt, mpmath.sqrt, POSITIVE, 0),
    "rsqrt": (plait.lax.rsqrt, lambda x: 1 / mpmath.sqrt(x), POSITIVE, 0),
    "cbrt": (pnp.cbrt, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), EVERY, 0),
    "square": (pnp.square, lambda x: x * x, EVERY, 0),
    "reciprocal": (pnp.reciprocal, lambda x: 1 / x, EVERY, 0),
    "x ** 3": (lambda x: x**3, lambda x: x**3, EVERY, 0),
    "x ** -2": (lambda x: x**-2, lambda x: 1 / x**2, EVERY, 0),
    "x ** 0.5": (lambda x: x**0.5, lambda x: mpmath.sqrt(x), POSITIVE, 0),
    "x ** -1.5": (lambda x: x**-1.5, lambda x: x ** mpmath.mpf(-1.5), POSITIVE, 0),
    "1.5 ** x": (lambda x: 1.5**x, lambda x: mpmath.mpf(1.5) ** x, (-1e4, 1e4), 0),
    "2 / x": (lambda x: 2 / x, lambda x: 2 / x, EVERY, 0),
    "x / (1 + |x|)": (nn.soft_sign, lambda x: x / (1 + abs(x)), EVERY, 0),
    "sinc": (pnp.sinc, _sinc, (-1e3, 1e3), 1),
    "hypot(x, 3)": (lambda x: pnp.hypot(x, 3), lambda x: mpmath.hypot(x, 3), EVERY, 0),
    "hypot(x, x)": (lambda x: pnp.hypot(x, x), lambda x: mpmath.hypot(x, x), EVERY, 0),
    "arctan2(x, 3)": (lambda x: pnp.arctan2(x, 3), lambda x: mpmath.atan2(x, 3), EVERY, 0),
    "arctan2(3, x)": (lambda x: pnp.arctan2(3, x), lambda x: mpmath.atan2(3, x), EVERY, 0),
    "logaddexp(x, 1)": (lambda x: pnp.logaddexp(x, 1),
                        lambda x: mpmath.log(mpmath.exp(x) + mp.e), (-1e4, 1e4), 1),
    "sigmoid": (nn.sigmoid, _sigmoid, (-1e4, 1e4), 1),
    "silu": (nn.silu, lambda x: x * _sigmoid(x), (-1e4, 1e4), 1),
    "softplus": (nn.softplus, _softplus, (-1e4, 1e4), 1),
    "mish": (nn.mish, lambda x: x * mpmath.tanh(_softplus(x)), (-1e4, 1e4), 1),
    "gelu": (nn.gelu, _gelu_tanh, (-1e2, 1e2), 1),
    "gelu exact": (lambda x: nn.gelu(x, approximate=False), lambda x: x * mpmath.ncdf(x),
                   (-1e2, 1e2), 1),
    "squareplus": (nn.squareplus, lambda x: (x + mpmath.sqrt(x * x + 4)) / 2, EVERY, 1),
    "elu": (nn.elu, lambda x: x if x > 0 else mpmath.expm1(x), (-1e4, 1e4), 0),
    "log1mexp": (nn.log1mexp, lambda x: mpmath.log(-mpmath.expm1(-x)), (0, 1e4), 0),
    "erf": (special.erf, mpmath.erf, (-1e2, 1e2), 0),
    "erfc": (special.erfc, mpmath.erfc, (-1e2, 1e2), 0),
    "erfcx": (special.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), (-5, 1e6), 1),
    "dawsn": (special.dawsn,
              lambda x: mpmath.sqrt(mp.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x), (-50, 50), 1),
    "erfinv": (special.erfinv, mpmath.erfinv, (-0.99, 0.99), 0),
    "ndtr": (special.ndtr, mpmath.ncdf, (-1e2, 1e2), 0),
    "log_ndtr": (special.log_ndtr, lambda x: mpmath.log(mpmath.ncdf(x)), (-5, 1e2), 1),
    "log_ndtr far": (special.log_ndtr, lambda x: mpmath.log(mpmath.ncdf(x)), (-1e4, -21), 1),
    "logit": (special.logit, lambda x: mpmath.log(x) - mpmath.log1p(-x), (0, 1), 0),
    "entr": (special.entr, lambda x: -x * mpmath.log(x), POSITIVE, 0),
    "xlogy(3, x)": (lambda x: special.xlogy(3, x), lambda x: 3 * mpmath.log(x), POSITIVE, 0),
    "xlog1py(3, x)": (lambda x: special.xlog1py(3, x), lambda x: 3 * mpmath.log1p(x),
                      (-1, mpmath.inf), 0),
    "gammaln": (special.gammaln, lambda x: mpmath.re(mpmath.loggamma(x)), (0, 1e6), 1),
    "digamma": (special.digamma, mpmath.digamma, (0, 1e6), 0),
    "i0e": (special.i0e, lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), (-1e6, 1e6), 1),
    "i1e": (special.i1e, lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), (-1e6, 1e6), 1),
    "expi": (special.expi, mpmath.ei, (-80, 80), 0),
    "spence": (special.spence, lambda x: mpmath.re(mpmath.polylog(2, 1 - x)), (1e-6, 1e4), 0),
}  # fmt: skip
"""Functions of one number."""


def limits(dtype):
    return plait.dtypes.finfo(dtype)


def points(dtype, count, seed=0):
    """Both signs, from subnormal numbers up to the greatest, and ordinary ones."""
    info = limits(dtype)
    low, high = np.log(float(info.tiny)), np.log(float(info.max))
    rng = np.random.default_rng(seed)
    sizes = np.exp(
        np.linspace(low, high * 0.999, count) + rng.uniform(-0.3, 0.3, count) * (count > 9)
    )
    roots = np.sqrt(float(info.max)) * np.array([0.3, 0.9, 1.5, 20])
    plain = [0.1, 0.3, 0.5, 0.9, 0.97, 1 - 3 * float(info.eps), 1 + 3 * float(info.eps), 1.2, 2, 3,
             5, 9.5, 17, 30, 70]  # fmt: skip
    x = np.concatenate([sizes, roots, 1 / roots, plain, [float(info.tiny), float(info.max)]])
    with np.errstate(over="ignore"):
        x = np.concatenate([x, -x]).astype(dtype)
    x = x[np.isfinite(x.astype(np.float64)) & (np.abs(x.astype(np.float64)) >= float(info.tiny))]
    return np.unique(x)


def scales(dtype):
    """Numbers of the dtype that are far from 1, and one that is not, and as mpmath has them."""
    root = 30 * float(np.sqrt(float(limits(dtype).max)))
    found = {w: np.asarray(v, dtype)[()] for w, v in dict(far=root, near=1 / root, one=0.7).items()}
    return {word: (c, mpmath.mpf(float(c))) for word, c in found.items()}


def beside(dtype):
    """Functions of one number beside another that may be far from 1."""
    found = {}
    for word, (c, m) in scales(dtype).items():
        found |= {
            f"hypot(x, {word})": (lambda x, c=c: pnp.hypot(x, c),
                                  lambda x, m=m: mpmath.hypot(x, m)),
            f"arctan2(x, {word})": (lambda x, c=c: pnp.arctan2(x, c),
                                    lambda x, m=m: mpmath.atan2(x, m)),
            f"arctan2({word}, x)": (lambda x, c=c: pnp.arctan2(c, x),
                                    lambda x, m=m: mpmath.atan2(m, x)),
            f"x / {word}": (lambda x, c=c: x / c, lambda x, m=m: x / m),
            f"{word} / x": (lambda x, c=c: c / x, lambda x, m=m: m / x),
        }  # fmt: skip
    return {n: (*fs, EVERY, 0) for n, fs in found.items()}


def complexes(dtype):
    """Both parts of functions of complex numbers, one part of which varies; an error is relative to
    the whole derivative."""
    found = {}
    for word, (c, m) in scales(dtype).items():
        for name, (f, g) in COMPLEX.items():
            for part in ("real", "imag"):
                found[f"{name}(x + {word} i).{part}"] = (
                    lambda x, c=c, f=f, p=part: getattr(
                        plait.lax.convert_element_type(
                            f(plait.lax.complex(x, pnp.full_like(x, c))), np.result_type(x, "c8")
                        ),
                        p,
                    ),
                    lambda x, m=m, g=g: mpmath.mpc(g(mpmath.mpc(x, m))),
                    EVERY,
                    part,
                )
    return found


COMPLEX = {
    "log": (pnp.log, mpmath.log), "sqrt": (pnp.sqrt, mpmath.sqrt),
    "reciprocal": (pnp.reciprocal, lambda z: 1 / z), "abs": (abs, abs),
    "angle": (pnp.angle, mpmath.arg), "arcsinh": (pnp.arcsinh, mpmath.asinh),
    "arccosh": (pnp.arccosh, mpmath.acosh), "arctanh": (pnp.arctanh, mpmath.atanh),
    "arcsin": (pnp.arcsin, mpmath.asin), "arccos": (pnp.arccos, mpmath.acos),
    "arctan": (pnp.arctan, mpmath.atan),
}  # fmt: skip
FIRST_ONLY = {"hypot(x, near)"}
"""Functions whose second derivative goes through a number that is far from 1 twice."""
AT_ZERO = {
    "i0e", "i1e", "near / x", "one / x", "far / x", "reciprocal", "x ** -2", "2 / x", "cbrt",
    "x / (1 + |x|)", "hypot(x, x)", "elu", "expi",
}  # fmt: skip
"""Functions, defined on both sides of 0, that are not smooth there."""


def slopes(f, x, step, digits):
    """The first three derivatives of a function of mpmath by its differences; None without any."""
    try:
        with mpmath.workdps(digits):
            a, b, c, d, e = [f(x + k * step) for k in (-2, -1, 0, 1, 2)]
            found = [(d - b) / (2 * step), (b - 2 * c + d) / step**2,
                     (e - 2 * d + 2 * b - a) / (2 * step**3)]  # fmt: skip
    except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.ComplexResult,
            mpmath.libmp.NoConvergence):  # fmt: skip
        return None
    return found if all(map(mpmath.isfinite, found)) else None


def wanted(name, truth, where, x):
    """The derivatives at each float; None where there are none."""
    low, high = (-mpmath.inf, mpmath.inf) if where == EVERY else where
    edged = name in AT_ZERO or low == 0 or high == 0 or "near" in name
    out = []
    for v in map(float, x):
        at, size = mpmath.mpf(v), mpmath.mpf(abs(v) if edged else max(abs(v), 1.0))
        wide = x.dtype == np.float64
        step = mpmath.mpf(10) ** (-330 if wide and not edged else -40)
        digits = 1400 if wide else 500 if edged and abs(v) < 1e-30 else 200
        out.append(slopes(truth, at, size * step, digits) if low < v < high else None)
    return out


def got(functions, x, order=2, compiled=True):
    """{name: [jvp, vjp, jvp of jvp, vjp of jvp, ...]}, in one compiled program, or by numpy."""
    ones = np.ones_like(x)

    def of(f):
        first = lambda v: plait.jvp(f, (v,), (ones,))[1]  # noqa: E731
        back = lambda v: plait.vjp(f, v)[1](ones)[0]  # noqa: E731
        found = [first, back]
        if order > 1:
            found += [lambda v: plait.jvp(first, (v,), (ones,))[1],
                      lambda v: plait.vjp(first, v)[1](ones)[0],
                      lambda v: plait.jvp(back, (v,), (ones,))[1]]  # fmt: skip
        return found

    run = lambda v: {n: [d(v) for d in of(f)] for n, f in functions.items()}  # noqa: E731
    found = plait.jit(run)(x) if compiled else numerically(run, x)
    return {n: [np.asarray(d) for d in ds] for n, ds in found.items()}


ORDERS = (1, 1, 2, 2, 2)
NAMES = ("jvp", "vjp", "jvp of jvp", "vjp of jvp", "jvp of vjp")


EDGE = 16
"""The least factor between points or results and the greatest or least normal number:
closer to these the reciprocal is not a normal number, and no formula with one is right."""


def ordinary(size, info, order):
    """Whether derivatives of that order are judged at a point: of the second one the square of the
    point, too, must be far from overflow."""
    low, high = float(info.tiny) * EDGE, float(info.max) / EDGE
    return low ** (1 / order) <= size <= high ** (1 / order)


def wrong(found, truth, x, scaled, last=2, units=64):
    """(point, which derivative, what came out, truth) of derivatives that are not right.

    Right is within `units` of the last place of the derivative, times how much the derivative
    changes if the argument does; beyond the greatest number infinite; below the least normal one
    anything that is no greater.
    """
    info = limits(x.dtype)
    eps, tiny, most = float(info.eps), float(info.tiny), float(info.max) / EDGE
    out = []
    for k, (at, t) in enumerate(zip(map(float, x), truth)):
        for which, order, values in zip(NAMES, ORDERS, found):
            if t is None or not ordinary(abs(at), info, order) or order > last:
                continue
            w, value = t[order - 1], float(values[k])
            size = abs(w)
            w = getattr(w, scaled) if isinstance(scaled, str) else w
            change = abs(at * t[order]) + (abs(t[0] / at) if order > 1 else 0)
            slack = (
                units * eps * (size + change + (scaled == 1) * (1 + min(abs(at), 32))) + EDGE * tiny
            )
            if size > most:
                fine = abs(value) > most / EDGE or isinstance(scaled, str)
            else:
                fine = np.isfinite(value) and abs(value - w) <= slack
            if not fine:
                out.append((at, which, value, float(w)))
    return out


def judged(dtype, count, names=None, order=2, seed=0, compiled=True):
    """{name: what is wrong} of the tables."""
    x = points(dtype, count, seed)
    table = {**ONE, **beside(dtype)}
    if compiled and np.dtype(dtype) in (np.float32, np.float64):
        table |= complexes(dtype)
    table = {n: row for n, row in table.items() if names is None or n in names}
    found = got({n: row[0] for n, row in table.items()}, x, order, compiled)
    report = {}
    for n, (_, truth, where, scaled) in table.items():
        bad = wrong(found[n], wanted(n, truth, where, x), x, scaled, 1 if n in FIRST_ONLY else 2)
        if bad:
            report[n] = bad
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--order", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--numpy", action="store_true", help="evaluated by numpy, not compiled")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    dtype = plait.dtypes.bfloat16 if given.dtype == "bfloat16" else np.dtype(given.dtype)
    report = judged(
        dtype, given.points, given.names or None, given.order, given.seed, not given.numpy
    )
    for name, bad in report.items():
        print(name, len(bad), *bad[:4], sep="\n    ")
    print(f"{given.dtype}: {len(report)} functions are wrong somewhere")
    return len(report)


if __name__ == "__main__":
    raise SystemExit(main())
