"""Random bits and uniformly distributed numbers.

Invariant: each number is one hash of its position.  Narrow dtypes draw as many hashes, so that a
position has the same bits whatever is drawn around it.
"""

from typing import Any, SupportsIndex

import numpy as np

from plait.errors import OperandTypeError
from plait.ext import Aval, Literal, as_value
from plait.ext.ops import elementwise as el
from plait.ext.ops.elementwise import bitcast_
from plait.ext.ops.indexing import index_in_dim
from plait.ext.ops.random import random_bits, random_split
from plait.ext.ops.shape import broadcast_to, convert, normal_shape
from plait.ext.surface import fused
from plait.ext.trace import Value
from plait.ext.types import FLOATING, INTEGER, UINT32, asked_dtype, category, default_dtype
from plait.typing import Array, ArrayLike, DTypeLike, Shape

from .keys import RANGES, number, one_key, parameter

BITS = {1: np.uint8, 2: np.uint16, 4: UINT32, 8: np.uint64}
MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


def sample_dtype(dtype: object, kind: int, what: str, *others: int) -> np.dtype:
    """Return the dtype of samples: the default one of its kind if none is given."""
    d = asked_dtype(dtype, kind)
    if dtype is None:
        return d
    kinds = category(d)
    small = (kinds == FLOATING and d.name not in MANTISSA) or (kinds == INTEGER and d not in RANGES)
    if kinds not in (kind, *others) or small:
        fix = "draw a wider dtype and convert" if small else "convert the result with .astype"
        raise OperandTypeError(f"{what} does not draw {d}", fix=fix)
    return d


def bits(
    key: ArrayLike, shape: SupportsIndex | Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Draw random bits.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: an unsigned integer dtype; uint32 by default.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.bits(key, (2,), "uint8").dtype
    dtype('uint8')
    """
    d = UINT32 if dtype is None else asked_dtype(dtype)
    if d.kind != "u" or d.itemsize not in BITS:
        raise OperandTypeError(f"bits are unsigned integers, not {d}", fix='use dtype="uint32"')
    return raw_bits(one_key(key, "bits"), normal_shape(shape), d)


def raw_bits(data: Array, shape: tuple, dtype: np.dtype | type) -> Any:
    """Draw random bits from a key, as unsigned integers of any width."""
    return random_bits.bind(data, shape=shape, dtype=np.dtype(dtype))


def _unit(data: Value, shape: tuple, dtype: np.dtype) -> Any:
    """Draw floats in [0, 1): random mantissas of numbers in [1, 2), less 1."""
    mantissa, width = MANTISSA[dtype.name], dtype.itemsize * 8
    drawn = width if mantissa >= 8 else 8
    whole = Aval(shape, BITS[dtype.itemsize])
    r = convert(raw_bits(data, shape, BITS[drawn // 8]), whole.dtype)
    r = el.shift_right_logical.bind(r, Literal(drawn - mantissa, whole))
    one = int(np.array(1, dtype).view(whole.dtype))
    x = bitcast_.bind(el.or_.bind(r, Literal(one, whole)), dtype=dtype)
    return el.sub.bind(x, Literal(1, x.aval))


def between(data: Any, low: ArrayLike, high: ArrayLike, shape: tuple, dtype: np.dtype) -> Any:
    """Draw floats in [low, high)."""
    low, high = (broadcast_to(convert(v, dtype), shape) for v in (low, high))
    scaled = el.mul.bind(_unit(data, shape, dtype), el.sub.bind(high, low))
    return el.maximum.bind(low, el.add.bind(scaled, low))


def uniform(
    key: ArrayLike, shape: SupportsIndex | Shape = (), dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0,
) -> Array:  # fmt: skip
    """Draw numbers uniformly from [minval, maxval).

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a floating dtype; the default one if None.
      minval, maxval: numbers, or arrays that broadcast to the shape.

    Raises TypeRule for other dtypes and for bounds that do not broadcast.

    >>> import plait
    >>> plait.random.uniform(plait.random.key(0), (2,), minval=-1.0)
    Array([0.895334  , 0.95715976], dtype=float32)
    """
    d, shape = sample_dtype(dtype, FLOATING, "uniform"), normal_shape(shape)
    data = one_key(key, "uniform")
    if minval.__class__ is float and maxval.__class__ is float and (minval, maxval) == (0.0, 1.0):
        return _standard_uniform(data, shape=shape, dtype=d)
    low, high = (
        number(v, d) if v.__class__ is float or v.__class__ is int else parameter(v, name)
        for v, name in ((minval, "minval"), (maxval, "maxval"))
    )
    return _uniform(data, low, high, shape=shape, dtype=d)


@fused
def _standard_uniform(data: Array, *, shape: tuple, dtype: np.dtype) -> Any:
    return between(data, 0.0, 1.0, shape, dtype)


@fused
def _uniform(data: Array, low: Any, high: Any, *, shape: tuple, dtype: np.dtype) -> Any:
    return between(data, as_value(low), as_value(high), shape, dtype)


# ---- integers ------------------------------------------------------------------------------


def randint(
    key: ArrayLike, shape: SupportsIndex | Shape, minval: ArrayLike, maxval: ArrayLike,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw integers uniformly from [minval, maxval); `minval` where that is empty.

    Draws twice as many bits as an integer has, and reduces them modulo the length of the range: the
    bias is at most (maxval - minval) / 2**64, for 64-bit integers 2**128.

    Args:
      key: a key.
      shape: shape of the result.
      minval, maxval: integers, or arrays that broadcast to the shape.
      dtype: an integer dtype; the default one if None.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.randint(key, (2,), 0, 10).dtype
    dtype('int32')
    """
    d = sample_dtype(dtype, INTEGER, "randint")
    wide = d if d.itemsize >= 4 else np.dtype(np.int32)
    least, most = RANGES[d]
    past = isinstance(maxval, int) and wide is d and maxval > most
    low = (
        number(max(minval, least), wide) if isinstance(minval, int) else parameter(minval, "minval")
    )
    high = number(maxval, wide) if maxval.__class__ is int else parameter(maxval, "maxval")
    data = one_key(key, "randint")
    r = _randint(data, low, high, shape=normal_shape(shape), dtype=wide, small=d, past=past)
    return r if wide is d else convert(r, d)


def _whole(v: Any, dtype: np.dtype, low: int, high: int) -> Any:
    """Return a bound as an integer of this dtype, clipped to [low, high] instead of wrapped."""
    if v.aval.category != INTEGER:
        v = convert(v, default_dtype(INTEGER))
    least, most = RANGES[v.aval.dtype]
    cell = v.aval.dtype.type
    v = el.clamp(cell(max(low, least)), v, cell(min(high, most)))
    return convert(v, dtype)


@fused
def _randint(
    data: Array,
    low: object,
    high: Any,
    *,
    shape: tuple,
    dtype: np.dtype,
    small: np.dtype,
    past: bool,
) -> Any:
    low, high = as_value(low), as_value(high)
    most, (floor, top) = RANGES[dtype][1], RANGES[small]
    beyond: Any = Literal(past, Aval(shape, bool))
    if not past and high.aval.category == INTEGER and RANGES[high.aval.dtype][1] > most:
        beyond = broadcast_to(el.gt(high, high.aval.dtype.type(most)), shape)
    end = most if small == dtype else top + 1  # the wider dtype can hold top + 1
    low = broadcast_to(_whole(low, dtype, floor, top), shape)
    high = broadcast_to(_whole(high, dtype, floor, end), shape)
    unsigned = BITS[dtype.itemsize]
    k1, k2 = halves(data)
    first, second = raw_bits(k1, shape, unsigned), raw_bits(k2, shape, unsigned)
    one = Literal(1, first.aval)
    span = convert(el.sub.bind(high, low), unsigned)
    span = el.select(el.le(high, low), one, span)
    span = el.select(el.and_(beyond, el.gt(high, low)), el.add.bind(span, one), span)
    half = Literal(2 ** (dtype.itemsize * 4), first.aval)
    factor = el.rem.bind(half, span)
    factor = el.rem.bind(el.mul.bind(factor, factor), span)
    total = el.add.bind(el.mul.bind(el.rem.bind(first, span), factor), el.rem.bind(second, span))
    return el.add.bind(low, convert(el.rem.bind(total, span), dtype))


def halves(data: Any) -> tuple[Any, Any]:
    """Return the two keys that `split` makes."""
    both = random_split.bind(data, shape=(2,))
    return row(both, 0), row(both, 1)


def row(x: Value, i: int) -> Any:
    """Return `x[i]`."""
    return index_in_dim(x, i, keepdims=False)
