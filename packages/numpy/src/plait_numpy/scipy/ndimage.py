"""Images of any number of axes, with the names of scipy.ndimage.

Invariant: a position between elements takes the elements around it, weighted by nearness, so that
values vary continuously with positions (order 1).
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.errors import ArgumentError, AxisError, Unsupported
from plait.ext import Literal
from plait.ext.ops import elementwise as el
from plait.ext.ops.indexing import getitem
from plait.ext.ops.reduction import all_
from plait.ext.ops.shape import convert, convert_into, convert_together
from plait.ext.ops.shape import stack as stacked
from plait.ext.surface import advise as _advise
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike

from ..refusals import explained

__all__ = ["map_coordinates"]

_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")
_OF_SCIPY = {
    "grid-wrap": 'use "wrap", which is the same here',
    "grid-constant": 'use "constant", which is the same here',
    "grid-mirror": 'use "reflect", which is the same',
}
"""Other modes of scipy -> what to write instead."""


def _folded(i: Value, n: int, mode: str) -> Any:
    """Map positions outside to positions inside."""
    if mode == "nearest":
        return el.maximum(0, el.minimum(i, n - 1))
    if mode == "wrap":
        return el.modulo(i, n)
    if mode == "mirror":  # mirror about the middle of the last element
        period = 2 * n - 2 if n.__class__ is not int or n > 1 else 1
        i = el.modulo(i, period)
        return el.minimum(i, el.sub(period, i)) if n != 1 else el.mul(i, 0)
    if mode == "reflect":  # mirror about its edge
        i = el.modulo(i, 2 * n)
        return el.minimum(i, el.sub(2 * n - 1, i))
    return i


def _folded_place(x: Value, n: int, mode: str) -> Any:
    """Map positions outside to positions inside, or less than one half outside.

    Positions are folded before they are rounded to the nearest element, as in scipy: a mirrored
    half is rounded to the other side.
    """
    if mode == "nearest":
        return el.clamp(convert(0, x.aval.dtype), x, convert(n - 1, x.aval.dtype))
    if mode == "wrap":
        return el.modulo(x, n)
    if mode == "mirror" and n != 1:
        y = el.modulo(el.abs_(x), 2 * n - 2)
        back = el.select(el.lt(x, 0), el.ge(y, n - 1), el.ge(y, n))
        return el.select(back, el.sub(2 * n - 2, y), y)
    if mode == "reflect":
        y = el.modulo(el.select(el.lt(x, 0), el.sub(-1, x), x), 2 * n)
        return el.select(el.ge(y, n), el.sub(2 * n - 1, y), y)
    return x


def _around(x: Value, n: int, order: int, mode: str) -> list[tuple]:
    """Return (index, whether it is inside, weight; None: one) of the elements around positions
    of an axis."""
    if order == 0:
        x = _folded_place(x, n, mode)
        low = el.floor(x)  # halves are rounded up; x + 0.5 may itself be rounded
        up = el.ge(el.sub(x, low), 0.5)
        i = convert(el.add(low, el.select(up, 1, 0)), np.int32)
        return [(_folded(i, n, mode), _inside(i, n), None)]
    low = el.floor(x)
    part, i = el.sub(x, low), convert(low, np.int32)
    return [
        (_folded(j, n, mode), _inside(j, n), w)
        for j, w in ((i, el.sub(1, part)), (el.add(i, 1), part))
    ]


def _inside(i: Value, n: int) -> Any:
    return el.and_(el.ge(i, 0), el.lt(i, n))


@fused(numbers=("cval",))
def _mapped(x: Value, places: list[Value], cval: Any, *, order: int, mode: str) -> Any:
    found = [_around(c, n, order, mode) for c, n in zip(places, x.aval.shape)]
    total = None
    work = x if x.aval.inexact or order == 0 else convert(x, places[0].aval.dtype)
    for corner in itertools.product(*found):
        v = getitem(work, tuple([i for i, _, _ in corner]))
        if mode == "constant":
            known = all_(stacked([inside for _, inside, _ in corner]), 0)
            v = el.select(known, v, convert_into(cval, v.aval.dtype))
        for _, _, w in corner:
            if w is not None:
                v = el.mul(v, convert(w, v.aval.dtype) if v.aval.dtype.kind == "c" else w)
        total = v if total is None else el.add(total, v)
    if x.aval.inexact or order == 0:
        return convert(total, x.aval.dtype)
    return convert(el.round_away(total), x.aval.dtype)


@explained
def map_coordinates(
    input: ArrayLike, coordinates: Sequence[Any], order: int, mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:  # fmt: skip
    """Return the values of an image at positions between its elements.

    Args:
      input: an array.
      coordinates: for each axis the positions along it, arrays of one shape.
      order: 0 (the nearest element; of two the later one) or 1 (linear between elements; for
        integers rounded to the nearest, halves away from zero).
      mode: treatment of positions outside: "constant" (`cval`), "nearest", "wrap", "mirror" or
        "reflect".
      cval: the value outside, for "constant".

    Returns an array of the shape of the positions and the dtype of the image.  Raises TypeRule for
    other orders and modes, AxisError for another number of coordinates.  As
    scipy.ndimage.map_coordinates of order 0 and 1; "wrap" is its "grid-wrap", and "constant" its
    "grid-constant".

    >>> import numpy as np, plait
    >>> image = np.float32([[0, 1], [2, 3]])
    >>> middle = [np.float32([0.5]), np.float32([0.5])]
    >>> plait.scipy.ndimage.map_coordinates(image, middle, 1).tolist()
    [1.5]
    """
    x = value(input)
    if order not in (0, 1):
        raise Unsupported(f"map_coordinates of order {order}", fix="use order 0 or 1")
    if mode in _OF_SCIPY:
        raise Unsupported(f"map_coordinates of mode {mode!r}", fix=_OF_SCIPY[mode])
    if mode not in _MODES:
        raise ArgumentError(f"there is no mode {mode!r}", fix=f"use one of {', '.join(_MODES)}")
    places = list(coordinates)
    if len(places) != x.aval.ndim or not places:
        raise AxisError(
            f"{len(places)} coordinates for {x.aval!r}", fix="give one for each axis of the image"
        )
    where = [el.floating((p,))[0] for p in convert_together([value(p) for p in places])]
    shapes = {p.aval.shape for p in where}
    if len(shapes) > 1:
        raise AxisError(f"coordinates of shapes {sorted(shapes)}", fix="give them one shape")
    cval = cval.value if isinstance(cval, Literal) else cval
    return _mapped(x, where, cval, order=order, mode=mode)


_advise("plait.scipy.ndimage", globals())
