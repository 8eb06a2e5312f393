"""Elementwise functions: nothing is converted, and only arrays without axes are broadcast.

Invariant: operands have one dtype; Python scalars take that of the others if it is of their kind.
Mistakes that numpy's promotion would hide are errors here.
"""

import enum
import math
from typing import Any

import numpy as np

from plait.typing import Array, ArrayLike, DTypeLike

from .._api.strict_functions import agree, strict_binary, strict_unary
from .._api.surfaces import value
from .._base.errors import ArgumentError, OperandTypeError
from .._core.array import Literal
from .._core.interpreter import Value, current
from .._ops import elementwise as el
from .._ops.shape import convert
from .._ops.static_arguments import fixed
from .._types.avals import COMPLEX, FLOATING, INTEGER, asked_dtype
from .operands import accurately

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt", "ceil", "clz", "complex", "conj", "cos",
    "cosh", "digamma", "div", "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "floor", "ge",
    "gt", "imag", "integer_pow", "is_finite", "le", "lgamma", "log", "log1p", "logistic", "lt",
    "max", "min", "mul", "mulhi", "ne", "neg", "nextafter", "population_count", "pow", "real",
    "reciprocal", "reduce_precision", "rem", "round", "RoundingMethod", "rsqrt", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "sqrt", "square", "sub",
    "tan", "tanh",
]  # fmt: skip


class RoundingMethod(enum.Enum):
    """Treatment of ties in `round`."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


# ---- of one array --------------------------------------------------------------------------

neg = strict_unary("neg", el.neg, "-x, of numbers.", "2.0 -> -2.0")
sign = strict_unary("sign", el.sign, "-1, 0 or 1; x / |x| if complex.", "-3.0 -> -1.0")
abs = strict_unary("abs", el.abs_, "|x|, real, of numbers.", "-3.0 -> 3.0")
floor = strict_unary(
    "floor", el.floor, "Greatest whole number not above x, of floats.", "1.5 -> 1.0"
)
ceil = strict_unary("ceil", el.ceil, "Least whole number not below x, of floats.", "1.5 -> 2.0")
is_finite = strict_unary(
    "is_finite", el.is_finite, "Whether it is neither infinite nor nan, of floats.", "1.5 -> True"
)
exp = accurately("exp", el.exp, "e ** x, of floats and complex numbers.", "0.0 -> 1.0")
expm1 = accurately("expm1", el.expm1, "e ** x - 1, exact for small x.", "0.0 -> 0.0")
log = accurately("log", el.log, "Natural logarithm.", "1.0 -> 0.0")
log1p = accurately("log1p", el.log1p, "log(1 + x), exact for small x.", "0.0 -> 0.0")
sin = accurately("sin", el.sin, "Sine.", "0.0 -> 0.0")
cos = accurately("cos", el.cos, "Cosine.", "0.0 -> 1.0")
tan = accurately("tan", el.tan, "Tangent.", "0.0 -> 0.0")
asin = strict_unary("asin", el.asin, "Inverse sine.", "1.0 -> 1.571")
acos = strict_unary("acos", el.acos, "Inverse cosine.", "0.0 -> 1.571")
atan = strict_unary("atan", el.atan, "Inverse tangent.", "1.0 -> 0.785")
sinh = strict_unary("sinh", el.sinh, "Hyperbolic sine.", "1.0 -> 1.175")
cosh = strict_unary("cosh", el.cosh, "Hyperbolic cosine.", "0.0 -> 1.0")
tanh = accurately("tanh", el.tanh, "Hyperbolic tangent.", "1.0 -> 0.762")
asinh = strict_unary("asinh", el.asinh, "Inverse hyperbolic sine.", "1.0 -> 0.881")
acosh = strict_unary("acosh", el.acosh, "Inverse hyperbolic cosine.", "2.0 -> 1.317")
atanh = strict_unary("atanh", el.atanh, "Inverse hyperbolic tangent.", "0.5 -> 0.549")
sqrt = accurately("sqrt", el.sqrt, "Square root.", "9.0 -> 3.0")
rsqrt = accurately("rsqrt", el.rsqrt, "1 / sqrt(x).", "4.0 -> 0.5")
cbrt = accurately("cbrt", el.cbrt, "Cube root, of floats.", "8.0 -> 2.0")
logistic = accurately("logistic", el.logistic, "1 / (1 + e ** -x).", "0.0 -> 0.5")
erf = strict_unary("erf", el.erf, "The error function, of floats.", "1.0 -> 0.843")
erfc = strict_unary("erfc", el.erfc, "1 - erf(x), exact for large x.", "1.0 -> 0.157")
erf_inv = strict_unary(
    "erf_inv", el.erf_inv, "Inverse of the error function, of floats.", "0.5 -> 0.477"
)
lgamma = strict_unary("lgamma", el.lgamma, "log |Gamma(x)|, of floats.", "4.0 -> 1.792")
digamma = strict_unary(
    "digamma", el.digamma, "The derivative of lgamma, of floats.", "1.0 -> -0.577"
)
real = strict_unary("real", el.real, "The real part, of complex numbers.", "1 + 2j -> 1.0")
imag = strict_unary("imag", el.imag, "The imaginary part, of complex numbers.", "1 + 2j -> 2.0")
bitwise_not = strict_unary(
    "bitwise_not", el.not_, "All bits inverted, of integers and booleans.", "5 -> -6"
)
population_count = strict_unary(
    "population_count", el.population_count, "Bits set, of integers.", "5 -> 2"
)
clz = strict_unary("clz", el.clz, "Leading bits that are not set, of integers.", "1 -> 31")


def square(x: ArrayLike) -> Array:
    """Return x * x, of numbers of any shape.  Raises TypeRule for booleans.

    >>> import plait
    >>> plait.lax.square(3.0).item()
    9.0
    """
    return integer_pow(x, 2)


def exp2(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """Return 2 ** x, of floats and complex numbers of any shape.

    accuracy: as in `exp`.  Raises TypeRule for integers and booleans.

    >>> import plait
    >>> plait.lax.exp2(3.0).item()
    8.0
    """
    x = value(x)
    if not x.aval.inexact:
        raise OperandTypeError(
            f"exp2 is for floating or complex arrays, not {x.aval!r}", fix="convert with .astype"
        )
    if accuracy is None:
        return pow(2.0 + 0j if x.aval.category == COMPLEX else 2.0, x)
    return exp(el.mul.bind(x, Literal(math.log(2.0), x.aval)), accuracy=accuracy)


def reciprocal(x: ArrayLike) -> Array:
    """Return 1 / x, of floats and complex numbers of any shape.  Raises TypeRule for integers.

    >>> import plait
    >>> plait.lax.reciprocal(4.0).item()
    0.25
    """
    return integer_pow(x, -1)


def conj(x: ArrayLike) -> Array:
    """Return the complex conjugate; floats become complex numbers.

    x: floats or complex numbers of any shape.  Raises TypeRule for integers and booleans.

    >>> import plait
    >>> plait.lax.conj(1 + 2j).item()
    (1-2j)
    """
    x = value(x)
    if x.aval.category not in (FLOATING, COMPLEX):
        raise OperandTypeError(
            f"lax.conj is for floating or complex arrays, not {x.aval!r}",
            fix="convert it, or use plait.numpy.conj, which returns it as it is",
        )
    if x.aval.category != COMPLEX:
        return el.complex_(x, Literal(0, x.aval))
    return el.conj.bind(x)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Return x ** y for a fixed integer, by repeated multiplication: numbers of any shape.

    Raises TypeRule for negative powers of integers, and if `y` is not an integer.

    >>> import plait
    >>> plait.lax.integer_pow(2.0, -2).item()
    0.25
    """
    return el.integer_pow.bind(value(x), exponent=fixed("integer_pow", "y", y))


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Return the nearest whole number, of floats of any shape.

    rounding_method: treatment of ties, a `RoundingMethod`.  Raises TypeRule for integers.

    >>> import plait
    >>> to_even = plait.lax.RoundingMethod.TO_NEAREST_EVEN
    >>> plait.lax.round(2.5).item(), plait.lax.round(2.5, to_even).item()
    (3.0, 2.0)
    """
    try:
        away = RoundingMethod(rounding_method) is RoundingMethod.AWAY_FROM_ZERO
    except ValueError:
        raise ArgumentError(
            f"lax.round: {rounding_method!r} is not a way to round",
            fix="pass a plait.lax.RoundingMethod",
        ) from None
    return (el.round_away if away else el.round_even).bind(value(x))


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round floats to fewer exponent and mantissa bits, keeping shape and dtype.

    Raises TypeRule for other dtypes, and for numbers of bits that are not integers in range.

    >>> import plait
    >>> plait.lax.reduce_precision(1.01, 5, 3).item()
    1.0
    """
    bits = fixed("reduce_precision", "exponent_bits", exponent_bits)
    rest = fixed("reduce_precision", "mantissa_bits", mantissa_bits)
    if bits < 1 or rest < 0:
        raise OperandTypeError(
            f"reduce_precision: there is no float with {bits} bits of exponent and {rest} of "
            "mantissa",
            fix="give at least one bit of exponent, and no negative number",
        )
    return el.reduce_precision.bind(value(operand), exponent_bits=bits, mantissa_bits=rest)


# ---- of two arrays -------------------------------------------------------------------------

add = strict_binary("add", el.add, "x + y; `or` of booleans.", "2, 3 -> 5")
sub = strict_binary("sub", el.sub, "x - y.", "2, 3 -> -1")
div = strict_binary("div", el.div, "x / y; integers are divided towards zero.", "-7, 2 -> -3")
rem = strict_binary(
    "rem", el.rem, "Remainder of division towards zero: it has x's sign.", "-7, 2 -> -1"
)
_LEXICAL = "of complex numbers by real part, then by imaginary part; nan if either is."
max = strict_binary("max", el.maximum, "The greater, " + _LEXICAL, "2, 3 -> 3")
min = strict_binary("min", el.minimum, "The lesser, " + _LEXICAL, "2, 3 -> 2")

atan2 = strict_binary(
    "atan2",
    el.atan2,
    "The angle of the point (y, x), `x` being its height and `y` its distance.",
    "1.0, 1.0 -> 0.785",
)
nextafter = strict_binary(
    "nextafter",
    el.nextafter,
    "The next float from x1 towards x2.",
    "0.0, 1.0 -> 1.401298464324817e-45",
    ("x1", "x2"),
)
complex = strict_binary("complex", el.complex_, "x + y i, of floats.", "1.0, 2.0 -> (1+2j)")
bitwise_and = strict_binary(
    "bitwise_and", el.and_, "Bits of both, of integers and booleans.", "6, 3 -> 2"
)
bitwise_or = strict_binary(
    "bitwise_or", el.or_, "Bits of either, of integers and booleans.", "6, 3 -> 7"
)
bitwise_xor = strict_binary(
    "bitwise_xor", el.xor, "Bits of one only, of integers and booleans.", "6, 3 -> 5"
)
shift_left = strict_binary("shift_left", el.shift_left, "x << y, of integers.", "3, 2 -> 12")
shift_right_arithmetic = strict_binary(
    "shift_right_arithmetic",
    el.shift_right_arithmetic,
    "x >> y, keeping the sign, of integers.",
    "-8, 1 -> -4",
)
shift_right_logical = strict_binary(
    "shift_right_logical",
    el.shift_right_logical,
    "x >> y, zeros coming in, of integers.",
    "-8, 1 -> 2147483644",
)
eq = strict_binary("eq", el.eq, "x == y, as booleans.", "2, 3 -> False")
ne = strict_binary("ne", el.ne, "x != y, as booleans.", "2, 3 -> True")
lt = strict_binary("lt", el.lt, "x < y, as booleans.", "2, 3 -> True")
le = strict_binary("le", el.le, "x <= y, as booleans.", "2, 3 -> True")
gt = strict_binary("gt", el.gt, "x > y, as booleans.", "2, 3 -> False")
ge = strict_binary("ge", el.ge, "x >= y, as booleans.", "2, 3 -> False")
_mul = strict_binary("mul", el.mul, "x * y; `and` of booleans.", "2, 3 -> 6")


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """Return x * y; `and` for booleans.

    Args:
      x, y: one dtype; arrays without axes are broadcast.
      out_dtype: dtype of the multiplication and of its result; by default that of the operands.

    Raises TypeRule for different dtypes.

    >>> import numpy as np, plait
    >>> plait.lax.mul(np.int8(100), np.int8(100), out_dtype=np.int32).item()
    10000
    """
    if out_dtype is None:
        try:
            if isinstance(x, Value) and isinstance(y, Value) and x.aval is y.aval:
                return current().apply(el.mul, (x, y), {})
        except AttributeError:
            pass
        return _mul(x, y)
    kind = asked_dtype(out_dtype)
    x, y = agree("mul", (x, y))
    return el.mul.bind(convert(x, kind), convert(y, kind))


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return the upper half of the product's bits.

    x, y: integers of one dtype; arrays without axes are broadcast.  Returns their dtype.  Raises
    TypeRule for different dtypes, and for other operands than integers.

    >>> import plait
    >>> plait.lax.mulhi(2**30, -9).item()
    -3
    """
    x, y = agree("mulhi", (x, y))
    kind, size = x.aval.dtype, x.aval.dtype.itemsize
    if x.aval.category != INTEGER:
        raise OperandTypeError(
            f"mulhi is for integer arrays, not {x.aval!r}", fix="convert with .astype"
        )
    if size < 1 or kind.name[-2:] not in ("t8", "16", "32", "64"):
        raise OperandTypeError(f"mulhi of {x.aval!r}", fix="use a dtype of whole bytes")
    if size < 8:
        wide = np.dtype(f"{kind.kind}{2 * size}")
        return convert(el.mul.bind(convert(x, wide), convert(y, wide)) >> 8 * size, kind)
    return _upper(x, y)


def _upper(x: Value, y: Value) -> Any:
    """Return the upper half for 64 bits, by halves.  Carries of the lower parts are summed in
    parts that cannot overflow (Knuth, "The Art of Computer Programming", 4.3.1)."""
    low = Literal(0xFFFFFFFF, x.aval.strong())
    (a, b), (c, d) = ((v >> 32, el.and_(v, low)) for v in (x, y))  # signed upper parts
    half = lambda v: el.shift_right_logical(v, Literal(32, v.aval))  # noqa: E731
    middle = a * d + half(b * d)
    rest = el.and_(middle, low) + b * c
    return a * c + (middle >> 32) + (rest >> 32)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x ** y, of floats and complex numbers; `y` may be an integer, or an array of integers.

    Raises TypeRule for different dtypes, and for integers as bases.

    >>> import plait
    >>> plait.lax.pow(2.0, 3).item()
    8.0
    """
    if y.__class__ is int:
        a = value(x)
        if a.aval.inexact:
            return integer_pow(a, int(y))  # type: ignore[arg-type]
    a, b = value(x), value(y)
    if a.aval.inexact and b.aval.category == INTEGER:
        b = convert(b, a.aval.dtype, a.aval.weak_type)
    return el.pow_.bind(*agree("pow", (a, b)))
