"""Products of arrays, summed over axes.

Invariant: the axes of a result are the shared ones, the rest of the left operand's, the rest of the
right one's.
"""

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

from plait.typing import Array, ArrayLike, DTypeLike

from .._api.surfaces import value
from .._base.errors import ArgumentError, ShapeError
from .._base.jaxlib_api import ml_dtypes
from .._core.interpreter import Value
from .._ops.contraction import axis_pairs, contracted
from .._ops.elementwise import mul
from .._ops.layout import free, placed
from .._ops.shape import broadcast_to, convert, convert_together, reshape
from .._types.avals import FLOAT32, FLOATING, dtype_of

__all__ = [
    "batch_matmul", "dot", "dot_general", "DotAlgorithm", "DotAlgorithmPreset",
    "DotDimensionNumbers", "Precision", "PrecisionLike", "scaled_dot",
]  # fmt: skip


class Precision(enum.Enum):
    """The precision of products on accelerators."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"


class DotAlgorithm(NamedTuple):
    """An algorithm for products, for `precision`; every platform is at least so precise.

    Attributes:
      lhs_precision_type, rhs_precision_type: dtypes that operands may be rounded to.
      accumulation_type: dtype of sums.
      lhs_component_count, rhs_component_count, num_primitive_operations: the numbers of parts of
        each operand and of products that make up one product.
      allow_imprecise_accumulation: whether partial sums may be less precise.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Algorithms by name: dtypes of the operands and of sums, and the number of products in one."""

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()


PrecisionLike = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm
    | DotAlgorithmPreset
)  # fmt: skip
"""The types of `precision`."""

DotDimensionNumbers = tuple[
    tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]
]
"""The types of `dimension_numbers` of `dot_general`."""


def dot_general(
    lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: object, precision: object = None,
    preferred_element_type: DTypeLike | None = None, *, out_sharding: object = None,
) -> Array:  # fmt: skip
    """Return products of elements, summed over axes.

    Args:
      lhs, rhs: arrays; different dtypes are promoted, and two float8s give the one with the greater
        range.
      dimension_numbers: ((contracted axes of lhs, of rhs), (shared axes of lhs, of rhs)).
      precision: None, "default", "high", "highest", a `Precision` or a `DotAlgorithm`: precision of
        products on accelerators.
      preferred_element_type: dtype of the result.
      out_sharding: sharding of the result.

    Returns the shared axes, the rest of lhs's, the rest of rhs's.  Raises TypeRule if sizes
    disagree, AxisError for axes that an operand lacks.

    >>> import plait
    >>> x, y = plait.numpy.ones((2, 3)), plait.numpy.ones((3, 4))
    >>> plait.lax.dot_general(x, y, (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """
    contract, shared = axis_pairs("dot_general", dimension_numbers)
    x, y = free(value(lhs), out_sharding), free(value(rhs), out_sharding)
    if x.aval.dtype != y.aval.dtype:
        narrow = all(v.aval.category == FLOATING and v.aval.dtype.itemsize == 1 for v in (x, y))
        if narrow and preferred_element_type is None:
            far = [float(ml_dtypes.finfo(v.aval.dtype).max) for v in (x, y)]
            preferred_element_type = (x if far[0] >= far[1] else y).aval.dtype
        # Neither float8 contains the other, and float32 holds every product exactly.
        both = [convert(v, FLOAT32) for v in (x, y)] if narrow else [x, y]
        x, y = convert_together(both, strict=False)
    out = contracted(
        x, y, contract, shared, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip
    return placed(out, out_sharding)


def dot(
    lhs: ArrayLike, rhs: ArrayLike, *, dimension_numbers: object = None, precision: object = None,
    preferred_element_type: DTypeLike | None = None, out_sharding: object = None,
) -> Array:  # fmt: skip
    """Multiply vectors and matrices; with `dimension_numbers`, apply `dot_general`.

    Other arguments are those of `dot_general`.

    Raises TypeRule for more axes, and if sizes disagree.

    >>> import plait
    >>> plait.lax.dot(plait.numpy.arange(3), plait.numpy.arange(3)).item()
    5
    """
    x, y = value(lhs), value(rhs)
    if dimension_numbers is None:
        if not 1 <= x.aval.ndim <= 2 or not 1 <= y.aval.ndim <= 2:
            raise ArgumentError(
                f"lax.dot of {x.aval!r} and {y.aval!r}", fix="use plait.numpy.dot or dot_general"
            )
        dimension_numbers = (((x.aval.ndim - 1,), (0,)), ((), ()))
    return dot_general(
        x, y, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding
    )


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: object = None) -> Array:
    """Multiply stacks of matrices: all but the last two axes are shared.

    lhs: (..., m, k); rhs: (..., k, n); the result is (..., m, n).  precision: as in `dot_general`.
    Raises TypeRule if sizes disagree.

    >>> import plait
    >>> plait.lax.batch_matmul(plait.numpy.ones((5, 2, 3)), plait.numpy.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    x, y = value(lhs), value(rhs)
    n = x.aval.ndim
    if n < 2 or y.aval.ndim != n:
        raise ArgumentError(
            f"batch_matmul of {x.aval!r} and {y.aval!r}", fix="use plait.numpy.matmul"
        )
    stack = tuple(range(n - 2))
    return dot_general(x, y, (((n - 1,), (n - 2,)), (stack, stack)), precision)


def scaled_dot(
    lhs: ArrayLike, rhs: ArrayLike, *, lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None, dimension_numbers: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return (lhs * lhs_scale) times (rhs * rhs_scale), for narrow operands such as float8.

    Args:
      lhs, rhs: arrays, for example of float8.
      lhs_scale, rhs_scale: factors, of the operand's shape, or shorter along contracted axes, where
        one factor then applies to several neighbours; 1 if not given.
      dimension_numbers: as in `dot_general`; by default the product of two matrices, or of two
        stacks of them.
      preferred_element_type: dtype of the result, bfloat16 if not given; sums are at least float32.

    Raises TypeRule if sizes disagree, and for scales of other shapes.

    >>> import plait
    >>> x, scale = plait.numpy.ones((1, 4), "float8_e4m3fn"), plait.numpy.array([[1.0, 2.0]])
    >>> plait.lax.scaled_dot(x, plait.numpy.ones((4, 1), "float8_e4m3fn"), lhs_scale=scale).item()
    6.0
    """
    x, y = value(lhs), value(rhs)
    if dimension_numbers is None:
        if x.aval.ndim != y.aval.ndim or x.aval.ndim not in (2, 3):
            raise ArgumentError(
                f"scaled_dot of {x.aval!r} and {y.aval!r}",
                fix="give matrices, or stacks of them, or dimension_numbers",
            )
        n = x.aval.ndim
        stack = tuple(range(n - 2))
        dimension_numbers = (((n - 1,), (n - 2,)), (stack, stack))
    contract, shared = axis_pairs("scaled_dot", dimension_numbers)
    kind = dtype_of("bfloat16" if preferred_element_type is None else preferred_element_type)
    wide = kind if kind.itemsize >= 4 else FLOAT32
    x, y = (
        _scaled(convert(v, wide), s, axes)
        for v, s, axes in zip((x, y), (lhs_scale, rhs_scale), contract)
    )
    return convert(contracted(x, y, contract, shared, precision="highest"), kind)


def _scaled(x: Value, scale: object, summed: Sequence[int]) -> Any:
    if scale is None:
        return x
    s, shape = value(scale), x.aval.shape
    summed = [a + len(shape) if a < 0 else a for a in summed]
    fits = s.aval.ndim == len(shape) and all(
        n == m or (i in summed and m and n % m == 0)
        for i, (n, m) in enumerate(zip(shape, s.aval.shape))
    )
    if not fits:
        raise ShapeError(
            f"scaled_dot: {s.aval!r} are not scales for {x.aval!r}",
            fix="sizes are equal, or, along an axis that is summed over, divide the operand's",
        )
    parts = [(m, n // m if m else 1) for n, m in zip(shape, s.aval.shape)]
    spread = reshape(convert(s, x.aval.dtype), [d for m, _ in parts for d in (m, 1)])
    spread = reshape(broadcast_to(spread, [d for part in parts for d in part]), shape)
    return mul.bind(x, spread)
