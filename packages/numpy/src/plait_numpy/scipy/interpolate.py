"""Interpolation of functions on grids, with the names of scipy.interpolate.

Invariant: an interpolator is a tree of its points and values, so it can be an argument of compiled
functions, and differentiated in its values.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.errors import ArgumentError, AxisError
from plait.ext.ops import elementwise as el
from plait.ext.ops.indexing import getitem
from plait.ext.ops.shape import broadcast_to, convert, convert_into, expand_dims, moveaxis, reshape
from plait.ext.ops.shape import stack as stacked
from plait.ext.surface import advise as _advise
from plait.ext.surface import value
from plait.ext.types import broadcast_shapes
from plait.tree_util import register_pytree_node_class

from ..numpy.search import searchsorted

_METHODS = ("linear", "nearest")


@register_pytree_node_class
class RegularGridInterpolator:
    """An interpolator on a grid, whose lines need not be evenly spaced.

    Args:
      points: for each axis of the grid its coordinates, increasing vectors.
      values: values at the points of the grid; further axes belong to each value.
      method: "linear" or "nearest".
      bounds_error: must be False: points outside cannot stop a compiled function.
      fill_value: the value outside; None extrapolates the nearest cell.

    As scipy.interpolate.RegularGridInterpolator.

    >>> import numpy as np, plait
    >>> f = plait.scipy.interpolate.RegularGridInterpolator((np.float32([0, 1, 3]),),
    ...                                                  np.float32([0, 10, 30]))
    >>> f(np.float32([[2.0]])).tolist()
    [20.0]
    """

    def __init__(
        self, points: Sequence[Any], values: object, method: str = "linear",
        bounds_error: bool = False, fill_value: object = np.nan,
    ):  # fmt: skip
        if method not in _METHODS:
            raise ArgumentError(f"there is no method {method!r}", fix='use "linear" or "nearest"')
        if bounds_error:
            raise ArgumentError(
                "bounds_error=True cannot be kept by a compiled function",
                fix="leave it out, and look for fill_value in the results",
            )
        self.method, self.bounds_error, self.fill_value = method, False, fill_value
        self.grid = tuple([value(p) for p in points])
        (self.values,) = el.floating((values,))
        for i, p in enumerate(self.grid):
            shape = self.values.aval.shape
            if p.aval.ndim != 1 or i >= len(shape) or shape[i] != p.aval.shape[0]:
                raise AxisError(
                    f"{len(self.grid)} vectors of points, number {i} of them {p.aval!r}, for "
                    f"values {self.values.aval!r}",
                    fix="give a vector for each of the first axes of the values, as long as it",
                )

    def tree_flatten(self) -> tuple:
        """Return points and values; the rest is static."""
        return (self.grid, self.values), (self.method, self.fill_value)

    @classmethod
    def tree_unflatten(cls, aux: tuple, children: tuple) -> "RegularGridInterpolator":
        """Rebuild the interpolator from leaves of any kind."""
        self = object.__new__(cls)
        self.grid, self.values = children
        (self.method, self.fill_value), self.bounds_error = aux, False
        return self

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """Return the values at the points `xi`.

        Args:
          xi: (..., axes of the grid), or a tuple of as many arrays.
          method: replaces the interpolator's.
        """
        method = self.method if method is None else method
        if method not in _METHODS:
            raise ArgumentError(f"there is no method {method!r}", fix='use "linear" or "nearest"')
        places = self._places(xi)
        shape = places[0].aval.shape
        flat = [reshape(p, (-1,)) for p in places]
        out = self._at(flat, method)
        return reshape(out, (*shape, *out.aval.shape[1:]))

    def _places(self, xi: object) -> list:
        if isinstance(xi, tuple | list):
            vs = [value(v) for v in xi]
            shape = broadcast_shapes([v.aval.shape for v in vs])
            x = moveaxis(stacked([broadcast_to(v, shape) for v in vs]), 0, -1)
        else:
            x = value(xi)
            x = expand_dims(x, -1) if x.aval.ndim == 1 and len(self.grid) == 1 else x
        if not x.aval.ndim or x.aval.shape[-1] != len(self.grid):
            raise AxisError(
                f"places {x.aval!r} in a grid of {len(self.grid)} axes",
                fix="give a coordinate for each axis of the grid, along the last axis",
            )
        part = el.real(self.values) if self.values.aval.dtype.kind == "c" else self.values
        x = convert(x, part.aval.dtype) if not x.aval.inexact else x
        return [getitem(x, (..., i)) for i in range(len(self.grid))]

    def _at(self, flat: list, method: str) -> Any:
        cells, parts, outside = [], [], None
        for p, x in zip(self.grid, flat):
            n = p.aval.shape[0]
            i = el.sub(searchsorted(p, x, side="right"), 1)
            i = el.maximum(0, el.minimum(i, max(n - 2, 0)))
            j = el.minimum(el.add(i, 1), n - 1)
            low, high = getitem(p, i), getitem(p, j)
            gap = el.sub(high, low)
            part = el.div(el.sub(x, low), el.select(el.eq(gap, 0), 1, gap))
            out = el.or_(el.lt(x, getitem(p, 0)), el.gt(x, getitem(p, n - 1)))
            outside = out if outside is None else el.or_(outside, out)
            cells.append((i, j))
            parts.append(part)
        out = self._nearest(cells, parts) if method == "nearest" else self._linear(cells, parts)
        if self.fill_value is None:
            return out
        more = (1,) * (out.aval.ndim - 1)
        fill = convert_into(self.fill_value, out.aval.dtype)
        return el.select(
            broadcast_to(reshape(outside, (-1, *more)), out.aval.shape),
            broadcast_to(fill, out.aval.shape), out,
        )  # fmt: skip

    def _nearest(self, cells: list, parts: list) -> Any:
        index = [el.select(el.le(w, 0.5), i, j) for (i, j), w in zip(cells, parts)]
        return getitem(self.values, tuple(index))

    def _linear(self, cells: list, parts: list) -> Any:
        more = (1,) * (self.values.aval.ndim - len(cells))
        total: Any = 0
        for corner in itertools.product((0, 1), repeat=len(cells)):
            weight: Any = 1
            for side, w in zip(corner, parts):
                weight = el.mul(weight, w if side else el.sub(1, w))
            v = getitem(self.values, tuple([c[side] for c, side in zip(cells, corner)]))
            weight = convert(reshape(weight, (-1, *more)), v.aval.dtype)
            total = el.add(total, el.mul(v, weight))
        return total


_advise("plait.scipy.interpolate", globals())
