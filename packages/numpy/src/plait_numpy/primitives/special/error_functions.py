"""Functions near the error function: Faddeeva's w, Dawson's integral, the scaled erfc, Owen's T.

Invariant: intermediate results overflow or underflow only where the value does.  The real functions
are accurate to a few units in the last place, and w to some hundred units of its modulus.
"""

import math
from typing import Any

import numpy as np

from plait.ext import (
    Aval,
    Decreasing,
    Elementwise,
    Literal,
    Primitive,
    ZeroPreserving,
    expand_rules,
)
from plait.ext.ops import elementwise as el
from plait.ext.trace import Value
from plait.typing import Array

from .functions import chebyshev, define, said, series

_ROOT = math.sqrt(math.pi)

# ---- exponentials of squares -----------------------------------------------------------------


def square_exp(x: Value) -> Any:
    """Return e ** (x * x).  The square is the sum of two parts; the first is exact."""
    head = _head(x)
    return el.exp(head * head) * el.exp((x - head) * (x + head))


def bell(x: Value, rate: float = 1.0) -> Any:
    """Return e ** (-rate * x * x), by the same parts; `rate` is a power of two."""
    head = _head(x)
    return el.exp(-rate * head * head) * el.exp(-rate * (x - head) * (x + head))


def _head(x: Value) -> Any:
    """Return the leading bits of numbers up to 64, few enough that their square is exact."""
    narrow = x.aval.dtype == np.float32
    small = el.select(el.lt(el.abs_(x), 64.0), x, 64.0)
    bits, exponent = (10, 8) if narrow else (22, 11)
    return el.reduce_precision.bind(small, exponent_bits=exponent, mantissa_bits=bits)


def far_right(dtype: np.dtype) -> float:
    """Return the size from which the series in 1 / x ** 2 are exact."""
    return 10.0 if np.finfo(dtype).bits == 64 else 6.0


def odd_series(t: Array, step: float) -> Any:
    """Return 1 + 3 t + 15 t ** 2 + 105 t ** 3 + ... of t times `step`, which is 1 or -1."""
    terms = [1.0]
    for k in range(16):
        terms.append(step * terms[-1] * (2 * k + 3))
    return series(t, terms)


# ---- the scaled complementary error function -------------------------------------------------

erfcx = define("erfcx", 1, "e ** (x * x) erfc(x), which does not underflow.", Decreasing)

# Chebyshev coefficients of (1 + 2 x) erfcx(x) for x >= 0 in (x - 3.75) / (x + 3.75), the variable
# of Shepherd and Laframboise, Math. Comp. 36 (1981).  These coefficients and those below are the
# cosine transform of values to 40 digits.
_ERFCX = (
    1.1775789345674017, -0.004590054580646478, -0.08424913336651792, 0.05920993999819189,
    -0.026658668435305753, 0.009074997670705265, -0.002413163540417608, 0.0004907758365258086,
    -6.916973302501207e-05, 4.13902798607301e-06, 7.74038306619849e-07, -2.1886401049234397e-07,
    1.076499946567091e-08, 4.521959811218287e-09, -7.754400208831351e-10, -6.318088340886684e-11,
    2.86879501093067e-11, 1.9455868545777347e-13, -9.65469674843344e-13, 3.25254814814874e-14,
    3.3478119482868056e-14, -1.864562880419313e-15, -1.2507950530688648e-15,
    7.418235256624044e-17, 5.068148904796111e-17,
)  # fmt: skip


@said(erfcx)
def _erfcx(x: Value):
    """Use reflection for x < 0: 2 e ** (x * x) - erfcx(-x)."""
    size = el.abs_(x)
    right = chebyshev(1.0 - 7.5 / (size + 3.75), _ERFCX) / (1.0 + 2.0 * size)
    left = el.maximum(el.minimum(x, 0.0), -28.0)
    return el.select(el.lt(x, 0.0), 2.0 * square_exp(left) - right, right)


# ---- Dawson's integral -----------------------------------------------------------------------

dawsn = define("dawsn", 1, "Dawson's integral: e ** (-x * x) times the integral of e ** (t * t)\n"
               "from 0 to x.", ZeroPreserving)  # fmt: skip

# Coefficients of dawsn(x) / x up to 5, in x ** 2; of 2 x dawsn(x) beyond, in 1 / x ** 2.
_DAWSN_NEAR = (
    0.1772453850902791, -0.27449077018166923, 0.2008907701804693, -0.13855477018186832,
    0.0898891701801088, -0.05480590618249315, 0.03140025625901689, -0.016913964194060348,
    0.008574058018138897, -0.004095653364288093, 0.0018463775176037363, -0.0007868721507131541,
    0.0003175653204049755, -0.00012158452128144187, 4.4239289220330554e-05,
    -1.5324191348797377e-05, 5.061986349643029e-06, -1.597156876012634e-06, 4.821016872425284e-07,
    -1.3942674216842947e-07, 3.868939081765656e-08, -1.0314981957969098e-08,
    2.6456916669710896e-09, -6.536414083167736e-10, 1.5573204847430266e-10,
    -3.582098282767749e-11, 7.963000319977222e-12, -1.712503304769159e-12, 3.5662814155107424e-13,
    -7.19818445025842e-14, 1.4093795825613889e-14, -2.679088532423727e-15, 4.948114462214065e-16,
    -8.886066749094144e-17, 1.552763068703898e-17, -2.641929225491113e-18,
)  # fmt: skip
_DAWSN_FAR = (
    1.0104930398155554, 0.010665188854844071, 0.0001771067342841464, 5.169683968011006e-06,
    2.2447507782493716e-07, 1.3464937144333474e-08, 1.0800215667819404e-09,
    1.1489298262821258e-10, 1.599986562592124e-11, 2.703005580094485e-12, 4.591872803691233e-13,
    4.8027993211255076e-14, -1.1195315281290138e-14, -8.851173977001467e-15,
    -2.7656923316040005e-15, -2.9028411520661707e-16, 1.5545769481586733e-16,
    8.194209358526931e-17, 9.89657052209714e-18, -5.945081119900551e-18,
)  # fmt: skip


_TAYLOR = tuple([(-2.0) ** k / math.prod(range(1, 2 * k + 2, 2)) for k in range(21)])


@said(dawsn)
def _dawsn(x: Value):
    """Use the Taylor series DLMF 7.6.3 up to 1, and Chebyshev series beyond."""
    size = el.abs_(x)
    inside, part = el.minimum(size, 5.0), 5.0 / el.maximum(size, 5.0)
    near = inside * chebyshev(inside * inside * (2 / 25) - 1.0, _DAWSN_NEAR)
    far = 0.1 * part * chebyshev(2.0 * part * part - 1.0, _DAWSN_FAR)
    out = el.select(el.gt(size, 5.0), far, near)
    small = el.select(el.gt(size, 1.0), 0.0, x)
    return el.select(el.gt(size, 1.0), el.sign(x) * out, x * series(small * small, _TAYLOR))


# ---- Faddeeva's function ---------------------------------------------------------------------


def _wofz(z: Aval) -> Aval:
    """Compute Faddeeva's function w(z) = e ** (-z * z) erfc(-i z) of complex numbers."""
    return el.agreed("wofz", el.IMAGINARY, z)


wofz = Primitive(
    "special.wofz", _wofz, (Elementwise,), prepare=el.floating, formerly=("core.wofz",)
)

# Coefficients of the expansion of w in (L + i z) / (L - i z), L = sqrt(N / sqrt 2):
# J. A. C. Weideman, SIAM J. Numer. Anal. 31 (1994).
_WEIDEMAN_20 = (
    1.9853009774971668, 1.6232081325119645, 1.1520634115639845, 0.7008013310382897,
    0.35704125599214176, 0.14575157593250515, 0.042984283879017225, 0.006026110195026273,
    -0.0017307240967378153, -0.0011928210147636026, -0.0001611300969241895, 9.81458181089201e-05,
    4.1457517212429406e-05, -5.11116944491738e-06, -6.451117611615168e-06, -6.512434151052441e-08,
    9.520915116775804e-07, 7.42341599057476e-08, -1.4871913157632817e-07, -1.4742731218431282e-08,
)  # fmt: skip
_WEIDEMAN_40 = (
    2.8996245093897053, 2.61605415276186, 2.201513794878312, 1.7253830848179779,
    1.2563815675765133, 0.8472174576593818, 0.5266528988277086, 0.29989437996150065,
    0.15504263802479495, 0.07182361779074337, 0.029202916471241867, 0.010048186242783424,
    0.0027054056330737914, 0.0004398070159869668, -3.939363145489569e-05, -5.591309264248318e-05,
    -1.8007447144750956e-05, -1.0660138984947143e-06, 1.483566113220078e-06,
    5.912136951899494e-07, 1.4198642399935674e-08, -6.35177348504429e-08, -1.8315616783040462e-08,
    3.2497465180436973e-09, 3.0177805400090707e-09, 2.1086006347066517e-10,
    -3.5632339865976533e-10, -9.055124450928292e-11, 3.47272670930455e-11, 1.7714495214011192e-11,
    -2.7276023158200452e-12, -2.907688342182867e-12, 1.2031458219387989e-13,
    4.5329666782606727e-13, 1.37256205867155e-14, -7.074086260286855e-14, -5.409310282882142e-15,
    1.1357687198999241e-14, 1.128073562364402e-15, -1.899694947394927e-15,
)  # fmt: skip


def _upper(z: Value) -> Any:
    """Compute w in the upper half plane."""
    narrow = z.aval.dtype == np.complex64
    terms, edge = (_WEIDEMAN_20, 1e4) if narrow else (_WEIDEMAN_40, 1e8)
    scale = math.sqrt(len(terms) / math.sqrt(2))
    const = lambda v: Literal(v, z.aval.strong())  # noqa: E731
    size = el.abs_(z)
    far = el.gt(size, edge)
    iz = el.mul.bind(el.select(far, const(0), z), const(1j))
    ratio = el.div.bind(const(1), const(scale) - iz)
    power, total = el.mul.bind(iz + const(scale), ratio), const(terms[-1])
    for t in reversed(terms[:-1]):
        total = el.add.bind(el.mul.bind(total, power), const(t))
    near = el.mul.bind(el.mul.bind(const(2), total) * ratio + const(1 / _ROOT), ratio)
    gone = el.eq(size, math.inf)
    out = el.div.bind(const(1j / _ROOT), el.select(far, z, const(1)))
    return el.select(gone, const(0), el.select(far, out, near))


@expand_rules.rule(wofz)
def _(z: Value):
    """Use 2 e ** (-z * z) - w(-z) in the lower half plane.

    On the real axis the parts of w are a bell and Dawson's integral.  On the imaginary axis w is
    the scaled erfc.
    """
    x, y = el.real.bind(z), el.imag.bind(z)
    down = el.lt(y, 0.0)
    w = _upper(el.select(down, el.neg(z), z))
    a, b = el.real.bind(w), el.imag.bind(w)
    turn, size = -2.0 * x * y, 2.0 * el.exp((y - x) * (y + x))
    none = el.eq(size, 0.0)
    turn = el.select(none, 0.0, turn)
    a = el.select(down, size * el.cos(turn) - a, a)
    b = el.select(down, size * el.sin(turn) - b, b)
    flat, upright = el.eq(y, 0.0), el.eq(x, 0.0)
    a = el.select(flat, bell(x), el.select(upright, erfcx(y), a))
    b = el.select(flat, (2 / _ROOT) * dawsn(x), el.select(upright, x, b))
    return el.complex_.bind(a, b)


# ---- Owen's function -------------------------------------------------------------------------

owens_t = define("owens_t", 2, "Owen's T(h, a): the chance that X > h and 0 < Y < a X, of\n"
                 "independent normal numbers.")  # fmt: skip


@said(owens_t)
def _owens_t(h: Value, a: Value):
    """Use Gauss's rule for |a| <= 1; for other a, use T(a h, 1 / a): D. B. Owen, Ann. Math.
    Statist. 27 (1956), equation 2.3."""
    size, width = el.minimum(el.abs_(h), 60.0), el.abs_(a)
    steep = el.gt(width, 1.0)
    along = el.select(steep, el.select(el.eq(size, 0.0), 0.0, el.minimum(size * width, 60.0)), size)
    inside = _by_gauss(along, el.select(steep, 1.0 / el.select(steep, width, 1.0), width))
    p, q = (0.5 * el.erfc(v * math.sqrt(0.5)) for v in (size, along))
    rest = 0.5 * p * (1.0 - q) + (0.5 * q * (1.0 - p) - inside)
    out = el.sign(a) * el.select(steep, rest, inside)
    return el.select(el.ne(h, h), h, out)


def _by_gauss(h: Value, a: Value) -> Any:
    """Integrate the definition up to where the bell vanishes."""
    narrow = h.aval.dtype == np.float32
    points, weights = np.polynomial.legendre.leggauss(16 if narrow else 32)
    reach = 5.6 if narrow else 8.6
    end = el.minimum(a, reach / el.maximum(h, 0.5))
    total: Any = Literal(0.0, h.aval.strong())
    for x, w in zip(points, weights):
        t = end * (0.5 + 0.5 * float(x))
        total = total + float(w) * el.exp(-0.5 * (h * t) * (h * t)) / (1.0 + t * t)
    return bell(h, 0.5) * end * total * (0.25 / math.pi)


__all__ = ["bell", "dawsn", "erfcx", "far_right", "odd_series", "owens_t", "square_exp", "wofz"]
