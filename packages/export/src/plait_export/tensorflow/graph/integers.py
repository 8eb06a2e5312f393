"""Integer operations that TensorFlow has for some widths only, or leaves undefined.

Invariant: results are those of StableHLO for all operands: overflow wraps around, and division by
zero has the result that StableHLO specifies.
"""

from collections.abc import Callable
from typing import Any

from ..library import tf

_SIGNED = {"uint8": "int8", "uint16": "int16", "uint32": "int32", "uint64": "int64"}
_UNSIGNED = {s: u for u, s in _SIGNED.items()}


def width(x: Any) -> int:
    """Return the number of bits of an element."""
    return 8 * x.dtype.size


def signed(x: Any) -> Any:
    """Return the same bits as signed integers."""
    name = x.dtype.name
    return tf.bitcast(x, _SIGNED[name]) if name in _SIGNED else x


def unsigned(x: Any) -> Any:
    """Return the same bits as unsigned integers."""
    name = x.dtype.name
    return tf.bitcast(x, _UNSIGNED[name]) if name in _UNSIGNED else x


def same(x: Any, like: Any) -> Any:
    """Return the same bits in the dtype of another value."""
    return x if x.dtype == like.dtype else tf.bitcast(x, like.dtype)


def wide(f: Callable, *xs: Any) -> Any:
    """Apply a function to 64-bit integers, and return the low bits in the operands' dtype."""
    dtype = xs[0].dtype
    if dtype.size == 8:
        return same(f(*map(signed, xs)), xs[0])
    return tf.cast(f(*[tf.cast(x, tf.int64) for x in xs]), dtype)


def number(n: int, like: Any) -> Any:
    """Return a number in the dtype of another value."""
    return tf.constant(n, like.dtype)


def divided(x: Any, y: Any) -> Any:
    """Return quotients, rounded towards zero.

    Division by 0 gives all bits set; the least integer divided by -1 is itself.
    """
    nothing = tf.equal(y, number(0, y))
    special = nothing
    negative = x.dtype.name in _UNSIGNED
    if negative:
        special = tf.logical_or(nothing, tf.equal(y, number(-1, y)))
    plain = tf.raw_ops.TruncateDiv(x=x, y=tf.where(special, number(1, y), y))
    if negative:
        plain = tf.where(special, -x, plain)
    every = number(-1, x) if negative else number(x.dtype.max, x)
    return tf.where(nothing, every, plain)


def remainder(x: Any, y: Any) -> Any:
    """Return remainders with the sign of x; the remainder of a division by 0 is x."""
    nothing = tf.equal(y, number(0, y))
    return tf.where(nothing, x, x - divided(x, y) * y)


def power(x: Any, y: Any) -> Any:
    """Return powers by squaring; a negative exponent gives 1 / x ** -y, rounded towards zero."""
    one, zero = number(1, x), number(0, x)
    found, square, left = tf.ones_like(x + y), x, unsigned(y)
    for _ in range(width(x)):
        odd = tf.equal(tf.bitwise.bitwise_and(left, number(1, left)), number(1, left))
        found = tf.where(odd, found * square, found)
        square = square * square
        left = tf.bitwise.right_shift(left, number(1, left))
    if x.dtype.name not in _UNSIGNED:
        return found
    even = tf.equal(tf.bitwise.bitwise_and(y, one), zero)
    of_minus_one = tf.where(even, one, -one)
    below = tf.where(tf.equal(x, one), one, tf.where(tf.equal(x, -one), of_minus_one, zero))
    return tf.where(tf.less(y, zero), below, found)


def leading_zeros(x: Any) -> Any:
    """Return the number of zero bits above the highest set bit."""
    bits = unsigned(x)
    step = 1
    while step < width(x):
        shifted = tf.bitwise.right_shift(bits, number(step, bits))
        bits, step = tf.bitwise.bitwise_or(bits, shifted), 2 * step
    ones = tf.cast(tf.raw_ops.PopulationCount(x=bits), x.dtype)
    return number(width(x), x) - ones


def shifted(x: Any, n: Any, how: str) -> Any:
    """Shift bits "left", or right with zeros ("logical") or with the sign ("arithmetic").

    A shift by the width or more gives 0, or the sign in every bit for "arithmetic".
    """
    bits = signed(x) if how == "arithmetic" else unsigned(x)
    count = unsigned(n)
    far = tf.greater_equal(count, number(width(x), count))
    last = number(width(x) - 1, count)
    near = same(tf.where(far, last if how == "arithmetic" else number(0, count), count), bits)
    move = tf.bitwise.left_shift if how == "left" else tf.bitwise.right_shift
    found = move(bits, near)
    if how != "arithmetic":
        found = tf.where(far, number(0, bits), found)
    return same(found, x)
