"""Conversion of trees of arrays to one vector, and back.

Invariant: the inverse restores the shape and dtype of every array.
"""

import math
from dataclasses import dataclass
from typing import Any

from ._base.errors import OperandTypeError, ShapeError
from ._base.lazy import advise as _advise
from ._base.tracebacks import border
from ._core.array import as_value
from ._ops.shape import concatenate, convert, fill, reshape, slice_
from ._types.avals import FLOATING, Aval, category, default_dtype, promote
from .tree import TreeDef, flatten

__all__ = ["ravel_pytree"]


@border
def ravel_pytree(pytree: object) -> "tuple[Any, Unravel]":
    """Return (vector, unravel): the arrays of a tree, end to end, and the inverse function.

    The vector has the dtype that all arrays are promoted to.  `unravel` takes a vector of that
    size, and restores the dtypes of the arrays: real arrays beside complex ones get real parts.  It
    raises TypeRule for a vector of another size, and for numbers that none of the arrays can hold:
    complex ones for real arrays, floats for integers.  Inverses for trees of equal structure and
    types are equal, and can be pickled.

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
    dtype = promote([v.aval for v in values])[0] if values else None

    vectors = [reshape(convert(v, dtype), (math.prod(v.aval.shape),)) for v in values]
    return _joined(vectors), Unravel(tree, tuple(v.aval for v in values))


@dataclass(frozen=True, slots=True)
class Unravel:
    """The inverse function from a vector to a tree.

    Two are equal if their trees have the same structure and types, so a jitted function with such a
    static argument is compiled once for them.

    Args:
      tree: the structure.
      avals: the types of its leaves.
    """

    tree: TreeDef
    avals: tuple[Aval, ...]

    @border
    def __call__(self, flat: Any) -> Any:
        """Return the tree of a vector; raise ShapeError if the vector has another size."""
        flat = as_value(flat)
        sizes = [math.prod(a.shape) for a in self.avals]
        if flat.aval.shape != (sum(sizes),):
            raise ShapeError(
                f"unravel needs a vector of {sum(sizes)} elements, not {flat.aval!r}",
                fix="give it one of the shape that ravel_pytree gave",
            )
        dtype = promote(self.avals)[0] if self.avals else None
        if dtype is not None and flat.aval.category > category(dtype):
            raise OperandTypeError(
                f"unravel was given {flat.aval!r} for a vector of {dtype}, whose numbers would be "
                "cut off",
                fix="give it real numbers for real arrays and integers for integers, or ravel a "
                "tree of arrays that hold the result",
            )
        parts, at = [], 0
        for aval, n in zip(self.avals, sizes):
            part = slice_.bind(flat, starts=(at,), limits=(at + n,), strides=(1,))
            parts.append(reshape(convert(part, aval.dtype), aval.shape))
            at += n
        return self.tree.unflatten(parts)


def _joined(vectors: list) -> Any:
    if not vectors:
        return fill(0.0, Aval((0,), default_dtype(FLOATING)))
    return vectors[0] if len(vectors) == 1 else concatenate(vectors)


_advise("plait.flatten_util", globals())
