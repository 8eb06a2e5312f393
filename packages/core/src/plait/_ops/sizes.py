"""Sizes and positions as values: symbolic sizes, counting, positions that users give.

Invariant: a size that is a number stays one (a literal), so that only symbolic ones are computed.
Positions have at least 32 bits, and those given as numbers are counted from the front at once.
"""

from typing import Any

import numpy as np

from .._base import jaxlib_api
from .._base.errors import OperandTypeError
from .._core.array import Literal, as_value
from .._core.primitive import primitive
from .._types.avals import INT32, INTEGER, Aval
from .._types.dims import Dim
from .._xla.lower import Emitter, lower_rules
from .elementwise import add, lt, mul, select
from .shape import broadcast_to, convert, iota_

__all__ = ["dim_", "integers", "numbered", "size_value"]

# ---- sizes ---------------------------------------------------------------------------------


@primitive("core.dim")
def dim_(*, size: Dim) -> Aval:
    """Return a symbolic size as a number."""
    return Aval((), INT32)


@lower_rules.rule(dim_)
def _(e: Emitter, xs: list[Any], ins: list[Any], outs: list[Aval], size: Dim):
    return e.size(size)


def size_value(n: Any, dtype: np.dtype) -> Any:
    """Return a size, which may be symbolic, as a value of this dtype."""
    if n.__class__ is Dim:
        return convert(dim_.bind(size=n), dtype)
    return Literal(n, Aval((), dtype))


def numbered(shape: tuple, dtype: np.dtype) -> Any:
    """Count 0, 1, 2, ... in row-major order, by an iota of each axis.

    This is partitioned without moving data.
    """
    aval = Aval(shape, dtype)
    total: Any = None
    stride: Any = 1
    for axis in range(len(shape) - 1, -1, -1):
        n = iota_.bind(shape=shape, axis=axis, dtype=dtype)
        if stride.__class__ is Dim:
            n = mul.bind(n, broadcast_to(size_value(stride, dtype), shape))
        elif stride != 1:
            n = mul.bind(n, Literal(stride, aval))
        total = n if total is None else add.bind(total, n)
        stride = stride * shape[axis]
    return Literal(0, aval) if total is None else total


# ---- positions --------------------------------------------------------------------------------


def integers(x: Any, what: str) -> Any:
    """Return positions as integers of at least 32 bits."""
    x = as_value(x)
    if x.aval.category != INTEGER:
        raise OperandTypeError(
            f"{what} must be integers, not {x.aval!r}", fix="convert with .astype(int)"
        )
    dtype = x.aval.dtype
    if dtype in (INT32, np.int64):
        return x
    if dtype.itemsize < 4:
        return convert(x, INT32)
    signed = INT32 if dtype.itemsize == 4 else np.dtype(np.int64)
    top = Literal(int(jaxlib_api.limits(signed)[1]), x.aval)
    return convert(select(lt(x, top), x, top), signed)


def from_front(i: Any, n: Any) -> Any:
    """Return positions counted from the front; negative ones count from the end of an axis of size
    `n`."""
    if i.__class__ is Literal and i.value >= 0:
        return i
    if i.__class__ is Literal and n.__class__ is int:
        return Literal(i.value + n, i.aval)
    if i.__class__ is Literal:
        return broadcast_to(size_value(n + i.value, i.aval.dtype), i.aval.shape)
    zero = Literal(0, i.aval)
    size = broadcast_to(size_value(n, i.aval.dtype), i.aval.shape)
    return select.bind(lt.bind(i, zero), add.bind(i, size), i)
