"""Pile: what users hold of a batch of arrays whose sizes differ.

Invariant: the rows lie in the layout that the element's type has (`operation.layout`), at static
capacities; what is beyond the last row is garbage that no method shows.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait.ext.errors import (
    ArgumentError,
    ConcretizationError,
    ShapeError,
    border,
)
from plait.ext.sizes import (
    Dim,
    Scope,
    symbolic_dims,
)
from plait.ext.trace import (
    Tracer,
    current,
)
from plait.ext.tree import (
    TreeDef,
    flatten,
    register,
)
from plait.ext.types import (
    Aval,
    Opaque,
)
from plait.ext.values import (
    as_value,
)

from .capacities import TILE, Capacities, Size, rounded, size_of_lengths
from .carrier import Ragged
from .layouts import along, fit
from .operation import FLAT, PADDED, TILES, layout, place, ragged_axes

__all__ = ["SCOPE", "Pile", "PileType", "is_pile", "named", "refitted"]

SCOPE = Scope([], lower=0)
"""Of all sizes that piles name: nothing is known of them but that they are not negative."""


def named(name: str) -> Dim:
    """The size of a name."""
    (d,) = symbolic_dims(name, SCOPE)
    return d  # type: ignore[return-value]


class PileType:
    """The type of a pile: how many elements, and the type of each, whose sizes may differ."""

    __slots__ = ("_lengths", "elt_ty", "length")
    length: int
    elt_ty: Aval

    def __init__(self, length: int, elt_ty: Aval, lengths: dict[str, Any]):
        self.length, self.elt_ty, self._lengths = length, elt_ty, lengths

    @property
    def dtype(self) -> Any:
        return self.elt_ty.dtype

    def __repr__(self) -> str:
        def size(d: Any) -> str:
            n = self._lengths.get(str(d)) if d.__class__ is Dim else d
            return str(d) if n is None else str(n) if n is d else f"{n}.Var1"

        sizes = ",".join(map(size, self.elt_ty.shape))
        short = repr(self.elt_ty.with_shape(())).partition("[")[0]
        return f"Var1:{self.length} => {short}[{sizes}]"


class Pile:
    """Arrays, or trees of arrays, of which some sizes differ from element to element.

    vmap maps over its elements, where `in_axes` says `plait.pile_axis`; to jit, grad and the
    functions of `plait.tree` it is a tree, whose leaves are its rows and its lengths.

    Args:
      data: the rows of all elements, one after the other along `axis`.
      lengths: int[number of elements], how many of them each has.
      axis: along which the sizes of elements differ.

    Raises:
      ArgumentError: lengths that are no vector of integers, or negative.
      ShapeError: lengths that ask for more rows than there are.

    >>> import plait
    >>> p = plait.Pile.from_list([[1.0, 2.0, 3.0], [], [4.0]])
    >>> plait.vmap(lambda x: x.sum(), in_axes=plait.pile_axis)(p)
    Array([6., 0., 4.], dtype=float32)
    """

    __slots__ = ("_count", "_leaves", "_lengths", "_sizes", "_tree", "_types")
    _leaves: tuple[Any, ...]
    _lengths: tuple[Any, ...]
    _types: tuple[Aval, ...]
    _sizes: tuple[Size, ...]
    _tree: TreeDef
    _count: int

    @border
    def __init__(self, data: Any, lengths: Any, axis: int = 0):
        leaves, tree = flatten(data)
        xs = [as_value(x) for x in leaves]
        n = _checked(lengths)
        rows = {x.aval.shape[axis] if -x.ndim <= axis < x.ndim else None for x in xs}
        if len(rows) != 1 or None in rows:
            raise ShapeError(
                f"a pile of rows along axis {axis} of {', '.join(repr(x.aval) for x in xs)}",
                fix="give arrays that have the same number of rows along that axis",
            )
        have: Any = rows.pop()
        size = _size("n0", n, have, have)
        if not isinstance(n, Tracer) and int(np.asarray(n).sum()) > have:
            raise ShapeError(
                f"lengths of {int(np.asarray(n).sum())} rows in all, and there are {have}",
                fix="give each element's number of rows",
            )
        d = named("n0")
        types = []
        for i, x in enumerate(xs):
            a = axis % x.ndim
            types.append(x.aval.with_shape((*x.shape[:a], d, *x.shape[a + 1 :])))
            xs[i] = _with_rows(x, a, size.rows)
        self._set(xs, (n,), types, (size,), tree, n.shape[0])

    def _set(
        self, leaves: Any, lengths: Any, types: Any, sizes: Any, tree: TreeDef, count: int
    ) -> None:
        self._leaves, self._lengths = tuple(leaves), tuple(lengths)
        self._types, self._sizes = tuple(types), tuple(sizes)
        self._tree, self._count = tree, count

    @classmethod
    def _of(
        cls, leaves: Any, lengths: Any, types: Any, sizes: Any, tree: TreeDef, count: int
    ) -> "Pile":
        self = object.__new__(cls)
        self._set(leaves, lengths, types, sizes, tree, count)
        return self

    # ---- made of arrays

    @classmethod
    @border
    def from_list(cls, elements: Sequence[Any], axis: int | tuple[int, ...] = 0) -> "Pile":
        """The pile of these arrays, or trees of arrays.

        Args:
          elements: one or more; their leaves agree in dtype, and in all sizes but along `axis`.
          axis: the axis, or axes, along which sizes may differ.

        Raises ShapeError for elements that differ elsewhere.

        >>> import plait
        >>> plait.Pile.from_list([[1.0, 2.0], [3.0]])
        Pile([[1. 2.], [3.]])
        """
        return _from_list(list(elements), axis if isinstance(axis, tuple) else (axis,))

    @classmethod
    @border
    def from_padded(cls, x: Any, lengths: Any, axis: int = 0) -> "Pile":
        """The pile of the first `lengths[b]` rows, along `axis` of each element, of each `x[b]`.

        Args:
          x: an array, or a tree of arrays, with the elements along axis 0.
          lengths: int[x.shape[0]], which may be traced.
          axis: of the elements: axis `axis + 1` of `x`.

        >>> import plait
        >>> plait.Pile.from_padded(plait.numpy.ones((2, 3)), plait.numpy.array([1, 2]))
        Pile([[1.], [1. 1.]])
        """
        leaves, tree = flatten(x)
        xs = [as_value(v) for v in leaves]
        n = _checked(lengths)
        made = []
        for v in xs:
            if v.ndim < axis + 2 or v.shape[0] != n.shape[0]:
                raise ShapeError(
                    f"{v.aval!r} is no padded array of {n.shape[0]} elements with an axis {axis}",
                    fix="put the elements along axis 0",
                )
        widths = {v.shape[axis + 1] for v in xs}
        if len(widths) != 1:
            raise ShapeError(
                f"padded arrays of {sorted(widths)} rows each", fix="pad them to one number of rows"
            )
        (width,) = widths
        if not isinstance(n, Tracer) and int(np.asarray(n).max(initial=0)) > width:
            raise ShapeError(
                f"a length of {int(np.asarray(n).max())}, and there are {width} rows",
                fix="give lengths that fit",
            )
        size = _size("n0", n, width * n.shape[0], width)
        r = Ragged(current(), n.shape[0], None, (size,), False, ambient=(n,))
        d = named("n0")
        types = []
        for v in xs:
            t = v.aval.with_shape((*v.shape[1 : axis + 1], d, *v.shape[axis + 2 :]))
            types.append(t)
            wide = fit(v, axis + 1, size.longest)
            made.append(r.cleaned(r.coerce(t, (wide,), (PADDED, 0), FLAT)[0], t))
        return cls._of(made, (n,), types, (size,), tree, n.shape[0])

    # ---- what it is

    @property
    def aval(self) -> Any:
        """Its type; a tree of types if its elements are trees."""
        lengths: dict[str, Any] = {}
        for i, n in enumerate(self._lengths):
            if not isinstance(n, Tracer):
                lengths[f"n{i}"] = np.asarray(n)
        return self._tree.unflatten([PileType(self._count, t, lengths) for t in self._types])

    @property
    def lengths(self) -> Any:
        """int32[number of elements]: the sizes of the axis along which elements differ.

        Of several such axes, that of the first; raises ArgumentError if no size differs."""
        for t in self._types:
            for a in self._axes(t):
                return self._ragged().lengths(t.shape[a])
        raise ArgumentError(
            "the elements of this pile have one shape", fix="use .data, an array of all of them"
        )

    @property
    def offsets(self) -> Any:
        """int32[number of elements + 1]: the row at which each element begins, and the end."""
        n = self.lengths
        return pnp.concatenate([pnp.zeros(1, n.dtype), pnp.cumsum(n, dtype=n.dtype)])

    @property
    def data(self) -> Any:
        """The rows of all elements, one after the other; a tree of arrays if elements are trees.

        While lengths are traced there are as many rows as there may be, those beyond the last
        being zero.  Elements of which no size, or more than one, differs: padded, [number of
        elements, ...], zero beyond the end.
        """
        return self._tree.unflatten([self._rows(x, t) for x, t in zip(self._leaves, self._types)])

    def _rows(self, x: Any, t: Aval) -> Any:
        axes = self._axes(t)
        if len(axes) != 1 or place(t, self._caps(), False) != FLAT:
            return self._padded(x, t, 0, None)
        (a,) = axes
        rows = self._ragged().rows(t.shape[a])
        if isinstance(rows.lengths, Tracer):
            there = along(rows.there, a, x.ndim)
            return pnp.where(there, x, pnp.zeros((), x.dtype))
        total = int(np.asarray(rows.lengths).sum())
        return x[(slice(None),) * a + (slice(0, total),)]

    def _caps(self) -> Capacities:
        return Capacities(self._sizes, self._count)

    def _axes(self, t: Aval) -> tuple[int, ...]:
        return ragged_axes(t.shape, [s.name for s in self._sizes])

    def _ragged(self) -> Ragged:
        ambient = tuple([as_value(n) for n in self._lengths])
        return Ragged(current(), self._count, None, self._sizes, False, ambient=ambient)

    # ---- made into arrays

    @border
    def to_padded(self, fill: Any = 0, capacity: int | None = None) -> Any:
        """[number of elements, capacity, ...]: all elements, with `fill` beyond their ends.

        Args:
          fill: what stands where an element has no row.
          capacity: the padded size; by default the greatest length, or, while lengths are
            traced, the greatest that there may be.

        Raises ShapeError if an element does not fit.

        >>> import plait
        >>> plait.Pile.from_list([[1.0, 2.0], [3.0]]).to_padded(fill=-1)
        Array([[ 1.,  2.],
               [ 3., -1.]], dtype=float32)
        """
        return self._tree.unflatten(
            [self._padded(x, t, fill, capacity) for x, t in zip(self._leaves, self._types)]
        )

    def _padded(self, x: Any, t: Aval, fill: Any, capacity: int | None) -> Any:
        axes = self._axes(t)
        if not axes:
            return x
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

    @border
    def to_list(self) -> list[Any]:
        """The elements, as numpy arrays or trees of them.

        Raises ConcretizationError if the pile is traced."""
        columns = [self._elements(x, t) for x, t in zip(self._leaves, self._types)]
        return [self._tree.unflatten(leaves) for leaves in zip(*columns, strict=True)]

    def _elements(self, x: Any, t: Aval) -> list[np.ndarray]:
        if any(isinstance(v, Tracer) for v in (x, *self._lengths)):
            raise ConcretizationError(
                f"the elements of a traced pile {self!r} are not known",
                fix="map over it with vmap, or use to_padded",
            )
        padded = np.asarray(self._padded(x, t, 0, None))
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

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, b: Any) -> Any:
        """Element number `b`, an int."""
        elements = self.to_list()
        if isinstance(b, slice):
            raise ArgumentError(
                "a pile has no slices",
                fix="make one of some elements: Pile.from_list(p.to_list()[a:b])",
            )
        return elements[b]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_list())

    def __repr__(self) -> str:
        if any(isinstance(v, Tracer) for v in (*self._leaves, *self._lengths)):
            return f"Pile<{', '.join(f'{self._count} x {t!r}' for t in self._types)}>"
        try:
            with np.printoptions(threshold=8):
                inside = ", ".join(str(e) for e in self.to_list()[:6])
        except Exception:  # leaves that are no arrays, while trees are made
            return f"Pile<{self._count} elements>"
        more = ", ..." if self._count > 6 else ""
        return f"Pile([{inside}{more}])"


def _children(p: Pile) -> tuple:
    return (*p._leaves, *p._lengths), (p._types, p._sizes, p._tree, p._count)


def _again(static: Any, children: Any) -> Pile:
    types, sizes, tree, count = static
    kids = tuple(children)
    n = len(types)
    return Pile._of(kids[:n], kids[n:], types, sizes, tree, count)


register(Pile, _children, _again)


def is_pile(x: Any) -> bool:
    return x.__class__ is Pile


def _with_rows(x: Any, axis: int, n: Any) -> Any:
    """With as many rows; of what is known in numpy, for any number of rows would be a program of
    its own."""
    if isinstance(x, Tracer) or x.aval.dtype.__class__ is Opaque:
        return fit(x, axis, n)
    host = np.asarray(x)
    if host.shape[axis] == n:
        return x
    out = np.zeros((*host.shape[:axis], n, *host.shape[axis + 1 :]), host.dtype)
    rows = (slice(None),) * axis
    most = min(n, host.shape[axis])
    out[(*rows, slice(0, most))] = host[(*rows, slice(0, most))]
    return as_value(out)


# ---- making piles ------------------------------------------------------------------------------


def _checked(lengths: Any) -> Any:
    """A vector of int32; raises ArgumentError for anything else, and for negative ones."""
    n = as_value(lengths if not isinstance(lengths, (list, tuple)) else np.asarray(lengths))
    if n.ndim != 1 or n.aval.dtype.kind not in "iu":
        raise ArgumentError(
            f"lengths are {n.aval!r}", fix="give a vector of integers, one for each element"
        )
    if not isinstance(n, Tracer) and np.asarray(n).min(initial=0) < 0:
        raise ArgumentError("a length is negative", fix="give lengths that are 0 or more")
    return pnp.asarray(n, "int32")


def _size(name: str, n: Any, rows: Any, longest: Any) -> Size:
    """The capacities for lengths; if they are traced, for the greatest that there may be."""
    if not isinstance(n, Tracer):
        return size_of_lengths(name, np.asarray(n))
    tiles = -(-longest // TILE)
    count = n.shape[0]
    return Size(name, rounded(rows, 8, 64), rounded(longest, 1, 8), count * tiles * tiles + 1)


def _from_list(elements: list, axes: tuple[int, ...]) -> Pile:
    if not elements:
        raise ArgumentError(
            "a pile of no elements has no type",
            fix="give an element, or make it of an array: Pile(data, lengths)",
        )
    trees = [flatten(e, _is_numbers) for e in elements]
    tree = trees[0][1]
    if any(t != tree for _, t in trees):
        raise ShapeError("elements of a pile are trees of one structure", fix="give them one")
    columns = [
        [np.asarray(as_value(np.asarray(x))) for x in leaf]
        for leaf in zip(*[ls for ls, _ in trees])
    ]
    vectors: list[np.ndarray] = []  # the lengths of each name
    types, leaves = [], []
    for column in columns:
        types.append(_element_type(column, axes, vectors))
    sizes = tuple([size_of_lengths(f"n{i}", v) for i, v in enumerate(vectors)])
    caps = Capacities(sizes, len(elements))
    for column, t in zip(columns, types):
        leaves.append(pnp.asarray(_laid_out(column, t, caps, len(elements))))
    lengths = [pnp.asarray(v, "int32") for v in vectors]
    return Pile._of(leaves, lengths, types, sizes, tree, len(elements))


def _is_numbers(x: Any) -> bool:
    """A list of numbers is an array, not a tree."""
    return isinstance(x, list) and not any(isinstance(v, (dict, tuple)) for v in x)


def _element_type(column: list, axes: tuple[int, ...], vectors: list) -> Aval:
    first = column[0]
    ragged = {a % first.ndim for a in axes if -first.ndim <= a < first.ndim}
    if len(ragged) != len(axes):
        raise ShapeError(
            f"elements of shape {first.shape} have no axes {axes}",
            fix="say by axis= along which axes sizes differ",
        )
    shape: list[Any] = []
    for a in range(first.ndim):
        found = [x.shape[a] if x.ndim == first.ndim else None for x in column]
        if None in found or (a not in ragged and len(set(found)) > 1):
            raise ShapeError(
                f"elements of shapes {sorted({x.shape for x in column})} differ elsewhere than "
                f"along axes {tuple(sorted(ragged))}",
                fix="say by axis= along which axes sizes differ",
            )
        if a not in ragged:
            shape.append(found[0])
            continue
        v = np.asarray(found, np.int32)
        i = next((i for i, w in enumerate(vectors) if (w == v).all()), None)
        if i is None:
            i = len(vectors)
            vectors.append(v)
        shape.append(named(f"n{i}"))
    dtype = np.result_type(*[x.dtype for x in column])
    return Aval(tuple(shape), dtype)


def _laid_out(column: list, t: Aval, caps: Capacities, count: int) -> np.ndarray:
    """The elements in the layout of their type, put there one after the other."""
    axes = ragged_axes(t.shape, caps.named)
    how = place(t, caps, False)
    out = np.zeros(layout(t, caps, how).shape, t.dtype)
    at = 0
    for b, x in enumerate(column):
        if how == FLAT:
            (a,) = axes
            out[(slice(None),) * a + (slice(at, at + x.shape[a]),)] = x
            at += x.shape[a]
        elif how == TILES:
            i, j = axes
            for p in range(0, x.shape[i], TILE):
                for q in range(0, x.shape[j], TILE):
                    cut = [slice(None)] * x.ndim
                    cut[i], cut[j] = slice(p, p + TILE), slice(q, q + TILE)
                    tile = x[tuple(cut)]
                    out[(at, *[slice(0, n) for n in tile.shape])] = tile
                    at += 1
        else:
            out[(b, *[slice(0, n) for n in x.shape])] = x
    return out


def refitted(x: Any, t: Aval, caps: Capacities) -> Any:
    """The rows of a pile of elements of type `t`, which were laid out for others, at these
    capacities."""
    for a, n in enumerate(layout(t, caps, place(t, caps, False)).shape):
        x = fit(x, a, n)
    return x
