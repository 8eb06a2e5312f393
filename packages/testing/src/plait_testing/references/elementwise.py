"""Elementwise primitives in numpy.

Floats narrower than float64 are computed in float64, and rounded once: correct to the last place,
except for rare ties.

Invariant: nothing here uses the compiler.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from plait.dtypes import iinfo
from plait.ext.ir import Primitive
from plait.ext.types import COMPLEX, FLOATING, category

from ..operands import accepted, edges
from ..samples import Reference, Sample, elementwise, ordinary, stored

__all__ = ["REFERENCES", "greater", "lesser", "of_scipy", "rounded"]


def rounded(f: Callable) -> Callable:
    """Return `f` in double precision, for operands of any dtype, rounded to the dtype of the
    first."""

    def value(*xs: np.ndarray, **params: object) -> np.ndarray:
        dtype = xs[0].dtype
        kind = category(dtype)
        wide = {FLOATING: np.float64, COMPLEX: np.complex128}.get(kind, dtype)
        with np.errstate(all="ignore"):
            out = np.asarray(f(*[x.astype(wide) for x in xs], **params))
            if kind == COMPLEX and out.dtype.kind != "c":
                dtype = np.real(np.zeros(0, dtype)).dtype
            return out.astype(out.dtype if out.dtype == bool else dtype)

    return value


def of_scipy(name: str) -> Callable:
    """Return a function of scipy.special."""

    def f(*xs: np.ndarray) -> np.ndarray:
        import scipy.special

        return getattr(scipy.special, name)(*xs)

    return f


# ---- arithmetic ----------------------------------------------------------------------------


def _sign(x: Any) -> np.ndarray:
    """Return zeros unchanged; for infinite complex numbers, the sign of their infinite parts
    alone."""
    if x.dtype.kind != "c":
        return np.where(x == 0, x, np.sign(x))
    far = np.isinf(x.real) | np.isinf(x.imag)
    part = lambda v: np.where(far, np.copysign(np.where(np.isinf(v), 1.0, 0.0), v), v)  # noqa: E731
    lost = ~far & (np.isnan(x.real) | np.isnan(x.imag))
    y: Any = np.empty_like(x)
    y.real, y.imag = part(x.real), part(x.imag)
    size = np.hypot(y.real, y.imag)
    size = np.where(size == 0, 1, size)
    y.real, y.imag = y.real / size, y.imag / size
    y[lost] = complex(np.nan, np.nan)
    return y


def _maximum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the maximum as IEEE 754-2019 defines it: of two zeros the positive one."""
    return np.where(x == y, np.where(np.signbit(x), y, x), np.maximum(x, y))


def _minimum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -_maximum(-x, -y)


def greater(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the greater, nan if either is."""
    return (_maximum if x.dtype.kind == "f" else np.maximum)(x, y)


def lesser(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the lesser, nan if either is."""
    return (_minimum if x.dtype.kind == "f" else np.minimum)(x, y)


def _div(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        return _quotient(x, y)
    return x / y if x.dtype.kind == "f" else _whole(x, y)[0]


def _quotient(z: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Divide as in ISO C99, annex G, 5.1.2: infinities and zeros survive although parts are nan."""
    out = np.empty(np.broadcast_shapes(z.shape, w.shape), np.complex128)
    for at in np.ndindex(out.shape):
        out[at] = _one_quotient(complex(z[at]), complex(w[at]))
    return out


def _one_quotient(z: complex, w: complex) -> complex:
    a, b, c, d = (np.float64(v) for v in (z.real, z.imag, w.real, w.imag))
    most = max(abs(c), abs(d))
    scale = 0
    if np.isfinite(most) and most:
        scale = int(np.floor(np.log2(most)))
        c, d = np.ldexp(c, -scale), np.ldexp(d, -scale)
    size = c * c + d * d
    x, y = (np.ldexp(v / size, -scale) for v in (a * c + b * d, b * c - a * d))
    if np.isnan(x) and np.isnan(y):
        if size == 0 and not (np.isnan(a) and np.isnan(b)):
            x, y = np.copysign(np.inf, c) * a, np.copysign(np.inf, c) * b
        elif np.isinf([a, b]).any() and np.isfinite([c, d]).all():
            a, b = (np.copysign(float(np.isinf(v)), v) for v in (a, b))
            x, y = np.inf * (a * c + b * d), np.inf * (b * c - a * d)
        elif np.isinf([c, d]).any() and np.isfinite([a, b]).all():
            c, d = (np.copysign(float(np.isinf(v)), v) for v in (c, d))
            x, y = 0.0 * (a * c + b * d), 0.0 * (b * c - a * d)
    return complex(x, y)


def _rem(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    return _whole(x, y)[1]


def _whole(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return quotient towards zero and remainder of Python's integers; for division by zero all
    bits set, and x."""
    pairs = [_divided(int(a), int(b)) for a, b in zip(x.ravel(), y.ravel())]
    bits = int(iinfo(x.dtype).bits)
    out = [np.array([_wrapped(p[k], bits, x.dtype) for p in pairs], x.dtype) for k in (0, 1)]
    return out[0].reshape(x.shape), out[1].reshape(x.shape)


def _divided(a: int, b: int) -> tuple[int, int]:
    if b == 0:
        return -1, a
    q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return q, a - q * b


def _wrapped(n: int, bits: int, dtype: np.dtype) -> int:
    """Return the integer of `bits` bits that equals n modulo 2 ** bits."""
    n %= 2**bits
    unsigned = dtype == bool or "uint" in dtype.name
    return n - 2**bits if not unsigned and n >= 2 ** (bits - 1) else n


def _by_integers(f: Callable) -> Callable:
    """Return a function of Python's integers `f(*ns, bits)`, in the dtype of the first operand."""

    def value(*xs: np.ndarray) -> np.ndarray:
        dtype = xs[0].dtype
        bits = 1 if dtype == bool else int(iinfo(dtype).bits)
        rows = zip(*[x.ravel().tolist() for x in xs])
        out = [_wrapped(f(*map(int, row), bits), bits, dtype) for row in rows]
        held = np.array(out, np.uint64 if dtype == np.uint64 else np.int64)
        return held.astype(dtype).reshape(xs[0].shape)

    return value


def _power(x: np.ndarray, exponent: int) -> np.ndarray:
    """Compute by repeated squaring, as in the compiled program."""
    n, out = abs(exponent), np.ones_like(x)
    first = True
    while n:
        if n & 1:
            out, first = (x if first else out * x), False
        n >>= 1
        x = x * x if n else x
    return np.asarray(out if exponent >= 0 else 1 / out, x.dtype)


def _precision(x: np.ndarray, exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    """Round to the nearest multiple of the last place, ties to even; infinite beyond the
    exponents, and zero below the least normal number."""
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        fraction, exponent = np.frexp(wide)
        steps = 2.0 ** (mantissa_bits + 1)
        out = np.ldexp(np.round(fraction * steps) / steps, exponent)
        top = 2.0 ** (exponent_bits - 1) - 1
        out = np.where(np.abs(out) >= np.float64(2.0) ** (top + 1), np.copysign(np.inf, wide), out)
        out = np.where(np.abs(wide) < 2.0 ** (1 - top), np.copysign(0.0, wide), out)
    return np.where(np.isfinite(wide), out, wide).astype(x.dtype)


def _nextafter(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Step the integers of the same bits by one."""
    whole = np.dtype(f"i{x.dtype.itemsize}")
    bits = x.view(whole).astype(np.int64)
    up = (x < y) == (x > 0)
    step = np.where(up, 1, -1)
    moved = np.where(x == 0, 1, bits + step).astype(whole).view(x.dtype)
    with np.errstate(all="ignore"):
        from_zero = np.copysign(np.where(x == 0, 1, bits).astype(whole).view(x.dtype), y)
        out = np.where(x == 0, from_zero, moved)
        out = np.where(x == y, y, out)
        return np.where((x != x) | (y != y), x.astype(x.dtype) * np.nan, out).astype(x.dtype)


def _clamp(low: np.ndarray, x: np.ndarray, high: np.ndarray) -> np.ndarray:
    return lesser(greater(x, low), high)


# ---- functions -----------------------------------------------------------------------------


def _expm1(z: Any) -> Any:
    """Return numpy's result, corrected for infinite and nan complex numbers, where it is nan too
    often."""
    out: Any = np.where(np.isfinite(z), np.expm1(z), np.exp(z) - 1)
    return _with_zeros(out, z == 0, np.zeros_like(z.real), z.imag) if z.dtype.kind == "c" else out


def _with_zeros(out: Any, at: Any, real: Any, imag: Any) -> Any:
    """Return complex results with these parts in some positions, where numpy's signs of zeros
    differ from the array API standard."""
    new: Any = np.array(out)  # np.array makes a writable copy
    new.real[...], new.imag[...] = np.where(at, real, out.real), np.where(at, imag, out.imag)
    return new


def _tanh(z: Any) -> Any:
    out: Any = np.tanh(z)
    if z.dtype.kind != "c":
        return out
    ends = np.isinf(z.real) & np.isfinite(z.imag)
    return _with_zeros(out, ends, out.real, np.copysign(0, z.imag))


def _tan(z: Any) -> Any:
    out: Any = np.tan(z)
    if z.dtype.kind != "c":
        return out
    ends = np.isinf(z.imag) & np.isfinite(z.real)
    return _with_zeros(out, ends, np.copysign(0, z.real), out.imag)


def _logistic(z: np.ndarray) -> np.ndarray:
    one = np.ones_like(z)
    return _div(one, one + np.exp(-z))


def _rsqrt(z: np.ndarray) -> np.ndarray:
    return _div(np.ones_like(z), np.sqrt(z))


def _atan2(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.arctan2(y, x)
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


def _lgamma(x: np.ndarray) -> np.ndarray:
    return np.where(x == -np.inf, np.inf, of_scipy("gammaln")(x))


def _erf_inv(x: np.ndarray) -> np.ndarray:
    return np.copysign(of_scipy("erfinv")(x), x)


def _powers(prim: Primitive) -> Iterator[Sample]:
    yield Sample((ordinary("float32"),), {"exponent": 3})
    for dtype in accepted(prim, params={"exponent": 2}):
        yield Sample((edges(dtype),), {"exponent": 3})
    for exponent in (0, 1, 2, -1, -2, 11):
        yield Sample((edges("float32"),), {"exponent": exponent})


def _precisions(prim: Primitive) -> Iterator[Sample]:
    yield Sample((ordinary("float32"),), {"exponent_bits": 5, "mantissa_bits": 4})
    for name, bits in (("float32", (8, 7)), ("float32", (5, 10)), ("float64", (8, 23))):
        x = np.concatenate([edges(name), ordinary(name, (9,)) * np.array(1e4, name)])
        yield Sample((x,), dict(zip(("exponent_bits", "mantissa_bits"), bits)))


def _choices(prim: Primitive) -> Iterator[Sample]:
    x = ordinary("float32")
    yield Sample((x > 0, x, x[::-1].copy()))
    for v in stored():
        yield Sample((np.arange(v.size) % 3 == 0, v, v[::-1].copy()))


# ---- tables --------------------------------------------------------------------------------


def _bare(f: Callable) -> Callable:
    """Return a function that numpy has for every dtype; it may return a scalar, and widen."""

    def value(*xs: np.ndarray, **params: object) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(f(*xs, **params))

    return value


def _like(f: Callable) -> Callable:
    return lambda *xs, **p: _bare(f)(*xs, **p).astype(xs[0].dtype)


def _complex(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.empty(x.shape, np.complex64 if x.dtype == np.float32 else np.complex128)
    out.real, out.imag = x, y
    return out


_ALIKE = "uint32 float16 complex128"
_FEW = _ALIKE + " bfloat16"
"""Dtypes whose functions are computed as in another dtype: in float32, or by the same rule."""

_NARROW = {f"core.{n}" for n in ("abs", "cbrt", "exp", "log", "sign", "sqrt", "tanh")}
"""Functions tested in bfloat16 too; the others only convert from it and back in the same way."""

_above_one = lambda x: (np.abs(x) + 1.1,)  # noqa: E731
_inside = lambda x: (x * 0.4,)  # noqa: E731
_positive = lambda *xs: tuple([np.abs(x) + 0.1 for x in xs])  # noqa: E731
_ones = lambda *xs: tuple([np.clip(x, 0, 1) for x in xs])  # noqa: E731

# primitive: (function, operands, ulps, ordinary operands)
_ROUNDED: dict[Any, tuple] = {
    "core.neg": (np.negative, 1), "core.sign": (_sign, 1, 2), "core.floor": (np.floor, 1),
    "core.ceil": (np.ceil, 1), "core.round_even": (np.rint, 1),
    "core.round_away": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), 1),
    "core.abs": (np.abs, 1, 1), "core.mul": (np.multiply, 2), "core.add": (np.add, 2),
    "core.rem": (_rem, 2), "core.maximum": (greater, 2),
    "core.minimum": (lesser, 2), "core.conj": (np.conj, 1),
    "core.sub": (np.subtract, 2), "core.exp": (np.exp, 1, 2), "core.expm1": (_expm1, 1, 3),
    "core.log": (np.log, 1, 2, _positive), "core.log1p": (np.log1p, 1, 3, _positive),
    "core.sin": (np.sin, 1, 8), "core.cos": (np.cos, 1, 8), "core.tan": (_tan, 1, 3),
    "core.asin": (np.arcsin, 1, 3, _inside), "core.acos": (np.arccos, 1, 3, _inside),
    "core.atan": (np.arctan, 1, 3), "core.sinh": (np.sinh, 1, 6), "core.cosh": (np.cosh, 1, 4),
    "core.tanh": (_tanh, 1, 3), "core.asinh": (np.arcsinh, 1, 3),
    "core.acosh": (np.arccosh, 1, 3, _above_one), "core.atanh": (np.arctanh, 1, 3, _inside),
    "core.sqrt": (np.sqrt, 1, 3, _positive),
    "core.cbrt": (np.cbrt, 1, 3),
    "core.erf": (of_scipy("erf"), 1, 3), "core.erfc": (of_scipy("erfc"), 1, 4),
    "core.erf_inv": (_erf_inv, 1, 4, _inside),
    "core.relu": (lambda x: np.maximum(x, 0), 1),
    "core.clamp": (_clamp, 3),
    "core.stop": (np.array, 1), "core.once": (np.array, 1),
}  # fmt: skip
_BARE: dict[Any, tuple] = {
    "core.is_finite": (np.isfinite, 1), "core.real": (np.real, 1), "core.imag": (np.imag, 1),
    "core.eq": (np.equal, 2), "core.ne": (np.not_equal, 2), "core.lt": (np.less, 2),
    "core.le": (np.less_equal, 2), "core.gt": (np.greater, 2), "core.ge": (np.greater_equal, 2),
    "core.complex": (_complex, 2), "core.nextafter": (_nextafter, 2),
}  # fmt: skip
_INTEGERS: dict[Any, tuple] = {
    "core.and": (lambda a, b, bits: a & b, 2), "core.or": (lambda a, b, bits: a | b, 2),
    "core.xor": (lambda a, b, bits: a ^ b, 2), "core.not": (lambda a, bits: ~a, 1),
    "core.shift_left": (lambda a, b, bits: a << b if 0 <= b < bits else 0, 2),
    "core.shift_right_arithmetic": (
        lambda a, b, bits: (a - 2**bits if a >= 2 ** (bits - 1) else a)
        >> (b if 0 <= b < bits else bits), 2),
    "core.shift_right_logical": (
        lambda a, b, bits: a % 2**bits >> b if 0 <= b < bits else 0, 2),
    "core.population_count": (lambda a, bits: (a % 2**bits).bit_count(), 1),
    "core.clz": (lambda a, bits: bits - (a % 2**bits).bit_length(), 1),
}  # fmt: skip


_RARE: dict[Any, Reference] = {
    "core.pow": Reference(
        rounded(np.power),
        elementwise(2, lift=_positive, complexes=[0, 1 + 1j, -1.5 + 0.25j, 0.25 - 1.5j, 2, 9 + 1j]),
        12,
    ),
    "core.atan2": Reference(
        rounded(_atan2),
        elementwise(2, complexes=[1 + 1j, -1.5 + 0.25j, 0.25 - 1.5j, 0.5 + 3j]),
        4,
    ),
    "core.div": Reference(rounded(_div), elementwise(2), 2, zeros=False),
    "core.rsqrt": Reference(
        rounded(_rsqrt),
        elementwise(1, lift=_positive, without=_FEW),
        3,
        zeros=False,
    ),
    "core.logistic": Reference(rounded(_logistic), elementwise(1, without=_FEW), 3, zeros=False),
    "core.lgamma": Reference(rounded(_lgamma), elementwise(1, without=_FEW), 32, least=1.0),
    "core.digamma": Reference(
        rounded(of_scipy("digamma")), elementwise(1, without=_FEW), 32, least=1.0
    ),
    "core.integer_pow": Reference(_power, _powers, 2),
    "core.reduce_precision": Reference(_precision, _precisions),
    "core.select": Reference(np.where, _choices),
}


def _padded(rest: list[Any]) -> tuple[Any, Any]:
    ulps, lift = [*rest, *(0, None)[len(rest) :]]
    return ulps, lift


def _made(wrap: Callable, rows: dict[Any, tuple]) -> dict[Any, Reference]:
    out = {}
    for prim, (f, count, *rest) in rows.items():
        ulps, lift = _padded(rest)
        without = (_ALIKE if prim in _NARROW else _FEW) if ulps else "uint32"
        shapes = ((),) if ulps else ((0, 2), ())
        out[prim] = Reference(
            wrap(f), elementwise(count, lift=lift, without=without, shapes=shapes), ulps
        )
    return out


REFERENCES = {
    **_RARE, **_made(rounded, _ROUNDED), **_made(_bare, _BARE), **_made(_by_integers, _INTEGERS),
}  # fmt: skip
"""The Reference of each primitive of the family."""
