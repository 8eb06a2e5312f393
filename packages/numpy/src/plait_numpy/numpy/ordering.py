"""Sorting.

Invariant: the order is total: nans come last, complex numbers are ordered by real part, then by
imaginary part.
"""

from collections.abc import Sequence
from typing import Any

from plait.errors import ArgumentError, OperandTypeError, Unsupported
from plait.ext import Aval, Value
from plait.ext.ops import sorting
from plait.ext.ops.reduction import dtype_for_indices
from plait.ext.ops.shape import convert, fill, iota, normal_axis
from plait.ext.surface import value
from plait.ext.types import COMPLEX, INTEGER, asked_dtype, category
from plait.typing import Array, ArrayLike, DTypeLike


def _stable(kind: Any, order: object, stable: bool) -> bool:
    if order is not None:
        raise Unsupported("arrays have no fields to order by", fix="leave `order` out")
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        raise ArgumentError(f"sort has no kind {kind!r}", fix="leave `kind` out")
    return True if stable is None else bool(stable)


def sort(
    a: ArrayLike, axis: int | None = -1, *, kind: object = None, order: None = None,
    stable: bool = True, descending: bool = False,
) -> Array:  # fmt: skip
    """Sort along an axis, nans last.

    Args:
      a: any shape and dtype.
      axis: axis to sort along; None sorts the flattened array.
      kind: accepted for compatibility.
      order: must be None.
      stable: whether equal elements keep their order.
      descending: whether the greatest come first, nans before all.

    Raises TypeRule if `order` is given, and for an unknown `kind`.  As numpy.sort.

    Raises AxisError for an axis that `a` lacks.

    >>> import numpy as np, plait
    >>> plait.numpy.sort(np.array([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    return sorting.sort(a, axis, stable=_stable(kind, order, stable), descending=bool(descending))


def argsort(
    a: ArrayLike, axis: int | None = -1, *, kind: object = None, order: None = None,
    stable: bool = True, descending: bool = False, dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return the indices that sort along an axis; arguments are those of `sort`.

    Raises TypeRule if `order` is given, for an unknown `kind`, and for a dtype that is not an
    integer.  As numpy.argsort.

    Raises AxisError for an axis that `a` lacks.

    >>> import numpy as np, plait
    >>> plait.numpy.argsort(np.array([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    stable = _stable(kind, order, stable)
    if dtype is not None and category(asked_dtype(dtype)) != INTEGER:
        raise OperandTypeError(
            f"argsort: dtype must be an integer dtype, not {asked_dtype(dtype)}",
            fix='write dtype="int32", or leave it out',
        )
    out = sorting.argsort(a, axis, stable=stable, descending=bool(descending))
    return out if dtype is None else convert(out, asked_dtype(dtype))


def lexsort(keys: Sequence[ArrayLike], axis: int = -1) -> Array:
    """Return the indices that sort by several keys, the last one first.

    Args:
      keys: arrays of one shape, or the rows of one.
      axis: axis to sort along.

    Raises TypeRule without keys.  As numpy.lexsort.

    >>> import numpy as np, plait
    >>> plait.numpy.lexsort((np.array([3, 1, 2]), np.array([0, 0, 1]))).tolist()
    [1, 0, 2]
    """
    xs: Sequence[Any] = list(value(keys)) if isinstance(keys, Value) else [value(k) for k in keys]
    if not xs:
        raise OperandTypeError("lexsort needs a key", fix="give at least one")
    shape = xs[0].aval.shape
    if not shape:  # one element of each key: the order of one
        normal_axis(axis, 1)
        return fill(0, Aval((), dtype_for_indices(1)))
    at = normal_axis(axis, len(shape))
    positions = iota(dtype_for_indices(shape[at]), shape, at)
    return sorting.sort_together([*xs[::-1], positions], at, num_keys=len(xs))[-1]


def sort_complex(a: ArrayLike) -> Array:
    """Sort along the last axis, as complex numbers.  As numpy.sort_complex.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.sort_complex(np.array([2.0, 1.0])).tolist()
    [(1+0j), (2+0j)]
    """
    out = sorting.sort(a)
    if out.aval.category == COMPLEX:
        return out
    return convert(out, "complex128" if out.aval.dtype.itemsize == 8 else "complex64")
