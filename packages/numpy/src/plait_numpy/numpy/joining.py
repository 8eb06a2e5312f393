"""Arrays joined by indexing: `r_[1:4, 0, 4]`, `c_[x, y]`.

Invariant: pieces are joined by one concatenation, in their common dtype.
"""

from typing import Any

from plait.errors import ShapeError
from plait.ext.ops.shape import concatenate, convert_together, reshape, transpose
from plait.ext.surface import value
from plait.typing import Array

from .creation import _slice_range, array
from .manipulation import swapaxes


class _Joined:
    """The class of `r_` and `c_`; the three numbers are those of numpy's directives."""

    def __init__(self, axis: int, ndmin: int, position: int, doc: str):
        self._axis, self._ndmin, self._position, self.__doc__ = axis, ndmin, position, doc

    def __getitem__(self, key: Any) -> Any:
        pieces, matrix = key if isinstance(key, tuple) else (key,), None
        how = self._axis, self._ndmin, self._position
        if pieces and isinstance(pieces[0], str):
            matrix = pieces[0] if pieces[0] in ("r", "c") else None
            how = how if matrix else _directive(pieces[0], how)
            pieces = pieces[1:]
        axis, ndmin, position = how
        made = [_piece(p, ndmin, position) for p in pieces]
        out = concatenate(convert_together(made), axis)
        if matrix is None or out.aval.ndim > 1:
            return out
        return reshape(out, (-1, 1) if matrix == "c" else (1, -1))


def _directive(text: str, default: tuple) -> tuple:
    try:
        given = tuple([int(t) for t in text.split(",")])
        if len(given) > 3:
            raise ValueError
    except ValueError:
        raise ShapeError(
            f"{text!r} is not a directive of r_ and c_",
            fix='write up to three integers, "axis,ndmin,position", or "r" or "c"',
        ) from None
    return given + default[len(given) :]


def _piece(p: object, ndmin: int, position: int) -> Any:
    if isinstance(p, slice):
        x = _at_least(_slice_range(p), ndmin)
        return swapaxes(x, -1, position) if ndmin > 1 and position != -1 else x
    x = array(p) if isinstance(p, list | tuple) else value(p)
    own = x.aval.ndim
    x = _at_least(x, max(ndmin, 1))
    if not own or own >= ndmin or position == -1:
        return x
    new = ndmin - own  # The new axes come first; the array's own axes start at `position`.
    first = position + new + 1 if position < 0 else position
    order = list(range(ndmin))
    return transpose(x, (*order[:first], *order[new:], *order[first:new]))


def _at_least(x: Array, ndmin: int) -> Any:
    missing = ndmin - x.aval.ndim
    return reshape(x, (1,) * missing + x.aval.shape) if missing > 0 else x


r_ = _Joined(0, 1, -1, "Pieces joined along the first axis: slices are ranges.  As numpy.r_.")
c_ = _Joined(-1, 2, 0, "Pieces joined along the last axis, vectors as columns.  As numpy.c_.")
