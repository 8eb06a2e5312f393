"""Complex elementary functions (log, sqrt, tan, ...), corrected where the compiler's are wrong.

The compiler's functions may be wrong at infinity, for nan parts, or on one side of a cut, where the
sign of a zero decides.  The values there follow the C standard (ISO C99, annex G),
which the array API standard requires too.

Invariant: each function commutes with conjugation, and an odd one with negation, to the sign of
each zero.  Where the compiler's function might not, it is evaluated in one quadrant only.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._base.jaxlib_api import IrValue
from .._types.avals import BOOL, FLOAT32, Aval
from .._xla.lower import Emitter
from .hyperbolic import cosh, sinh

Pair = tuple[Any, Any]


class _Reals:
    """Arithmetic on real values of one type; conditions are values too."""

    def __init__(self, e: Emitter, whole: Aval):
        single = whole.dtype.itemsize == 8
        self.e, self.whole, self.wide = e, whole, not single
        self.aval = Aval(whole.shape, FLOAT32 if single else np.float64)
        self.bits = Aval(whole.shape, np.int32 if single else np.int64)
        self.flag = Aval(whole.shape, BOOL)
        self.nan, self.inf, self.zero = (self.number(v) for v in (math.nan, math.inf, 0.0))

    def number(self, v: float) -> Any:
        return self.e.constant(v, self.aval)

    def op(self, name: str, *xs: IrValue) -> Any:
        return self.e.op(name if "." in name else "stablehlo." + name, xs, self.aval)

    def times(self, x: Any, y: IrValue) -> Any:
        return self.op("multiply", x, y)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return self.e.op("stablehlo.select", [condition, x, y], self.aval)

    def both(self, *conditions: IrValue) -> Any:
        out, *rest = conditions
        for c in rest:
            out = self.e.op("stablehlo.and", [out, c], self.flag)
        return out

    def either(self, x: IrValue, y: IrValue) -> Any:
        return self.e.op("stablehlo.or", [x, y], self.flag)

    def no(self, x: IrValue) -> Any:
        return self.e.op("stablehlo.not", [x], self.flag)

    def equal(self, x: IrValue, y: IrValue) -> Any:
        return self.e.compare(x, y, "EQ", self.flag)

    def is_nan(self, x: IrValue) -> Any:
        return self.e.compare(x, x, "NE", self.flag)

    def is_inf(self, x: IrValue) -> Any:
        return self.equal(self.op("abs", x), self.inf)

    def is_finite(self, x: IrValue) -> Any:
        return self.e.op("stablehlo.is_finite", [x], self.flag)

    def is_zero(self, x: IrValue) -> Any:
        return self.equal(x, self.zero)

    def signed(self, x: IrValue, like: IrValue) -> Any:
        """Return |x| with the sign of `like`."""
        bits = self.e.op("stablehlo.bitcast_convert", [like], self.bits)
        minus = self.e.compare(bits, self.e.constant(0, self.bits), "LT", self.flag)
        x = self.op("abs", x)
        return self.where(minus, self.op("negate", x), x)

    def parts(self, z: IrValue) -> Pair:
        return self.op("real", z), self.op("imag", z)

    def unsigned_nans(self, z: IrValue) -> Pair:
        """Return the parts of an operand with the sign of each nan cleared.

        Instructions choose that sign freely, and formulas give signs to zeros and infinities.
        """
        x, y = self.parts(z)
        return self.where(self.is_nan(x), self.nan, x), self.where(self.is_nan(y), self.nan, y)

    def ask(self, name: str, x: IrValue, y: IrValue) -> Pair:
        """Apply the compiler's function to x + y i."""
        z = self.e.op("stablehlo.complex", [x, y], self.whole)
        return self.parts(self.e.op(name, [z], self.whole))


def _exp(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    real, imag = r.ask("stablehlo.exponential", x, y)
    far, wild = r.is_inf(x), r.no(r.is_finite(y))
    up = r.equal(x, r.inf)
    lost = r.both(far, wild)
    real = r.where(lost, r.where(up, r.inf, r.zero), real)
    imag = r.where(lost, r.where(up, r.nan, r.zero), imag)
    return real, r.where(r.is_zero(y), y, imag)


def _expm1(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    real, imag = r.ask("stablehlo.exponential_minus_one", x, y)
    along = r.is_zero(y)
    lost = r.both(r.is_inf(x), r.no(r.is_finite(y)))
    up = r.equal(x, r.inf)
    real = r.where(lost, r.where(up, r.inf, r.number(-1.0)), real)
    imag = r.where(lost, r.where(up, r.nan, r.zero), imag)
    real = r.where(along, r.op("exponential_minus_one", x), real)
    real = r.where(r.both(along, r.is_zero(x)), r.zero, real)  # the standard gives 0 for -0 too
    return real, r.where(along, y, imag)


def _logistic(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    real, imag = _exp(r, r.op("negate", x), r.op("negate", y))
    below = r.e.op("stablehlo.complex", [r.op("add", real, r.number(1.0)), imag], r.whole)
    return r.parts(r.e.op("stablehlo.divide", [r.e.constant(1, r.whole), below], r.whole))


def _half_lost(r: _Reals, x: IrValue, y: IrValue) -> Any:
    """Mark values with one infinite and one nan part."""
    return r.both(r.either(r.is_inf(x), r.is_inf(y)), r.either(r.is_nan(x), r.is_nan(y)))


def _log(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    real, imag = r.ask("stablehlo.log", x, y)
    return r.where(_half_lost(r, x, y), r.inf, real), imag


def _log1p(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    real, imag = r.ask("stablehlo.log_plus_one", x, y)
    pole = r.equal(x, r.number(-1.0))
    real = r.where(pole, r.op("log", r.op("abs", y)), real)
    return r.where(_half_lost(r, x, y), r.inf, real), imag


def _sqrt(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    real, imag = r.ask("stablehlo.sqrt", x, r.op("abs", y))
    far = r.is_inf(y)
    real, imag = r.where(far, r.inf, real), r.where(far, r.inf, imag)
    lost = r.is_nan(y)
    up, down = r.both(lost, r.equal(x, r.inf)), r.both(lost, r.equal(r.op("negate", x), r.inf))
    real, imag = r.where(up, r.inf, real), r.where(down, r.inf, imag)
    return real, r.signed(imag, y)


def _spread(r: _Reals, x: IrValue, by_sinh: IrValue, by_cosh: IrValue) -> Pair:
    """Return sinh(x) * by_sinh and cosh(x) * by_cosh, without overflow in sinh or cosh alone.

    For large |x| both are exp(|x|) / 2; half of the exponent is applied after the product.
    """
    large = r.e.compare(r.op("abs", x), r.number(700.0 if r.wide else 80.0), "GT", r.flag)
    root = r.op("exponential", r.times(r.op("abs", x), r.number(0.5)))
    half = r.times(root, r.number(0.5))
    a = r.times(r.times(r.signed(half, x), by_sinh), root)
    b = r.times(r.times(half, by_cosh), root)
    return (
        r.where(large, a, r.times(sinh(r.e, x, r.aval), by_sinh)),
        r.where(large, b, r.times(cosh(r.e, x, r.aval), by_cosh)),
    )


def _sinh(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    real, imag = _spread(r, x, r.op("cosine", y), r.op("sine", y))
    wild = r.no(r.is_finite(y))
    real = r.where(r.both(wild, r.either(r.is_zero(x), r.is_inf(x))), x, real)
    along = r.is_zero(y)
    return r.where(along, sinh(r.e, x, r.aval), real), r.where(along, y, imag)


def _cosh(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    imag, real = _spread(r, x, r.op("sine", y), r.op("cosine", y))
    wild = r.no(r.is_finite(y))
    real = r.where(r.both(wild, r.is_inf(x)), r.inf, real)
    still = r.either(r.both(wild, r.is_zero(x)), r.is_zero(y))
    nothing = r.times(r.signed(r.zero, x), r.signed(r.number(1.0), y))
    along = r.is_zero(y)
    return r.where(along, cosh(r.e, x, r.aval), real), r.where(still, nothing, imag)


def _tanh(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    real, imag = r.ask("stablehlo.tanh", x, y)
    across = r.both(r.is_zero(x), r.no(r.is_finite(y)))
    real, imag = r.where(across, x, real), r.where(across, r.nan, imag)
    far = r.is_inf(x)  # The zero has y's sign, as in the standard; C's varies with y.
    real = r.where(far, r.signed(r.number(1.0), x), real)
    imag = r.where(far, r.signed(r.zero, y), imag)
    along = r.is_zero(y)
    return r.where(along, r.op("tanh", x), real), r.where(along, y, imag)


def _asinh(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    real, imag = r.ask("chlo.asinh", r.op("abs", x), r.op("abs", y))
    unknown = r.is_nan(x)
    real = r.where(r.both(unknown, r.is_finite(y)), r.nan, real)
    imag = r.where(r.both(unknown, r.is_zero(y)), y, imag)
    real = r.where(r.both(unknown, r.is_inf(y)), r.inf, real)
    lost = r.is_nan(y)
    real = r.where(r.both(lost, r.is_finite(x)), r.nan, real)
    real = r.where(r.both(lost, r.is_inf(x)), r.inf, real)
    return r.signed(real, x), r.signed(imag, y)


def _acosh(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    real, imag = r.ask("chlo.acosh", x, r.op("abs", y))
    one = r.either(r.is_nan(x), r.is_nan(y))
    far = r.either(r.is_inf(x), r.is_inf(y))
    real, imag = r.where(one, r.where(far, r.inf, r.nan), real), r.where(one, r.nan, imag)
    across = r.both(r.is_zero(x), r.is_nan(y))
    return real, r.signed(r.where(across, r.number(math.pi / 2), imag), y)


def _atanh(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    real, imag = r.ask("chlo.atanh", r.op("abs", x), r.op("abs", y))
    one = r.either(r.is_nan(x), r.is_nan(y))
    real, imag = r.where(one, r.nan, real), r.where(one, r.nan, imag)
    far = r.either(r.is_inf(x), r.is_inf(y))
    still = r.either(far, r.both(r.is_zero(x), r.is_nan(y)))
    real = r.where(still, r.zero, real)
    turned = r.either(r.is_inf(y), r.both(r.is_inf(x), r.is_finite(y)))
    imag = r.where(turned, r.number(math.pi / 2), imag)
    imag = r.where(r.both(r.is_nan(x), r.is_zero(y)), r.nan, imag)
    return r.signed(real, x), r.signed(imag, y)


def _turned(hyperbolic: Callable) -> Callable:
    """Return the circular function f(z) = -i h(i z) of an odd h."""

    def f(r: _Reals, x: IrValue, y: IrValue) -> Pair:
        real, imag = hyperbolic(r, y, x)
        return imag, real

    return f


def _cos(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    return _cosh(r, r.op("negate", y), x)


def _acos(r: _Reals, x: IrValue, y: IrValue) -> Pair:
    real, imag = r.ask("chlo.acos", x, r.op("abs", y))
    one = r.either(r.is_nan(x), r.is_nan(y))
    far = r.either(r.is_inf(x), r.is_inf(y))
    real, imag = r.where(one, r.nan, real), r.where(one, r.where(far, r.inf, r.nan), imag)
    across = r.both(r.is_zero(x), r.is_nan(y))
    real, imag = r.where(across, r.number(math.pi / 2), real), r.where(across, r.nan, imag)
    return real, r.signed(imag, r.op("negate", y))


def _whole(by_parts: Callable[..., Pair]) -> Callable[[Emitter, Any, Aval], Any]:
    """Return the function of complex values that `by_parts` computes from their parts."""

    def emit(e: Emitter, z: IrValue, whole: Aval) -> Any:
        r = _Reals(e, whole.strong())
        return e.op("stablehlo.complex", by_parts(r, *r.unsigned_nans(z)), whole)

    return emit


_BY_PARTS: dict[str, Callable[..., Pair]] = {
    "exp": _exp, "expm1": _expm1, "logistic": _logistic,
    "log": _log, "log1p": _log1p, "sqrt": _sqrt,
    "sinh": _sinh, "cosh": _cosh, "tanh": _tanh,
    "asinh": _asinh, "acosh": _acosh, "atanh": _atanh,
    "sin": _turned(_sinh), "cos": _cos, "tan": _turned(_tanh),
    "asin": _turned(_asinh), "acos": _acos, "atan": _turned(_atanh),
}  # fmt: skip


FUNCTIONS = {name: _whole(f) for name, f in _BY_PARTS.items()}
"""The functions that need more than the compiler's own, by the names of their primitives."""


def power(e: Emitter, z: IrValue, w: IrValue, whole: Aval) -> Any:
    """Return z ** w; 0 ** w is 0 if the real part of w is positive."""
    r = _Reals(e, whole.strong())
    nothing = r.both(*map(r.is_zero, r.parts(z)))
    nothing = r.both(nothing, e.compare(r.parts(w)[0], r.zero, "GT", r.flag))
    out = e.op("stablehlo.power", [z, w], r.whole)
    return e.op("stablehlo.select", [nothing, e.constant(0, r.whole), out], whole)


def modulus(e: Emitter, z: IrValue, whole: Aval) -> Any:
    """Return |z|, infinite if a part is."""
    r = _Reals(e, whole.strong())
    x, y = r.parts(z)
    far = r.either(r.is_inf(x), r.is_inf(y))
    return r.where(far, r.inf, r.op("abs", z))


def direction(e: Emitter, z: IrValue, whole: Aval) -> Any:
    """Return z / |z|, and 0 for 0.  For infinite z, only its infinite parts count."""
    r = _Reals(e, whole.strong())
    x, y = r.unsigned_nans(z)
    far = r.either(r.is_inf(x), r.is_inf(y))
    one = r.number(1.0)
    x, y = (r.where(far, r.signed(r.where(r.is_inf(v), one, r.zero), v), v) for v in (x, y))
    size = r.op("abs", e.op("stablehlo.complex", [x, y], r.whole))
    size = r.where(r.is_zero(size), one, size)
    lost = r.is_nan(size)
    parts = [r.where(lost, r.nan, r.op("divide", v, size)) for v in (x, y)]
    return e.op("stablehlo.complex", parts, r.whole)
