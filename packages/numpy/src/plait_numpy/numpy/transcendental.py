"""Exponentials, logarithms, trigonometric and hyperbolic functions, element by element.

Invariant: results are floats or complex numbers; where a formula breaks down (at zero, at
infinity), values and derivatives are the limits.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plait.ext import Literal, materialise_at_ground
from plait.ext.ir import Primitive
from plait.ext.ops import elementwise as el
from plait.ext.ops.shape import fill
from plait.ext.surface import binary, fused, unary, value
from plait.ext.trace import Value
from plait.ext.types import COMPLEX
from plait.typing import Array, ArrayLike

from ..primitives.special.functions import bessel_i0e
from ..primitives.special.functions import series as power_series
from .arithmetic import _inexact, real_float
from .masking import masked
from .samples import shown

__all__ = [
    "acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "conj", "conjugate", "cos",
    "cosh", "deg2rad", "degrees", "exp", "exp2", "expm1", "i0", "imag", "log", "log10", "log1p",
    "log2", "logaddexp", "logaddexp2", "rad2deg", "radians", "real", "sin", "sinc", "sinh", "sqrt",
    "tan", "tanh",
]  # fmt: skip

_LOG_2, _LOG_10 = math.log(2), math.log(10)
_REST = (
    "x: numbers, any shape; integers become the default float.  As numpy.{}.\n\n"
    "Raises NotAnArrayError if `x` is not an array."
)
_REAL = (
    "x: real, any shape; integers become the default float.  As numpy.{}.\n\n"
    "Raises NotAnArrayError if `x` is not an array, and OperandTypeError for complex numbers."
)


def _function(
    name: str, prim: Primitive, doc: str, rest: str = _REST
) -> Callable[[ArrayLike], Array]:
    return unary(name, prim, f"{doc}\n\n{rest.format(name)}{shown(name)}")


exp = _function("exp", el.exp, "e ** x.")
expm1 = _function("expm1", el.expm1, "e ** x - 1, exact for small x.")
log = _function("log", el.log, "Natural logarithm; nan of negative numbers.")
log1p = _function("log1p", el.log1p, "log(1 + x), exact for small x.")
sin = _function("sin", el.sin, "Sine.")
cos = _function("cos", el.cos, "Cosine.")
tan = _function("tan", el.tan, "Tangent.")
arcsin = asin = _function("arcsin", el.asin, "Inverse sine, in [-pi/2, pi/2].")
arccos = acos = _function("arccos", el.acos, "Inverse cosine, in [0, pi].")
arctan = atan = _function("arctan", el.atan, "Inverse tangent, in [-pi/2, pi/2].")
sinh = _function("sinh", el.sinh, "Hyperbolic sine.")
cosh = _function("cosh", el.cosh, "Hyperbolic cosine.")
tanh = _function("tanh", el.tanh, "Hyperbolic tangent.")
arcsinh = asinh = _function("arcsinh", el.asinh, "Inverse hyperbolic sine.")
arccosh = acosh = _function("arccosh", el.acosh, "Inverse hyperbolic cosine.")
arctanh = atanh = _function("arctanh", el.atanh, "Inverse hyperbolic tangent.")
sqrt = _function("sqrt", el.sqrt, "Square root; nan of negative numbers.")
cbrt = _function("cbrt", el.cbrt, "Cube root.", _REAL)


def _reals(name: str, x1: object, x2: object) -> Any:
    return [real_float(name, x) for x in el.floating((x1, x2))]


arctan2 = atan2 = binary(
    "arctan2",
    el.atan2,
    "The angle of the point (x2, x1), in [-pi, pi].\n\n"
    "x1, x2: real; shapes broadcast, integers become the default float.  As numpy.arctan2.\n\n"
    "Raises NotAnArrayError if an operand is not an array, DimMismatch if shapes do not\n"
    "broadcast, and OperandTypeError for complex numbers." + shown("arctan2"),
    prepare=lambda xs: _reals("arctan2", *xs),
)


def exp2(x: ArrayLike, /) -> Array:
    """Return 2 ** x.

    x: numbers, any shape; integers become the default float.  As numpy.exp2.

    Raises NotAnArrayError if `x` is not an array.

    >>> import plait
    >>> float(plait.numpy.exp2(3.0))
    8.0
    """
    x = _inexact(value(x))
    return el.exp(_times(x, _LOG_2)) if x.aval.category == COMPLEX else el.pow_(2, x)


def _times(z: Array, factor: float) -> Any:
    """Multiply a complex number by a real one, part by part, so that no infinity meets a zero."""
    return el.complex_.bind(el.mul(el.real(z), factor), el.mul(el.imag(z), factor))


def _log_to(x: Any, log_of_base: float) -> Any:
    out = el.log(x)
    if out.aval.category == COMPLEX:
        return _times(out, 1 / log_of_base)
    return el.div(out, log_of_base)


@fused
def log2(x: ArrayLike) -> Array:
    """Return the logarithm to base 2.

    x: numbers, any shape; integers become the default float.  As numpy.log2.

    Raises NotAnArrayError if `x` is not an array.

    >>> import plait
    >>> float(plait.numpy.log2(1.0))
    0.0
    """
    return _log_to(x, _LOG_2)


@fused
def log10(x: ArrayLike) -> Array:
    """Return the logarithm to base 10.

    x: numbers, any shape; integers become the default float.  As numpy.log10.

    Raises NotAnArrayError if `x` is not an array.

    >>> import plait
    >>> float(plait.numpy.log10(1.0))
    0.0
    """
    return _log_to(x, _LOG_10)


def deg2rad(x: ArrayLike, /) -> Array:
    """Convert degrees to radians.

    x: real, any shape; integers become the default float.  As numpy.deg2rad.

    Raises NotAnArrayError if `x` is not an array, and OperandTypeError for complex numbers.

    >>> import numpy as np, plait
    >>> plait.numpy.deg2rad(np.array([0.0, 90.0])).shape
    (2,)
    """
    return el.mul(real_float("deg2rad", x), np.pi / 180)


def rad2deg(x: ArrayLike, /) -> Array:
    """Convert radians to degrees.

    x: real, any shape; integers become the default float.  As numpy.rad2deg.

    Raises NotAnArrayError if `x` is not an array, and OperandTypeError for complex numbers.

    >>> import plait
    >>> float(plait.numpy.rad2deg(0.0))
    0.0
    """
    return el.mul(real_float("rad2deg", x), 180 / np.pi)


radians, degrees = deg2rad, rad2deg


@fused
def sinc(x: ArrayLike) -> Array:
    """Return sin(pi x) / (pi x), 1 at zero, with the right derivatives there.

    x: numbers, any shape; integers become the default float.  As numpy.sinc.

    Raises NotAnArrayError if `x` is not an array.

    >>> import plait
    >>> float(plait.numpy.sinc(0.0))
    1.0
    """
    x = _inexact(value(x))
    t = el.mul(x, np.pi)
    square = el.square(t)
    near = el.lt(el.abs_(t), 1)
    series = power_series(el.select(near, square, 0), _SINC)
    far = el.select(near, 1, t)
    return el.select(near, series, el.div(_sin_of_turns(x, t), far))


_SINC = [(-1) ** k / math.factorial(2 * k + 1) for k in range(11)]
"""Taylor coefficients of sin(t) / t in powers of t ** 2."""


def _sin_of_turns(x: Array, t: Value) -> Any:
    """Return sin(pi x) for t = pi x.  For real numbers the distance from the nearest whole
    number is used: it is exact, unlike that of t from a multiple of pi."""
    if x.aval.category == COMPLEX:
        return el.sin(t)
    whole = el.round_even(x)
    odd = el.ne(el.mul(el.floor(el.mul(whole, 0.5)), 2), whole)
    out = el.sin(el.mul(el.sub(x, whole), np.pi))
    return el.select(odd, el.neg(out), out)


@masked
@fused
def logaddexp(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return log(e ** x1 + e ** x2) without overflow.

    x1, x2: numbers; shapes broadcast, integers become the default float; for complex numbers the
    imaginary part is in (-pi, pi].  As numpy.logaddexp.

    Raises NotAnArrayError if an operand is not an array, and DimMismatch if shapes do not
    broadcast.

    >>> import plait
    >>> float(plait.numpy.logaddexp(1000.0, 1000.0)) - 1000 < 0.7
    True
    """
    a, b = el.floating((x1, x2))
    if a.aval.category == COMPLEX:
        return _complex_logaddexp(a, b)
    greater, gap = _apart(*_reals("logaddexp", a, b))
    return el.add(greater, el.log1p(el.exp(gap)))


@masked
@fused
def logaddexp2(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return log2(2 ** x1 + 2 ** x2) without overflow.

    x1, x2: numbers; shapes broadcast, integers become the default float; for complex numbers the
    imaginary part is in (-pi, pi] / log(2).  As numpy.logaddexp2.

    Raises NotAnArrayError if an operand is not an array, and DimMismatch if shapes do not
    broadcast.

    >>> import plait
    >>> float(plait.numpy.logaddexp2(1.0, 1.0))
    2.0
    """
    a, b = el.floating((x1, x2))
    if a.aval.category == COMPLEX:
        return _times(_complex_logaddexp(_times(a, _LOG_2), _times(b, _LOG_2)), 1 / _LOG_2)
    greater, gap = _apart(*_reals("logaddexp2", a, b))
    return el.add(greater, el.div(el.log1p(el.pow_(2, gap)), _LOG_2))


def _apart(a: Value, b: Value) -> tuple[Any, Any]:
    """Return (the greater, the distance to the other).  Both come from one choice, so this is
    smooth where they are equal; equal infinities have distance 0."""
    first = el.gt(a, b)
    big, small = el.select(first, a, b), el.select(first, b, a)
    infinite = el.and_(el.eq(a, b), el.eq(el.abs_(a), np.inf))
    return big, el.select(infinite, 0, el.sub(small, big))


def _complex_logaddexp(a: Value, b: Value) -> Any:
    """Return the number with the greater real part, and the term that the other adds; the gap of
    two infinite numbers is that of their imaginary parts alone."""
    (ar, ai), (br, bi) = [(el.real(v), el.imag(v)) for v in (a, b)]
    first = el.gt(ar, br)
    _, gap = _apart(ar, br)
    turned = el.sub(el.select(first, bi, ai), el.select(first, ai, bi))
    more = el.log1p(el.exp(el.complex_.bind(gap, turned)))
    out_r = el.add(el.select(first, ar, br), el.real(more))
    out_i = el.add(el.select(first, ai, bi), el.imag(more))
    turns = el.ceil(el.div(el.sub(out_i, math.pi), 2 * math.pi))
    return el.complex_.bind(out_r, el.sub(out_i, el.mul(turns, 2 * math.pi)))


@fused
def i0(x: ArrayLike) -> Array:
    """Return the modified Bessel function of the first kind, of order 0.

    x: real, any shape; integers become the default float.  As numpy.i0.

    Raises NotAnArrayError if `x` is not an array, and OperandTypeError for complex numbers.

    >>> import plait
    >>> float(plait.numpy.i0(0.0))
    1.0
    """
    x = real_float("i0", x)
    size = el.mul(x, el.sign(x))  # unlike that of abs, its derivative at 0 is 0
    return el.mul(el.exp(size), bessel_i0e(x))


# ---- complex numbers -----------------------------------------------------------------------


def real(val: ArrayLike, /) -> Array:
    """Return the real part; real arrays are returned as they are.

    val: numbers, any shape.  As numpy.real.

    Raises NotAnArrayError if `val` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.real(np.array([1 + 2j])).tolist()
    [1.0]
    """
    x = value(val)
    return el.real(x) if x.aval.category == COMPLEX else materialise_at_ground(x)


def imag(val: ArrayLike, /) -> Array:
    """Return the imaginary part; zeros for real arrays.

    val: numbers, any shape.  As numpy.imag.

    Raises NotAnArrayError if `val` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.imag(np.array([1 + 2j])).tolist()
    [2.0]
    """
    x = value(val)
    return el.imag(x) if x.aval.category == COMPLEX else fill(0, x.aval.strong())


def conjugate(x: ArrayLike, /) -> Array:
    """Return the complex conjugate; real arrays are returned as they are.

    x: numbers, any shape.  As numpy.conjugate.

    Raises NotAnArrayError if `x` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.conjugate(np.array([1 + 2j])).tolist()
    [(1-2j)]
    """
    x = value(x)
    return el.conj(x) if x.aval.category == COMPLEX else materialise_at_ground(x)


conj = conjugate


@fused
def _angle(z: Array) -> Any:
    z = _inexact(z)
    if z.aval.category == COMPLEX:
        return el.atan2(el.imag(z), el.real(z))
    return el.atan2(Literal(0, z.aval), z)


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Return the angle of complex numbers, in (-pi, pi].

    Args:
      z: numbers, any shape; the result is real.
      deg: whether in degrees.

    As numpy.angle.

    Raises NotAnArrayError if `z` is not an array.

    >>> import plait
    >>> float(plait.numpy.angle(1j, deg=True))
    90.0
    """
    out = _angle(value(z))
    return rad2deg(out) if deg else out
