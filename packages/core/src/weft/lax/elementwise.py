"""Element by element: nothing is converted, and only arrays without axes are broadcast.

Invariant: operands have one dtype; Python scalars take that of the others if it is of their kind.
A mistake that numpy's promotion would cover up is an error here.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import TypeRule
from ..interpreter import Value, current
from ..ops import elementwise as el
from ..ops.shape import convert, fit, materialise_at_ground
from ..primitive import Primitive
from ..surface import unary, value
from ..tree import map_tree
from ..types import BOOL, BOOLEAN, COMPLEX, FLOATING, INTEGER, Aval, broadcast_shapes
from ..values import Literal, as_value

_KINDS = {BOOLEAN: "boolean", INTEGER: "integer", FLOATING: "floating", COMPLEX: "complex"}


class RoundingMethod(enum.Enum):
    """What `round` does with ties."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


# ---- operands ------------------------------------------------------------------------------


def agree(name: str, args: Sequence[Any]) -> Sequence[Any]:
    """Operands in one type, if they may be: strong dtypes must be equal already."""
    vs = [a if isinstance(a, Value) else as_value(a) for a in args]
    first = vs[0].aval
    if all(v.aval is first for v in vs):
        return vs
    avals = [v.aval for v in vs]
    strong = [a for a in avals if not a.weak_type]
    base = strong[0] if strong else avals[0]
    for a in avals:
        fits = a.category <= base.category if a.weak_type and strong else a.dtype == base.dtype
        if not fits:
            raise TypeRule(
                f"lax.{name}: operands must have one dtype, not {', '.join(map(repr, avals))}",
                fix="convert one of them with .astype, or use weft.numpy, which promotes",
            )
    ranks = {a.ndim for a in avals} - {0}
    if len(ranks) > 1:
        raise TypeRule(
            f"lax.{name}: operands must have the same number of axes, not "
            f"{', '.join(map(repr, avals))}",
            fix="broadcast one of them first, or use weft.numpy, which does",
        )
    shape = broadcast_shapes([a.shape for a in avals])
    aval = Aval(shape, base.dtype, not strong)
    return [fit(v, aval) for v in vs]


_RULES = "one dtype; arrays without axes are broadcast"


def binary(name: str, prim: Primitive, doc: str) -> Callable[[Any, Any], Any]:
    """A function of two arrays, said by one primitive, on operands that agree."""
    cur = current

    def function(x: Any, y: Any) -> Any:
        try:
            same = x.aval is y.aval
        except AttributeError:
            same = False
        if not same or not isinstance(x, Value):
            x, y = agree(name, (x, y))
        return cur().apply(prim, (x, y), {})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}\n\nx, y: {_RULES}.\n\nRaises TypeRule for different dtypes."
    return function


def _one(name: str, prim: Primitive, doc: str) -> Callable[[Any], Any]:
    accepted = f"x: any shape; the result has it too.\n\nRaises TypeRule where {prim} does."
    return unary(name, prim, f"{doc}\n\n{accepted}", strict=True)


# ---- of one array --------------------------------------------------------------------------

neg = _one("neg", el.neg, "-x, of numbers.")
sign = _one("sign", el.sign, "-1, 0 or 1; x / |x| if complex.")
abs = _one("abs", el.abs_, "|x|, real, of numbers.")
floor = _one("floor", el.floor, "Greatest whole number not above x, of floats.")
ceil = _one("ceil", el.ceil, "Least whole number not below x, of floats.")
is_finite = _one("is_finite", el.is_finite, "Whether it is neither infinite nor nan, of floats.")
exp = _one("exp", el.exp, "e ** x, of floats and complex numbers.")
expm1 = _one("expm1", el.expm1, "e ** x - 1, exact for small x.")
log = _one("log", el.log, "Natural logarithm.")
log1p = _one("log1p", el.log1p, "log(1 + x), exact for small x.")
sin = _one("sin", el.sin, "Sine.")
cos = _one("cos", el.cos, "Cosine.")
tan = _one("tan", el.tan, "Tangent.")
asin = _one("asin", el.asin, "Inverse sine.")
acos = _one("acos", el.acos, "Inverse cosine.")
atan = _one("atan", el.atan, "Inverse tangent.")
sinh = _one("sinh", el.sinh, "Hyperbolic sine.")
cosh = _one("cosh", el.cosh, "Hyperbolic cosine.")
tanh = _one("tanh", el.tanh, "Hyperbolic tangent.")
asinh = _one("asinh", el.asinh, "Inverse hyperbolic sine.")
acosh = _one("acosh", el.acosh, "Inverse hyperbolic cosine.")
atanh = _one("atanh", el.atanh, "Inverse hyperbolic tangent.")
sqrt = _one("sqrt", el.sqrt, "Square root.")
rsqrt = _one("rsqrt", el.rsqrt, "1 / sqrt(x).")
cbrt = _one("cbrt", el.cbrt, "Cube root, of floats.")
logistic = _one("logistic", el.logistic, "1 / (1 + e ** -x).")
erf = _one("erf", el.erf, "The error function, of floats.")
erfc = _one("erfc", el.erfc, "1 - erf(x), exact for large x.")
erf_inv = _one("erf_inv", el.erf_inv, "Inverse of the error function, of floats.")
lgamma = _one("lgamma", el.lgamma, "log |Gamma(x)|, of floats.")
digamma = _one("digamma", el.digamma, "The derivative of lgamma, of floats.")
real = _one("real", el.real, "The real part, of complex numbers.")
imag = _one("imag", el.imag, "The imaginary part, of complex numbers.")
bitwise_not = _one("bitwise_not", el.not_, "All bits inverted, of integers and booleans.")
population_count = _one("population_count", el.population_count, "Bits set, of integers.")
clz = _one("clz", el.clz, "Leading bits that are not set, of integers.")


def square(x: Any) -> Any:
    """x * x, of numbers."""
    return integer_pow(x, 2)


def exp2(x: Any) -> Any:
    """2 ** x, of floats and complex numbers."""
    return pow(2.0, x)


def reciprocal(x: Any) -> Any:
    """1 / x, of floats and complex numbers."""
    return integer_pow(x, -1)


def conj(x: Any) -> Any:
    """The complex conjugate; of floats, the complex numbers they are."""
    x = value(x)
    if x.aval.category != COMPLEX:
        return el.complex_(x, Literal(0, x.aval))
    return el.conj.bind(x)


def integer_pow(x: Any, y: int) -> Any:
    """x ** y for a fixed integer, by repeated multiplication.

    Raises TypeRule for negative powers of integers.
    """
    return el.integer_pow.bind(value(x), exponent=y.__index__())


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """The nearest whole number, of floats; `rounding_method` says what becomes of ties."""
    away = RoundingMethod(rounding_method) is RoundingMethod.AWAY_FROM_ZERO
    return (el.round_away if away else el.round_even).bind(value(x))


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Rounded to a float of so many bits, in the dtype it has."""
    return el.reduce_precision.bind(
        value(operand), exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits)
    )


# ---- of two arrays -------------------------------------------------------------------------

add = binary("add", el.add, "x + y; `or` of booleans.")
sub = binary("sub", el.sub, "x - y.")
mul = binary("mul", el.mul, "x * y; `and` of booleans.")
div = binary("div", el.div, "x / y; integers are divided towards zero.")
rem = binary("rem", el.rem, "Remainder of division towards zero: it has x's sign.")
max = binary("max", el.maximum, "The greater; nan if either is.")
min = binary("min", el.minimum, "The lesser; nan if either is.")
atan2 = binary("atan2", el.atan2, "The angle of the point (y, x).")
nextafter = binary("nextafter", el.nextafter, "The next float from x towards y.")
complex = binary("complex", el.complex_, "x + y i, of floats.")
bitwise_and = binary("bitwise_and", el.and_, "Bits of both, of integers and booleans.")
bitwise_or = binary("bitwise_or", el.or_, "Bits of either, of integers and booleans.")
bitwise_xor = binary("bitwise_xor", el.xor, "Bits of one only, of integers and booleans.")
shift_left = binary("shift_left", el.shift_left, "x << y, of integers.")
shift_right_arithmetic = binary(
    "shift_right_arithmetic", el.shift_right_arithmetic, "x >> y, keeping the sign, of integers."
)
shift_right_logical = binary(
    "shift_right_logical", el.shift_right_logical, "x >> y, zeros coming in, of integers."
)
eq = binary("eq", el.eq, "x == y, as booleans.")
ne = binary("ne", el.ne, "x != y, as booleans.")
lt = binary("lt", el.lt, "x < y, as booleans.")
le = binary("le", el.le, "x <= y, as booleans.")
gt = binary("gt", el.gt, "x > y, as booleans.")
ge = binary("ge", el.ge, "x >= y, as booleans.")


def pow(x: Any, y: Any) -> Any:
    """x ** y, of floats and complex numbers; `y` may be an integer array, or a Python integer.

    Raises TypeRule for different dtypes, and for integers as bases.
    """
    if y.__class__ is int:
        a = value(x)
        if a.aval.inexact:
            return integer_pow(a, y)
    a, b = value(x), value(y)
    if a.aval.inexact and b.aval.category == INTEGER:
        b = convert(b, a.aval.dtype, a.aval.weak_type)
    return el.pow_.bind(*agree("pow", (a, b)))


# ---- selection -----------------------------------------------------------------------------


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """`on_true` where `pred`, else `on_false`.

    Args:
      pred: booleans of the same shape, or one without axes.
      on_true, on_false: one dtype and shape.

    Raises TypeRule if they do not agree.
    """
    x, y = agree("select", (on_true, on_false))
    return el.select.bind(_predicate(pred, x.aval.shape), x, y)


def _predicate(pred: Any, shape: tuple) -> Any:
    p = value(pred)
    if p.aval.dtype != BOOL or (p.aval.ndim and p.aval.shape != shape):
        raise TypeRule(
            f"lax.select: the predicate is {p.aval!r}, for operands of shape {shape}",
            fix="give booleans of that shape, or without axes, or use weft.numpy.where",
        )
    return fit(p, Aval(shape, BOOL))


def select_n(which: Any, *cases: Any) -> Any:
    """`cases[which]`, element by element.

    Args:
      which: booleans (for up to two cases) or i32, of the same shape or without axes.
      cases: one dtype and shape.

    Raises TypeRule if they do not agree.
    """
    if not cases:
        raise TypeRule("select_n needs a case", fix="give at least one")
    xs = list(agree("select_n", cases))
    if len(xs) == 1:
        return materialise_at_ground(xs[0])
    w = value(which)
    if w.aval.dtype == BOOL:
        if len(xs) > 2:
            raise TypeRule(f"select_n: booleans can not tell {len(xs)} cases", fix="give i32")
        return select(w, xs[1], xs[0])
    if w.aval.category != INTEGER:
        raise TypeRule(f"select_n: {w.aval!r} are no numbers of cases", fix="give booleans or i32")
    out = xs[0]
    for i, x in enumerate(xs[1:], 1):
        at = el.ge(w, i) if i == len(xs) - 1 else el.eq(w, i)
        out = select(at, x, out)
    return out


def clamp(min: Any, x: Any, max: Any) -> Any:  # noqa: A002
    """`x` brought into [min, max]; the bounds may be without axes.

    Raises TypeRule for different dtypes.
    """
    return el.clamp.bind(*agree("clamp", (min, x, max)))


def stop_gradient(x: Any) -> Any:
    """The tree `x`, of which nothing but the values is passed on: its derivative is zero."""
    return map_tree(_stopped, x)


def _stopped(x: Any) -> Any:
    v = value(x)
    return el.stop.bind(v) if v.aval.inexact else x
