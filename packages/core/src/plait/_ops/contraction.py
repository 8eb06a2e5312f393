"""Contractions: one primitive for all products that are summed over common axes.

Invariant: the first axes of a result are the shared ones, in the order of `shared`.  The remaining
axes of the left operand follow, then those of the right one.  `out_dtype` is always given.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from .._base.config import config
from .._base.errors import ArgumentError, AxisError, OperandTypeError, ShapeError
from .._base.jaxlib_api import IrValue
from .._base.lazy import later
from .._base.pjrt_plugins import GPUS
from .._core.array import as_value
from .._core.dispatch import dispatched
from .._core.primitive import Ints, primitive
from .._types.avals import (
    FLOAT32,
    INT32,
    INTEGER,
    NOTHING,
    Aval,
    asked_dtype,
    broadcast_shapes,
    dtype_of,
    nothing_to_do,
)
from .._types.dims import is_symbolic, product
from .._xla.cpu_forms import cpu_form_rules
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import attr
from ..typing import Array
from .elementwise import conj, mul
from .shape import convert, convert_together, given_axes, normal_axes, reshape, squeeze, transpose
from .static_arguments import fixed_each
from .widening import judge_widening

__all__ = [
    "axis_pairs", "contracted", "dot", "dot_general", "inner", "matmul", "normal_precision",
    "outer", "product_operands", "tensordot", "vdot",
]  # fmt: skip

PRECISIONS = ("default", "high", "highest")
_PRECISION_NAMES = {
    "default": "default",
    "fastest": "default",
    "bfloat16": "default",
    "high": "high",
    "bfloat16_3x": "high",
    "tensorfloat32": "high",
    "highest": "highest",
    "float32": "highest",
    # Algorithms: the dtypes of operands and sums, and the number of products that make up one.
    "any_f8_any_f8_f32": "default",
    "any_f8_any_f8_f32_fast_accum": "default",
    "any_f8_any_f8_any": "default",
    "any_f8_any_f8_any_fast_accum": "default",
    "f16_f16_f16": "default",
    "f16_f16_f32": "default",
    "bf16_bf16_bf16": "default",
    "bf16_bf16_f32": "default",
    "bf16_bf16_f32_x3": "high",
    "bf16_bf16_f32_x6": "highest",
    "bf16_bf16_f32_x9": "highest",
    "tf32_tf32_f32": "high",
    "tf32_tf32_f32_x3": "highest",
    "f32_f32_f32": "highest",
    "f64_f64_f64": "highest",
}

# ---- the primitive -------------------------------------------------------------------------


def _check_axes(x: Aval, axes: Sequence[int], which: str) -> None:
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.ndim for a in axes):
        raise AxisError(
            f"dot_general: {tuple(axes)} do not name axes of the {which} operand {x!r}, each once",
            fix="an axis is contracted, or shared, or neither",
        )


@primitive("core.dot_general")
def dot_general(
    x: Aval,
    y: Aval,
    *,
    contract: tuple[Ints, Ints],
    shared: tuple[Ints, Ints],
    precision: str,
    out_dtype: np.dtype,
) -> Aval:
    """Multiply elements and sum over the `contract` axes: (those of x, those of y).  Elements are
    paired along the `shared` axes."""
    if NOTHING in (x.category, y.category):
        raise nothing_to_do([x, y])
    (cx, cy), (bx, by) = contract, shared
    _check_axes(x, (*cx, *bx), "left")
    _check_axes(y, (*cy, *by), "right")
    left, right = ([v.shape[a] for a in axes] for v, axes in ((x, cx + bx), (y, cy + by)))
    if len(cx) != len(cy) or left != right:
        raise ShapeError(
            f"{x!r} and {y!r} cannot be contracted over axes {cx} and {cy}"
            + (f", sharing {bx} and {by}" if bx or by else ""),
            fix="sizes of axes that meet must be equal",
        )
    if x.dtype != y.dtype:
        raise OperandTypeError(
            f"operands of a contraction must have one dtype, not {x!r} and {y!r}",
            fix="convert one of them with .astype, or use plait.numpy.matmul",
        )
    if precision not in PRECISIONS:
        raise ArgumentError(
            f"there is no precision {precision!r}", fix=f"use one of {', '.join(PRECISIONS)}"
        )
    shape = [x.shape[a] for a in bx]
    shape += [d for i, d in enumerate(x.shape) if i not in cx and i not in bx]
    shape += [d for i, d in enumerate(y.shape) if i not in cy and i not in by]
    return Aval(shape, out_dtype, x.weak_type and y.weak_type and out_dtype == x.dtype)


@cache
def _numbers(contract: tuple, shared: tuple):
    parts = zip(
        ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting"),
        (*shared, *contract),
    )
    text = ", ".join(f"{name}_dimensions = {list(axes)}" for name, axes in parts)
    return attr(f"#stablehlo.dot<{text}>")


def precision_config(precision: str) -> dict[str, Any]:
    """Return the attribute of an operation with two operands; empty for the default."""
    if precision == "default":
        return {}
    one = f"#stablehlo<precision {precision.upper()}>"
    return {"precision_config": attr(f"[{one}, {one}]")}


@cpu_form_rules.rule(dot_general)
def _(avals: Sequence[Aval], /, **params: object) -> Any:
    return later("_ops.contraction_forms").form_of(avals, **params)


@lower_rules.rule(dot_general)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    contract: tuple[tuple[Any, ...], ...],
    shared: tuple[tuple[Any, ...], ...],
    precision: str,
    out_dtype: np.dtype,
):
    numbers = _numbers(contract, shared)
    config = precision_config(precision)
    if e.unit.counts_gains:
        gains = later("_xla.product_threads")
        e.unit.gain += gains.of_contraction(ins[0], ins[1], contract, shared)
    if _is_doubled(e.unit.platforms, ins[0], contract[0]):
        kind = _wide_enough(outs[0])
        wide = [aval.with_dtype(kind) for aval in (*ins, *outs)]
        xs = [e.op("stablehlo.convert", [x], aval) for x, aval in zip(xs, wide)]
        made = e.op("stablehlo.dot_general", xs, wide[2], dot_dimension_numbers=numbers, **config)
        return e.op("stablehlo.convert", [made], outs[0])
    return e.op("stablehlo.dot_general", xs, outs[0], dot_dimension_numbers=numbers, **config)


def _wide_enough(out: Aval) -> np.dtype:
    """Return a dtype of at least 32 bits whose sums have the values of `out` after conversion."""
    if out.dtype.itemsize >= 4:
        return out.dtype
    return INT32 if out.category == INTEGER else FLOAT32


def _is_doubled(platforms: tuple[str, ...], x: Aval, contract: Sequence[Any]) -> bool:
    """Return True if a GPU's compiler may return twice the product of such integers.

    jaxlib 0.11 does so for integers of 8 bits unless the library multiplies them, which it does for
    sums of a multiple of 16 products.
    """
    if x.dtype.itemsize > 1 or x.category != INTEGER or GPUS.keys().isdisjoint(platforms):
        return False
    sizes = [x.shape[a] for a in contract]
    return is_symbolic(sizes) or math.prod(sizes) % 16 != 0


# ---- functions for users -------------------------------------------------------------------


def normal_precision(precision: object) -> str:
    """Convert a precision that users may write to one of `PRECISIONS`.

    It may be None, a name, an object with a `name`, or a pair of these; the greater counts.  An
    algorithm selects a precision that is at least as exact.

    Raises TypeRule for anything else.
    """
    if precision.__class__ is str and precision in PRECISIONS:
        return precision
    if precision is None:
        return config.default_matmul_precision
    if hasattr(precision, "accumulation_type"):
        return _as_exact(precision)
    if isinstance(precision, tuple | list):
        both = [normal_precision(p) for p in precision]
        return max(both, key=PRECISIONS.index) if both else "default"
    name = str(getattr(precision, "name", precision)).lower()
    if name not in _PRECISION_NAMES:
        raise ArgumentError(
            f"there is no precision {precision!r}", fix=f"use one of {', '.join(PRECISIONS)}"
        )
    return _PRECISION_NAMES[name]


def _as_exact(algorithm: Any) -> str:
    kinds = [dtype_of(algorithm.lhs_precision_type), dtype_of(algorithm.rhs_precision_type)]
    if algorithm.num_primitive_operations >= 6 or any(k.itemsize >= 4 for k in kinds):
        return "highest"
    return "high" if algorithm.num_primitive_operations >= 3 else "default"


def product_operands(x: Any, y: Any, dtype: Any = None) -> tuple[Any, Any, np.dtype]:
    """Return both operands in one dtype, and the dtype of the result."""
    given = x, y
    x, y = as_value(x), as_value(y)
    a, b = x.aval, y.aval
    if a.dtype != b.dtype or a.weak_type != b.weak_type:
        x, y = convert_together([x, y])
        if x.aval.dtype.itemsize >= 8:
            judge_widening(given, x.aval.dtype)
    if dtype is None or dtype is x.aval.dtype:
        return x, y, x.aval.dtype
    return x, y, asked_dtype(dtype)


def contracted(
    x: Any,
    y: Any,
    contract: Sequence[Any],
    shared: Sequence[Any] = ((), ()),
    *,
    precision: object = None,
    preferred_element_type: Any = None,
) -> Any:
    """Multiply elements and sum over axes.

    Args:
      x, y: arrays, promoted to one dtype.
      contract: (axes of x, axes of y) that are summed over, in pairs.
      shared: (axes of x, axes of y) along which elements are paired.
      precision: None, "default", "high" or "highest": of the products, on accelerators.
      preferred_element_type: dtype of the result; by default that of the operands.

    Returns an array whose axes are the shared ones, the rest of x's, the rest of y's.
    Raises TypeRule if sizes disagree, AxisError for axes out of range.

    >>> import numpy as np
    >>> contracted(np.ones((2, 3)), np.ones((4, 3)), ((1,), (1,))).shape
    (2, 4)
    """
    x, y, dtype = product_operands(x, y, preferred_element_type)
    n, m = x.aval.ndim, y.aval.ndim
    (cx, cy), (bx, by) = contract, shared
    return dot_general.bind(
        x, y,
        contract=(normal_axes(tuple(cx), n), normal_axes(tuple(cy), m)),
        shared=(normal_axes(tuple(bx), n), normal_axes(tuple(by), m)),
        precision=normal_precision(precision), out_dtype=dtype,
    )  # fmt: skip


@dispatched
def matmul(x: Any, y: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Return the matrix product, as numpy's: of vectors, of matrices, of stacks of matrices.

    Args:
      x: of shape (n,) or (..., m, n).
      y: of shape (n,) or (..., n, k); leading axes broadcast with those of x.
      precision: None, "default", "high" or "highest".
      preferred_element_type: dtype of the result; by default that of the operands, promoted.

    Returns an array of shape (..., m, k), without m or k where an operand is a vector.
    Raises TypeRule for operands without axes, or sizes that disagree.

    >>> import numpy as np
    >>> matmul(np.ones((5, 1, 2, 3)), np.ones((4, 3, 6))).shape
    (5, 4, 2, 6)
    """
    x, y, dtype = product_operands(x, y, preferred_element_type)
    params = _product(x.aval, y.aval, normal_precision(precision), dtype)
    return dot_general.bind(x, y, **params) if "contract" in params else _stacks(x, y, params)


def _to_meet(a: Aval, b: Aval) -> str:
    """Return what to write for operands of a product whose sizes differ."""
    rule = "these sizes must be equal"
    if a.ndim > 1 and b.ndim > 1 and a.shape[-1] == b.shape[-1]:
        return f"{rule}: the right operand transposed, y.mT, fits"
    if a.ndim > 1 and b.ndim > 1 and a.shape[-2] == b.shape[-2]:
        return f"{rule}: the left operand transposed, x.mT, fits"
    if a.ndim and b.ndim > 1:
        wanted = (*b.shape[:-2], a.shape[-1], b.shape[-1])
        return f"{rule}: a right operand of shape {wanted} fits the left one"
    return rule


@cache
def _product(a: Aval, b: Aval, precision: str, dtype: np.dtype) -> dict[str, Any]:
    """Return the parameters of a product of vectors and matrices; for stacks, only those that do
    not depend on the leading axes."""
    if not a.ndim or not b.ndim:
        raise ShapeError(
            f"matmul takes arrays with axes, not {a!r} and {b!r}", fix="multiply with * instead"
        )
    n, m = a.ndim, max(b.ndim - 2, 0)
    if a.shape[-1] != b.shape[m]:
        raise ShapeError(
            f"matmul of {a!r} and {b!r}: the last axis of the left operand has size "
            f"{a.shape[-1]}, the axis it meets {b.shape[m]}",
            fix=_to_meet(a, b),
        )
    config = dict(precision=precision, out_dtype=dtype)
    if n > 2 or b.ndim > 2:
        return config
    return dict(contract=((n - 1,), (m,)), shared=((), ()), **config)


def _stacks(x: Array, y: Array, config: dict[str, Any]) -> Any:
    """Multiply stacks of matrices.

    Leading axes that both operands have are shared.  Where one has size 1 or is missing, the axis
    belongs to the other operand alone, and nothing is repeated in memory.
    """
    lead = broadcast_shapes([x.aval.shape[:-2], y.aval.shape[:-2]])
    k = len(lead)
    x, left = _leading(x, lead)
    y, right = _leading(y, lead)
    both = [i for i in range(k) if i in left and i in right]
    n, m = x.aval.ndim, y.aval.ndim
    shared = tuple([left.index(i) for i in both]), tuple([right.index(i) for i in both])
    out = dot_general.bind(
        x, y, contract=((n - 1,), (max(m - 2, len(right)),)), shared=shared, **config
    )
    # The key of each axis of the result: leading axes by number, then the row, then the column.
    order = [*both, *(i for i in left if i not in both)]
    order += [k] * (n - len(left) - 1)
    order += [i for i in right if i not in both]
    order += [k + 1] * (m - len(right) - 1)
    return transpose(out, tuple(sorted(range(len(order)), key=order.__getitem__)))


def _leading(x: Any, lead: Sequence[Any]) -> tuple[Any, list[int]]:
    """Return (`x` without leading axes that are repeated, numbers of those it keeps).

    A leading axis of size 1 is kept only if the result's has size 1 too.
    """
    n = max(x.aval.ndim - 2, 0)
    first = len(lead) - n
    sizes = x.aval.shape[:n]
    one = lambda d: d.__class__ is int and d == 1  # noqa: E731
    gone = tuple([i for i, d in enumerate(sizes) if one(d) and not one(lead[first + i])])
    kept = [first + i for i in range(n) if i not in gone]
    return (squeeze(x, gone) if gone else x), kept


def dot(x: Any, y: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Return numpy's dot: the last axis of x meets the last but one of y (its only one).  Operands
    without axes multiply.

    >>> import numpy as np
    >>> dot(np.ones((2, 3)), np.ones((4, 3, 5))).shape
    (2, 4, 5)
    """
    x, y, dtype = product_operands(x, y, preferred_element_type)
    n, m = x.aval.ndim, y.aval.ndim
    if not n or not m:
        return convert(mul(x, y), dtype)
    contract = ((n - 1,), (max(m - 2, 0),))
    return contracted(x, y, contract, precision=precision, preferred_element_type=dtype)


def tensordot(
    x: Any, y: Any, axes: Any = 2, *, precision: object = None, preferred_element_type: Any = None
) -> Any:
    """Return numpy's tensordot: the sum of products over `axes`.

    Args:
      x, y: arrays.
      axes: a number of last axes of x that meet as many first ones of y; or (axes of x, axes
        of y), ints or sequences.

    Raises AxisError for axes out of range, ArgumentError for more axes than an operand has and
    for different numbers of them, TypeRule if sizes disagree.

    >>> import numpy as np
    >>> tensordot(np.ones((2, 3, 4)), np.ones((4, 3, 5)), ((1, 2), (1, 0))).shape
    (2, 5)
    """
    x, y, dtype = product_operands(x, y, preferred_element_type)
    n, m = x.aval.ndim, y.aval.ndim
    if hasattr(axes, "__index__") and not getattr(axes, "ndim", 0):
        k = axes.__index__()
        if not 0 <= k <= min(n, m):
            raise ArgumentError(
                f"tensordot over {k} axes of {x.aval!r} and {y.aval!r}",
                fix=f"contract 0 to {min(n, m)} axes",
            )
        contract = tuple(range(n - k, n)), tuple(range(k))
    else:
        cx, cy = map(given_axes, axes)
        if len({len(c) if isinstance(c, tuple) else 1 for c in (cx, cy)}) > 1:
            raise ArgumentError(
                f"tensordot: axes {cx} of the first operand and {cy} of the second",
                fix="give as many axes of each",
            )
        contract = normal_axes(cx, n), normal_axes(cy, m)
    return contracted(x, y, contract, precision=precision, preferred_element_type=dtype)


def vdot(x: Any, y: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Return numpy's vdot: the inner product of the flattened arrays, the left one conjugated.

    >>> import numpy as np
    >>> vdot(np.array([1j, 2]), np.array([1j, 1])).item()
    (3+0j)
    """
    x, y, dtype = product_operands(x, y, preferred_element_type)
    x, y = (reshape(v, (product(v.aval.shape),)) for v in (x, y))
    x = conj(x) if x.aval.dtype.kind == "c" else x
    return contracted(x, y, ((0,), (0,)), precision=precision, preferred_element_type=dtype)


def inner(x: Any, y: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Return numpy's inner: the sum of products over the last axes; operands without axes multiply.

    >>> import numpy as np
    >>> inner(np.ones((2, 3)), np.ones((4, 3))).shape
    (2, 4)
    """
    x, y, dtype = product_operands(x, y, preferred_element_type)
    n, m = x.aval.ndim, y.aval.ndim
    if not n or not m:
        return convert(mul(x, y), dtype)
    contract = ((n - 1,), (m - 1,))
    return contracted(x, y, contract, precision=precision, preferred_element_type=dtype)


def outer(x: Any, y: Any) -> Any:
    """Return numpy's outer: products of all elements of x with all elements of y.

    >>> import numpy as np
    >>> outer(np.array([1, 2]), np.array([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    x, y, _ = product_operands(x, y)
    return mul(reshape(x, (x.aval.size, 1)), reshape(y, (1, y.aval.size)))


def axis_pairs(what: str, given: Any) -> Any:
    """Return ((axes, axes) contracted, (axes, axes) shared), as tuples."""
    try:
        contract, shared = given
        (a, b), (c, d) = contract, shared
    except (TypeError, ValueError):
        raise AxisError(
            f"{what}: expected dimension_numbers, got {given!r}",
            fix="write ((axes of lhs, axes of rhs) to sum over, (axes of lhs, axes of rhs) shared)",
        ) from None
    each = [fixed_each(what, "dimension_numbers", v) for v in (a, b, c, d)]
    return (each[0], each[1]), (each[2], each[3])
