"""Rows of a pile as arrays: padded, one after the other, or a list of elements.

Invariant: no method shows values beyond the last row.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait.ext.errors import ArgumentError, ConcretizationError, ShapeError, border
from plait.ext.sizes import Dim
from plait.ext.trace import Tracer, Value
from plait.ext.types import Aval, Opaque, float0
from plait.ext.values import as_value

from .added_axes import leading, of_batch
from .elements import piles_in, shown, spoken_of
from .guarding import is_passive
from .layouts import fit
from .making import whole_number
from .on_host import elements_on_host, is_on_host, padded_on_host
from .operation import FLAT, PADDED, layout, place
from .operators import PileOperators, is_pile
from .row_access import chosen

__all__ = ["PileConversions"]

_NUMBERS = (bool, int, float, complex, np.generic)


class PileConversions(PileOperators):
    """Methods of piles that return their rows."""

    __slots__ = ()
    # Attributes of the pile
    _axes: Any
    _caps: Any
    _columns: Any
    _count: int
    _expect_arrays: Any
    _leaves: tuple[Any, ...]
    _lengths: tuple[Any, ...]
    _ragged: Any
    _sizes: Any
    _tree: Any
    _with_rows: Any

    @property
    def data(self) -> Any:
        """The rows of all elements, one after the other; a tree of arrays if elements are trees.

        While lengths are traced, there are as many rows as the capacity of the program, which may
        be that of an earlier batch, and those beyond the last are zero.  Elements with no ragged
        axis, or several, are padded: [number of elements, ...], zero beyond the end.

        Raises ShapeError for a pile of piles, whose rows have two levels.
        """
        self._expect_arrays("data")
        return self._tree.unflatten([self._on_rows(self._rows, *c) for c in self._columns()])

    def _on_rows(self, f: Callable[..., Any], x: Any, t: Aval) -> Any:
        """Return `f(x, t)`; where the leaf `x` is a pile, the pile of these results for its leaves.

        Such leaves are blocks of second derivatives, whose first axes are those of this pile."""
        if not is_pile(x):
            return f(x, t)
        rank = len(layout(t, self._caps(), place(t, self._caps(), False)).shape)
        return x._with_rows([f(y, t.with_shape((*t.shape, *y.shape[rank:]))) for y in x._leaves])

    def _rows(self, x: Value, t: Aval) -> Any:
        axes = self._axes(t)
        if len(axes) != 1 or place(t, self._caps(), False) != FLAT:
            return self._padded(x, t, 0, None)
        (a,) = axes
        if not is_on_host(*self._lengths):
            lengths = self._ragged().lengths(t.shape[a])
            if isinstance(lengths, Tracer):
                return chosen(self._ragged().rows(t.shape[a]).there, (a,), as_value(x), 0)
            total = int(np.asarray(lengths).sum())
        else:
            total = sum([_size_of(t.shape[a], own) for own in self._each_size()])
        cut = (slice(None),) * a + (slice(0, total),)
        return as_value(np.asarray(x)[cut]) if is_on_host(x) else x[cut]

    @border
    def to_padded(self, fill: Any = 0, capacity: int | None = None) -> Any:
        """Return [number of elements, capacity, ...]: all elements, with `fill` beyond their ends.

        Args:
          fill: the value where an element has no row.
          capacity: the padded size; by default the greatest length, or, while lengths are
            traced, the greatest that is possible.

        Raises ShapeError if an element does not fit.  Raises ArgumentError for a capacity that is
        not a size, or a fill that is not a number.

        >>> import plait
        >>> plait.Pile.from_list([[1.0, 2.0], [3.0]]).to_padded(fill=-1)
        Array([[ 1.,  2.],
               [ 3., -1.]], dtype=float32)
        """
        if np.ndim(fill):
            raise ArgumentError(
                f"what stands where there are no rows is {shown(fill)}", fix="give a number"
            )
        if capacity is not None:
            capacity = whole_number(capacity)
            if capacity is None or capacity < 0:
                raise ArgumentError("a capacity is a number of rows", fix="give an int, as 128")
        self._expect_arrays("to_padded")
        padded = lambda x, t: self._padded(x, t, fill, capacity)  # noqa: E731
        return self._tree.unflatten([self._on_rows(padded, *c) for c in self._columns()])

    def _padded(self, x: Any, t: Aval, fill: float | str, capacity: int | None) -> Any:
        axes = self._axes(t)
        if not axes:
            return x
        if is_passive(x):
            shape = self._padded(np.zeros(x.shape, bool), t.with_dtype(bool), False, capacity).shape
            return np.zeros(shape, float0)
        if self._count == 0:
            shape = [capacity or 0 if i in axes else n for i, n in enumerate(t.shape)]
            return pnp.zeros((0, *shape), t.dtype)
        if is_on_host(x, *self._lengths) and isinstance(fill, _NUMBERS):
            return self._padded_on_host(x, t, fill, capacity)
        r = self._ragged()
        how = place(t, r.caps, False)
        form = FLAT if how == FLAT else (how, 0)
        y = r.coerce(t, (x,), form, (PADDED, 0))[0]
        y = r.masked(y, t, axes, fill)
        for a in axes:
            n = r.rows(t.shape[a]).lengths
            known = None if isinstance(n, Tracer) else int(np.asarray(n).max(initial=0))
            wide = capacity if capacity is not None else known
            if capacity is not None and known is not None and known > capacity:
                raise ShapeError(
                    f"an element of size {known} does not fit a capacity of {capacity}",
                    fix=f"give capacity={known} or more",
                )
            if wide is not None and wide > y.shape[a + 1]:
                config = [
                    (0, wide - y.shape[a + 1]) if i == a + 1 else (0, 0) for i in range(y.ndim)
                ]
                y = pnp.pad(y, config, constant_values=fill)
            elif wide is not None:
                y = fit(y, a + 1, wide)
        return y

    def _padded_on_host(self, x: Any, t: Aval, fill: float, capacity: int | None) -> Any:
        sizes, axes = self._each_size(), self._axes(t)
        elements = elements_on_host(x, t, self._caps(), sizes)
        shape = list(t.shape)
        for a in axes:
            most = max([e.shape[a] for e in elements], default=0)
            if capacity is not None and most > capacity:
                raise ShapeError(
                    f"an element of size {most} does not fit a capacity of {capacity}",
                    fix=f"give capacity={most} or more",
                )
            shape[a] = most if capacity is None else capacity
        return as_value(padded_on_host(elements, tuple(shape), t.dtype, fill))

    def _each_size(self) -> list[dict[str, int]]:
        """Return the known named sizes of each element."""
        named = [(s.name, np.asarray(n).tolist()) for s, n in zip(self._sizes, self._lengths)]
        return [{k: v[b] for k, v in named} for b in range(self._count)]

    @border
    def to_list(self) -> list[Any]:
        """Return the elements, as numpy arrays, trees of them, or piles if they are piles.

        Raises ConcretizationError if the pile is traced."""
        if leading(self._lengths):
            return [of_batch(self, i) for i in range(leading(self._lengths)[0])]
        columns = [self._elements(x, t) for x, t in self._columns()]
        elements = [self._tree.unflatten(leaves) for leaves in zip(*columns, strict=True)]
        if not piles_in(self._tree):
            return elements
        named = dict(zip([s.name for s in self._sizes], [np.asarray(n) for n in self._lengths]))
        return [
            spoken_of(e, {k: int(v[b]) for k, v in named.items()}) for b, e in enumerate(elements)
        ]

    def _elements(self, x: Any, t: Aval) -> list[Any]:
        if is_pile(x):
            rank = len(layout(t, self._caps(), place(t, self._caps(), False)).shape)
            wide = [(y, t.with_shape((*t.shape, *y.shape[rank:]))) for y in x._leaves]
            each = [self._elements(y, u) for y, u in wide]
            return [x._with_rows(map(as_value, rows)) for rows in zip(*each, strict=True)]
        if any(isinstance(v, Tracer) for v in (x, *self._lengths)):
            raise ConcretizationError(
                f"the elements of a traced pile {self!r} are not known",
                fix="map over it with vmap, or use to_padded",
            )
        if is_on_host(x, *self._lengths):
            return elements_on_host(x, t, self._caps(), self._each_size())
        padded = self._padded(x, t, 0, None)
        if t.dtype.__class__ is not Opaque:  # numpy has no arrays of keys
            padded = np.asarray(padded)
        named = dict(zip([s.name for s in self._sizes], [np.asarray(n) for n in self._lengths]))
        found = []
        for b in range(self._count):
            sizes = {k: int(v[b]) for k, v in named.items()}
            shape = [
                d.substitute(sizes) if d.__class__ is Dim else d  # type: ignore[union-attr]
                for d in t.shape
            ]
            found.append(padded[(b, *[slice(0, n) for n in shape])])
        return found


def _size_of(d: Any, sizes: dict[str, int]) -> int:
    return d.substitute(sizes) if d.__class__ is Dim else d
