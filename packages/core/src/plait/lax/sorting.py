"""Sorting, and the greatest elements.

Invariant: nans are last, whatever their sign; a stable sort keeps the order of equal elements.
"""

from collections.abc import Sequence
from typing import Any, overload

from plait.typing import Array, ArrayLike

from .._api.surfaces import value
from .._base.errors import ArgumentError, OperandTypeError
from .._ops import sorting
from .._ops.elementwise import neg
from .._ops.shape import normal_axis
from .._ops.static_arguments import fixed, flag
from .._types.avals import FLOATING
from .._types.dims import Dim


@overload
def sort(
    operand: ArrayLike, dimension: int = ..., is_stable: bool = ..., num_keys: int = ...
) -> Array: ...
@overload
def sort(
    operand: tuple[ArrayLike, ...] | list[Any],
    dimension: int = ...,
    is_stable: bool = ...,
    num_keys: int = ...,
) -> tuple[Array, ...]: ...
def sort(
    operand: ArrayLike | Sequence[ArrayLike],
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Array | tuple[Array, ...]:
    """Sort along an axis, nans last; several arrays are sorted by the first `num_keys`.

    Args:
      operand: an array, or a sequence of arrays of one shape.
      dimension: the axis.
      is_stable: whether equal elements keep their order.
      num_keys: the number of arrays to sort by.

    Returns an array for an array, a tuple for a sequence.  Raises TypeRule if shapes differ,
    AxisError for an axis that operands lack.

    >>> import plait
    >>> plait.lax.sort(plait.numpy.array([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    stable = flag("sort", "is_stable", is_stable)
    several = isinstance(operand, tuple | list)
    keys, count = fixed("sort", "num_keys", num_keys), len(operand) if several else 1
    if not 1 <= keys <= count:
        raise ArgumentError(
            f"sort of {count} arrays by {keys} of them",
            fix="give arrays, and a num_keys from 1 to their number",
        )
    if several:
        return tuple(sorting.sort_together(operand, dimension, keys, stable))
    return sorting.sort(operand, dimension, stable=stable)


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Any, Any]:
    """Return (keys sorted along an axis, values in their order): arrays of one shape.

    Raises TypeRule if shapes differ, AxisError for an axis that they lack.

    >>> import plait
    >>> k, v = plait.lax.sort_key_val(plait.numpy.array([3, 1]), plait.numpy.array([10, 20]))
    >>> k.tolist(), v.tolist()
    ([1, 3], [20, 10])
    """
    k, v = sorting.sort_together([keys, values], dimension, 1, flag("sort", "is_stable", is_stable))
    return k, v


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> list[Array]:
    """Return [the k greatest elements along an axis, their indices as i32], the greatest first.

    Raises TypeRule if `k` exceeds the size, AxisError for an axis that the operand lacks.

    >>> import plait
    >>> [v.tolist() for v in plait.lax.top_k(plait.numpy.array([3, 1, 2]), 2)]
    [[3, 2], [0, 2]]
    """
    return sorting.top_k(operand, k if k.__class__ is Dim else fixed("top_k", "k", k), axis)


def approx_max_k(
    operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
) -> list[Array]:  # fmt: skip
    """Return [the k greatest elements along an axis, their indices as i32], the greatest first.

    Args:
      operand: floats.
      k: their number.
      reduction_dimension: the axis.
      recall_target: the part, up to 1, of the greatest elements that must be found; here all of
        them are.
      reduction_input_size_override: a larger axis size for computing the recall.
      aggregate_to_topk: if False, all elements are returned, sorted.

    Raises TypeRule for other dtypes, and if `k` exceeds the size.

    >>> import plait
    >>> [v.tolist() for v in plait.lax.approx_max_k(plait.numpy.array([3.0, 1.0, 2.0]), 2)]
    [[3.0, 2.0], [0, 2]]
    """
    x, at, count = _approximate("approx_max_k", operand, k, reduction_dimension, recall_target)
    return sorting.top_k(x, count if aggregate_to_topk else x.aval.shape[at], at)


def approx_min_k(
    operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
) -> list[Array]:  # fmt: skip
    """Return [the k least elements along an axis, their indices as i32], the least first; arguments
    and errors as in `approx_max_k`.

    Raises ShapeError if k is larger than the axis.

    >>> import plait
    >>> [v.tolist() for v in plait.lax.approx_min_k(plait.numpy.array([3.0, 1.0, 2.0]), 2)]
    [[1.0, 2.0], [1, 2]]
    """
    x, at, count = _approximate("approx_min_k", operand, k, reduction_dimension, recall_target)
    found, places = sorting.top_k(neg(x), count if aggregate_to_topk else x.aval.shape[at], at)
    return [neg(found), places]


def _approximate(name: str, operand: object, k: int, axis: int, recall: float) -> tuple:
    x = value(operand)
    if x.aval.category != FLOATING:
        raise OperandTypeError(f"{name} is for floating arrays, not {x.aval!r}", fix="use top_k")
    if not isinstance(recall, int | float) or not 0 < recall <= 1:
        raise ArgumentError(f"{name}: a recall of {recall!r}", fix="give a number up to 1, over 0")
    return x, normal_axis(axis, x.aval.ndim, "reduction_dimension"), fixed(name, "k", k)
