"""Comparison, truth, bits, and predicates of values, element by element.

Invariant: predicates return booleans; complex numbers are ordered by real part, then by imaginary
part, as numpy orders them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from plait.errors import DimMismatch, NotAnArrayError, OperandTypeError, TypeRule
from plait.ext import Aval, Literal
from plait.ext.ir import Primitive
from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import all_, truth
from plait.ext.ops.shape import convert, fill
from plait.ext.surface import beside, binary, fused, overridden, unary, value
from plait.ext.trace import Value
from plait.ext.types import BOOL, COMPLEX, INTEGER, OPAQUE, broadcast_shapes, category, float0
from plait.typing import Array, ArrayLike

from . import masking
from .creation import asarray
from .masking import masked, unwritten
from .samples import shown

__all__ = [
    "allclose", "array_equal", "array_equiv", "bitwise_and", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "equal", "greater", "greater_equal", "invert", "isclose", "iscomplex", "iscomplexobj",
    "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar",
    "left_shift", "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor",
    "not_equal", "right_shift",
]  # fmt: skip

_TWO = (
    "{}\n\nx1, x2: {}; shapes broadcast, the result is boolean.  As numpy.{}.\n\n"
    "Raises NotAnArrayError if an operand is not an array, DimMismatch if shapes do not broadcast."
)
_BITS = (
    "{}\n\nx1, x2: integers or booleans; shapes broadcast.  As numpy.{}.\n\n"
    "Raises NotAnArrayError if an operand is not an array, DimMismatch if shapes do not\n"
    "broadcast, and OperandTypeError for other numbers."
)


def _comparison(name: str, prim: Primitive, doc: str) -> Callable[[ArrayLike, ArrayLike], Array]:
    text = _TWO.format(doc, "any dtypes, which are promoted", name) + shown(name)
    return binary(name, prim, text)


def _ordering(name: str, ordering: Callable, doc: str) -> Callable[[ArrayLike, ArrayLike], Array]:
    """Return a comparison that orders complex operands by real part, then by imaginary part."""

    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        try:
            return ordering(x1, x2)
        except NotAnArrayError as e:
            out = overridden(e, function, (x1, x2), {})
            if out is NotImplemented:
                raise
            return out

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _TWO.format(doc, "any dtypes, which are promoted", name) + shown(name)
    return function


equal = _comparison("equal", el.eq, "x1 == x2.")
not_equal = _comparison("not_equal", el.ne, "x1 != x2.")
less = _ordering("less", el.less, "x1 < x2.")
less_equal = _ordering("less_equal", el.less_equal, "x1 <= x2.")
greater = _ordering("greater", el.greater, "x1 > x2.")
greater_equal = _ordering("greater_equal", el.greater_equal, "x1 >= x2.")


# ---- truth ---------------------------------------------------------------------------------


def _logical(name: str, prim: Primitive, doc: str) -> masking.OfTwo[Array]:
    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return prim(truth(x1), truth(x2))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _TWO.format(doc, "any dtypes; what is not zero is true", name) + shown(name)
    return masked(function)


logical_and = _logical("logical_and", el.and_, "Whether both are true.")
logical_or = _logical("logical_or", el.or_, "Whether one is true.")
logical_xor = _logical("logical_xor", el.xor, "Whether exactly one is true.")


def logical_not(x: ArrayLike, /) -> Array:
    """Return whether elements are zero.

    x: any shape and dtype; the result is boolean.  As numpy.logical_not.

    Raises NotAnArrayError if `x` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.logical_not(np.array([0, 5])).tolist()
    [True, False]
    """
    x = value(x)
    if x.aval.dtype in (BOOL, float0):
        return el.not_(truth(x))
    return el.eq(x, Literal(0, x.aval))


# ---- bits ----------------------------------------------------------------------------------


def _bits(doc: str, name: str) -> str:
    return _BITS.format(doc, name) + shown(name)


bitwise_and = masking.binary("bitwise_and", el.and_, _bits("Bits of both.", "bitwise_and"))
bitwise_or = masking.binary("bitwise_or", el.or_, _bits("Bits of either.", "bitwise_or"))
bitwise_xor = masking.binary("bitwise_xor", el.xor, _bits("Bits of one only.", "bitwise_xor"))
invert = bitwise_not = bitwise_invert = unary(
    "invert",
    el.not_,
    "All bits inverted.\n\nx: integers or booleans, any shape.  As numpy.invert.\n\n"
    "Raises NotAnArrayError if `x` is not an array, and OperandTypeError for other numbers."
    + shown("invert"),
)
left_shift = bitwise_left_shift = binary(
    "left_shift",
    el.shift_left,
    _bits("x1 moved up by x2 bits; 0 if by all of them.", "left_shift"),
)


def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Shift x1 down by x2 bits, keeping the sign.

    x1, x2: integers; shapes broadcast.  As numpy.right_shift.

    Raises NotAnArrayError if an operand is not an array, DimMismatch if shapes do not broadcast,
    and OperandTypeError for booleans, floats and complex numbers.

    >>> import plait
    >>> int(plait.numpy.right_shift(20, 2))
    5
    """
    a, b = el.promoted((x1, x2))
    unsigned = a.aval.dtype.name.startswith("uint")
    return (el.shift_right_logical if unsigned else el.shift_right_arithmetic).bind(a, b)


bitwise_right_shift = right_shift


@fused
def bitwise_count(x: ArrayLike) -> Array:
    """Return the number of bits set in |x|, as uint8.

    x: integers, any shape.  Raises TypeRule for operands that are not integers.  As
    numpy.bitwise_count.

    >>> import numpy as np, plait
    >>> plait.numpy.bitwise_count(np.array([3, 255])).tolist()
    [2, 8]
    """
    x = value(x)
    if x.aval.category != INTEGER:
        raise OperandTypeError(
            f"bitwise_count is for integers, not {x.aval!r}", fix="use .astype(int)"
        )
    return convert(el.population_count(el.abs_(x)), np.uint8)


# ---- questions -----------------------------------------------------------------------------


def _answer(x: Value, yes: bool) -> Any:
    if x.aval.dtype == float0:
        truth(x)  # raises
    return beside(fill(yes, Aval(x.aval.shape, BOOL)), x)


def _either_part(question: Callable, join: Primitive) -> Callable:
    """Return a predicate that holds if it holds for either part of a complex number."""
    return lambda x: join(question(el.real(x)), question(el.imag(x)))


def isnan(x: ArrayLike, /) -> Array:
    """Return whether elements are nan.

    x: any shape and dtype; the result is boolean.  As numpy.isnan.

    Raises NotAnArrayError if `x` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.isnan(np.array([np.nan, 1.0])).tolist()
    [True, False]
    """
    x = value(x)
    return el.ne.bind(x, x) if x.aval.inexact else _answer(x, False)


def _finite(x: Value) -> Any:
    if x.aval.category == COMPLEX:
        return _either_part(el.is_finite, el.and_)(x)
    return el.is_finite(x) if x.aval.inexact else _answer(x, True)


isfinite = unary(
    "isfinite",
    el.is_finite,
    "Whether it is neither infinite nor nan.\n\n"
    "x: any shape and dtype; the result is boolean.  As numpy.isfinite.\n\n"
    f"Raises NotAnArrayError if `x` is not an array.{shown('isfinite')}",
    _finite,
)


@fused
def isinf(x: ArrayLike) -> Array:
    """Return whether elements are infinite.

    x: any shape and dtype; the result is boolean.  As numpy.isinf.

    Raises NotAnArrayError if `x` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.isinf(np.array([np.inf, 1.0])).tolist()
    [True, False]
    """
    x = value(x)
    if x.aval.category == COMPLEX:
        return _either_part(isinf, el.or_)(x)
    return el.eq(el.abs_(x), np.inf) if x.aval.inexact else _answer(x, False)


def _is_infinite(x: object, end: float) -> Any:
    x = value(x)
    if x.aval.category == COMPLEX:
        raise OperandTypeError(
            f"complex numbers have no sign, as those of {x.aval!r}", fix="use isinf"
        )
    return el.eq(x, end) if x.aval.inexact else _answer(x, False)


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Return whether elements are inf.

    x: real, any shape; the result is boolean; out: must be None.  Raises TypeRule for complex
    numbers.  As numpy.isposinf.

    >>> import numpy as np, plait
    >>> plait.numpy.isposinf(np.array([-np.inf, np.inf])).tolist()
    [False, True]
    """
    unwritten(out)
    return _is_infinite(x, np.inf)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Return whether elements are -inf.

    x: real, any shape; the result is boolean; out: must be None.  Raises TypeRule for complex
    numbers.  As numpy.isneginf.

    >>> import numpy as np, plait
    >>> plait.numpy.isneginf(np.array([-np.inf, np.inf])).tolist()
    [True, False]
    """
    unwritten(out)
    return _is_infinite(x, -np.inf)


def isreal(x: ArrayLike) -> Array:
    """Return whether the imaginary part is zero.

    x: any shape and dtype; the result is boolean.  As numpy.isreal.

    Raises NotAnArrayError if `x` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.isreal(np.array([1.0, 1j])).tolist()
    [True, False]
    """
    x = value(x)
    return el.eq(el.imag(x), 0) if x.aval.category == COMPLEX else _answer(x, True)


def iscomplex(x: ArrayLike) -> Array:
    """Return whether the imaginary part is not zero.

    x: any shape and dtype; the result is boolean.  As numpy.iscomplex.

    Raises NotAnArrayError if `x` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.iscomplex(np.array([1.0, 1j])).tolist()
    [False, True]
    """
    x = value(x)
    return el.ne(el.imag(x), 0) if x.aval.category == COMPLEX else _answer(x, False)


def _read(x: Any) -> Any:
    return asarray(x) if isinstance(x, list | tuple) else value(x)


def iscomplexobj(x: ArrayLike) -> bool:
    """Return whether an array (or scalar, or the type of one) has a complex dtype; False for None.

    As numpy.iscomplexobj.

    Raises NotAnArrayError if `x` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.iscomplexobj(np.array([1j]))
    True
    """
    if x is None:
        return False
    dtype = getattr(x, "dtype", None)  # types have no values, but a dtype
    return category(_read(x).aval.dtype if dtype is None else dtype) == COMPLEX


def isrealobj(x: ArrayLike) -> bool:
    """Return whether an array (or scalar) has a dtype that is not complex.  As numpy.isrealobj.

    Raises NotAnArrayError if `x` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.isrealobj(np.array([1j]))
    False
    """
    return not iscomplexobj(x)


# ---- closeness -----------------------------------------------------------------------------


@fused(numbers=("rtol", "atol"))
def _close(a: Any, b: Any, rtol: Any, atol: Any, *, equal_nan: bool) -> Any:
    a, b = value(a), value(b)
    if not (a.aval.inexact or b.aval.inexact):  # at once: a weak -1 is not 255 beside uint8
        a, b = convert(a, np.float64), convert(b, np.float64)
    a, b = el.promoted((a, b))
    ok = el.le(el.abs_(el.sub(a, b)), _room(b, rtol, atol))
    ok = el.or_(el.and_(ok, _finite(b)), el.eq(a, b))
    both = el.and_(isnan(a), isnan(b)) if equal_nan else False
    return el.or_(ok, both)


def _room(b: Value, rtol: float, atol: float) -> Any:
    size = el.abs_(b)
    return el.add(convert(atol, size.aval.dtype), el.mul(convert(rtol, size.aval.dtype), size))


def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:  # fmt: skip
    """Return whether |a - b| <= atol + rtol * |b|; infinities are close to themselves only.

    Args:
      a, b: any dtypes; shapes broadcast.
      rtol, atol: tolerances.
      equal_nan: whether nan is close to nan.

    Returns booleans.  As numpy.isclose.

    Raises NotAnArrayError if an operand is not an array, and DimMismatch if shapes do not
    broadcast.

    >>> import numpy as np, plait
    >>> plait.numpy.isclose(np.array([1.0, 1.1]), 1.0).tolist()
    [True, False]
    """
    if OPAQUE in (value(a).aval.category, value(b).aval.category):
        return el.eq(a, b)  # keys have no distance
    return _close(a, b, rtol, atol, equal_nan=bool(equal_nan))


def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:  # fmt: skip
    """Return whether all elements are close, as a boolean array without axes; see `isclose`.

    As numpy.allclose.

    Raises NotAnArrayError if an operand is not an array, and DimMismatch if shapes do not
    broadcast.

    >>> import numpy as np, plait
    >>> bool(plait.numpy.allclose(np.array([1.0]), np.array([1.0 + 1e-9])))
    True
    """
    return all_(isclose(a, b, rtol, atol, equal_nan))


@fused
def _all_equal(a: Value, b: Value, *, equal_nan: bool) -> Any:
    same = el.eq(a, b)
    return all_(el.or_(same, el.and_(isnan(a), isnan(b))) if equal_nan else same)


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Return whether shapes and all elements are equal, as a boolean array without axes.

    Args:
      a1, a2: any shapes and dtypes; lists are read as arrays.
      equal_nan: whether nan equals nan.

    As numpy.array_equal.

    Raises TypeRule if an operand is not an array, and does not make one.

    >>> import numpy as np, plait
    >>> bool(plait.numpy.array_equal(np.array([1, 2]), np.array([1, 2, 3])))
    False
    """
    a, b = _read(a1), _read(a2)
    if a.aval.shape != b.aval.shape:
        return fill(False, Aval((), BOOL))
    return _all_equal(a, b, equal_nan=bool(equal_nan))


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return whether all elements are equal after broadcasting; False if shapes do not broadcast.

    a1, a2: any shapes and dtypes; lists are read as arrays.  The result is boolean, without axes.
    As numpy.array_equiv.

    Raises TypeRule if an operand is not an array, and does not make one.

    >>> import numpy as np, plait
    >>> bool(plait.numpy.array_equiv(np.array([1, 1]), np.array(1)))
    True
    """
    a, b = _read(a1), _read(a2)
    try:
        broadcast_shapes([a.aval.shape, b.aval.shape])
    except DimMismatch:
        return fill(False, Aval((), BOOL))
    return _all_equal(a, b, equal_nan=False)


def isscalar(element: object) -> bool:
    """Return whether `element` is a number or an array without axes, or converts to one.

    As in jax.numpy; numpy.isscalar returns False for its own arrays.

    >>> import plait
    >>> plait.numpy.isscalar(2.0), plait.numpy.isscalar("text")
    (True, False)
    """
    try:
        return value(element).aval.ndim == 0
    except TypeRule:
        return False
