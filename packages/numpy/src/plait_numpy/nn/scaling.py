"""Products of matrices stored in few bits: blocks of elements share a scale.

`mxfp8` is the format of the "OCP Microscaling Formats (MX) Specification", 2023; `nvfp4` has blocks
of 16 `float4_e2m1fn` with scales in `float8_e4m3fn`.

Invariant: products are computed in single precision at least, from stored elements times their
scales.  Stored elements never overflow, since a scale is rounded up or values are clipped.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from plait.dtypes import float4_e2m1fn, float8_e4m3fn, float8_e8m0fnu
from plait.errors import ArgumentError
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.contraction import contracted
from plait.ext.ops.elementwise import bitcast
from plait.ext.ops.reduction import max_
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.ext.types import FLOAT32, FLOATING, dtype_of, ml_dtypes
from plait.typing import Array, ArrayLike, DTypeLike


@dataclass(frozen=True, eq=False)
class BlockScaleConfig:
    """The storage format of an operand of `scaled_dot_general`.

    Attributes:
      mode: "mxfp8" or "nvfp4".
      block_size: number of elements that share a scale.
      data_type, scale_type: the dtypes of elements and of scales.
      global_scale: divisor of all elements, applied first; None: none.
      infer_only: accepted for compatibility.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any = None
    infer_only: bool = False


def get_scaled_dot_general_config(
    mode: str, global_scale: ArrayLike | None = None
) -> BlockScaleConfig:
    """Return the storage format of an operand of `scaled_dot_general`, by name.

    Args:
      mode: "mxfp8": blocks of 32 `float8_e4m3fn` with scales in `float8_e8m0fnu`; "nvfp4": blocks
        of 16 `float4_e2m1fn` with scales in `float8_e4m3fn`.
      global_scale: for "nvfp4": float32 of shape (1,), divisor of all elements, applied first; ones
        by default.

    Raises ArgumentError for another mode.

    >>> import plait
    >>> plait.nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if isinstance(mode, str) and mode == "mxfp8":
        return BlockScaleConfig(mode, 32, float8_e4m3fn, float8_e8m0fnu)
    if isinstance(mode, str) and mode == "nvfp4":
        scale = np.ones(1, np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, float4_e2m1fn, float8_e4m3fn, scale)
    raise ArgumentError(f"there is no mode {mode!r}", fix='use "mxfp8" or "nvfp4"')


def scaled_matmul(
    lhs: ArrayLike, rhs: ArrayLike, lhs_scales: ArrayLike, rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:  # fmt: skip
    """Multiply matrices whose blocks of elements have scales.

    Args:
      lhs, rhs: (batch, m, k) and (batch, n, k); the last axes are contracted.
      lhs_scales, rhs_scales: (batch, m, blocks) and (batch, n, blocks), where the number of blocks
        divides k; each multiplies k / blocks elements.
      preferred_element_type: floating dtype of the result.

    Returns an array of shape (batch, m, n).  Raises ArgumentError for shapes that do not fit.

    >>> import numpy as np, plait
    >>> x, y = np.ones((1, 1, 3), np.float32), np.full((1, 2, 3), 2, np.float32)
    >>> half = np.full((1, 1, 1), 0.5, np.float32)
    >>> plait.nn.scaled_matmul(x, y, half, np.ones((1, 2, 1), np.float32)).tolist()
    [[[3.0, 3.0]]]
    """
    return _matmul(lhs, rhs, lhs_scales, rhs_scales, out=_of_floats(preferred_element_type))


def _of_floats(dtype: Any) -> np.dtype:
    found = dtype_of(dtype)
    if found.kind not in "fV":
        raise ArgumentError(f"a product of floats has no dtype {found}", fix="give one of floats")
    return found


@fused
def _matmul(a: object, b: object, a_scales: object, b_scales: object, *, out: np.dtype) -> Any:
    a, b, s, t = [value(x) for x in (a, b, a_scales, b_scales)]
    shapes = [x.aval.shape for x in (a, b, s, t)]
    fits = all(len(d) == 3 for d in shapes) and (
        len({d[0] for d in shapes}) == 1
        and shapes[0][2] == shapes[1][2]
        and shapes[0][1] == shapes[2][1]
        and shapes[1][1] == shapes[3][1]
        and all(d[2] and k[2] % d[2] == 0 for k, d in zip(shapes, shapes[2:]))
    )
    if not fits:
        raise ArgumentError(
            f"scaled_matmul of {a.aval!r} and {b.aval!r} with scales {s.aval!r} and {t.aval!r}",
            fix="give (batch, m, k), (batch, n, k) and scales (batch, m, blocks), (batch, n, "
            "blocks), where the number of blocks divides k",
        )
    x, y = _times(a, s), _times(b, t)
    return sh.convert(contracted(x, y, ((2,), (2,)), ((0,), (0,))), out)


def _times(x: Value, scales: Value) -> Any:
    """Multiply elements by the scales of their blocks along the last axis, in float32 at least."""
    *front, k = x.aval.shape
    blocks = scales.aval.shape[-1]
    wide = FLOAT32 if x.aval.dtype.itemsize < 4 or x.aval.category != FLOATING else x.aval.dtype
    each = sh.reshape(sh.convert(x, wide), (*front, blocks, k // blocks))
    return sh.reshape(
        el.mul(each, sh.expand_dims(sh.convert(scales, wide), len(front) + 1)), (*front, k)
    )


def scaled_dot_general(
    lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: object,
    preferred_element_type: DTypeLike = np.float32, configs: Any = None,
    implementation: str | None = None,
) -> Array:  # fmt: skip
    """Apply `lax.dot_general` to operands stored in few bits, block by block.

    Args:
      lhs, rhs: floats.
      dimension_numbers: ((contracted axes of both), (batch axes of both)).
      preferred_element_type: dtype of the result.
      configs: the formats of lhs and rhs (`get_scaled_dot_general_config`), in a list of two or
        three; a third, for gradients, is accepted for compatibility.  None: as they are.
      implementation: accepted for compatibility.

    Returns batch axes, then those of lhs, then those of rhs.  Blocks go along the contracted axes,
    where the last block may be incomplete.  Derivatives are those of `dot_general` of the stored
    operands: they pass through the rounding.  Raises ArgumentError for axes that do not fit.

    >>> import numpy as np, plait
    >>> how = [plait.nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> x = np.full((2, 32), 0.5, np.float32)
    >>> plait.nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=how).tolist()
    [[8.0, 8.0], [8.0, 8.0]]
    """
    contract, shared = _axes(dimension_numbers)
    out = _of_floats(preferred_element_type)
    if configs is None:
        return contracted(value(lhs), value(rhs), contract, shared, preferred_element_type=out)
    if len(configs) not in (2, 3):
        raise ArgumentError(f"{len(configs)} configs", fix="give one for lhs, rhs and gradients")
    x, y = [
        _stored(v, axes, kept, config)
        for v, axes, kept, config in zip((lhs, rhs), contract, shared, configs)
    ]
    return sh.convert(contracted(x, y, contract, shared), out)


def _axes(dimension_numbers: Any) -> tuple[tuple, tuple]:
    """Return contracted and shared axes, in pairs of tuples."""
    try:
        (a, b), (c, d) = dimension_numbers
        return (tuple(a), tuple(b)), (tuple(c), tuple(d))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{dimension_numbers!r} are not dimension numbers",
            fix="write for instance (((1,), (1,)), ((), ()))",
        ) from None


def _stored(x: ArrayLike, axes: tuple, kept: tuple, config: BlockScaleConfig) -> Any:
    x = value(x)
    if x.aval.category != FLOATING:
        raise ArgumentError(f"scaled_dot_general of {x.aval!r}", fix="give floats")
    return _rounded(
        x, config.global_scale, axes=axes, size=config.block_size, dtype=dtype_of(config.data_type),
        scales=dtype_of(config.scale_type),
    )  # fmt: skip


@fused
def _rounded(
    x: Value, whole: Value | None, *, axes: tuple, size: int, dtype: np.dtype, scales: np.dtype
) -> Any:
    """Return `x` as read back from storage; its derivative is that of `x`."""
    axes = sh.normal_axes(axes, x.aval.ndim)
    order = (*[i for i in range(x.aval.ndim) if i not in axes], *axes)
    turned = sh.transpose(x, order)
    shape = turned.aval.shape
    front = shape[: len(shape) - len(axes)]
    k = math.prod(shape[len(front) :])
    rows = sh.pad(
        sh.reshape(turned, (*front, k)), 0, [*[(0, 0, 0)] * len(front), (0, -k % size, 0)]
    )
    blocks = sh.convert(sh.reshape(rows, (*front, -(-k // size), size)), FLOAT32)
    factor = (
        1 if whole is None else sh.broadcast_to(sh.convert(whole, FLOAT32), (1,) * blocks.aval.ndim)
    )
    read = el.mul(_by_blocks(el.div(blocks, factor), dtype, scales), factor)
    read = sh.slice_in_dim(sh.reshape(read, rows.aval.shape), 0, k, axis=len(front))
    back = tuple([order.index(i) for i in range(len(order))])
    read = sh.transpose(sh.reshape(sh.convert(read, x.aval.dtype), shape), back)
    # Rounding has derivative zero, so the value is that of `read` and the derivative that of `x`.
    return el.add(el.stop(read), el.select(el.is_finite(x), el.sub(x, el.stop(x)), 0))


def _by_blocks(x: Value, dtype: np.dtype, scales: np.dtype) -> Any:
    """Return blocks along the last axis as read back: elements in `dtype` times scales in
    `scales`."""
    most = float(ml_dtypes.finfo(dtype).max)
    top = el.div(max_(el.abs_(x), -1, keepdims=True), most)
    if scales.name == "float8_e8m0fnu":
        scale = _power_above(top)
    else:
        scale = el.clamp(0.0, top, float(ml_dtypes.finfo(scales).max))
        scale = sh.convert(sh.convert(scale, scales), FLOAT32)
    parts = el.div(x, el.select(el.eq(scale, 0), 1, scale))
    return el.mul(sh.convert(sh.convert(el.clamp(-most, parts, most), dtype), FLOAT32), scale)


def _power_above(x: Value) -> Any:
    """Return the least normal power of two that is not below `x`, read off the bits of float32."""
    bits = bitcast(x, np.dtype(np.int32))
    fraction = el.ne(el.and_(bits, np.int32(2**23 - 1)), 0)
    exponent = el.add(el.shift_right_logical(bits, np.int32(23)), sh.convert(fraction, np.int32))
    return bitcast(el.shift_left(el.clamp(1, exponent, 254), np.int32(23)), FLOAT32)
