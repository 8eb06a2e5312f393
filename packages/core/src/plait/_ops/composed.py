"""Functions of elements that are composed of elementwise primitives: powers, divisions, orderings.

Invariant: a function here prepares its operands, and binds primitives of `elementwise`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._base.errors import OperandTypeError
from .._core.array import Literal, as_value
from .._core.interpreter import Value
from .._core.primitive import Primitive
from .._types.avals import BOOL, BOOLEAN, COMPLEX, FLOATING, INTEGER, default_dtype
from ..typing import Array as AnyArray
from ..typing import ArrayLike
from .elementwise import (
    add,
    and_,
    comparable,
    div,
    eq,
    floating,
    ge,
    gt,
    imag,
    integer_pow,
    is_finite,
    le,
    lt,
    mul,
    ne,
    neg,
    or_,
    pow_,
    promoted,
    real,
    rem,
    round_even,
    select,
    shift_right_logical,
    stop,
    sub,
)
from .shape import convert

__all__ = [
    "floor_divide", "fmod", "greater", "greater_equal", "less", "less_equal", "LGAMMA_SERIES",
    "modulo", "power", "square", "true_divide",
]  # fmt: skip

LGAMMA_SERIES = (
    0.42278433509846713, 0.3224670334241132, -0.0673523010531981, 0.020580808427784546,
    -0.007385551028673986, 0.0028905103307415234, -0.001192753911703261, 0.0005096695247430425,
    -0.00022315475845357939, 9.945751278180853e-05, -4.492623673813314e-05, 2.050721277567069e-05,
    -9.439488275268397e-06, 4.374866789907488e-06, -2.039215753801366e-06, 9.55141213040742e-07,
    -4.492469198764566e-07, 2.1207184805554665e-07, -1.0043224823968099e-07,
    4.7698101693639804e-08, -2.2711094608943164e-08, 1.0838659214896955e-08,
    -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09,
    5.731367241678862e-10, -2.7595228851242334e-10,
)  # fmt: skip
"""The coefficients of t, t ** 2, ... in lgamma(2 + t): 1 less Euler's constant, then
(-1) ** k (zeta(k) - 1) / k (DLMF 5.7.3)."""


def square(x: AnyArray) -> Any:
    """Return x * x."""
    return integer_pow(x, exponent=2)


def power(x: ArrayLike, y: ArrayLike) -> AnyArray:
    """Return x ** y as in Python and numpy.

    Fixed integer powers are repeated multiplication, and integer powers of integers stay integers.

    x, y: numbers; shapes broadcast, dtypes are promoted.  Raises TypeRule for integers to a power
    that is known to be negative.  In an array of exponents, a negative one gives 1 / x ** -y
    truncated to an integer: 1 or -1 if x is, else 0.

    Raises NotAnArrayError if an operand is not an array, and DimMismatch if shapes do not
    broadcast.

    >>> import plait
    >>> plait.numpy.power(2, 3).item()
    8
    """
    if y.__class__ is int or (isinstance(y, np.integer) and not isinstance(x, np.ndarray)):
        v, y = as_value(x), int(y)  # type: ignore[arg-type]
        if v.aval.dtype == BOOL:
            v = convert(v, default_dtype(INTEGER))
        if v.aval.inexact or y >= 0:
            return integer_pow(v, exponent=y)
        raise OperandTypeError(
            f"integers cannot be raised to the negative power {y}",
            fix="convert to a floating dtype first",
        )
    a, b = promoted((x, y))
    if a.aval.inexact:
        return pow_(x, y)
    if a.aval.category == BOOLEAN:
        a, b = (convert(v, default_dtype(INTEGER)) for v in (a, b))
    return _integers_to_integers(a, b)


def _integers_to_integers(x: Value, y: Value) -> Any:
    """Multiply squares over the bits of the exponent; truncate 1 / x ** -y for negative ones."""
    bits = x.aval.dtype.itemsize * 8 - (x.aval.dtype.kind == "i")
    one = Literal(1, x.aval)
    out, base = one, x
    for k in range(bits if x.aval.dtype != BOOL else 1):
        bit = and_(shift_right_logical(y, Literal(k, y.aval)), Literal(1, y.aval))
        out = mul(out, select(eq(bit, 1), x, one))
        x = mul(x, x)
    unsigned = y.aval.dtype == BOOL or "uint" in y.aval.dtype.name
    if unsigned:
        return out
    # The low bit of n decides the sign of (-1) ** n, also for negative n, so 1 and -1 are right.
    lost = and_(lt(y, 0), and_(ne(base, 1), ne(base, -1)))
    return select(lost, Literal(0, x.aval), out)


def _ordering(strict: Primitive, prim: Primitive) -> Callable:
    """Extend `prim` to complex numbers: by real part; where these are equal, by imaginary part."""

    def function(x: object, y: object, /) -> Any:
        a, b = comparable((x, y))
        if a.aval.category != COMPLEX:
            return prim(a, b)
        (ar, ai), (br, bi) = [(real(v), imag(v)) for v in (a, b)]
        return or_(strict(ar, br), and_(eq(ar, br), prim(ai, bi)))

    return function


less, less_equal = _ordering(lt, lt), _ordering(lt, le)
greater, greater_equal = _ordering(gt, gt), _ordering(gt, ge)


def true_divide(x: object, y: object) -> Any:
    """Return x / y, as floats."""
    return div.bind(*floating((x, y)))


def floor_divide(x: ArrayLike, y: ArrayLike) -> AnyArray:
    """Return the greatest integer not above x / y; 0 for integers by zero.

    x, y: real; shapes broadcast, dtypes are promoted.

    Raises NotAnArrayError if an operand is not an array, DimMismatch if shapes do not broadcast,
    and OperandTypeError for booleans and complex numbers.

    >>> import plait
    >>> plait.numpy.floor_divide(7, 2).item()
    3
    """
    a, b = promoted((x, y))
    if a.aval.inexact:
        q = div.bind(a, b)
        r = rem.bind(a, b)
        # (x - r) / y divides evenly; x / y alone may round up to the next integer.
        exact = div.bind(sub.bind(a, r), b)
        down = and_(ne(r, 0), ne(lt(r, 0), lt(b, 0)))
        whole = select(down, sub(exact, 1), exact)
        whole = select(eq(whole, 0), mul(q, 0), whole)  # a zero has the sign of the quotient
        # For infinite operands return the quotient: (-1) // inf is -0, as the array API defines it.
        return select(and_(is_finite(q), is_finite(b)), round_even(whole), q)
    q, r = div.bind(a, b), rem.bind(a, b)
    if a.aval.dtype.kind == "u":
        return _by_nonzero(q, b)
    return _by_nonzero(select(and_(ne(r, 0), ne(lt(r, 0), lt(b, 0))), sub(q, 1), q), b)


def _by_nonzero(out: Value, y: Any) -> Any:
    """Return the quotient of integers, and 0 for division by zero, as numpy does.

    The hardware's result of a division by zero is undefined.
    """
    if y.__class__ is Literal and y.value:
        return out
    return select(eq(y, 0), Literal(0, out.aval), out)


def modulo(x: object, y: object) -> Any:
    """Return the remainder of floor division: its sign is that of y, also of zeros.

    It is 0 for integers by zero.
    """
    a, b = promoted((x, y))
    r = rem.bind(a, b)
    if not a.aval.inexact:
        r = _by_nonzero(r, b)
    if a.aval.dtype.kind == "u":
        return r
    some, down = ne(r, 0), lt(b, 0)
    out = select(and_(some, ne(lt(r, 0), down)), add.bind(r, b), r)
    if a.aval.category != FLOATING:
        return out
    zero = select(down, neg(sub(stop(r), r)), sub(r, stop(r)))  # 0, with the derivative of r
    return select(some, out, zero)


def fmod(x: object, y: ArrayLike | None) -> Any:
    """Return the remainder of division towards zero, with the sign of x; 0 for integers by zero."""
    a, b = promoted((x, y))
    r = rem.bind(a, b)
    return r if a.aval.inexact else _by_nonzero(r, b)
