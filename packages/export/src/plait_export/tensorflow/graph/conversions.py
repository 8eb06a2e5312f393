"""Changes of element types: conversions, bitcasts, reduced precision.

Invariant: floats outside the range of an integer type become the nearest integer of the type, and
nan becomes 0, as in XLA.
"""

from typing import Any

from ..library import tf
from .table import graphs


@graphs("stablehlo.convert", elements=True)
def _(walk: object, op, xs):
    return converted(xs[0], tf.as_dtype(op.types[0].dtype))


def converted(x: Any, dtype: Any) -> Any:
    """Return a tensor converted to another dtype."""
    if x.dtype == dtype:
        return x
    if x.dtype.is_complex and not dtype.is_complex:
        x = tf.math.real(x)
    if dtype == tf.bool:
        return tf.not_equal(x, tf.zeros((), x.dtype))
    if x.dtype.is_floating and dtype.is_integer:
        return _saturated(x, dtype)
    return tf.cast(x, dtype)


def _saturated(x: Any, dtype: Any) -> Any:
    if x.dtype.size < 4:
        x = tf.cast(x, tf.float32)
    low, above = tf.constant(float(dtype.min), x.dtype), tf.constant(float(dtype.max + 1), x.dtype)
    under, over = tf.less(x, low), tf.greater_equal(x, above)
    inside = tf.logical_not(tf.logical_or(tf.logical_or(under, over), tf.math.is_nan(x)))
    found = tf.cast(tf.where(inside, x, tf.zeros_like(x)), dtype)
    found = tf.where(over, tf.constant(dtype.max, dtype), found)
    return tf.where(under, tf.constant(dtype.min, dtype), found)


@graphs("stablehlo.bitcast_convert", elements=True)
def _(walk: object, op, xs):
    dtype = tf.as_dtype(op.types[0].dtype)
    return xs[0] if xs[0].dtype == dtype else tf.bitcast(xs[0], dtype)


@graphs("stablehlo.reduce_precision", elements=True)
def _(walk: object, op, xs):
    at = op.attributes
    return reduced(xs[0], at["exponent_bits"], at["mantissa_bits"])


_LAYOUT = {"float32": (8, 23), "float64": (11, 52), "float16": (5, 10), "bfloat16": (8, 7)}


def reduced(x: Any, exponent: int, mantissa: int) -> Any:
    """Round floats to fewer bits, to even.

    Numbers that are too great become infinite, those that are too small become zero.  The
    derivative is 1 where the result is finite.
    """
    have = _LAYOUT[x.dtype.name]
    if exponent >= have[0] and mantissa >= have[1]:
        return tf.identity(x)
    still = tf.stop_gradient(x)
    small = _rounded(still, have, exponent, mantissa)
    fine = tf.math.is_finite(small)
    return tf.where(fine, x + tf.stop_gradient(tf.where(fine, small - x, 0)), small)


def _rounded(x: Any, have: tuple[int, int], exponent: int, mantissa: int) -> Any:
    bits = tf.bitcast(x, f"uint{8 * x.dtype.size}")
    number = lambda n: tf.constant(n, bits.dtype)  # noqa: E731
    both, shift = tf.bitwise.bitwise_and, tf.bitwise.right_shift
    sign = both(bits, number(1 << (sum(have))))
    rest = both(bits, number((1 << sum(have)) - 1))
    drop = have[1] - mantissa
    if drop > 0:
        odd = both(shift(rest, number(drop)), number(1))
        rest = rest + number((1 << (drop - 1)) - 1) + odd
        rest = both(rest, number(((1 << sum(have)) - 1) ^ ((1 << drop) - 1)))
    if exponent < have[0]:
        middle, half = (1 << (have[0] - 1)) - 1, (1 << (exponent - 1)) - 1
        field = shift(rest, number(have[1]))
        infinite = number(((1 << have[0]) - 1) << have[1])
        rest = tf.where(tf.greater(field, number(middle + half)), infinite, rest)
        rest = tf.where(tf.less_equal(field, number(middle - half - 1)), number(0), rest)
    found = tf.bitcast(tf.bitwise.bitwise_or(sign, rest), x.dtype)
    return tf.where(tf.math.is_nan(x), x, found)
