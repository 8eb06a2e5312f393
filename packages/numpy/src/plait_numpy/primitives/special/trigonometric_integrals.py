"""Trigonometric integrals: Fresnel's integrals, and the sine and cosine integrals.

Invariant: angles are reduced before they are rounded, so that results for large arguments keep the
digits of their angle.  Close to roots, errors are those of neighbouring values.
"""

import math
from typing import Any

import numpy as np

from plait.ext.ops import elementwise as el
from plait.ext.trace import Value

from .functions import chebyshev, define, said

# ---- Fresnel's integrals ---------------------------------------------------------------------

fresnel = define("fresnel", 1, "(S, C): the integrals of sin and cos of pi t * t / 2 from 0 to x.",
                 results=2)  # fmt: skip

# Chebyshev coefficients up to x = 2.5, of C / x and S / x ** 3 in x ** 4; beyond, of the auxiliary
# functions times pi x and pi ** 2 x ** 3, in x ** -4.  These coefficients and those below are the
# cosine transform of values to 40 digits.
_COS_NEAR = (
    0.34000378753284183, -0.21463555314242846, 0.15086068597273897, -0.16275298115965597,
    0.09439188697085799, -0.030258674844348032, 0.006136259345258138, -0.0008630100768587364,
    8.952601506384834e-05, -7.155197218935395e-06, 4.5507060807857273e-07,
    -2.3613846621675632e-08, 1.0198188673971249e-09, -3.7256112709362435e-11,
    1.1669697174334323e-12, -3.170123708177304e-14, 7.542382946843456e-16,
    -1.5850932611248597e-17,
)  # fmt: skip
_SIN_NEAR = (
    0.13731418077153454, -0.16960110942188242, 0.11972244946441143, -0.06682747887872158,
    0.02369897694891726, -0.0054552598760263605, 0.0008685834651337593, -0.00010109296316378186,
    8.977617585237801e-06, -6.288000115046214e-07, 3.565188007583185e-08, -1.6709016343051067e-09,
    6.584983337650556e-11, -2.21355991286889e-12, 6.423967722207285e-14, -1.6262360081997799e-15,
    3.623474949675941e-17, -7.162016873195094e-19,
)  # fmt: skip
_COS_FAR = (
    0.9963328957401564, -0.003598309670657881, 6.571370067989755e-05, -2.8536780198887793e-06,
    2.0392432873227112e-07, -2.0266109330631773e-08, 2.552087597911368e-09,
    -3.845541164875694e-10, 6.675316364065206e-11, -1.2999222228183651e-11,
    2.7854753661035737e-12, -6.472837551675955e-13, 1.6129097288670446e-13,
    -4.271416785005461e-14, 1.1935909122483213e-14, -3.4986337790445387e-15,
    1.0704597151201907e-15, -3.4046904742558257e-16, 1.1217459941997248e-16,
    -3.8168960882542417e-17, 1.3377953507119546e-17, -4.818829146459739e-18,
)  # fmt: skip
_SIN_FAR = (
    0.982434032233484, -0.01700279800137119, 0.0005287544471589305, -3.1278400741370834e-05,
    2.7605485861992255e-06, -3.211089249673797e-07, 4.578135622392606e-08, -7.637872578693759e-09,
    1.4448487265855392e-09, -3.0303289556955057e-10, 6.930478759520513e-11,
    -1.7066500942834794e-11, 4.480592314031894e-12, -1.2442427970638398e-12,
    3.6313309725247755e-13, -1.1079432976543775e-13, 3.51833687037071e-14,
    -1.1585086601591264e-14, 3.942881111955888e-15, -1.3831925795114216e-15,
    4.989590813819003e-16, -1.8469233353862457e-16, 7.002143639625525e-17, -2.714557595751917e-17,
    1.0745287759496682e-17, -4.337297067263698e-18,
)  # fmt: skip


def quarter_turns(x: Value) -> Any:
    """Return x * x modulo 4, for x >= 0, from parts whose products are exact."""
    narrow = x.aval.dtype == np.float32
    bits, exponent = (11, 8) if narrow else (25, 11)
    some = el.minimum(x, 1e18)
    head = el.reduce_precision.bind(some, exponent_bits=exponent, mantissa_bits=bits)
    tail = some - head
    turns = el.rem(head * head, 4.0) + el.rem(2.0 * head * tail, 4.0) + el.rem(tail * tail, 4.0)
    return el.rem(turns + 4.0, 4.0)


@said(fresnel)
def _fresnel(x: Value):
    """Use the auxiliary functions beyond 2.5, DLMF 7.5.3 and 7.5.4."""
    size = el.abs_(x)
    y, z = el.minimum(size, 2.5), el.maximum(size, 2.5)
    square = y * y
    t = square * square * (2 / 2.5**4) - 1.0
    near = y * square * chebyshev(t, _SIN_NEAR), y * chebyshev(t, _COS_NEAR)
    r = 2.5 / z
    t = 2.0 * (r * r) * (r * r) - 1.0
    f = chebyshev(t, _COS_FAR) * (1 / (2.5 * math.pi)) * r
    g = chebyshev(t, _SIN_FAR) * (1 / (2.5**3 * math.pi**2)) * r * r * r
    angle = (0.5 * math.pi) * quarter_turns(z)
    s, c = el.sin(angle), el.cos(angle)
    far = 0.5 - f * c - g * s, 0.5 + f * s - g * c
    inside = el.le(size, 2.5)
    out = (el.select(inside, a, b) for a, b in zip(near, far))
    known = [el.select(el.eq(size, math.inf), 0.5, el.select(el.ne(x, x), x, v)) for v in out]
    return tuple([el.select(el.lt(x, 0.0), el.neg(v), v) for v in known])


# ---- sine and cosine integrals ---------------------------------------------------------------

sici = define("sici", 1, "(Si, Ci): the integrals of sin(t) / t from 0 to x, and of cos(t) / t\n"
              "from infinity to |x|.", results=2)  # fmt: skip

# Coefficients up to x = 8, of Si / x and (Ci - log x - Euler's constant) / x ** 2 in x ** 2;
# beyond, of the auxiliary functions times x and x ** 2, in x ** -2.
_SI_NEAR = (
    0.41548949217743547, -0.3429237403666032, 0.17082268233517436, -0.057026304028778146,
    0.011912023107808686, -0.0016514697638438762, 0.00016181552494666304, -1.1779839593055477e-05,
    6.621313653681643e-07, -2.9611807680332997e-08, 1.079117854598963e-09, -3.267186907415527e-11,
    8.351052830486921e-13, -1.8264968008568608e-14, 3.457707549045272e-16, -5.721930242875199e-18,
)  # fmt: skip
_CI_NEAR = (
    -0.10907085485859122, 0.09685738806196026, -0.03440687348714566, 0.008196673555643111,
    -0.0013087986938860048, 0.00014656003342710755, -1.2055169939851e-05, 7.571311536200863e-07,
    -3.7460185107874995e-08, 1.4973149148057116e-09, -4.935564909785159e-11,
    1.364715521328671e-12, -3.211028518704612e-14, 6.507722958171444e-16, -1.1480058469826864e-17,
)  # fmt: skip
_SI_FAR = (
    0.9860406569623826, -0.013471738208295213, 0.00045329284116522655, -3.067288651655165e-05,
    3.1319919760108725e-06, -4.2110196496309775e-07, 6.907244830281719e-08,
    -1.3183212904229397e-08, 2.8369743299741647e-09, -6.732923425486324e-10,
    1.7339686939790845e-10, -4.7869389042489193e-11, 1.40323465212929e-11, -4.334957125531991e-12,
    1.4027265342681547e-12, -4.730617346429996e-13, 1.6557877505805563e-13,
    -5.993808246042817e-14, 2.2372132982506768e-14, -8.588065231433418e-15,
    3.3829238741050624e-15, -1.364728176890462e-15, 5.628689985613522e-16,
    -2.3698003543410957e-16, 1.0171106526868841e-16, -4.44475164215311e-17,
    1.9754855213207925e-17, -8.921083556115416e-18, 4.0896792688566056e-18,
)  # fmt: skip
_CI_FAR = (
    0.9607478397520359, -0.03711389621239806, 0.0019414398889919036, -0.0001716598842514708,
    2.1126377532314656e-05, -3.2716325671153157e-06, 6.006921161477705e-07,
    -1.2586794403387074e-07, 2.932563457995776e-08, -7.456959206276285e-09,
    2.0410547835874715e-09, -5.950223038763333e-10, 1.8322967411118143e-10, -5.92050607828413e-11,
    1.9965165181282273e-11, -6.995114007847224e-12, 2.536857739286041e-12, -9.492851164356655e-13,
    3.6552311529158363e-13, -1.4448739149813032e-13, 5.851312143767554e-14,
    -2.423290214812307e-14, 1.0247042520028651e-14, -4.417960820697268e-15,
    1.9396807770775258e-15, -8.662331164331828e-16, 3.930926051912992e-16,
    -1.8109729263460377e-16, 8.462994316463079e-17, -4.00867851855537e-17, 1.92327687413453e-17,
    -9.340477377370811e-18, 4.589110055376658e-18,
)  # fmt: skip


@said(sici)
def _sici(x: Value):
    """Use the auxiliary functions beyond 8, DLMF 6.2.19 and 6.2.20."""
    size = el.abs_(x)
    y, z = el.minimum(size, 8.0), el.maximum(size, 8.0)
    square = y * y
    t = square * (2 / 64) - 1.0
    near = (
        y * chebyshev(t, _SI_NEAR),
        square * chebyshev(t, _CI_NEAR) + (el.log(y) + np.euler_gamma),
    )
    r = 8.0 / z
    t = 2.0 * r * r - 1.0
    f, g = chebyshev(t, _SI_FAR) * 0.125 * r, chebyshev(t, _CI_FAR) * (1 / 64) * r * r
    still = el.eq(size, math.inf)
    z = el.select(still, 8.0, z)
    s, c = el.sin(z), el.cos(z)
    far = 0.5 * math.pi - (f * c + g * s), f * s - g * c
    inside = el.le(size, 8.0)
    si, ci = (el.select(inside, a, b) for a, b in zip(near, far))
    lost = el.ne(x, x)
    return el.select(lost, x, el.select(el.lt(x, 0.0), el.neg(si), si)), el.select(lost, x, ci)


__all__ = ["fresnel", "quarter_turns", "sici"]
