"""Values of functions of two arguments in units of the last place, against mpmath.

`python -m tests.laws.last_places_of_pairs --points 1000` is the wide run; a small sample is in
`test_last_places.py`.

Invariant: arguments are exactly the floats that were given: of every magnitude, and close to each
other.  Where a value is a power or an exponential, the promise grows with its logarithm, since an
exponent has an error of its own.
"""

import argparse

import mpmath
import numpy as np

import plait

from .last_places import units

special = plait.scipy.special


def _apart(rng, count, low, high):
    return np.exp(rng.uniform(np.log(low), np.log(high), count))


def _every(low, high):
    """Draw pairs of independent numbers of every magnitude."""
    return lambda rng, n: (_apart(rng, n, low, high), _apart(rng, n, low, high))


def _close(low, high):
    """Draw pairs of numbers that are equal to one to five digits."""

    def pairs(rng, n):
        x = _apart(rng, n, low, high)
        return x, x * (1 + _apart(rng, n, 1e-5, 0.5) * rng.choice([-1, 1], n))

    return pairs


def _orders(rng, n):
    """Draw exponents above 1, close to it and far, and bases of every magnitude."""
    return 1 + _apart(rng, n, 1e-3, 1e2), _apart(rng, n, 1e-3, 1e6)


def _ends(rng, n):
    """Draw numbers close to 0 and to 1, and numbers that do not matter."""
    x = _apart(rng, n, 1e-6, 1)
    return np.where(rng.random(n) < 0.5, x, 1 - x), np.ones(n)


def _zeta(s, q):
    """Add 60 terms, and the integral of the others with 40 corrections.

    `mpmath.zeta` loses all digits where q is large.
    """
    w, total = q + 60, sum([(q + k) ** -s for k in range(60)])
    total += w ** (1 - s) / (s - 1) + w**-s / 2
    for k in range(1, 41):
        rising = mpmath.rf(s, 2 * k - 1) * w ** (1 - 2 * k - s)
        total += mpmath.bernoulli(2 * k) / mpmath.factorial(2 * k) * rising
    return total


def _lower(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def _upper(a, x):
    return mpmath.gammainc(a, x, regularized=True)


def _rel_entr(p, q):
    return p * mpmath.log(p / q)


def _kl_div(p, q):
    return _rel_entr(p, q) - p + q


# name: (function, truth, draw(rng, count), units, and as many more for each unit of the logarithm)
PAIRS = {
    "zeta": (special.zeta, _zeta, _orders, 8, 0),
    "gammainc": (special.gammainc, _lower, _every(1e-3, 1e3), 80, 5),
    "gammaincc": (special.gammaincc, _upper, _every(1e-3, 1e3), 80, 5),
    "gammainc, near its mean": (special.gammainc, _lower, _close(1, 3e3), 60, 3),
    "erfinv": (lambda x, _: special.erfinv(x), lambda x, _: mpmath.erfinv(x), _ends, 5, 0),
    "rel_entr": (special.rel_entr, _rel_entr, _every(1e-5, 1e5), 8, 0),
    "rel_entr, close": (special.rel_entr, _rel_entr, _close(1e-5, 1e5), 5, 0),
    "kl_div": (special.kl_div, _kl_div, _every(1e-5, 1e5), 32, 0),
    "kl_div, close": (special.kl_div, _kl_div, _close(1e-5, 1e5), 24, 0),
    "xlog1py": (special.xlog1py, lambda x, y: x * mpmath.log1p(y), _every(1e-5, 1e5), 4, 0),
}


def broken(dtype, count, names=None, seed=0):
    """{name: (units, promised, arguments, value, truth)} of the worst broken promises."""
    rng, info, found = np.random.default_rng(seed), np.finfo(dtype), {}
    names = list(names or PAIRS)
    given = {n: [v.astype(dtype) for v in PAIRS[n][2](rng, count)] for n in names}
    values = plait.jit(lambda xs: {n: PAIRS[n][0](*xs[n]) for n in names})(given)
    for n in names:
        _, truth, _, base, more = PAIRS[n]
        for x, y, value in zip(*given[n], np.asarray(values[n])):
            with mpmath.workdps(40):
                want = truth(mpmath.mpf(float(x)), mpmath.mpf(float(y)))
                if not info.tiny <= abs(want) <= float(info.max):
                    continue
                far = units(mpmath.mpf(float(value)), want, info)
                promised = base + more * float(abs(mpmath.log(abs(want))))
            if far > promised and far > found.get(n, (0,))[0]:
                found[n] = far, promised, (float(x), float(y)), float(value), float(want)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    count = 0
    for dtype in (np.float32, np.float64):
        report = broken(dtype, given.points, given.names, given.seed)
        count += len(report)
        for name, row in report.items():
            print(dtype.__name__, name, *row)
    print(f"{count} promises are broken")
    return count


if __name__ == "__main__":
    raise SystemExit(main())
