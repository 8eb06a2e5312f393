"""Bits in bytes, and back.

Invariant: the first element is the highest bit, unless `bitorder` is "little".
"""

from typing import Any

import numpy as np

from plait.errors import ArgumentError, OperandTypeError
from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import sum_, truth
from plait.ext.ops.shape import convert, iota, moveaxis, normal_axis, pad, reshape, slice_in_dim
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.ext.types import BOOLEAN, INTEGER
from plait.typing import Array, ArrayLike

_BYTE = np.dtype(np.uint8)


def _places(bitorder: str, ndim: int) -> Any:
    """Return the shift of each of eight bits, along the last axis."""
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"there is no bitorder {bitorder!r}", fix='use "big" or "little"')
    k = iota(_BYTE, (1,) * (ndim - 1) + (8,), ndim - 1)
    return k if bitorder == "little" else el.sub(7, k)


@fused
def _packed(a: Value, *, axis: int, bitorder: str) -> Any:
    x = moveaxis(convert(truth(a), _BYTE), axis, -1)
    *lead, n = x.aval.shape
    x = pad(x, 0, [(0, 0, 0)] * len(lead) + [(0, -n % 8, 0)])
    x = reshape(x, (*lead, -(-n // 8), 8))
    bytes_ = sum_(el.shift_left(x, _places(bitorder, x.aval.ndim)), -1)
    return moveaxis(convert(bytes_, _BYTE), -1, axis)


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack eight elements into the bits of one byte; zeros fill up the last byte.

    Args:
      a: integers or booleans; nonzero elements are ones.
      axis: axis to pack along; None packs the flattened array.
      bitorder: "big" (the first element is the highest bit) or "little".

    Raises TypeRule for floats.  As numpy.packbits.

    Raises AxisError for an axis that `a` lacks.

    >>> import numpy as np, plait
    >>> plait.numpy.packbits(np.array([1, 0, 0, 0, 0, 0, 1, 1])).tolist()
    [131]
    """
    x = value(a)
    if x.aval.category not in (BOOLEAN, INTEGER):
        raise OperandTypeError(f"packbits of {x.aval!r}", fix="give integers or booleans")
    x = reshape(x, (-1,)) if axis is None else x
    return _packed(x, axis=normal_axis(-1 if axis is None else axis, x.aval.ndim),
                   bitorder=bitorder)  # fmt: skip


@fused
def _unpacked(a: Value, *, axis: int, bitorder: str) -> Any:
    x = moveaxis(a, axis, -1)
    *lead, n = x.aval.shape
    x = reshape(x, (*lead, n, 1))
    bits = el.and_(el.shift_right_logical(x, _places(bitorder, x.aval.ndim)), 1)
    return moveaxis(reshape(bits, (*lead, n * 8)), -1, axis)


def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Unpack bytes into bits: eight elements, zeros and ones, for each.

    Args:
      a: of dtype uint8.
      axis: axis to unpack along; None unpacks the flattened array.
      count: number of bits to return: fewer than there are (if negative, all but that many last
        ones), or more, filled up with zeros.
      bitorder: "big" (the first element is the highest bit) or "little".

    Raises TypeRule for other dtypes.  As numpy.unpackbits.

    >>> import numpy as np, plait
    >>> plait.numpy.unpackbits(np.array([131], np.uint8)).tolist()
    [1, 0, 0, 0, 0, 0, 1, 1]
    """
    x = value(a)
    if x.aval.dtype != _BYTE:
        raise ArgumentError(
            f"unpackbits of {x.aval!r}", fix="give uint8: view(), or .astype('uint8')"
        )
    x = reshape(x, (-1,)) if axis is None else x
    at = normal_axis(-1 if axis is None else axis, x.aval.ndim)
    out = _unpacked(x, axis=at, bitorder=bitorder)
    if count is None:
        return out
    n = out.aval.shape[at]
    count = count.__index__()
    stop = n + count if count < 0 else count
    if stop <= n:
        return slice_in_dim(out, 0, stop, axis=at)
    more = [(0, stop - n if i == at else 0, 0) for i in range(out.aval.ndim)]
    return pad(out, 0, more)
