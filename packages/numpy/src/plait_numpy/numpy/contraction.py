"""Products of matrices and vectors.

Invariant: each of them is one contraction, possibly with transpositions around it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.errors import ArgumentError, AxisError, ShapeError
from plait.ext.ops import contraction
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.sliding import slide
from plait.ext.ops.taking import take
from plait.ext.sizes import is_symbolic, max_dim, min_dim
from plait.ext.surface import dispatched, fused, value
from plait.ext.trace import Value
from plait.ext.types import COMPLEX, broadcast_shapes
from plait.typing import Array, ArrayLike, DTypeLike

from .masking import unwritten

__all__ = [
    "convolve", "correlate", "cross", "dot", "inner", "kron", "matmul", "matvec", "outer",
    "tensordot", "vdot", "vecdot", "vecmat",
]  # fmt: skip


@dispatched
def dot(
    a: ArrayLike, b: ArrayLike, *, precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Contract the last axis of `a` with the last but one of `b` (or its only one).

    Args:
      a, b: any shapes that fit; an operand without axes multiplies the other.
      precision: None, "default", "high" or "highest", for accelerators.
      preferred_element_type: dtype of the result.

    Raises TypeRule if sizes disagree.  As numpy.dot.

    >>> import numpy as np, plait
    >>> float(plait.numpy.dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    11.0
    """
    return contraction.dot(a, b, precision=precision, preferred_element_type=preferred_element_type)


@dispatched
def matmul(
    a: ArrayLike, b: ArrayLike, *, precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return the matrix product of vectors, matrices and stacks of matrices.

    Args:
      a: of shape (n,) or (..., m, n).
      b: of shape (n,) or (..., n, k); leading axes broadcast.
      precision, preferred_element_type: see `dot`.

    Raises TypeRule if sizes disagree.  As numpy.matmul.

    >>> import numpy as np, plait
    >>> plait.numpy.matmul(np.ones((5, 2, 3)), np.ones((3, 4))).shape
    (5, 2, 4)
    """
    return contraction.matmul(
        a, b, precision=precision, preferred_element_type=preferred_element_type
    )


@dispatched
def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return the inner product of the flattened arrays, `a` conjugated.  As numpy.vdot.

    Raises NotAnArrayError if an operand is not an array, and ShapeError if shapes do not fit.

    >>> import numpy as np, plait
    >>> complex(plait.numpy.vdot(np.array([1j]), np.array([2 + 0j])))
    -2j
    """
    return contraction.vdot(
        a, b, precision=precision, preferred_element_type=preferred_element_type
    )


@dispatched
def inner(
    a: ArrayLike, b: ArrayLike, *, precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Contract the last axes; an operand without axes multiplies the other.  As numpy.inner.

    Raises NotAnArrayError if an operand is not an array, and ShapeError if shapes do not fit.

    >>> import numpy as np, plait
    >>> plait.numpy.inner(np.ones((2, 3)), np.ones((4, 3))).shape
    (2, 4)
    """
    return contraction.inner(
        a, b, precision=precision, preferred_element_type=preferred_element_type
    )


@dispatched
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Multiply all elements of `a` by all of `b`, giving a matrix.  As numpy.outer.

    Raises NotAnArrayError if an operand is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.outer(np.array([1, 2]), np.array([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    unwritten(out)
    return contraction.outer(a, b)


@dispatched
def tensordot(
    a: ArrayLike, b: ArrayLike, axes: int | Sequence[Any] = 2, *, precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return the sum of products over axes.

    Args:
      a, b: arrays.
      axes: the number of last axes of `a` to contract with the first ones of `b`; or (axes of a,
        axes of b).
      precision, preferred_element_type: see `dot`.

    As numpy.tensordot.

    Raises NotAnArrayError if an operand is not an array, ArgumentError if one has fewer axes
    than are summed, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.tensordot(np.ones((2, 3, 4)), np.ones((3, 4, 5))).shape
    (2, 5)
    """
    return contraction.tensordot(
        a, b, axes, precision=precision, preferred_element_type=preferred_element_type
    )


def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return inner products along an axis, `x1` conjugated; the other axes broadcast.

    As numpy.vecdot.

    Raises NotAnArrayError if an operand is not an array, ShapeError if shapes do not fit, and
    AxisError if `x1` has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.vecdot(np.ones((2, 3)), np.ones(3)).tolist()
    [3.0, 3.0]
    """
    x, y = sh.convert_together([value(x1), value(x2)])
    x, y = (sh.moveaxis(v, sh.normal_axis(axis, v.aval.ndim), -1) for v in (x, y))
    x = el.conj(x) if x.aval.category == COMPLEX else x
    how = dict(precision=precision, preferred_element_type=preferred_element_type)
    out = contraction.matmul(
        sh.expand_dims(x, x.aval.ndim - 1), sh.expand_dims(y, y.aval.ndim), **how
    )
    return sh.squeeze(out, (-2, -1))


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply matrices by vectors; leading axes broadcast.

    Raises AxisError for a first operand with fewer than two axes.  As numpy.matvec.

    Raises NotAnArrayError if an operand is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.matvec(np.ones((2, 3)), np.ones(3)).tolist()
    [3.0, 3.0]
    """
    x1, y = value(x1), value(x2)
    _matrices("matvec", x1)
    return sh.squeeze(contraction.matmul(x1, sh.expand_dims(y, y.aval.ndim)), -1)


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply vectors, conjugated, by matrices; leading axes broadcast.

    Raises AxisError for a second operand with fewer than two axes.  As numpy.vecmat.

    Raises NotAnArrayError if an operand is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.vecmat(np.ones(2), np.ones((2, 3))).tolist()
    [2.0, 2.0, 2.0]
    """
    x = value(x1)
    x = el.conj(x) if x.aval.category == COMPLEX else x
    _matrices("vecmat", value(x2))
    return sh.squeeze(contraction.matmul(sh.expand_dims(x, x.aval.ndim - 1), x2), -2)


def _matrices(name: str, x: Value) -> None:
    if x.aval.ndim < 2:
        raise AxisError(f"{name} takes matrices, not {x.aval!r}", fix="use vecdot for vectors")


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the Kronecker product: each element of `a` times the whole of `b`.  As numpy.kron.

    Raises NotAnArrayError if an operand is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.kron(np.ones((2, 3)), np.ones((4, 5))).shape
    (8, 15)
    """
    x, y = value(a), value(b)
    n = max(x.aval.ndim, y.aval.ndim)
    x, y = (sh.expand_dims(v, tuple(range(n - v.aval.ndim))) for v in (x, y))
    shape = [p * q for p, q in zip(x.aval.shape, y.aval.shape)]
    x = sh.expand_dims(x, tuple(range(1, 2 * n, 2)))
    y = sh.expand_dims(y, tuple(range(0, 2 * n, 2)))
    return sh.reshape(el.mul(x, y), shape)


def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1,
    axis: int | None = None,
) -> Array:  # fmt: skip
    """Return the vector product.

    Args:
      a, b: vectors with two or three components along an axis; the other axes broadcast.
      axisa, axisb, axisc: the axis of the components in a, in b and in the result.
      axis: replaces the three arguments above.

    Two vectors in the plane have a scalar product: the result lacks the axis.  Raises AxisError for
    other numbers of components.  As numpy.cross.

    Raises NotAnArrayError if an operand is not an array, and OperandTypeError for booleans.

    >>> import numpy as np, plait
    >>> plait.numpy.cross(np.array([1.0, 0, 0]), np.array([0.0, 1, 0])).tolist()
    [0.0, 0.0, 1.0]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = value(a), value(b)
    at, bt = (
        sh.normal_axis(axisa, x.aval.ndim, "axisa"),
        sh.normal_axis(axisb, y.aval.ndim, "axisb"),
    )
    sizes = x.aval.shape[at], y.aval.shape[bt]
    if not {*sizes} <= {2, 3}:
        raise AxisError(
            f"cross of {x.aval!r} and {y.aval!r}: {sizes[0]} and {sizes[1]} components",
            fix="vectors have 2 or 3 components",
        )
    out = _cross(sh.moveaxis(x, at, -1), sh.moveaxis(y, bt, -1))
    if sizes == (2, 2):
        return out
    return sh.moveaxis(out, -1, sh.normal_axis(axisc, out.aval.ndim, "axisc"))


@fused
def _cross(x: Array, y: Array) -> Any:
    a, b = (
        [sh.squeeze(sh.slice_in_dim(v, i, i + 1, axis=-1), -1) for i in range(v.aval.shape[-1])]
        for v in (x, y)
    )
    minor = lambda i, j: el.sub(el.mul(a[i], b[j]), el.mul(a[j], b[i]))  # noqa: E731
    if len(a) == len(b) == 2:
        return minor(0, 1)
    a, b = (v if len(v) == 3 else [*v, el.mul(v[0], 0)] for v in (a, b))
    parts = [minor(1, 2), minor(2, 0), minor(0, 1)]
    shape = broadcast_shapes([p.aval.shape for p in parts])
    return sh.stack([sh.broadcast_to(p, shape) for p in parts], -1)


# ---- convolution of vectors ----------------------------------------------------------------


def _convolved(
    name: str, a: object, v: object, mode: str, flipped: bool, precision: Any, dtype: Any
) -> Any:
    x, y = sh.convert_together([value(a), value(v)])
    for u in (x, y):
        if u.aval.ndim != 1 or u.aval.size == 0:
            raise ShapeError(
                f"{name} takes vectors with elements, not {u.aval!r}", fix="use .ravel()"
            )
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"{name} has no mode {mode!r}", fix='use "full", "same" or "valid"')
    return _conv(x, y, mode=mode, flipped=flipped, precision=precision, dtype=dtype)


@fused
def _conv(x: Any, y: Any, *, mode: str, flipped: bool, precision: Any, dtype: Any) -> Any:
    n, m = x.aval.size, y.aval.size
    if is_symbolic((n, m)):
        return _symbolic_conv(x, y, mode, flipped, precision, dtype)
    if flipped:  # the order of operands does not matter
        x, y = (x, y) if n >= m else (y, x)
    elif y.aval.category == COMPLEX:
        y = el.conj(y)
    turned = not flipped and n < m
    if turned:
        x, y = y, x
    if flipped:
        y = sh.rev.bind(y, axes=(0,))
    long, short = max(n, m), min(n, m)
    full = short - 1
    low, high = {"full": (full, full), "same": (short // 2, short - short // 2 - 1),
                 "valid": (0, 0)}[mode]  # fmt: skip
    if not x.aval.inexact:
        return _by_places(x, y, low, high, long, short, turned, dtype)
    out = slide(x, y, [(low, high)], precision, dtype)
    return sh.rev.bind(out, axes=(0,)) if turned else out


def _symbolic_conv(x: Any, y: Any, mode: str, flipped: bool, precision: Any, dtype: Any) -> Any:
    """Convolve vectors of symbolic sizes when it is undecided which is longer: compute all
    overlaps, then slice out those of `mode`."""
    n, m = x.aval.size, y.aval.size
    short, long = max_dim(min_dim(n, m), 1), max_dim(n, m)
    if not flipped:
        # For an even number, the middle lies on the side of the longer operand.
        swapped = min_dim(max_dim(m - n, 0), 1)
        before = short - 1 - short // 2 + swapped * (1 - short % 2)
        y = el.conj(y) if y.aval.category == COMPLEX else y
    else:
        before = short - 1 - short // 2
        x, y = (y, x) if m.__class__ is not int else (x, y)
        n, m = x.aval.size, y.aval.size
        y = sh.rev.bind(y, axes=(0,))
    window = max_dim(m, 1)
    y = sh.pad(y, 0, [(0, window - m, 0)])
    begin, size = {"full": (0, max_dim(n + m - 1, 0)), "same": (before, long),
                   "valid": (short - 1, long - short + 1)}[mode]  # fmt: skip
    margin = window - 1, window - 1 + max_dim(1 - n, 0)  # no elements count as one zero
    if x.aval.inexact:
        out = slide(x, y, [margin], precision, dtype)
    else:
        out = _integer_overlaps(sh.pad(x, 0, [(*margin, 0)]), y, dtype)
    return sh.slice_in_dim(out, begin, begin + size)


def _integer_overlaps(x: Value, y: Value, dtype: Any) -> Any:
    """Return sums of products of `y` with equally many elements of `x`, starting at each
    position."""
    window = y.aval.size
    count = x.aval.size - window + 1
    if window.__class__ is int:
        rows = sh.stack([sh.slice_in_dim(x, i, i + count) for i in range(window)], 0)
    else:
        place = [sh.iota(np.int32, (window, count), a) for a in (0, 1)]
        rows = take(x, el.add(*place), mode="promise_in_bounds")
    return contraction.matmul(y, rows, preferred_element_type=dtype)


def _by_places(
    x: Any, y: Any, low: int, high: int, long: int, short: int, turned: bool, dtype: Any
) -> Any:
    """Convolve integers by summing products of shifted slices: exact, as convolutions need not
    be."""
    x = sh.pad(x, 0, [(low, high, 0)])
    count = long + low + high - short + 1
    rows = sh.stack([sh.slice_in_dim(x, i, i + count) for i in range(short)], 0)
    out = contraction.matmul(y, rows, preferred_element_type=dtype)
    return sh.rev.bind(out, axes=(0,)) if turned else out


def convolve(
    a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Convolve two vectors.

    Args:
      a, v: vectors.
      mode: "full", every overlap; "same", the length of the longer operand; "valid", whole
        overlaps.
      precision, preferred_element_type: see `dot`.

    Raises TypeRule for other modes, and for operands that are not vectors with elements.  As
    numpy.convolve.

    >>> import numpy as np, plait
    >>> plait.numpy.convolve(np.array([1.0, 2.0]), np.array([1.0, 1.0])).tolist()
    [1.0, 3.0, 2.0]
    """
    return _convolved("convolve", a, v, mode, True, precision, preferred_element_type)


def correlate(
    a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Correlate two vectors, `v` conjugated; the arguments are those of `convolve`.

    Raises TypeRule for other modes, and for operands that are not vectors with elements.  As
    numpy.correlate.

    >>> import numpy as np, plait
    >>> plait.numpy.correlate(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0])).tolist()
    [3.0, 5.0]
    """
    return _convolved("correlate", a, v, mode, False, precision, preferred_element_type)
