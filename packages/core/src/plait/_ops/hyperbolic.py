"""Hyperbolic functions and log(1 + x) of real numbers, where the compiler's own lose digits.

Invariant: errors are within 6 units in the last place; each function is odd, or even, to the sign
of zero.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._base.jaxlib_api import IrValue
from .._types.avals import BOOL, Aval
from .._xla.lower import Emitter

Real = Callable[[Emitter, Any, Aval], Any]


def _op(e: Emitter, name: str, aval: Aval, *xs: IrValue) -> Any:
    return e.op("stablehlo." + name, xs, aval)


def _halves(e: Emitter, x: IrValue, aval: Aval) -> tuple[Any, Any]:
    """Return e ** |x| / 2 and e ** -|x| / 2.

    They are squares of e ** (|x| / 2), whose argument is exact.  The alternative
    e ** (|x| - log(2)) overflows no earlier, but its argument is rounded.  The error would be
    about |x| units in the last place.
    """
    half = e.constant(0.5, aval)
    root = _op(e, "exponential", aval, _op(e, "multiply", aval, _op(e, "abs", aval, x), half))
    rest = _op(e, "divide", aval, e.constant(1, aval), root)
    halved = [_op(e, "multiply", aval, half, v) for v in (root, rest)]
    up, down = (_op(e, "multiply", aval, h, v) for h, v in zip(halved, (root, rest)))
    return up, down


def sinh(e: Emitter, x: IrValue, aval: Aval) -> Any:
    """Emit the hyperbolic sine; for |x| < 1 with t = e ** x - 1 it is (t + t / (t + 1)) / 2."""
    up, down = _halves(e, x, aval)
    t = _op(e, "exponential_minus_one", aval, x)
    one, half = e.constant(1, aval), e.constant(0.5, aval)
    near = _op(e, "add", aval, t, _op(e, "divide", aval, t, _op(e, "add", aval, t, one)))
    near = _op(e, "multiply", aval, near, half)
    far = _op(e, "subtract", aval, up, down)
    flags = Aval(aval.shape, BOOL)
    far = _op(e, "select", aval, e.compare(x, e.constant(0, aval), "LT", flags),
              _op(e, "negate", aval, far), far)  # fmt: skip
    small = e.compare(_op(e, "abs", aval, x), one, "LT", flags)
    return _op(e, "select", aval, small, near, far)


def cosh(e: Emitter, x: IrValue, aval: Aval) -> Any:
    """Emit the hyperbolic cosine."""
    return _op(e, "add", aval, *_halves(e, x, aval))


def log1p(e: Emitter, x: IrValue, aval: Aval) -> Any:
    """Emit log(1 + x).

    The compiler's approximation in double precision holds for x > sqrt(1 / 2) - 1, but the
    compiler uses it down to 1 - sqrt(2).  For x < -1 / 4 the logarithm of the sum is accurate
    enough.
    """
    out = _op(e, "log_plus_one", aval, x)
    if aval.dtype != np.float64:
        return out
    plain = _op(e, "log", aval, _op(e, "add", aval, x, e.constant(1, aval)))
    low = e.compare(x, e.constant(-0.25, aval), "LT", Aval(aval.shape, BOOL))
    return _op(e, "select", aval, low, plain, out)


def atanh(e: Emitter, x: IrValue, aval: Aval) -> Any:
    """Emit the inverse hyperbolic tangent, log(1 + 2 |x| / (1 - |x|)) / 2 with the sign of x."""
    size = _op(e, "abs", aval, x)
    one = e.constant(1, aval)
    ratio = _op(e, "divide", aval, _op(e, "add", aval, size, size),
                _op(e, "subtract", aval, one, size))  # fmt: skip
    out = _op(e, "multiply", aval, log1p(e, ratio, aval), e.constant(0.5, aval))
    negative = e.compare(x, e.constant(0, aval), "LT", Aval(aval.shape, BOOL))
    out = _op(e, "select", aval, negative, _op(e, "negate", aval, out), out)
    # For small |x| return x: zeros keep their sign, and 2 |x| may be subnormal.
    tiny = e.constant(math.sqrt(float(np.finfo(aval.dtype).eps)) / 16, aval)
    small = e.compare(size, tiny, "LT", Aval(aval.shape, BOOL))
    return _op(e, "select", aval, small, x, out)


def rule(emit: Real) -> Callable[..., Any]:
    """Return the lowering rule of a formula: narrow floats are widened, the result rounded."""

    def lowering(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]) -> Any:
        aval = ins[0]
        if aval.dtype.itemsize >= 4:
            return emit(e, xs[0], aval)
        wide = Aval(aval.shape, np.float32)
        out = emit(e, e.op("stablehlo.convert", xs, wide), wide)
        return e.op("stablehlo.convert", [out], outs[0])

    return lowering


RULES = {f.__name__: rule(f) for f in (sinh, cosh, log1p, atanh)}
"""The lowering rules of the functions by their names."""
