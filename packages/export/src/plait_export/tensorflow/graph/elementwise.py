"""Elementwise operations.

Invariant: nan propagates as in StableHLO; operands may be broadcast.
"""

from collections.abc import Callable
from typing import Any

from ...reader.table import enum
from ..library import tf
from . import integers
from .table import graphs


def _is_integer(x: Any) -> bool:
    return x.dtype.is_integer


def _rule(name: str, f: Callable) -> None:
    @graphs(f"stablehlo.{name}", elements=True)
    def _(walk: object, op: object, xs):
        return f(*xs)


def _logic(of_flags: Callable, of_bits: Callable) -> Callable:
    return lambda *xs: of_flags(*xs) if xs[0].dtype == tf.bool else of_bits(*xs)


def _or(x: Any, y: Any) -> Any:
    return tf.logical_or(x, y)


def _and(x: Any, y: Any) -> Any:
    return tf.logical_and(x, y)


def _absolute(x: Any) -> Any:
    return x if x.dtype.is_unsigned else tf.abs(x)


def _negated(x: Any) -> Any:
    if not x.dtype.is_unsigned:
        return tf.negative(x)
    # TensorFlow would rewrite 0 - x to a negation, which it has for signed numbers only.
    return tf.bitwise.invert(x) + tf.constant(1, x.dtype)


def _sign(x: Any) -> Any:
    return tf.cast(tf.not_equal(x, 0), x.dtype) if x.dtype.is_unsigned else tf.sign(x)


def _quotient(x: Any, y: Any) -> Any:
    return integers.divided(x, y) if _is_integer(x) else tf.divide(x, y)


def _remainder(x: Any, y: Any) -> Any:
    if _is_integer(x):
        return integers.remainder(x, y)
    if x.dtype.size < 4:
        wide = _remainder(tf.cast(x, tf.float32), tf.cast(y, tf.float32))
        return tf.cast(wide, x.dtype)
    plain = tf.stop_gradient(tf.raw_ops.TruncateMod(x=x, y=y))
    whole = tf.stop_gradient(_finite(tf.divide(x, y)))
    whole = tf.where(tf.less(whole, 0), tf.math.ceil(whole), tf.floor(whole))
    # TensorFlow has no derivative for TruncateMod.  It is 1 with respect to x, and minus the
    # truncated quotient with respect to y.
    return plain - _still(-x) - tf.abs(whole) * _still(tf.sign(whole) * y)


def _finite(x: Any) -> Any:
    return tf.where(tf.math.is_finite(x), x, tf.zeros_like(x))


def _still(x: Any) -> Any:
    """Return 0 with the derivative of x.

    The zero is never -0, so that subtracting it changes nothing.
    """
    x = _finite(x)
    return x - tf.stop_gradient(x)


def _power(x: Any, y: Any) -> Any:
    return integers.power(x, y) if _is_integer(x) else tf.pow(x, y)


def _cube_root(x: Any) -> Any:
    """Return cube roots: a power, refined by one step of Newton's method.

    0, infinities and nan are returned unchanged.
    """
    third = tf.sign(x) * tf.pow(tf.abs(x), tf.constant(1 / 3, x.dtype))
    plain = tf.logical_and(tf.math.is_finite(x), tf.not_equal(x, 0))
    safe = tf.where(plain, third, tf.ones_like(x))
    return tf.where(plain, safe - (safe - x / safe / safe) / 3, x)


def _away(x: Any) -> Any:
    """Round to integers, with halves away from zero; the sign of zero is kept."""
    whole = tf.where(tf.less(x, 0), tf.math.ceil(x), tf.floor(x))
    further = tf.greater_equal(tf.abs(x - whole), tf.constant(0.5, x.dtype))
    return tf.where(further, whole + tf.sign(x), whole)


def _count_ones(x: Any) -> Any:
    return tf.cast(tf.raw_ops.PopulationCount(x=x), x.dtype)


_RULES: dict[str, Callable] = {
    "abs": _absolute,
    "add": _logic(_or, lambda x, y: tf.add(x, y)),
    "and": _logic(_and, lambda x, y: tf.bitwise.bitwise_and(x, y)),
    "atan2": lambda y, x: tf.atan2(y, x),
    "cbrt": _cube_root,
    "ceil": lambda x: tf.math.ceil(x),
    "complex": lambda x, y: tf.complex(x, y),
    "cosine": lambda x: tf.cos(x),
    "count_leading_zeros": integers.leading_zeros,
    "divide": _quotient,
    "exponential": lambda x: tf.exp(x),
    "exponential_minus_one": lambda x: tf.math.expm1(x),
    "floor": lambda x: tf.floor(x),
    "imag": lambda x: tf.math.imag(x) if x.dtype.is_complex else tf.zeros_like(x),
    "is_finite": lambda x: tf.math.is_finite(x),
    "log": lambda x: tf.math.log(x),
    "log_plus_one": lambda x: tf.math.log1p(x),
    "logistic": lambda x: tf.sigmoid(x),
    "maximum": _logic(_or, lambda x, y: tf.maximum(x, y)),
    "minimum": _logic(_and, lambda x, y: tf.minimum(x, y)),
    "multiply": _logic(_and, lambda x, y: tf.multiply(x, y)),
    "negate": _negated,
    "not": _logic(lambda x: tf.logical_not(x), lambda x: tf.bitwise.invert(x)),
    "or": _logic(_or, lambda x, y: tf.bitwise.bitwise_or(x, y)),
    "popcnt": _count_ones,
    "power": _power,
    "real": lambda x: tf.math.real(x),
    "remainder": _remainder,
    "round_nearest_afz": _away,
    "round_nearest_even": lambda x: tf.round(x),
    "rsqrt": lambda x: tf.math.rsqrt(x),
    "shift_left": lambda x, n: integers.shifted(x, n, "left"),
    "shift_right_arithmetic": lambda x, n: integers.shifted(x, n, "arithmetic"),
    "shift_right_logical": lambda x, n: integers.shifted(x, n, "logical"),
    "sign": _sign,
    "sine": lambda x: tf.sin(x),
    "sqrt": lambda x: tf.sqrt(x),
    "subtract": lambda x, y: tf.subtract(x, y),
    "tan": lambda x: tf.tan(x),
    "tanh": lambda x: tf.tanh(x),
    "xor": _logic(
        lambda x, y: tf.not_equal(x, y), lambda x, y: tf.bitwise.bitwise_xor(x, y)
    ),
}  # fmt: skip

for _name, _function in _RULES.items():
    _rule(_name, _function)


@graphs("stablehlo.compare", elements=True)
def _(walk: object, op, xs):
    x, y = xs
    if enum(op.attributes.get("compare_type", "NOTYPE")) == "TOTALORDER" and x.dtype.is_floating:
        x, y = in_total_order(x), in_total_order(y)
    if x.dtype == tf.bool:
        x, y = tf.cast(x, tf.int8), tf.cast(y, tf.int8)
    return _RELATIONS[enum(op.attributes["comparison_direction"])](x, y)


_RELATIONS: dict[str, Callable] = {
    "EQ": lambda x, y: tf.equal(x, y),
    "NE": lambda x, y: tf.not_equal(x, y),
    "LT": lambda x, y: tf.less(x, y),
    "LE": lambda x, y: tf.less_equal(x, y),
    "GT": lambda x, y: tf.greater(x, y),
    "GE": lambda x, y: tf.greater_equal(x, y),
}


def in_total_order(x: Any) -> Any:
    """Map floats to signed integers in their total order (IEEE 754, 5.10).

    The integers are the bits of the floats; if the sign is set, the other bits are inverted.
    """
    bits = tf.bitcast(tf.stop_gradient(x), f"int{8 * x.dtype.size}")
    inverted = tf.bitwise.bitwise_xor(bits, tf.constant(bits.dtype.max, bits.dtype))
    return tf.where(tf.less(bits, tf.constant(0, bits.dtype)), inverted, bits)


@graphs("stablehlo.select", elements=True)
def _(walk: object, op: object, xs):
    return tf.where(*xs)


@graphs("stablehlo.clamp", elements=True)
def _(walk: object, op: object, xs):
    low, x, high = xs
    if x.dtype == tf.bool:
        return _and(_or(x, low), high)
    return tf.minimum(tf.maximum(x, low), high)


@graphs("stablehlo.optimization_barrier")
def _(walk: object, op: object, xs):
    return [tf.identity(x) for x in xs]
