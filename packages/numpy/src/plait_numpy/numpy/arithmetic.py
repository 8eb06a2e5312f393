"""Arithmetic, element by element: sums, products, quotients, powers, signs, rounding.

Invariant: operands are promoted and broadcast as numpy's, with weak Python scalars; a function that
is one primitive applies nothing else.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plait.errors import OperandTypeError, OutOfBounds
from plait.ext import Aval, materialise_at_ground, types
from plait.ext.control import while_loop
from plait.ext.ir import Primitive
from plait.ext.ops import elementwise as el
from plait.ext.ops.elementwise import bitcast
from plait.ext.ops.reduction import any_
from plait.ext.ops.shape import convert, convert_into, fill
from plait.ext.surface import binary, dispatched, fused, unary, value
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike

from . import masking
from .masking import masked, unwritten
from .samples import shown

__all__ = [
    "abs", "absolute", "add", "around", "ceil", "clip", "copysign", "divide", "divmod", "fabs",
    "fix", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp", "gcd",
    "heaviside", "hypot", "lcm", "ldexp", "maximum", "minimum", "mod", "modf", "multiply",
    "nan_to_num", "negative", "nextafter", "positive", "pow", "power", "reciprocal", "remainder",
    "rint", "round", "sign", "signbit", "spacing", "square", "subtract", "true_divide", "trunc",
]  # fmt: skip

_TWO = (
    "x1, x2: numbers; shapes broadcast, dtypes are promoted.  As numpy.{}.\n\n"
    "Raises NotAnArrayError if an operand is not an array, DimMismatch if shapes do not broadcast."
)
_NO_BOOLEANS = _TWO[:-1] + ",\nand OperandTypeError for booleans."
_REAL = (
    "x1, x2: real; shapes broadcast, dtypes are promoted.  As numpy.{}.\n\n"
    "Raises NotAnArrayError if an operand is not an array, DimMismatch if shapes do not\n"
    "broadcast, and OperandTypeError for complex numbers."
)
_ONE = (
    "x: numbers, any shape; the result has x's shape and dtype.  As numpy.{}.\n\n"
    "Raises NotAnArrayError if `x` is not an array, and OperandTypeError for booleans."
)
_WHOLE = (
    "x: real, any shape; integers and booleans are returned as they are.  As numpy.{}.\n\n"
    "Raises NotAnArrayError if `x` is not an array, and OperandTypeError for complex numbers."
)
_ANY = "x: any shape and dtype.  As numpy.{}.\n\nRaises NotAnArrayError if `x` is not an array."


def _doc(first: str, rest: str, name: str) -> str:
    return f"{first}\n\n{rest.format(name)}{shown(name)}"


add = masking.binary("add", el.add, _doc("x1 + x2.", _TWO, "add"))
subtract = masking.binary("subtract", el.sub, _doc("x1 - x2.", _NO_BOOLEANS, "subtract"))
multiply = masking.binary("multiply", el.mul, _doc("x1 * x2.", _TWO, "multiply"))
divide = true_divide = binary(
    "divide", el.div, _doc("x1 / x2, of floats.", _TWO, "divide"), prepare=el.floating
)


_LEXICAL = "; complex numbers by real part, then by imaginary part; nan if either is."
maximum = masking.binary("maximum", el.maximum, _doc("The greater" + _LEXICAL, _TWO, "maximum"))
minimum = masking.binary("minimum", el.minimum, _doc("The lesser" + _LEXICAL, _TWO, "minimum"))
negative = masked(unary("negative", el.neg, _doc("-x.", _ONE, "negative")))
nextafter = binary(
    "nextafter", el.nextafter, _doc("The next float from x1 towards x2.", _REAL, "nextafter"),
    prepare=el.floating,
)  # fmt: skip
power = pow = el.power
floor_divide = fused(el.floor_divide)


@fused
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the remainder of division towards zero, with x1's sign; 0 for integers by zero.

    x1, x2: real; shapes broadcast, dtypes are promoted.  As numpy.fmod.

    Raises NotAnArrayError if an operand is not an array, DimMismatch if shapes do not broadcast,
    and OperandTypeError for booleans and complex numbers.

    >>> import plait
    >>> float(plait.numpy.fmod(-7.0, 2.0))
    -1.0
    """
    return el.fmod(x1, x2)


@fused
def remainder(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the remainder of floor division, with the sign of x2; 0 for integers divided by zero.

    x1, x2: real; shapes broadcast, dtypes are promoted.  As numpy.remainder.

    Raises NotAnArrayError if an operand is not an array, DimMismatch if shapes do not broadcast,
    and OperandTypeError for booleans and complex numbers.

    >>> import plait
    >>> float(plait.numpy.remainder(-7.0, 2.0))
    1.0
    """
    return el.modulo(x1, x2)


mod = remainder


@fused
def divmod(x1: ArrayLike, x2: ArrayLike) -> tuple[Array, Array]:
    """Return (x1 // x2, x1 % x2).

    x1, x2: real; shapes broadcast, dtypes are promoted.  As numpy.divmod.

    Raises NotAnArrayError if an operand is not an array, DimMismatch if shapes do not broadcast,
    and OperandTypeError for booleans and complex numbers.

    >>> import plait
    >>> [float(x) for x in plait.numpy.divmod(7.0, 2.0)]
    [3.0, 1.0]
    """
    return el.floor_divide(x1, x2), el.modulo(x1, x2)


def float_power(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return x1 ** x2 in floats: integers become the default float, also as bases.

    x1, x2: numbers; shapes broadcast.  As numpy.float_power, but float32 stays float32.

    Raises NotAnArrayError if an operand is not an array, and DimMismatch if shapes do not
    broadcast.

    >>> import plait
    >>> float(plait.numpy.float_power(2, 3))
    8.0
    """
    return el.power(_inexact(value(x1)), x2)


def _inexact(x: Any) -> Array:
    """Convert integers and booleans to floats."""
    return (
        x if x.aval.inexact else convert(x, types.default_dtype(types.FLOATING), x.aval.weak_type)
    )


def real_float(name: str, x: object) -> Array:
    """Convert integers and booleans to floats; raise TypeRule for complex numbers."""
    x = _inexact(value(x))
    if x.aval.category == types.COMPLEX:
        raise OperandTypeError(f"{name} is for real arrays, not {x.aval!r}", fix="take .real first")
    return x


def positive(x: ArrayLike, /) -> Array:
    """Return x itself.

    x: numbers, any shape.  Raises TypeRule for booleans.  As numpy.positive.

    >>> import plait
    >>> int(plait.numpy.positive(2))
    2
    """
    x = value(x)
    if x.aval.category == types.BOOLEAN:
        raise OperandTypeError(f"positive is not for {x.aval!r}", fix="booleans have no sign")
    return materialise_at_ground(x)


def reciprocal(x: ArrayLike, /) -> Array:
    """Return 1 / x, in floats.

    x: numbers, any shape; integers become the default float.  As numpy.reciprocal of floats.

    Raises NotAnArrayError if `x` is not an array.

    >>> import plait
    >>> float(plait.numpy.reciprocal(4.0))
    0.25
    """
    return el.true_divide(1, x)


def square(x: ArrayLike, /) -> Array:
    """Return x * x.

    x: numbers, any shape and dtype.  As numpy.square.

    Raises NotAnArrayError if `x` is not an array.

    >>> import plait
    >>> int(plait.numpy.square(3))
    9
    """
    return el.power(value(x), 2)


# ---- signs ---------------------------------------------------------------------------------


def _magnitude(x: Value) -> Any:
    return materialise_at_ground(x) if x.aval.category == types.BOOLEAN else el.abs_(x)


absolute = abs = unary(
    "absolute",
    el.abs_,
    _doc("|x|; real for complex x.", _ANY, "absolute"),
    _magnitude,
)


@fused
def sign(x: ArrayLike, /) -> Array:
    """Return -1, 0 or 1; nan of nan; x / |x| if complex.  A zero keeps its sign, as in JAX.

    x: numbers, any shape; the result has x's shape and dtype.  As numpy.sign, except for -0.0.

    Raises NotAnArrayError if `x` is not an array, and OperandTypeError for booleans.

    >>> import numpy as np, plait
    >>> plait.numpy.sign(np.array([-2.5, -0.0, 3.0])).tolist()
    [-1.0, -0.0, 1.0]
    """
    return el.sign(value(x))


def fabs(x: ArrayLike, /) -> Array:
    """Return |x|, in floats.

    x: real, any shape; integers become the default float.  Raises TypeRule for complex numbers.  As
    numpy.fabs.

    >>> import plait
    >>> float(plait.numpy.fabs(-2.0))
    2.0
    """
    return el.abs_(real_float("fabs", x))


def signbit(x: ArrayLike, /) -> Array:
    """Return whether the sign bit is set, as for -0.0 and a negative nan.

    x: real, any shape; the result is boolean.  As numpy.signbit.

    Raises NotAnArrayError if `x` is not an array, and OperandTypeError for complex numbers.

    >>> import numpy as np, plait
    >>> plait.numpy.signbit(np.array([-0.0, 0.0])).tolist()
    [True, False]
    """
    x = value(x)
    if x.aval.category == types.FLOATING:
        x = bitcast(x, np.dtype(f"int{x.aval.dtype.itemsize * 8}"))
    if x.aval.category == types.BOOLEAN or x.aval.dtype.name.startswith("uint"):
        return fill(False, Aval(x.aval.shape, types.BOOL))
    return el.lt(x, 0)


@fused
def copysign(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return |x1| with the sign of x2.

    x1, x2: real; shapes broadcast, integers become the default float.  As numpy.copysign.

    Raises NotAnArrayError if an operand is not an array, DimMismatch if shapes do not broadcast,
    and OperandTypeError for complex numbers.

    >>> import plait
    >>> plait.numpy.copysign(3.0, -0.0)
    Array(-3., dtype=float32, weak_type=True)
    """
    a, b = el.floating((x1, x2))
    size = el.abs_(a)
    return el.select(signbit(b), el.neg(size), size)


@fused
def heaviside(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return 0 below zero, 1 above, x2 at zero, and nan for nan.

    x1, x2: real; shapes broadcast, integers become the default float.  As numpy.heaviside.

    Raises NotAnArrayError if an operand is not an array, DimMismatch if shapes do not broadcast,
    and OperandTypeError for complex numbers.

    >>> import plait
    >>> float(plait.numpy.heaviside(0.0, 0.5))
    0.5
    """
    a, b = el.floating((x1, x2))
    at_zero = el.select(el.eq(a, 0), b, a)
    return el.select(el.lt(a, 0), 0, el.select(el.gt(a, 0), 1, at_zero))


# ---- extremes ------------------------------------------------------------------------------


@fused
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the greater operand; if one is nan, return the other.

    x1, x2: numbers; shapes broadcast, dtypes are promoted.  As numpy.fmax.

    Raises NotAnArrayError if an operand is not an array, and DimMismatch if shapes do not
    broadcast.

    >>> import numpy as np, plait
    >>> float(plait.numpy.fmax(np.nan, 1.0))
    1.0
    """
    return _but_nan(el.maximum, x1, x2)


@fused
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the lesser operand; if one is nan, return the other.

    x1, x2: numbers; shapes broadcast, dtypes are promoted.  As numpy.fmin.

    Raises NotAnArrayError if an operand is not an array, and DimMismatch if shapes do not
    broadcast.

    >>> import numpy as np, plait
    >>> float(plait.numpy.fmin(np.nan, 1.0))
    1.0
    """
    return _but_nan(el.minimum, x1, x2)


def _but_nan(extreme: Primitive, x1: object, x2: object) -> Any:
    a, b = el.promoted((x1, x2))
    if not a.aval.inexact:
        return extreme(a, b)
    return el.select(el.ne(a, a), b, el.select(el.ne(b, b), a, extreme(a, b)))


@dispatched(numbers="operands")
def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """Clip x to [min, max]; the result is max where min > max.

    Args:
      x: real, any shape.
      min, max: broadcast with x; None sets no bound.

    Raises TypeRule for complex numbers.  As numpy.clip.

    >>> import numpy as np, plait
    >>> plait.numpy.clip(np.array([-2, 5, 9]), 0, 6).tolist()
    [0, 5, 6]
    """
    x = value(x)
    bounds = [b for b in (min, max) if b is not None]
    if types.COMPLEX in [value(v).aval.category for v in (x, *bounds)]:
        raise OperandTypeError("complex numbers cannot be clipped", fix="clip .real and .imag")
    if min is not None:
        x = el.maximum(x, min)
    return materialise_at_ground(x if max is None else el.minimum(x, max))


@fused
def hypot(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return sqrt(x1 ** 2 + x2 ** 2) without overflow; inf if either is, even if the other is nan.

    x1, x2: real; shapes broadcast, integers become the default float.  Raises TypeRule for complex
    numbers.  As numpy.hypot.

    Raises DimMismatch if shapes do not broadcast.

    >>> import plait
    >>> float(plait.numpy.hypot(3.0, 4.0))
    5.0
    """
    a, b = [real_float("hypot", x) for x in el.floating((x1, x2))]
    long, short = el.abs_(a), el.abs_(b)
    # Both come from one choice, and the lesser keeps its sign, so that the derivative is smooth
    # where they are equal or zero.
    first = el.gt(long, short)
    big, small = el.select(first, a, b), el.select(first, b, a)
    ratio = el.div(small, el.select(el.eq(big, 0), 1, big))
    root = el.sqrt(el.add(el.square(ratio), 1))
    # The lesser operand contributes this term.  The derivative of big * root would square the
    # ratio, which may underflow to 0; the sign makes the derivative at zero zero.
    more = el.mul(small, el.div(ratio, el.add(root, 1)))
    length = el.add(el.mul(el.add(big, more), el.sign(big)), 0)  # which makes -0 a 0
    infinite = el.or_(el.eq(long, np.inf), el.eq(short, np.inf))
    return el.select(infinite, el.select(el.eq(long, np.inf), long, short), length)


# ---- rounding ------------------------------------------------------------------------------


def _rounding(prim: Primitive) -> Callable[..., Any]:
    def other(x: Value) -> Any:
        whole = x.aval.category in (types.BOOLEAN, types.INTEGER)
        return materialise_at_ground(x) if whole else prim(x)

    return other


floor = unary(
    "floor", el.floor, _doc("Greatest whole number not above x.", _WHOLE, "floor"),
    _rounding(el.floor),
)  # fmt: skip
ceil = unary(
    "ceil", el.ceil, _doc("Least whole number not below x.", _WHOLE, "ceil"), _rounding(el.ceil)
)


@fused
def trunc(x: ArrayLike) -> Array:
    """Drop the fraction of x.

    x: real, any shape; integers and booleans are returned as they are.  As numpy.trunc.

    Raises NotAnArrayError if `x` is not an array, and OperandTypeError for complex numbers.

    >>> import plait
    >>> float(plait.numpy.trunc(-1.7))
    -1.0
    """
    x = value(x)
    if x.aval.category in (types.BOOLEAN, types.INTEGER):
        return x
    return el.select(el.lt(x, 0), el.ceil(x), el.floor(x))


fix = trunc


def rint(x: ArrayLike, /) -> Array:
    """Return the nearest whole number, ties to even, as a float.

    x: any shape; integers become the default float; complex by parts.  As numpy.rint.

    Raises NotAnArrayError if `x` is not an array.

    >>> import plait
    >>> float(plait.numpy.rint(2.5))
    2.0
    """
    return round(_inexact(value(x)))


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round `a` to `decimals` digits after the point, ties to even.

    Args:
      a: any shape and dtype; complex numbers are rounded by parts.
      decimals: may be negative, to round to tens, hundreds, ...
      out: must be None.

    As numpy.round.

    Raises NotAnArrayError if `a` is not an array, OutOfBounds for decimals beyond 32 bits.

    >>> import plait
    >>> plait.numpy.round(2.5), plait.numpy.round(1234, -2)
    (Array(2., dtype=float32, weak_type=True), Array(1200, dtype=int32, weak_type=True))
    """
    unwritten(out)
    a = value(a)
    kind = a.aval.category
    digits = decimals.__index__()
    if not -(2**31) <= digits < 2**31:
        raise OutOfBounds(
            f"round: decimals must fit in 32 bits, got {decimals}",
            fix="leave the array as it is: no dtype has so many digits",
        )
    if kind == types.BOOLEAN or (kind == types.INTEGER and digits >= 0):
        return materialise_at_ground(a)
    if kind == types.INTEGER:
        return _to_multiple(a, unit=10 ** min(-digits, 400))
    if kind == types.COMPLEX:
        return el.complex_(round(el.real(a), digits), round(el.imag(a), digits))
    return el.round_even(a) if not digits else _to_digits(a, digits=digits)


around = round


@fused
def _to_multiple(x: Value, *, unit: int) -> Any:
    """Return the nearest multiple of `unit`, ties to the even one."""
    if unit > int(np.iinfo(x.aval.dtype).max):
        return el.mul(x, 0)
    down = el.floor_divide(x, unit)
    twice = el.mul(el.sub(x, el.mul(down, unit)), 2)
    odd = el.eq(el.and_(down, 1), 1)
    up = el.or_(el.gt(twice, unit), el.and_(el.eq(twice, unit), odd))
    return el.mul(el.add(down, convert(up, x.aval.dtype, x.aval.weak_type)), unit)


@fused
def _to_digits(x: Value, *, digits: int) -> Any:
    narrow = x.aval.dtype.itemsize < 4
    y = convert(x, types.FLOAT32) if narrow else x
    most = math.log10(float(types.ml_dtypes.finfo(y.aval.dtype).max))
    if digits > most:  # the factor overflows; no number has so many digits
        return x
    if -digits > most:  # so does this one; all numbers are less than half of it
        return el.select(el.is_finite(x), el.mul(x, 0), x)
    scale = float(10.0 ** np.abs(digits))
    up, down = (el.mul, el.div) if digits > 0 else (el.div, el.mul)
    scaled = up(y, scale)
    y = el.select(el.is_finite(scaled), down(el.round_even(scaled), scale), y)
    return convert(y, x.aval.dtype, x.aval.weak_type)


# ---- whole numbers -------------------------------------------------------------------------


def _whole(name: str, x1: object, x2: ArrayLike) -> tuple[Any, Any]:
    a, b = el.promoted((x1, x2))
    if a.aval.category != types.INTEGER:
        raise OperandTypeError(
            f"{name} is for integers, not {a.aval!r}", fix="convert with .astype"
        )
    return a, b


def _sizes(x: Array) -> Any:
    """Return absolute values as unsigned integers, which hold that of the least integer, too."""
    return convert(el.abs_(x), types.dtype_of("u" + x.aval.dtype.name.removeprefix("u")))


@fused
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the greatest common divisor, by Euclid's algorithm.

    x1, x2: integers; shapes broadcast.  Raises TypeRule for operands that are not integers.  As
    numpy.gcd.

    Raises DimMismatch if shapes do not broadcast.

    >>> import plait
    >>> int(plait.numpy.gcd(12, 18))
    6
    """

    def divided(pair: tuple[Value, ...]) -> Any:
        a, b = pair
        going = el.ne(b, 0)
        rest = el.rem(a, el.select(going, b, 1))
        return el.select(going, b, a), el.select(going, rest, b)

    a, b = _whole("gcd", x1, x2)
    out = while_loop(lambda pair: any_(el.ne(pair[1], 0)), divided, (_sizes(a), _sizes(b)))[0]
    return convert(out, a.aval.dtype)


@fused
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the least common multiple; 0 if either is 0.

    x1, x2: integers; shapes broadcast.  Raises TypeRule for operands that are not integers.  As
    numpy.lcm.

    Raises DimMismatch if shapes do not broadcast.

    >>> import plait
    >>> int(plait.numpy.lcm(4, 6))
    12
    """
    a, b = _whole("lcm", x1, x2)
    d = _sizes(gcd(a, b))
    least = el.mul(el.div(_sizes(a), el.select(el.eq(d, 0), 1, d)), _sizes(b))
    return convert(least, a.aval.dtype)


# ---- parts of floats -----------------------------------------------------------------------


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """Return (fraction, whole part), both with x's sign.

    x: real, any shape; integers become the default float; out: must be None.  As numpy.modf.

    Raises NotAnArrayError if `x` is not an array, and OperandTypeError for complex numbers.

    >>> import plait
    >>> [float(x) for x in plait.numpy.modf(-1.5)]
    [-0.5, -1.0]
    """
    unwritten(out)
    return _modf(x)


@fused
def _modf(x: object) -> Any:
    x = _inexact(value(x))
    whole = trunc(x)
    fraction = el.select(el.eq(el.abs_(x), np.inf), 0, el.sub(x, whole))
    return copysign(fraction, x), whole


def _layout(dtype: np.dtype) -> tuple[np.dtype, int, int]:
    """Return (integer dtype of that size, bits of the mantissa, exponent bias) of a float dtype."""
    info = types.ml_dtypes.finfo(dtype)
    return np.dtype(f"int{info.bits}"), int(info.nmant), 1 - int(info.minexp)


def _power_of_two(n: Value, dtype: np.dtype) -> Any:
    """Return 2.0 ** n, exactly; n is an integer in the range of normal exponents."""
    whole, mantissa, bias = _layout(dtype)
    bits = el.shift_left(convert(el.add(n, bias), whole), np.asarray(mantissa, whole)[()])
    return bitcast(bits, dtype)


@fused
def frexp(x: ArrayLike) -> tuple[Array, Array]:
    """Return (mantissa in [0.5, 1) with x's sign, exponent as i32): x = mantissa * 2 ** exponent.

    x: real, any shape; integers become the default float.  As numpy.frexp.

    Raises NotAnArrayError if `x` is not an array, and OperandTypeError for complex numbers.

    >>> import plait
    >>> [x.item() for x in plait.numpy.frexp(8.0)]
    [0.5, 4]
    """
    x = real_float("frexp", x)
    dtype = x.aval.dtype
    bits, field, rest = _parts(x)
    whole, mantissa, bias = _layout(dtype)
    number = lambda n: np.asarray(n, whole)[()]  # noqa: E731
    # Arithmetic may flush a subnormal number to 0, so its first bit is shifted to the front
    # instead.
    tiny = el.and_(el.eq(field, 0), el.ne(rest, 0))
    moved = el.sub(el.clz(rest), number(8 * dtype.itemsize - 1 - mantissa))
    small = el.and_(el.shift_left(rest, el.select(tiny, moved, 0)), number((1 << mantissa) - 1))
    half = number((bias - 1) << mantissa)
    minus = el.and_(bits, number(np.iinfo(whole).min))
    small = bitcast(el.or_(el.or_(minus, half), small), dtype)
    exponent = el.sub(convert(el.select(tiny, el.sub(number(1), moved), field), np.int32), bias - 1)
    same = el.or_(el.and_(el.eq(field, 0), el.not_(tiny)), el.not_(el.is_finite(x)))
    power = el.select(el.or_(same, tiny), 0, el.neg(exponent))
    halves = el.shift_right_arithmetic(power, 1)  # 2 ** power alone may not be a normal number
    scaled = x
    for n in (halves, el.sub(power, halves)):
        scaled = el.mul(scaled, _power_of_two(n, dtype))
    out = el.select(tiny, small, el.select(same, x, scaled))
    return out, el.select(same, np.int32(0), exponent)


def _parts(x: Array) -> tuple[Any, Any, Any]:
    """Return three integers for each float: all bits, the exponent's bits, and the mantissa's."""
    whole, mantissa, bias = _layout(x.aval.dtype)
    bits = bitcast(x, whole)
    number = lambda n: np.asarray(n, whole)[()]  # noqa: E731
    field = el.and_(el.shift_right_logical(bits, number(mantissa)), number(2 * bias + 1))
    return bits, field, el.and_(bits, number((1 << mantissa) - 1))


_FAR = 1 << 20
"""More than the distance of any two exponents."""


@fused
def ldexp(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return x1 * 2 ** x2, rounded once.

    x1: real; x2: integers; shapes broadcast.  Raises TypeRule for exponents that are not integers.
    As numpy.ldexp.

    Raises DimMismatch if shapes do not broadcast.

    >>> import plait
    >>> float(plait.numpy.ldexp(1.0, 3))
    8.0
    """
    x, n = _inexact(value(x1)), value(x2)
    if n.aval.category not in (types.INTEGER, types.BOOLEAN):
        raise OperandTypeError(
            f"ldexp: the exponents must be integers, not {n.aval!r}", fix="use .astype(int)"
        )
    _, _, bias = _layout(x.aval.dtype)
    if n.aval.category == types.INTEGER and np.iinfo(n.aval.dtype).max > _FAR:
        low = 0 if n.aval.dtype.kind == "u" else -_FAR
        n = el.clamp(low, n, _FAR)  # larger exponents do not fit in 32 bits
    n = convert(n, np.int32)
    step = bias - 1
    # The range from the least numbers to the greatest needs several factors.  All but the last give
    # normal numbers, so that only the last multiplication rounds.
    _, size = frexp(el.stop(x))
    near = el.sub(el.clamp(1 - step, el.add(size, n), step), size)
    last = el.clamp(-step, el.sub(n, near), step)
    out = x
    for _ in range(3):
        part = el.clamp(-step, near, step)
        out = el.mul(out, _power_of_two(part, x.aval.dtype))
        near = el.sub(near, part)
    out = el.mul(out, _power_of_two(last, x.aval.dtype))
    bits, tiny = _scaled_bits(x, n, size)
    return el.select(tiny, el.stop(bits), out)


def _scaled_bits(x: Array, n: Value, size: Array) -> tuple[Any, Any]:
    """Return x * 2 ** n by its bits, and where it or `x` is subnormal: arithmetic may flush those.

    size: the exponent of `x`, as from `frexp`.
    """
    whole, mantissa, bias = _layout(x.aval.dtype)
    number = lambda n: np.asarray(n, whole)[()]  # noqa: E731
    bits, field, rest = _parts(x)
    fraction, _ = frexp(x)
    ones = el.or_(_parts(fraction)[2], number(1 << mantissa))  # all digits of x, the first one too
    field_out = el.add(el.add(size, n), bias - 1)  # of the result, were it normal
    drop = convert(el.clamp(0, el.sub(1, field_out), mantissa + 2), whole)
    kept = el.shift_right_logical(ones, drop)
    lost = el.sub(ones, el.shift_left(kept, drop))
    half = el.shift_right_logical(el.shift_left(number(1), drop), number(1))
    odd = el.eq(el.and_(kept, number(1)), 1)
    up = el.and_(el.gt(drop, 0), el.or_(el.gt(lost, half), el.and_(el.eq(lost, half), odd)))
    kept = el.add(kept, convert(up, whole))
    # A result that is normal after all has its first digit as the lowest bit of the exponent.
    high = el.shift_left(convert(el.clamp(0, el.sub(field_out, 1), 2 * bias), whole),
                         number(mantissa))  # fmt: skip
    high = el.select(
        el.gt(field_out, 2 * bias), number((2 * bias + 1) << mantissa), el.add(high, kept)
    )
    out = bitcast(el.or_(high, el.and_(bits, number(np.iinfo(whole).min))), x.aval.dtype)
    start = el.and_(el.eq(field, 0), el.ne(rest, 0))
    still = el.or_(el.eq(el.or_(field, rest), 0), el.eq(field, number(2 * bias + 1)))
    return out, el.and_(el.not_(still), el.or_(start, el.lt(field_out, 1)))


@fused
def spacing(x: ArrayLike) -> Array:
    """Return the distance to the next float away from zero, with the sign of x; positive for zeros.

    x: real, any shape; integers become the default float.  As numpy.spacing.

    Raises NotAnArrayError if `x` is not an array, and OperandTypeError for complex numbers.

    >>> import numpy as np, plait
    >>> float(plait.numpy.spacing(np.float64(1.0)))
    2.220446049250313e-16
    """
    x = real_float("spacing", x)
    bits, field, rest = _parts(x)
    whole, mantissa, _ = _layout(x.aval.dtype)
    number = lambda n: np.asarray(n, whole)[()]  # noqa: E731
    # Bits are compared, since arithmetic may flush subnormal numbers to 0.
    above = el.sub(field, number(mantissa))
    normal = el.shift_left(el.maximum(above, number(1)), number(mantissa))
    subnormal = el.shift_left(number(1), el.clamp(number(0), el.sub(field, number(1)),
                                                  number(mantissa)))  # fmt: skip
    unit = el.select(el.ge(above, number(1)), normal, subnormal)
    zero = el.eq(el.or_(field, rest), 0)  # the result is positive for both zeros
    minus = el.select(zero, 0, el.and_(bits, number(np.iinfo(whole).min)))
    out = bitcast(el.or_(minus, unit), x.aval.dtype)
    return el.select(el.is_finite(x), out, math.nan)


@fused(numbers=("nan", "posinf", "neginf"))
def _finite(x: Value, nan: Any, posinf: Any, neginf: Any) -> Any:
    x = el.select(el.ne(x, x), convert_into(nan, x.aval.dtype), x)
    x = el.select(el.eq(x, np.inf), convert_into(posinf, x.aval.dtype), x)
    return el.select(el.eq(x, -np.inf), convert_into(neginf, x.aval.dtype), x)


def nan_to_num(
    x: ArrayLike, copy: bool = True, nan: ArrayLike = 0.0, posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return x with nan and infinities replaced.

    Args:
      x: any shape and dtype; complex numbers by parts.
      copy: accepted for compatibility; arrays are immutable.
      nan: replaces nan.
      posinf, neginf: replace infinities; by default the greatest and the least finite number.

    As numpy.nan_to_num.

    Raises NotAnArrayError if `x` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.nan_to_num(np.array([1.0, np.nan]), nan=7.0).tolist()
    [1.0, 7.0]
    """
    x = value(x)
    if not x.aval.inexact:
        return materialise_at_ground(x)
    if x.aval.category == types.COMPLEX:
        parts = [nan_to_num(f(x), copy, nan, posinf, neginf) for f in (el.real, el.imag)]
        return el.complex_(*parts)
    info = types.ml_dtypes.finfo(x.aval.dtype)
    posinf = float(info.max) if posinf is None else posinf
    neginf = float(info.min) if neginf is None else neginf
    return _finite(x, nan, posinf, neginf)
