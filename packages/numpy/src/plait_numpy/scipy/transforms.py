"""Discrete cosine transforms, all four types, by Fourier transforms.

The transform is y[k] = 2 sum_n x[n] cos(angle).  The angle depends on the type:

    type 1, ends halved: pi k n / (N - 1)
    type 2: pi k (2n + 1) / 2N
    type 3, the first halved: pi n (2k + 1) / 2N
    type 4: pi (2k + 1) (2n + 1) / 4N

Each is the real part of a Fourier transform of 2N elements, rotated before or after (N. Ahmed, T.
Natarajan, K. R. Rao, "Discrete cosine transform", 1974).

Invariant: type 3 undoes type 2, types 1 and 4 undo themselves, up to the norm.
"""

import math
from typing import Any

import numpy as np

from plait.errors import AxisError, OperandTypeError, ShapeError
from plait.ext import Literal
from plait.ext.ops import elementwise as el
from plait.ext.ops.shape import concatenate, moveaxis, normal_axis, pad, rev, slice_in_dim
from plait.ext.surface import fixed, fused, value
from plait.ext.trace import Value
from plait.ext.types import COMPLEX
from plait.ext.values import from_numpy
from plait.typing import Array, ArrayLike, Axis

from ..numpy.fourier import fft, ifft, rfft

_NORMS = (None, "backward", "ortho", "forward")


def _times(x: Any, factors: np.ndarray) -> Any:
    """Multiply by known numbers along the last axis."""
    kind = x.aval.dtype.kind == "c" or factors.dtype.kind != "c"
    part = x.aval.dtype if kind else np.result_type(x.aval.dtype, np.complex64)
    return el.mul(x, from_numpy(factors.astype(part)))


def _turn(n: int, angle: float, first: float = 0.0) -> np.ndarray:
    return np.exp(1j * angle * (np.arange(n) + first))


def _doubled(x: Value, n: int) -> Any:
    """Append as many zeros."""
    return pad(x, 0, [(0, 0, 0)] * (x.aval.ndim - 1) + [(0, n, 0)])


def _type_1(x: Any, n: int) -> Any:
    back = slice_in_dim(rev.bind(x, axes=(x.aval.ndim - 1,)), 1, n - 1, axis=-1)
    return el.real(rfft(concatenate([x, back], -1)))


def _type_2(x: Value, n: int) -> Any:
    spectrum = rfft(concatenate([x, rev.bind(x, axes=(x.aval.ndim - 1,))], -1))
    half = slice_in_dim(spectrum, 0, n, axis=-1)
    return el.real(_times(half, _turn(n, -math.pi / (2 * n))))


def _type_3(x: Value, n: int) -> Any:
    halved = np.where(np.arange(n) == 0, 0.5, 1.0)
    turned = _times(x, halved * _turn(n, math.pi / (2 * n)) * (4 * n))
    return el.real(slice_in_dim(ifft(_doubled(turned, n)), 0, n, axis=-1))


def _type_4(x: Value, n: int) -> Any:
    turned = _times(x, _turn(n, -math.pi / (2 * n)))
    half = slice_in_dim(fft(_doubled(turned, n)), 0, n, axis=-1)
    return el.mul(el.real(_times(half, _turn(n, -math.pi / (2 * n), 0.5))), 2.0)


_TYPES = {1: _type_1, 2: _type_2, 3: _type_3, 4: _type_4}


def _orthogonal(kind: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the factors before and after that make the transform orthogonal."""
    ends = np.ones(n)
    if kind == 1:
        ends[[0, -1]] = math.sqrt(2)
        return ends, 1 / ends / math.sqrt(2 * (n - 1))
    first = np.where(np.arange(n) == 0, math.sqrt(2), 1.0)
    even = np.full(n, 1 / math.sqrt(2 * n))
    return (ends, even / first) if kind == 2 else (first if kind == 3 else ends, even)


@fused
def _cosine(x: Array, *, kind: int, n: int, axis: int, norm: str, undo: bool) -> Any:
    x = moveaxis(x, axis, -1)
    have = x.aval.shape[-1]
    x = (
        slice_in_dim(x, 0, n, axis=-1)
        if have > n
        else (pad(x, 0, [(0, 0, 0)] * (x.aval.ndim - 1) + [(0, n - have, 0)]) if have < n else x)
    )
    kind = {2: 3, 3: 2}.get(kind, kind) if undo else kind
    before, after = _orthogonal(kind, n) if norm == "ortho" else (None, None)
    y = _TYPES[kind](x if before is None else _times(x, before), n)
    if after is not None:
        y = _times(y, after)
    elif (norm == "forward") != undo:
        y = el.mul.bind(y, Literal(1 / (2 * (n - 1 if kind == 1 else n)), y.aval))
    return moveaxis(y, -1, axis)


def _checked(
    x: ArrayLike, kind: int, n: int | None, axis: int, norm: str | None, undo: bool
) -> Any:
    (x,) = el.floating((x,))
    if x.aval.category == COMPLEX:  # the transform is linear
        parts = (el.real(x), el.imag(x))
        return el.complex_(*[_checked(v, kind, n, axis, norm, undo) for v in parts])
    at = normal_axis(axis, x.aval.ndim)
    n = x.aval.shape[at] if n is None else fixed("a cosine transform", "n", n)
    kind = fixed("a cosine transform", "type", kind)
    if kind not in _TYPES or norm not in _NORMS:
        raise OperandTypeError(
            f"there is no cosine transform of type {kind!r} with norm {norm!r}",
            fix='use type 1, 2, 3 or 4, and "backward", "ortho" or "forward"',
        )
    if not isinstance(n, int) or n < (2 if kind == 1 else 1):
        raise ShapeError(f"a cosine transform of type {kind} over {n} elements", fix="give more")
    return _cosine(x, kind=kind, n=n, axis=at, norm=norm or "backward", undo=undo)


def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the discrete cosine transform along an axis.

    Args:
      x: real or complex, any shape.
      type: 1, 2, 3 or 4.
      n: the length to transform: longer axes are cut, shorter ones padded with zeros.
      axis: axis of the transform.
      norm: None or "backward" (no factor), "forward" (divided by twice the number), or "ortho".

    As scipy.fft.dct.

    >>> import numpy as np, plait
    >>> [round(v, 4) for v in plait.scipy.fft.dct(np.float32([1, 1]), norm="ortho").tolist()]
    [1.4142, 0.0]
    """
    return _checked(x, type, n, axis, norm, False)


def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the inverse of `dct` of the same type and norm, with its arguments.  As
    scipy.fft.idct.

    >>> import numpy as np, plait
    >>> plait.scipy.fft.idct(np.array([4.0, 0.0])).tolist()
    [1.0, 1.0]
    """
    return _checked(x, type, n, axis, norm, True)


def _over(
    x: ArrayLike, kind: int, s: tuple[int, ...] | None, axes: Any, norm: str | None, undo: bool
) -> Any:
    x = value(x)
    if axes is None:
        axes = range(x.aval.ndim) if s is None else range(-len(s), 0)
    at = [normal_axis(i, x.aval.ndim) for i in axes]
    if s is not None and len(s) != len(at):
        raise AxisError(f"{len(s)} lengths for {len(at)} axes", fix="give one for each axis")
    for i, axis in enumerate(at):
        x = _checked(x, kind, None if s is None else s[i], axis, norm, undo)
    return x


def dctn(
    x: ArrayLike, type: int = 2, s: Any = None, axes: Axis | None = None, norm: str | None = None
) -> Array:
    """Return `dct` along several axes (all, or the last `len(s)`), one after the other.

    s: the length to transform along each.  As scipy.fft.dctn.

    >>> import numpy as np, plait
    >>> plait.scipy.fft.dctn(np.ones((2, 2))).round(4).tolist()
    [[16.0, 0.0], [0.0, 0.0]]
    """
    return _over(x, type, s, axes, norm, False)


def idctn(
    x: ArrayLike, type: int = 2, s: Any = None, axes: Axis | None = None, norm: str | None = None
) -> Array:
    """Return the inverse of `dctn`, with its arguments.  As scipy.fft.idctn.

    >>> import numpy as np, plait
    >>> plait.scipy.fft.idctn(np.ones((2, 2))).shape
    (2, 2)
    """
    return _over(x, type, s, axes, norm, True)
