"""Trees of arrays as one vector, and back.

Invariant: the way back gives every array the shape and dtype that it had.
"""

import math
from collections.abc import Callable
from typing import Any

from ._base.errors import (
    OperandTypeError,
    ShapeError,
)
from ._core.array import as_value
from ._ops.shape import concatenate, convert, fill, reshape, slice_
from ._types.avals import FLOATING, Aval, category, default_dtype, promote
from .tree import flatten

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """(vector, unravel): the arrays of a tree, end to end, and the function that undoes it.

    The vector has the dtype that all of them meet in.  `unravel` takes a vector of that size, and
    gives the arrays their own dtypes again: where real arrays lie beside complex ones, they get
    real parts.  It raises TypeRule for a vector of another size, and for one whose numbers none of
    the arrays holds: complex ones for real arrays, floats for integers.

    >>> import plait
    >>> flat, unravel = plait.flatten_util.ravel_pytree({"w": plait.numpy.ones((2, 2)), "b": 3.0})
    >>> flat
    Array([3., 1., 1., 1., 1.], dtype=float32)
    >>> unravel(flat * 2)["w"]
    Array([[2., 2.],
           [2., 2.]], dtype=float32)
    """
    leaves, tree = flatten(pytree)
    values = [as_value(x) for x in leaves]
    avals = [v.aval for v in values]
    sizes = [math.prod(a.shape) for a in avals]
    total = sum(sizes)
    dtype = promote(avals)[0] if avals else None

    def unravel(flat: Any) -> Any:
        flat = as_value(flat)
        if flat.aval.shape != (total,):
            raise ShapeError(
                f"unravel needs a vector of {total} elements, not {flat.aval!r}",
                fix="give it one of the shape that ravel_pytree gave",
            )
        if avals and flat.aval.category > category(dtype):
            raise OperandTypeError(
                f"unravel was given {flat.aval!r} for a vector of {dtype}, whose numbers would be "
                "cut off",
                fix="give it real numbers for real arrays and integers for integers, or ravel a "
                "tree of arrays that hold the result",
            )
        parts, at = [], 0
        for aval, n in zip(avals, sizes):
            part = slice_.bind(flat, starts=(at,), limits=(at + n,), strides=(1,))
            parts.append(reshape(convert(part, aval.dtype), aval.shape))
            at += n
        return tree.unflatten(parts)

    vectors = [reshape(convert(v, dtype), (n,)) for v, n in zip(values, sizes)]
    return _joined(vectors), unravel


def _joined(vectors: list) -> Any:
    if not vectors:
        return fill(0.0, Aval((0,), default_dtype(FLOATING)))
    return vectors[0] if len(vectors) == 1 else concatenate(vectors)
