"""Elementwise primitives: arithmetic, transcendental functions, comparison, logic, selection.

Calling a primitive promotes its operands (numpy's broadcasting, weak Python scalars); `bind` takes
operands that agree already.

Invariant: operands of a type rule agree in shape and dtype; `promoted` converts them, once, before
any interpreter receives them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.errors import ArgumentError, OperandTypeError, OutOfBounds, ShapeError
from .._base.jaxlib_api import IrValue
from .._base.lazy import later
from .._core.array import Array, Literal, as_value, laid, standing_for
from .._core.interpreter import GROUND, Value, current
from .._core.primitive import Primitive
from .._plugins.traits import (
    AnyElement,
    Decreasing,
    Discrete,
    Elementwise,
    Increasing,
    Linear,
    Trait,
    ZeroPreserving,
)
from .._types.avals import (
    BOOL,
    BOOLEAN,
    COMPLEX,
    FLOATING,
    INTEGER,
    NOTHING,
    OPAQUE,
    Aval,
    broadcast_shapes,
    default_dtype,
    met,
    nothing_to_do,
)
from .._xla.lower import Emitter, lower_rules, simple
from .._xla.mlir import attr, without_zeros
from .shape import convert, fit
from .widening import judge_widening

__all__ = [
    "abs_", "acos", "acosh", "add", "agreed", "and_", "asin", "asinh", "atan", "atan2", "atanh",
    "cbrt", "ceil", "clamp", "clz", "COMPARISONS", "complex_", "conj", "copied", "cos", "cosh",
    "digamma", "div", "eq", "erf", "erf_inv", "erfc", "exp", "expm1", "FLOAT", "floating", "floor",
    "ge", "gt", "imag", "IMAGINARY", "INEXACT", "integer_pow", "is_finite", "le", "lgamma", "log",
    "log1p", "LOGIC", "logistic", "lt", "maximum", "minimum", "mul", "ne", "neg", "nextafter",
    "not_", "NUMBER", "once", "or_", "owned", "population_count", "pow_", "promoted", "real",
    "reduce_precision", "relu", "rem", "round_away", "round_even", "rsqrt", "select", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "sqrt", "stop", "sub",
    "tan", "tanh", "xor",
]  # fmt: skip

# ---- operands ------------------------------------------------------------------------------


def promoted(args: Sequence[Any]) -> Sequence[Value]:
    """Bring operands to one shape and dtype: numpy's promotion, with weak Python scalars."""
    if len(args) == 1:
        return args if isinstance(args[0], Value) else [as_value(args[0])]
    vs = [a if isinstance(a, Value) else as_value(a) for a in args]
    first = vs[0].aval
    for v in vs:
        if v.aval is not first:
            break
    else:
        return vs
    aval = met(tuple([v.aval for v in vs]))
    if aval.dtype.itemsize >= 8:
        judge_widening(args, aval.dtype)
    return [v if v.aval is aval else fit(v, aval) for v in vs]


def comparable(args: Sequence[Any]) -> Sequence[Any]:
    """Promote operands of a comparison, which accepts Python integers out of bounds too."""
    try:
        return promoted(args)
    except OutOfBounds:
        vs = [as_value(a) for a in args]
        wide = np.float64 if any(v.aval.dtype == np.uint64 for v in vs) else np.int64
        return promoted([convert(v, wide) for v in vs])


def floating(args: Sequence[Any]) -> Sequence[Value]:
    """Promote operands, and convert integers and booleans to floats.

    They are converted at once: a weak -1 beside uint8 would become 255 first.
    """
    if len(args) == 1 and isinstance(args[0], Value) and args[0].aval.inexact:
        return args
    vs = [a if isinstance(a, Value) else as_value(a) for a in args]
    aval = vs[0].aval if len(vs) == 1 else met(tuple([v.aval for v in vs]))
    if aval.inexact:
        return promoted(args)
    if aval.category == NOTHING:
        raise nothing_to_do([aval])
    to = Aval(aval.shape, default_dtype(FLOATING), aval.weak_type)
    return [fit(v, to) for v in vs]


# ---- type rules ----------------------------------------------------------------------------

_WORDS = {
    BOOLEAN: "boolean",
    INTEGER: "integer",
    FLOATING: "floating",
    COMPLEX: "complex",
    OPAQUE: "opaque",
    NOTHING: "float0",
}
ANY = (BOOLEAN, INTEGER, FLOATING, COMPLEX)
NUMBER = (INTEGER, FLOATING, COMPLEX)
REAL = (INTEGER, FLOATING)
ORDERED = (BOOLEAN, INTEGER, FLOATING)
INEXACT = (FLOATING, COMPLEX)
FLOAT = (FLOATING,)
LOGIC = (BOOLEAN, INTEGER)
WHOLE = (INTEGER,)
IMAGINARY = (COMPLEX,)
EVERY = (*ANY, OPAQUE)


_OF_CONDITIONS = {"and": "(x > 0) & (y > 0)", "or": "(x > 0) | (y > 0)", "not": "~(x > 0)"}
_USUAL = {BOOLEAN: "bool", INTEGER: "int32", FLOATING: "float32", COMPLEX: "complex64"}


def _advice(name: str, accepts: Sequence[int]) -> str:
    """Return what to write instead of an operation on operands of another kind."""
    if name in _OF_CONDITIONS:
        return f"combine conditions: {_OF_CONDITIONS[name]}; or convert with .astype(bool)"
    usual = [_USUAL[c] for c in (FLOATING, INTEGER, COMPLEX, BOOLEAN) if c in accepts]
    logical = "write ~x for booleans, or " if name == "neg" else ""
    return f"{logical}convert with .astype({usual[0]!r})" if usual else "convert with .astype"


def agreed(name: str, accepts: Sequence[int], x: Aval, *rest: Aval) -> Aval:
    """Return the common type of operands, which must have one shape and an accepted dtype."""
    for y in rest:
        if y is not x:
            if y.shape != x.shape or y.dtype != x.dtype:
                raise OperandTypeError(
                    f"{name}: operands must have one shape and dtype, not {x!r} and {y!r}",
                    fix="broadcast and convert them first, or use plait.numpy",
                )
            if x.weak_type:
                x = y
    if x.category not in accepts:
        if x.category == NOTHING:
            raise nothing_to_do([x, *rest])
        words = " or ".join(_WORDS[c] for c in accepts)
        raise OperandTypeError(
            f"{name} is for {words} arrays, not {x!r}", fix=_advice(name, accepts)
        )
    return x


_OF_TWO = frozenset([
    "add", "and", "atan2", "complex", "div", "eq", "ge", "gt", "le", "lt", "maximum", "minimum",
    "mul", "ne", "nextafter", "or", "pow", "rem", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "sub", "xor",
])  # fmt: skip


def _rule(name: str, accepts: Sequence[int], doc: str, result: Callable[[Aval], Aval] | None):
    count = 2 if name in _OF_TWO else 1

    def rule(*xs: Aval) -> Aval:
        if len(xs) != count:
            raise ArgumentError(f"{name} takes {count} operands, and {len(xs)} were given")
        out = agreed(name, accepts, *xs)
        return out if result is None else result(out)

    rule.__doc__ = doc
    return rule


def _boolean(x: Aval) -> Aval:
    return Aval(x.shape, BOOL)


def _real(x: Aval) -> Aval:
    if x.category != COMPLEX:
        return x
    return Aval(x.shape, np.float32 if x.dtype.itemsize == 8 else np.float64, x.weak_type)


def _complex(x: Aval) -> Aval:
    if x.dtype not in (np.float32, np.float64):
        raise OperandTypeError(
            f"complex is for float32 or float64 parts, not {x!r}", fix="convert with .astype"
        )
    return Aval(x.shape, np.complex64 if x.dtype == np.float32 else np.complex128, x.weak_type)


def _corrected(name: str, rule: Callable) -> Callable:
    """Extend the lowering rule of an elementary function to correct complex values."""

    def lowering(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]) -> Any:
        if ins[0].category == COMPLEX:
            by_parts = later("_ops.complex_elementary").FUNCTIONS.get(name)
            if by_parts is not None:
                return by_parts(e, xs[0], outs[0])
        return rule(e, xs, ins, outs)

    return lowering


def _by_formula(module: str, name: str) -> Callable:
    """Return the lowering rule that a module of formulas has; the first use imports it."""
    return lambda e, xs, ins, outs: later("_ops." + module).RULES[name](e, xs, ins, outs)


def _define(
    name: str,
    hlo: str | None,
    doc: str,
    accepts: Sequence[int] = NUMBER,
    traits: Sequence[Any] = (),
    prepare: Callable[..., Any] = promoted,
    result: Callable[[Aval], Aval] | None = None,
) -> Primitive:
    rule = _rule(name, accepts, doc, result)
    p = Primitive("core." + name, rule, (*traits, Elementwise), prepare=prepare)
    if hlo is not None:
        lower_rules.rule(p)(_corrected(name, simple(hlo)))
    return p


# ---- arithmetic ----------------------------------------------------------------------------

neg = _define("neg", "negate", "-x.", traits=(Linear, ZeroPreserving, Decreasing))
abs_ = _define("abs", None, "|x|, real.", traits=(ZeroPreserving,), result=_real)
sign = _define("sign", None, "-1, 0 or 1 (x / |x| if complex); nan of nan.",
               traits=(Discrete, ZeroPreserving))  # fmt: skip


@lower_rules.rule(abs_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    if ins[0].category == COMPLEX:
        return later("_ops.complex_elementary").modulus(e, xs[0], ins[0])
    return xs[0] if "uint" in ins[0].dtype.name else e.op("stablehlo.abs", xs, outs[0])


@lower_rules.rule(sign)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    if "uint" in ins[0].dtype.name:
        return e.op("stablehlo.minimum", [xs[0], e.constant(1, ins[0])], outs[0])
    if ins[0].category == COMPLEX:
        return later("_ops.complex_elementary").direction(e, xs[0], ins[0])
    return e.op("stablehlo.sign", xs, outs[0])


floor = _define("floor", "floor", "Greatest integer not above x.", FLOAT, (Discrete, Increasing))
ceil = _define("ceil", "ceil", "Least integer not below x.", FLOAT, (Discrete, Increasing))
round_even = _define("round_even", "round_nearest_even", "Nearest integer, ties to even.", FLOAT,
                     (Discrete, Increasing))  # fmt: skip
round_away = _define("round_away", "round_nearest_afz", "Nearest integer, ties away from zero.",
                     FLOAT, (Discrete, Increasing))  # fmt: skip
is_finite = _define("is_finite", "is_finite", "Neither infinite nor nan.", FLOAT, (Discrete,),
                    result=_boolean)  # fmt: skip

add = _define("add", "add", "x + y; `or` of booleans.", ANY, (Linear, Increasing))
sub = _define("sub", "subtract", "x - y.", traits=(Linear,))
mul = _define("mul", "multiply", "x * y; `and` of booleans.", ANY, (ZeroPreserving,))
div = _define("div", None, "x / y; integers are divided towards zero.",
              traits=(ZeroPreserving,))  # fmt: skip
rem = _define("rem", None, "Remainder of division towards zero: the sign is that of x.",
              REAL, (ZeroPreserving,))  # fmt: skip


def _division(hlo: str, of_nothing: Callable[[Emitter, Any, Aval], Any]) -> Callable:
    """Return the lowering of a division; `of_nothing(e, x, aval)` is the result of integers by 0.

    The compiler itself evaluates divisions of known values: constants, substituted sizes, arguments
    of inlined functions.  A divisor of 0 then ends the process that compiles.  Zeros are therefore
    replaced first, unless the divisors are constants without zeros.
    """

    def lowering(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]) -> Any:
        aval = outs[0]
        if aval.category != INTEGER or without_zeros(xs[1]):
            return e.op("stablehlo." + hlo, xs, aval)
        zero = e.compare(xs[1], e.constant(0, aval), "EQ", Aval(aval.shape, BOOL))
        y = e.op("stablehlo.select", [zero, e.constant(1, aval), xs[1]], aval)
        out = e.op("stablehlo." + hlo, [xs[0], y], aval)
        return e.op("stablehlo.select", [zero, of_nothing(e, xs[0], aval), out], aval)

    return lowering


for _p, _hlo, _of_nothing in (
    (div, "divide", lambda e, x, aval: e.constant(-1, aval)),
    (rem, "remainder", lambda e, x, aval: x),
):
    lower_rules.rule(_p)(_division(_hlo, _of_nothing))
pow_ = _define("pow", None, "x ** y.", INEXACT, prepare=floating)
_LEXICAL = "of complex numbers by real part, then by imaginary part; nan if either is."
maximum = _define("maximum", None, "The greater, " + _LEXICAL, ANY, (Increasing,))
minimum = _define("minimum", None, "The lesser, " + _LEXICAL, ANY, (Increasing,))
atan2 = _define("atan2", None, "The angle of the point (y, x).", INEXACT, prepare=floating)
nextafter = _define("nextafter", "chlo.next_after", "The next float from x towards y.", FLOAT)


def extreme(name: str) -> Callable[..., Any]:
    """Return a function that emits "maximum" or "minimum" of operands `xs` of a type.

    Complex numbers are compared in lexicographic order, with nan first of all.  The compiler's own
    operation compares real parts only.
    """
    direction = "GT" if name == "maximum" else "LT"

    def emit(e: Emitter, xs: Sequence[Any], aval: Aval) -> Any:
        if aval.category != COMPLEX:
            return e.op("stablehlo." + name, xs, aval)
        pred = Aval(aval.shape, BOOL)
        part = Aval(aval.shape, np.float32 if aval.dtype.itemsize == 8 else np.float64)
        logic = lambda f, x, y: e.op("stablehlo." + f, [x, y], pred)  # noqa: E731
        (ar, ai), (br, bi) = [[e.op(f"stablehlo.{p}", [v], part) for p in ("real", "imag")]
                              for v in xs]  # fmt: skip
        beyond = e.compare(ar, br, direction, pred)
        no_less = e.compare(ai, bi, direction[0] + "E", pred)  # of equal numbers, take the first
        tie = logic("and", e.compare(ar, br, "EQ", pred), no_less)
        nan = e.compare(xs[0], xs[0], "NE", pred)
        other = e.compare(xs[1], xs[1], "EQ", pred)
        first = logic("or", nan, logic("and", other, logic("or", beyond, tie)))
        return e.op("stablehlo.select", [first, *xs], aval)

    return emit


def _lower_extreme(prim: Primitive, emit: Callable[..., Any]) -> None:
    lower_rules.rule(prim)(lambda e, xs, ins, outs: emit(e, xs, outs[0]))


_lower_extreme(maximum, extreme("maximum"))
_lower_extreme(minimum, extreme("minimum"))


_NORMAL = {"bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}
"""The least normal number of each dtype whose subnormal numbers XLA flushes to zero on CPUs."""


def without_subnormals(e: Emitter, x: IrValue, aval: Aval):
    """Replace subnormal numbers by zeros of their sign.

    On CPUs the compiler's arithmetic flushes them, but its library functions give results that are
    correct neither for zero nor for the number itself.
    """
    if aval.dtype.name not in _NORMAL or "cpu" not in e.unit.platforms:
        return x
    tiny = e.constant(_NORMAL[aval.dtype.name], aval)
    flags = Aval(aval.shape, BOOL)
    small = e.compare(e.op("stablehlo.abs", [x], aval), tiny, "LT", flags)
    zero = e.op("stablehlo.multiply", [x, e.constant(0, aval)], aval)
    return e.op("stablehlo.select", [small, zero, x], aval)


def _steady(hlo: str):
    """Return a lowering rule by a compiler operation that is wrong for subnormal numbers."""

    def rule(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
        return e.op(hlo, [without_subnormals(e, x, a) for x, a in zip(xs, ins)], outs[0])

    return rule


lower_rules.rule(atan2)(_steady("stablehlo.atan2"))


@lower_rules.rule(pow_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    if ins[0].category == COMPLEX:
        return later("_ops.complex_elementary").power(e, *xs, outs[0])
    return _steady("stablehlo.power")(e, xs, ins, outs)


# ---- transcendental functions --------------------------------------------------------------


def _function(
    name: str, hlo: str | None, doc: str, *traits: Trait, accepts: Sequence[int] = INEXACT
):
    return _define(name, hlo, doc, accepts, traits, prepare=floating)


exp = _function("exp", "exponential", "e ** x.", Increasing)
expm1 = _function("expm1", "exponential_minus_one", "e ** x - 1.", ZeroPreserving, Increasing)
log = _function("log", "log", "Natural logarithm.", Increasing)
log1p = _function("log1p", None, "log(1 + x).", ZeroPreserving, Increasing)
sin = _function("sin", "sine", "Sine.", ZeroPreserving)
cos = _function("cos", "cosine", "Cosine.")
tan = _function("tan", "tan", "Tangent.", ZeroPreserving)
asin = _function("asin", "chlo.asin", "Inverse sine.", ZeroPreserving, Increasing)
acos = _function("acos", "chlo.acos", "Inverse cosine.", Decreasing)
atan = _function("atan", "chlo.atan", "Inverse tangent.", ZeroPreserving, Increasing)
sinh = _function("sinh", None, "Hyperbolic sine.", ZeroPreserving, Increasing)
cosh = _function("cosh", None, "Hyperbolic cosine.")
tanh = _function("tanh", "tanh", "Hyperbolic tangent.", ZeroPreserving, Increasing)
asinh = _function("asinh", "chlo.asinh", "Inverse hyperbolic sine.", ZeroPreserving, Increasing)
acosh = _function("acosh", "chlo.acosh", "Inverse hyperbolic cosine.", Increasing)
atanh = _function("atanh", None, "Inverse hyperbolic tangent.", ZeroPreserving, Increasing)
for _p in (sinh, cosh, atanh, log1p):
    _name = _p.name.removeprefix("core.")
    lower_rules.rule(_p)(_corrected(_name, _by_formula("hyperbolic", _name)))
sqrt = _function("sqrt", "sqrt", "Square root.", ZeroPreserving, Increasing)
rsqrt = _function("rsqrt", "rsqrt", "1 / sqrt(x).", Decreasing)
cbrt = _function("cbrt", None, "Cube root.", ZeroPreserving, Increasing, accepts=FLOAT)
lower_rules.rule(cbrt)(_steady("stablehlo.cbrt"))
logistic = _function("logistic", "logistic", "1 / (1 + exp(-x)).", Increasing)
erf = _function("erf", "chlo.erf", "The error function.", ZeroPreserving, Increasing,
                accepts=FLOAT)  # fmt: skip
erfc = _function("erfc", "chlo.erfc", "1 - erf(x).", Decreasing, accepts=FLOAT)
erf_inv = _function("erf_inv", "chlo.erf_inv", "Inverse of erf.", ZeroPreserving, Increasing,
                    accepts=FLOAT)  # fmt: skip
lgamma = _function("lgamma", None, "log |Gamma(x)|.", accepts=FLOAT)
lower_rules.rule(lgamma)(_by_formula("gamma_function", "lgamma"))
digamma = _function("digamma", "chlo.digamma", "Derivative of lgamma.", accepts=FLOAT)

# ---- powers by whole numbers ---------------------------------------------------------------


def _integer_pow(x: Aval, *, exponent: int) -> Aval:
    """Raise `x` to a fixed integer power."""
    out = agreed("integer_pow", NUMBER, x)
    if exponent < 0 and not x.inexact:
        raise OperandTypeError(
            f"integers cannot be raised to the negative power {exponent}",
            fix="convert to a floating dtype first",
        )
    return out


integer_pow = Primitive("core.integer_pow", _integer_pow, (Elementwise,), prepare=promoted)


@lower_rules.rule(integer_pow)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], exponent: int):
    """Lower by repeated squaring.

    A negative power is the product of two factors with about half the exponent each: x ** 2 may
    overflow or underflow where its reciprocal does not.  Narrow floats are widened meanwhile, for
    the same reason, so that the result is rounded once.
    """
    (x,), (aval,) = xs, ins
    if aval.inexact and aval.dtype.itemsize < 4 and not 0 <= exponent <= 2:
        wide = Aval(aval.shape, np.float32)
        out = _whole_power(e, e.op("stablehlo.convert", [x], wide), wide, exponent)
        return e.op("stablehlo.convert", [out], outs[0])
    return _whole_power(e, x, aval, exponent)


def _whole_power(e: Emitter, x: IrValue, aval: Aval, exponent: int):
    if exponent >= 0:
        return _by_squaring(e, x, aval, exponent)
    half, odd = divmod(-exponent, 2)
    root = e.op(
        "stablehlo.divide", [e.constant(1, aval), _by_squaring(e, x, aval, half or 1)], aval
    )
    if not half:
        return root
    rest = e.op("stablehlo.divide", [root, x], aval) if odd else root
    return e.op("stablehlo.multiply", [root, rest], aval)


def _by_squaring(e: Emitter, x: IrValue, aval: Aval, n: int):
    out = None
    while n:
        if n & 1:
            out = x if out is None else e.op("stablehlo.multiply", [out, x], aval)
        n >>= 1
        if n:
            x = e.op("stablehlo.multiply", [x, x], aval)
    return e.constant(1, aval) if out is None else out


# ---- logic and bits ------------------------------------------------------------------------

and_ = _define("and", "and", "Bitwise and.", LOGIC, (Discrete,))
or_ = _define("or", "or", "Bitwise or.", LOGIC, (Discrete,))
xor = _define("xor", "xor", "Bitwise exclusive or.", LOGIC, (Discrete,))
not_ = _define("not", "not", "Bitwise negation.", LOGIC, (Discrete,))
shift_left = _define("shift_left", "shift_left", "x << y; 0 if y is out of range.", WHOLE,
                     (Discrete,))  # fmt: skip
shift_right_arithmetic = _define("shift_right_arithmetic", "shift_right_arithmetic",
                                 "x >> y, keeping the sign.", WHOLE, (Discrete,))  # fmt: skip
shift_right_logical = _define("shift_right_logical", "shift_right_logical",
                              "x >> y, zeros coming in.", WHOLE, (Discrete,))  # fmt: skip
population_count = _define("population_count", "popcnt", "Number of bits set.", WHOLE, (Discrete,))
clz = _define("clz", None, "Number of leading zero bits.", WHOLE, (Discrete,))


@lower_rules.rule(clz)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    (aval,) = outs
    if aval.dtype.name[0] == "u":
        return e.op("stablehlo.count_leading_zeros", xs, aval)
    # Of a negative constant of a signed type, the compiler counts minus 32 zeros.
    bits = aval.update(dtype=np.dtype("u" + aval.dtype.name))
    x = e.op("stablehlo.bitcast_convert", xs, bits)
    found = e.op("stablehlo.count_leading_zeros", [x], bits)
    return e.op("stablehlo.bitcast_convert", [found], aval)


# ---- comparison ----------------------------------------------------------------------------


def _comparison(name: str, words: str, accepts: Sequence[int]) -> Primitive:
    traits = (Discrete, AnyElement) if OPAQUE in accepts else (Discrete,)
    p = _define(name, None, words, accepts, traits, comparable, _boolean)

    @lower_rules.rule(p)
    def _(e, xs: Sequence[IrValue], ins: list[Aval], outs: Sequence[Aval]):
        return e.compare(*xs, name.upper(), outs[0])

    return p


eq = _comparison("eq", "x == y; elements of float0 are all equal.", (*EVERY, NOTHING))
ne = _comparison("ne", "x != y.", (*EVERY, NOTHING))
lt = _comparison("lt", "x < y.", ORDERED)
le = _comparison("le", "x <= y.", ORDERED)
gt = _comparison("gt", "x > y.", ORDERED)
ge = _comparison("ge", "x >= y.", ORDERED)
COMPARISONS = (eq, ne, lt, le, gt, ge)

# ---- complex numbers -----------------------------------------------------------------------

real = _define("real", "real", "The real part.", IMAGINARY, (Linear,), result=_real)
imag = _define("imag", "imag", "The imaginary part.", IMAGINARY, (Linear,), result=_real)
complex_ = _define("complex", "complex", "x + y i, of floats.", FLOAT, (Linear,), result=_complex)
conj = _define("conj", None, "The complex conjugate.", IMAGINARY, (Linear,))


@lower_rules.rule(conj)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    part = _real(ins[0])
    re, im = (e.op("stablehlo." + n, xs, part) for n in ("real", "imag"))
    return e.op("stablehlo.complex", [re, e.op("stablehlo.negate", [im], part)], outs[0])


# ---- selection -----------------------------------------------------------------------------


def _choose(args: Sequence[Any]) -> Sequence[Any]:
    first, *rest = args
    x, y = promoted(rest)
    p: Any = as_value(first)
    if p.aval.category == BOOLEAN and p.aval.shape == x.aval.shape:
        return p, x, y
    if p.aval.dtype != BOOL:
        p = ne(p, 0) if p.__class__ is not Literal else Literal(bool(p.value), Aval((), BOOL))
    shape = broadcast_shapes([p.aval.shape, x.aval.shape])
    p = fit(p, Aval(shape, BOOL))
    return [p, *(fit(v, v.aval.with_shape(shape)) for v in (x, y))]


def _select(p: Aval, x: Aval, y: Aval) -> Aval:
    """Select elements of `x` where `p` is True, else of `y`."""
    if p.shape != x.shape or p.dtype != BOOL:
        raise ShapeError(
            f"select: the predicate is {p!r} for {x!r}", fix="give a boolean array of that shape"
        )
    return agreed("select", EVERY, x, y)


select = Primitive("core.select", _select, (Elementwise, AnyElement), prepare=_choose)
lower_rules.rule(select)(simple("select"))


def _clamp(low: Aval, x: Aval, high: Aval) -> Aval:
    """Clamp `x` to [low, high]."""
    return agreed("clamp", ORDERED, low, x, high)


clamp = Primitive("core.clamp", _clamp, (Increasing, Elementwise), prepare=promoted)


@lower_rules.rule(clamp)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    low, x, high = xs
    if ins[1].category == BOOLEAN:  # The compiler's fast tier has no clamp of booleans.
        return e.op("stablehlo.and", [e.op("stablehlo.or", [x, low], outs[0]), high], outs[0])
    return e.op("stablehlo.clamp", xs, outs[0])


relu = _define("relu", None, "max(x, 0).", REAL, (ZeroPreserving, Increasing))


@lower_rules.rule(relu)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    return e.op("stablehlo.maximum", [xs[0], e.constant(0, ins[0])], outs[0])


stop = _define("stop", None, "x itself, without its derivatives.", ANY,
               (Discrete, Increasing))  # fmt: skip
lower_rules.rule(stop)(lambda e, xs, ins, outs: xs[0])

once = _define("once", None, "x itself, rounded once: every reader gets the same bits.",
               ANY, (Linear, ZeroPreserving, Increasing))  # fmt: skip


@lower_rules.rule(once)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    # Values are compared with their own extreme, so both uses must read the same rounding.
    if e.unit.rounds_alike or not ins[0].inexact:
        return xs[0]
    return e.op("stablehlo.optimization_barrier", xs, *outs)


def copied(x: Any) -> Any:
    """Copy an array to memory of its own.

    Values of a program that is staged have no memory, and are returned as they are.  Under
    transformations that run at once the copy is an operation: its result may leave them.
    """
    here = current()
    if here is GROUND and x.__class__ is Array:
        return standing_for(stop(laid(x)), x.aval) if x.aval.category == OPAQUE else stop(x)
    if here is GROUND or here.staging or x.__class__ is Literal or x.aval.category not in ANY:
        return x
    return once.bind(x)


def owned(out: Any, x: Any) -> Any:
    """Return `out`, a conversion of `x`, in memory of its own.

    A conversion to the same dtype shares memory, and is deleted when `x` is donated.
    """
    if isinstance(x, Value) and out.aval.dtype == x.aval.dtype:
        return copied(out)
    return out


# ---- precision -----------------------------------------------------------------------------


def _reduce_precision(x: Aval, *, exponent_bits: int, mantissa_bits: int) -> Aval:
    """Round to a float with this many bits, and keep the dtype."""
    return agreed("reduce_precision", FLOAT, x)


reduce_precision = Primitive(
    "core.reduce_precision", _reduce_precision, (Increasing, Elementwise), prepare=promoted
)


@lower_rules.rule(reduce_precision)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    exponent_bits: int,
    mantissa_bits: int,
):
    bits = dict(
        exponent_bits=attr(f"{exponent_bits} : i32"), mantissa_bits=attr(f"{mantissa_bits} : i32")
    )
    return e.op("stablehlo.reduce_precision", xs, outs[0], **bits)
