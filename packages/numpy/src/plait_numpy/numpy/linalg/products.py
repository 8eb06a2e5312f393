"""Products of matrices and chains of them, with the arguments of the array API standard.

Invariant: functions with the name of one in `plait.numpy` compute the same.
"""

from collections.abc import Sequence
from typing import Any

from plait.errors import ShapeError
from plait.ext.ops.shape import expand_dims, squeeze
from plait.ext.sizes import is_symbolic
from plait.ext.surface import value
from plait.typing import Array, ArrayLike, DTypeLike

from .. import contraction, manipulation, matrices

__all__ = [
    "cross", "diagonal", "matmul", "matrix_transpose", "multi_dot", "outer", "tensordot", "trace",
    "vecdot",
]  # fmt: skip

matrix_transpose = manipulation.matrix_transpose


def matmul(
    x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return the matrix product; see `plait.numpy.matmul`.  As numpy.linalg.matmul.

    Raises NotAnArrayError if an operand is not an array, and ShapeError if shapes do not fit.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.matmul(np.ones((5, 2, 3)), np.ones((3, 4))).shape
    (5, 2, 4)
    """
    how = dict(precision=precision, preferred_element_type=preferred_element_type)
    return contraction.matmul(x1, x2, **how)


def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return inner products along an axis, `x1` conjugated; see `plait.numpy.vecdot`.

    As numpy.linalg.vecdot.

    Raises NotAnArrayError if an operand is not an array, ShapeError if shapes do not fit, and
    AxisError if `x1` has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.vecdot(np.ones((2, 3)), np.ones(3)).tolist()
    [3.0, 3.0]
    """
    how = dict(precision=precision, preferred_element_type=preferred_element_type)
    return contraction.vecdot(x1, x2, axis=axis, **how)


def tensordot(
    x1: ArrayLike, x2: ArrayLike, /, *, axes: int | Sequence[Any] = 2, precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return the sum of products over axes; see `plait.numpy.tensordot`.  As
    numpy.linalg.tensordot.

    Raises NotAnArrayError if an operand is not an array, ArgumentError if one has fewer axes
    than are summed, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.tensordot(np.ones((2, 3)), np.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    how = dict(precision=precision, preferred_element_type=preferred_element_type)
    return contraction.tensordot(x1, x2, axes, **how)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply all elements of a vector by all of another.

    Raises TypeRule for operands that are not vectors.  As numpy.linalg.outer.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.outer(np.array([1, 2]), np.array([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    x, y = value(x1), value(x2)
    if x.aval.ndim != 1 or y.aval.ndim != 1:
        raise ShapeError(
            f"outer takes vectors, not {x.aval!r} and {y.aval!r}", fix="use plait.numpy.outer"
        )
    return contraction.outer(x, y)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Return the vector product of vectors with three components along an axis; others broadcast.

    Raises TypeRule for other numbers of components.  As numpy.linalg.cross.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.cross(np.array([1.0, 0, 0]), np.array([0.0, 1, 0])).tolist()
    [0.0, 0.0, 1.0]
    """
    x, y = value(x1), value(x2)
    if x.aval.shape[axis] != 3 or y.aval.shape[axis] != 3:
        raise ShapeError(
            f"cross takes vectors with 3 components, not {x.aval!r} and {y.aval!r}",
            fix="use plait.numpy.cross for vectors in the plane",
        )
    return contraction.cross(x, y, axis=axis)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Return the diagonals of matrices, the last two axes.  As numpy.linalg.diagonal.

    Raises NotAnArrayError if `x` is not an array, and AxisError if it has fewer than two axes.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.diagonal(np.eye(3)).tolist()
    [1.0, 1.0, 1.0]
    """
    return matrices.diagonal(x, offset, axis1=-2, axis2=-1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return the sums of the diagonals of matrices, the last two axes.  As numpy.linalg.trace.

    Raises NotAnArrayError if `x` is not an array, and AxisError if it has fewer than two axes.

    >>> import numpy as np, plait
    >>> float(plait.numpy.linalg.trace(np.eye(3)))
    3.0
    """
    return matrices.trace(x, offset, axis1=-2, axis2=-1, dtype=dtype)


# ---- chains --------------------------------------------------------------------------------


def multi_dot(arrays: Sequence[Any], *, precision: object = None) -> Array:
    """Multiply several matrices, in the order that takes the fewest multiplications.

    Args:
      arrays: two or more; the first and the last may be vectors, all others are matrices.
      precision: None, "default", "high" or "highest", for accelerators.

    Raises TypeRule for fewer, or for other numbers of axes.  As numpy.linalg.multi_dot.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.multi_dot([np.ones((2, 9)), np.ones((9, 9)), np.ones(9)]).tolist()
    [81.0, 81.0]
    """
    xs = [value(x) for x in arrays]
    ranks = [x.aval.ndim for x in xs]
    ends = {*ranks[:1], *ranks[-1:]}
    if len(xs) < 2 or not ends <= {1, 2} or any(n != 2 for n in ranks[1:-1]):
        raise ShapeError(
            f"multi_dot of arrays with {ranks} axes",
            fix="give two matrices or more; the first and the last may be vectors",
        )
    row, column = ranks[0] == 1, ranks[-1] == 1
    xs[0] = expand_dims(xs[0], 0) if row else xs[0]
    xs[-1] = expand_dims(xs[-1], 1) if column else xs[-1]
    sizes = [x.aval.shape[0] for x in xs] + [xs[-1].aval.shape[1]]
    out = _multiplied(xs, _splits(sizes), 0, len(xs) - 1, precision)
    axes = (0,) * row + (1,) * column
    return squeeze(out, axes) if axes else out


def _splits(sizes: list) -> dict | None:
    """Map (first, last) to the position to divide at; return None if sizes are not known.

    The textbook dynamic programme (Cormen et al., "Introduction to algorithms", section 15.2).
    """
    if is_symbolic(sizes):
        return None
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    best: dict = {}
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            price = lambda k, i=i, j=j: (  # noqa: E731
                cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
            )
            best[i, j] = k = min(range(i, j), key=price)
            cost[i, j] = price(k)
    return best


def _multiplied(xs: list, best: dict | None, i: int, j: int, precision: Any) -> Any:
    if i == j:
        return xs[i]
    k = j - 1 if best is None else best[i, j]
    left, right = (_multiplied(xs, best, *span, precision) for span in ((i, k), (k + 1, j)))
    return contraction.matmul(left, right, precision=precision)
