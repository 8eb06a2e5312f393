"""Reading bits as another dtype, and computing narrow floats in float32.

Converting values is in `shape`, since promotion needs it.

Invariant: `bitcast` changes no bit, only the number of elements that the bits make up.
"""

from typing import Any

import numpy as np

from .._base.errors import ShapeError
from .._base.jaxlib_api import IrValue
from .._core.array import Literal, as_value
from .._core.interpreter import Value
from .._core.primitive import primitive
from .._core.staging import staged
from .._types.avals import (
    BOOL,
    COMPLEX,
    FLOAT32,
    NOTHING,
    Aval,
    category,
    dtype_of,
    is_narrow,
    nothing_to_do,
)
from .._types.dims import is_symbolic
from .._xla.lower import Emitter, lower_rules
from ..typing import Array
from .elementwise import and_, mul, shift_left, shift_right_logical
from .reduction import reduce_or
from .shape import broadcast_in_dim, convert, iota

__all__ = ["bitcast", "bitcast_", "bits_of", "rounded", "single"]

_BITS = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4}


def bits_of(dtype: np.dtype) -> int:
    """Return the width of an element in bits."""
    return _BITS.get(dtype.name, dtype.itemsize * 8)


@primitive("core.bitcast")
def bitcast_(x: Aval, *, dtype: np.dtype) -> Aval:
    """Read the same bits as another dtype.

    A narrower dtype adds a last axis.  A wider one removes the last axis, whose elements make up
    one element of the result.
    """
    for d in (x.dtype, dtype):
        if category(d) == NOTHING:
            raise nothing_to_do([x])
        if d == BOOL or category(d) == COMPLEX:
            raise ShapeError(
                f"bitcast of {x!r} to {dtype.name}: {d.name} elements cannot be read as bits",
                fix="use .astype for booleans, and real and imaginary parts of complex numbers",
            )
    have, want = bits_of(x.dtype), bits_of(dtype)
    if have == want:
        return Aval(x.shape, dtype)
    if have > want:
        return Aval((*x.shape, have // want), dtype)
    if not x.ndim or x.shape[-1] != want // have:
        raise ShapeError(
            f"bitcast of {x!r} to {dtype.name}: elements are {have} bits wide, {want} are needed",
            fix=f"the last axis must have size {want // have}",
        )
    return Aval(x.shape[:-1], dtype)


@lower_rules.rule(bitcast_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], dtype: np.dtype):
    if ins[0].dtype == dtype:
        return xs[0]
    if is_symbolic(ins[0].shape) and bits_of(ins[0].dtype) != bits_of(dtype):
        return e.program(staged(lambda x: [_by_shifts(x, dtype)], ins), xs)[0]
    return e.op("stablehlo.bitcast_convert", xs, outs[0])


def _unsigned(bits: int) -> np.dtype:
    return dtype_of(f"uint{bits}")


def _by_shifts(x: Any, dtype: np.dtype) -> Any:
    """Cast with arithmetic, since shape refinement supports only casts that keep the width."""
    have, want = bits_of(x.aval.dtype), bits_of(dtype)
    narrow, wide = _unsigned(min(have, want)), _unsigned(max(have, want))
    bits = bitcast(x, _unsigned(have))
    shape = bitcast_.infer((x.aval,), {"dtype": dtype}).shape if have > want else x.aval.shape
    positions = mul(iota(wide, shape, len(shape) - 1), Literal(min(have, want), Aval(shape, wide)))
    if have < want:
        parts = shift_left.bind(convert(bits, wide), positions)
        return bitcast(reduce_or.bind(parts, axes=(len(shape) - 1,)), dtype)
    all_bits = broadcast_in_dim.bind(bits, shape=shape, dims=tuple(range(x.aval.ndim)))
    low = Literal(2**want - 1, Aval(shape, wide))
    parts = and_.bind(shift_right_logical.bind(all_bits, positions), low)
    return bitcast(convert(parts, narrow), dtype)


def bitcast(x: Any, dtype: Any) -> Value:
    """Read the bits of `x` as elements of `dtype`, as jax.lax.bitcast_convert_type.

    Args:
      x: an array of integers or floats.
      dtype: an integer or floating dtype.  If it is narrower, the result has a new last axis of
        size (old width / new width).  If it is wider, the last axis of `x` must have size (new
        width / old width) and is removed.  The lowest bits come first.

    Raises TypeRule for booleans, complex numbers, and a last axis of another size.

    >>> import numpy as np
    >>> hex(bitcast(np.float32(1.0), np.uint32).item())
    '0x3f800000'
    """
    x, dtype = as_value(x), dtype_of(dtype)
    return x if x.aval.dtype == dtype else bitcast_.bind(x, dtype=dtype)


def single(x: Array) -> Any:
    """Return narrow floats as float32, and anything else as it is."""
    return convert(x, FLOAT32) if is_narrow(x.aval) else x


def rounded(y: Value, x: Array) -> Any:
    """Return a result of `single(x)` in the dtype of `x`, if that is narrow."""
    return convert(y, x.aval.dtype) if is_narrow(x.aval) and y.aval.dtype == FLOAT32 else y
