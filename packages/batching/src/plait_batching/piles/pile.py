"""Pile: the user's handle of a batch of arrays whose sizes differ.

Invariant: rows lie in the layout of the element's type (`operation.layout`), at static capacities;
values beyond the last row are undefined, and no method shows them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import index
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

import plait.numpy as pnp
from plait.errors import SubscriptError
from plait.ext.errors import (
    ArgumentError,
    ConcretizationError,
    NotAnArrayError,
    OperandTypeError,
    ShapeError,
    border,
)
from plait.ext.sizes import Dim, is_symbolic
from plait.ext.trace import Tracer, Value, current
from plait.ext.tree import LEAF, TreeDef, flatten, register, registered_by, tell_parts_apart
from plait.ext.types import Aval, Opaque, float0
from plait.ext.values import Array, as_value

from .capacities import (
    COUNTS,
    TILE,
    Capacities,
    Size,
    capacities_of,
    in_rows_alone,
    ragged_axes,
    rounded,
    size_of_lengths,
)
from .carrier import Ragged
from .declarations import declared
from .layouts import fit
from .length_checks import hold_lengths, hold_rows
from .names import named
from .operation import FLAT, PADDED, TILES, layout, place
from .row_access import chosen

__all__ = ["Pile", "PileType", "is_pile", "names_inside", "refitted", "spoken_of"]


class PileType:
    """Type of a pile: the number of elements, and the type of each, whose sizes may differ."""

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
    """Batch of arrays, or of trees of arrays, in which some sizes differ between elements.

    vmap maps over the elements where `in_axes` has `plait.pile_axis`.  To jit, grad and the
    functions of `plait.tree` a pile is a tree, whose leaves are its rows and its lengths.

    Args:
      data: the rows of all elements, one after the other along `axis`: an array, a list of numbers,
        or a tree of arrays.  Rows after those are spare room that belongs to no element.
      lengths: int[number of elements], the number of rows of each; they may be traced.
      axis: the axis along which the sizes of elements differ.
      at_least: the number of rows that every element has at least.
      multiple_of: a number that divides the rows of every element.  With these facts mapped
        functions may read `x[1]`, or reshape to pairs of rows, also where lengths are traced; they
        are checked, if lengths are traced when the program runs.

    A pile is equal only to itself: `p == q` tests whether they are one object.

    Raises:
      ArgumentError: lengths that are not a vector of integers, or are negative.
      ShapeError: lengths that sum to more rows than there are, or contradict the facts.

    >>> import plait
    >>> p = plait.Pile.from_list([[1.0, 2.0, 3.0], [], [4.0]])
    >>> plait.vmap(lambda x: x.sum(), in_axes=plait.pile_axis)(p)
    Array([6., 0., 4.], dtype=float32)
    """

    __plait_elements__ = (
        "a pile is not a stack of rows: map over its elements by plait.vmap(f, plait.pile_axis), "
        "or stack padded elements, p.to_padded(), together with p.lengths"
    )
    __slots__ = ("_count", "_leaves", "_lengths", "_sizes", "_tree", "_types")
    _leaves: tuple[Any, ...]
    _lengths: tuple[Any, ...]
    _types: tuple[Aval, ...]
    _sizes: tuple[Size, ...]
    _tree: TreeDef
    _count: int

    @border
    def __init__(
        self,
        data: Any,
        lengths: Any,
        axis: int = 0,
        *,
        at_least: int = 0,
        multiple_of: int = 1,
    ):
        xs, tree = _arrays(data)
        n, facts = _checked(lengths), declared(at_least, multiple_of)
        axis = _axis(axis)
        rows = {x.aval.shape[axis] if -x.ndim <= axis < x.ndim else None for x in xs}
        if len(rows) != 1 or None in rows:
            raise ShapeError(
                f"a pile of rows along axis {axis} of "
                f"{', '.join(repr(x.aval) for x in xs) or 'no arrays'}",
                fix="give arrays that have the same number of rows along that axis",
            )
        have: Any = rows.pop()
        size = facts.of(_size("n0", n, have, have))
        hold_rows(n, have)
        facts.hold(n)
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

    # ---- constructors

    @classmethod
    @border
    def from_list(
        cls,
        elements: Sequence[Any],
        axis: int | tuple[int, ...] = 0,
        *,
        at_least: int = 0,
        multiple_of: int = 1,
    ) -> "Pile":
        """Return the pile of these arrays, or trees of arrays.

        Args:
          elements: one or more, whose values are known; sizes of their leaves may differ along
            `axis` only.  Lists of numbers are arrays, other lists are trees.  Several dtypes are
            promoted to a common one.
          axis: the axis, or axes, along which sizes may differ.
          at_least, multiple_of: facts about all sizes along these axes; see the class.

        Raises ShapeError for elements that differ along other axes, ArgumentError for no elements,
        and ConcretizationError for traced ones.

        >>> import plait
        >>> plait.Pile.from_list([[1.0, 2.0], [3.0]])
        Pile([[1. 2.], [3.]])
        """
        if not isinstance(elements, Iterable) or isinstance(elements, str | bytes | dict):
            raise ArgumentError(
                f"the elements of a pile are {_named(elements)}", fix="give a list of arrays"
            )
        axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
        facts = declared(at_least, multiple_of)
        p = _from_list(list(elements), tuple([_axis(a) for a in axes]))
        for n in p._lengths:
            facts.hold(n)
        p._sizes = tuple(map(facts.of, p._sizes))
        return p

    @classmethod
    @border
    def from_padded(
        cls,
        x: Any,
        lengths: Any,
        axis: int = 0,
        *,
        at_least: int = 0,
        multiple_of: int = 1,
    ) -> "Pile":
        """Return the pile of the first `lengths[b]` rows, along `axis`, of each element `x[b]`.

        Args:
          x: an array, or a tree of arrays, with the elements along axis 0.
          lengths: int[x.shape[0]], which may be traced.
          axis: the axis of the elements: axis `axis + 1` of `x`, unless it counts from the end.
          at_least, multiple_of: facts about all lengths; see the class.

        Raises ShapeError for arrays that lack these axes or have too few rows.

        >>> import plait
        >>> plait.Pile.from_padded(plait.numpy.ones((2, 3)), plait.numpy.array([1, 2]))
        Pile([[1.], [1. 1.]])
        """
        xs, tree = _arrays(x)
        n = _checked(lengths)
        count, axis = n.shape[0], _axis(axis)
        for v in xs:
            if not -v.ndim < axis + (axis >= 0) < v.ndim or v.shape[0] != count:
                raise ShapeError(
                    f"{v.aval!r} is no padded array of {count} elements with an axis {axis}",
                    fix="put the elements along axis 0",
                )
        at = [axis % (v.ndim - 1) for v in xs]
        widths = {v.shape[a + 1] for v, a in zip(xs, at)}
        if len(widths) != 1:
            raise ShapeError(
                f"padded arrays of {', '.join(map(str, widths)) or 'no'} rows each",
                fix="pad them to one number of rows",
            )
        width: Any = widths.pop()
        known = not isinstance(n, Tracer) and width.__class__ is int
        if known and int(np.asarray(n).max(initial=0)) > width:
            raise ShapeError(
                f"a length of {int(np.asarray(n).max())}, and there are {width} rows",
                fix="give lengths that fit",
            )
        facts = declared(at_least, multiple_of)
        size = facts.of(_size("n0", n, width * count, width))
        hold_lengths(n, width)
        facts.hold(n)
        r = Ragged(current(), count, None, in_rows_alone([size]), False, ambient=(n,))
        types, made = [], []
        for v, a in zip(xs, at):
            t = v.aval.with_shape((*v.shape[: a + 1], named("n0"), *v.shape[a + 2 :])[1:])
            types.append(t)
            if count == 0:
                made.append(pnp.zeros(layout(t, r.caps, FLAT).shape, t.dtype))
                continue
            wide = fit(v, a + 1, size.longest)
            made.append(r.cleaned(r.coerce(t, (wide,), (PADDED, 0), FLAT)[0], t))
        return cls._of(made, (n,), types, (size,), tree, count)

    # ---- properties

    @property
    def aval(self) -> Any:
        """The pile's type; a tree of types if its elements are trees.

        Raises ShapeError for a pile of piles."""
        self._expect_arrays("aval")
        lengths: dict[str, Any] = {}
        for s, n in zip(self._sizes, self._lengths, strict=True):
            if not isinstance(n, Tracer):
                lengths[s.name] = np.asarray(n)
        return self._tree.unflatten([PileType(self._count, t, lengths) for t in self._types])

    @property
    def lengths(self) -> Any:
        """int32[number of elements]: the sizes along the axis in which elements differ.

        If several axes differ, this is the first; raises ArgumentError if none does."""
        for t in self._types:
            for a in self._axes(t):
                return self._ragged().lengths(t.shape[a])
        raise ArgumentError(
            "the elements of this pile have one shape", fix="use .data, an array of all of them"
        )

    @property
    def offsets(self) -> Any:
        """int32[number of elements + 1]: the first row of each element, and the end."""
        n = self.lengths
        return pnp.concatenate([pnp.zeros(1, n.dtype), pnp.cumsum(n, dtype=n.dtype)])

    @property
    def data(self) -> Any:
        """The rows of all elements, one after the other; a tree of arrays if elements are trees.

        While lengths are traced, there are as many rows as the capacity, and those beyond the last
        are zero.  Elements with no ragged axis, or several, are padded: [number of elements, ...],
        zero beyond the end.

        Raises ShapeError for a pile of piles, whose rows have two levels.
        """
        self._expect_arrays("data")
        return self._tree.unflatten([self._rows(x, t) for x, t in self._columns()])

    def _expect_arrays(self, asked: str) -> None:
        if piles_in(self._tree):
            raise ShapeError(
                f"the elements of {_named(self)} are piles, and .{asked} is asked for",
                fix="map over it, vmap(f, in_axes=plait.pile_axis), or take its elements: p[0], "
                "p.to_list()",
            )

    def _rows(self, x: Any, t: Aval) -> Any:
        axes = self._axes(t)
        if len(axes) != 1 or place(t, self._caps(), False) != FLAT:
            return self._padded(x, t, 0, None)
        (a,) = axes
        rows = self._ragged().rows(t.shape[a])
        if isinstance(rows.lengths, Tracer):
            return chosen(rows.there, (a,), as_value(x), 0)
        total = int(np.asarray(rows.lengths).sum())
        return x[(slice(None),) * a + (slice(0, total),)]

    def _columns(self) -> list[tuple[Any, Aval]]:
        """Return (rows of all elements, type of an element) for each leaf of the elements.

        Raises ShapeError if rows have axes that the type lacks.  A pile is a tree for functions
        that add axes to every leaf of a tree, such as vmap's out_axes=0.  The dtype may have
        changed."""
        caps, found = self._caps(), []
        for x, t in zip(self._leaves, self._types, strict=True):
            if getattr(x, "shape", None) != layout(t, caps, place(t, caps, False)).shape:
                raise _other_rows(x, t)
            dtype = x.aval.dtype if isinstance(x, Value) else x.dtype
            found.append((x, t if dtype in (t.dtype, float0) else t.with_dtype(dtype)))
        self._expect_lengths()
        return found

    def _expect_lengths(self) -> None:
        """Raise ShapeError if a function of all leaves of a tree has changed the lengths, as far as
        that can be checked."""
        for n, s in zip(self._lengths, self._sizes, strict=True):
            if not self._fits(as_value(n), s):
                raise ShapeError(
                    f"the lengths of a pile of {self._count} elements, with room for {s.rows} "
                    f"rows, are {_named(n) if isinstance(n, Tracer) else np.asarray(n).tolist()}",
                    fix="a function of all leaves of a pile meets its lengths, which must stay: "
                    "make a pile of the new rows, plait.Pile(rows, p.lengths), or use plait.vmap",
                )

    def _fits(self, n: Any, s: Size) -> bool:
        if n.aval.dtype.kind not in "iu" or n.aval.shape != (self._count,):
            return False
        if isinstance(n, Tracer) or not self._count or is_symbolic(s.counts):
            return True
        each = np.asarray(n).astype(np.int64)
        if each.min() < s.least or (each % s.multiple).any():
            return False
        return bool(each.min() >= 0 and each.max() <= s.longest and each.sum() <= s.rows)

    def _caps(self) -> Capacities:
        return capacities_of(in_rows_alone(self._sizes), self._count)

    def _axes(self, t: Aval) -> tuple[int, ...]:
        return ragged_axes(t.shape, [s.name for s in self._sizes])

    def _ragged(self) -> Ragged:
        self._expect_lengths()
        ambient = tuple([as_value(n) for n in self._lengths])
        sizes = in_rows_alone(self._sizes)
        return Ragged(current(), self._count, None, sizes, False, ambient=ambient)

    # ---- conversions

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
                f"what stands where there are no rows is {_named(fill)}", fix="give a number"
            )
        if capacity is not None:
            capacity = _whole(capacity)
            if capacity is None or capacity < 0:
                raise ArgumentError("a capacity is a number of rows", fix="give an int, as 128")
        self._expect_arrays("to_padded")
        return self._tree.unflatten(
            [self._padded(x, t, fill, capacity) for x, t in self._columns()]
        )

    def _padded(self, x: Any, t: Aval, fill: Any, capacity: int | None) -> Any:
        axes = self._axes(t)
        if not axes:
            return x
        if self._count == 0:
            shape = [capacity or 0 if i in axes else n for i, n in enumerate(t.shape)]
            return pnp.zeros((0, *shape), t.dtype)
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
        """Return the elements, as numpy arrays, trees of them, or piles if they are piles.

        Raises ConcretizationError if the pile is traced."""
        columns = [self._elements(x, t) for x, t in self._columns()]
        elements = [self._tree.unflatten(leaves) for leaves in zip(*columns, strict=True)]
        if not piles_in(self._tree):
            return elements
        named = dict(zip([s.name for s in self._sizes], [np.asarray(n) for n in self._lengths]))
        return [
            spoken_of(e, {k: int(v[b]) for k, v in named.items()}) for b, e in enumerate(elements)
        ]

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

    @border
    def __getitem__(self, b: Any) -> Any:
        """Return element number `b`, an int; negative ones count from the end.

        Raises SubscriptError, an IndexError, for any other index."""
        if isinstance(b, slice):
            raise SubscriptError(
                "a pile has no slices",
                fix="make one of some elements: Pile.from_list(p.to_list()[a:b])",
            )
        i = _whole(b)
        if i is None:
            raise SubscriptError(
                f"an element of a pile is asked for by {_named(b)}",
                fix="give its number, an int: p[0]",
            )
        if not -self._count <= i < self._count:
            raise SubscriptError(
                f"element {i} of a pile of {self._count} elements",
                fix=f"give {-self._count} <= number < {self._count}"
                if self._count
                else "there are none",
            )
        return self.to_list()[i]

    @border
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Raise NotAnArrayError, since sizes differ."""
        raise NotAnArrayError(
            f"{_named(self)} is not an array: sizes of its elements differ",
            fix="map over it: vmap(f, in_axes=plait.pile_axis), or use p.data or p.to_padded()",
        )

    def __reduce__(self) -> tuple:
        children, static = _children(self)
        return _restored, (static, children)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_list())

    def __repr__(self) -> str:
        if any(isinstance(v, Tracer) for v in (*self._leaves, *self._lengths)):
            return f"Pile<{', '.join(f'{self._count} x {t!r}' for t in self._types)}>"
        try:
            with np.printoptions(threshold=8):
                inside = ", ".join(str(e) for e in self.to_list()[:6])
        except Exception:  # while trees are rebuilt, leaves may be objects that are not arrays
            return f"Pile<{self._count} elements>"
        more = ", ..." if self._count > 6 else ""
        return f"Pile([{inside}{more}])"


def _other_rows(x: Any, t: Aval) -> ShapeError:
    """Return the error for rows of a pile of elements `t` that a function of all leaves of the tree
    has changed."""
    if getattr(x, "ndim", None) == t.ndim:
        return ShapeError(
            f"the rows of a pile of elements {t!r} are {_named(x)}: the leaves of this tree were "
            "divided or sliced, regardless of where elements begin",
            fix="pass the pile whole (in shard_map by in_specs=PartitionSpec()), or pass padded "
            "elements and lengths, and make a pile of each part: Pile.from_padded(x, lengths)",
        )
    return ShapeError(
        f"the rows of a pile of elements {t!r} are {_named(x)}: axes were added to the leaves of "
        "this tree",
        fix="take the leaves, plait.tree.leaves(p); or map over piles by out_axes=plait.pile_axis",
    )


class _Elements(NamedTuple):
    """The structure of a pile: all but its rows and its lengths."""

    types: tuple[Aval, ...]
    sizes: tuple[Size, ...]
    tree: TreeDef
    number: int

    def __repr__(self) -> str:
        room = "".join([f", {s.rows} rows along {s.name}" for s in self.sizes])
        return f"{self.number} elements {', '.join(map(repr, self.types))}{room}"


def _children(p: Pile) -> tuple:
    return (*p._leaves, *p._lengths), _Elements(p._types, p._sizes, p._tree, p._count)


def _again(static: Any, children: Any) -> Pile:
    types, sizes, tree, count = static
    kids = tuple(children)
    n = len(types)
    return Pile._of(kids[:n], kids[n:], types, sizes, tree, count)


def _restored(static: Any, children: Any) -> Pile:
    """Rebuild a pile that was pickled or copied, sharing known lengths with existing piles."""
    p = _again(static, children)
    p._lengths = tuple(map(_one_of, p._lengths))
    return p


register(Pile, _children, _again)
# Piles of the same lengths must have one size in every function, so jit must see which of their
# lengths are the same object.
tell_parts_apart(Pile, lambda static, count: range(len(static[0]), count))


class _Frame:
    """A pile without its rows; two frames are equal if they have the same lengths."""

    __slots__ = ("about", "lengths")

    def __init__(self, lengths: tuple, about: tuple):
        self.lengths, self.about = lengths, about

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Frame) or self.about != other.about:
            return False
        return all(a is b or _same(a, b) for a, b in zip(self.lengths, other.lengths, strict=True))

    def __hash__(self) -> int:
        return hash(self.about)

    def __repr__(self) -> str:
        return f"a pile of lengths {', '.join(map(_told, self.lengths))}"


def _same(a: Any, b: Any) -> bool:
    known = isinstance(a, Array) and isinstance(b, Array)
    return known and np.array_equal(np.asarray(a), np.asarray(b))


def _told(lengths: Any) -> str:
    if isinstance(lengths, Tracer):
        return f"that are traced, {lengths!r}"
    with np.printoptions(threshold=8):
        return str(np.asarray(lengths))


def _framed(p: Pile) -> tuple:
    inner = _inner_lengths(p._tree)
    rows = tuple([x for i, x in enumerate(p._leaves) if i not in inner])
    fixed = tuple([x for i, x in enumerate(p._leaves) if i in inner])
    return rows, _Frame((*fixed, *p._lengths), _children(p)[1])


def _unframed(frame: _Frame, rows: tuple) -> Pile:
    inner = _inner_lengths(frame.about[2])
    if not inner:
        return _again(frame.about, (*rows, *frame.lengths))
    given, fixed = iter(rows), iter(frame.lengths)
    leaves = [next(fixed if i in inner else given) for i in range(len(frame.about[0]))]
    return _again(frame.about, (*leaves, *fixed))


def _inner_lengths(tree: TreeDef) -> frozenset[int]:
    """Return the indices of element leaves that are lengths of inner piles."""
    return frozenset().union(*[p._lengths for p in piles_in(tree)])


# Derivatives exist with respect to rows, but not with respect to lengths.
registered_by("register_adable").register(Pile, _framed, _unframed)


def is_pile(x: Any) -> bool:
    return x.__class__ is Pile


# ---- piles as elements -------------------------------------------------------------------------


def piles_in(tree: TreeDef) -> list[Pile]:
    """Return the piles of a structure; their leaves are the numbers of the structure's leaves."""
    if tree is LEAF:
        return []
    return list(filter(is_pile, flatten(tree.unflatten(range(tree.num_leaves)), is_pile)[0]))


def names_inside(tree: TreeDef) -> int:
    """Return how many sizes, n0 and so on, the piles of a structure name themselves.

    The outer pile names its own sizes differently, since the types of elements may contain both."""
    return max([len(p._sizes) for p in piles_in(tree)], default=0)


def spoken_of(x: Any, sizes: dict[str, Any]) -> Any:
    """Return a tree in whose piles the outer pile's named sizes are replaced by these values."""
    leaves, tree = flatten(x, is_pile)
    if not any(map(is_pile, leaves)):
        return x
    return tree.unflatten([_spoken_of(p, sizes) if is_pile(p) else p for p in leaves])


def _spoken_of(p: Pile, sizes: dict[str, Any]) -> Pile:
    def told(d: Any, of: dict[str, Any]) -> Any:
        return d.substitute(of) if d.__class__ is Dim else d

    around = {k: v for k, v in sizes.items() if k not in [s.name for s in p._sizes]}
    types = [t.with_shape([told(d, around) for d in t.shape]) for t in p._types]
    table = [s._replace(**{k: told(getattr(s, k), sizes) for k in COUNTS}) for s in p._sizes]
    count = told(p._count, sizes)
    rows, lengths = p._leaves, p._lengths
    if count.__class__ is int:  # capacities are at least one row
        caps = capacities_of(in_rows_alone(table), count)
        rows = tuple([refitted(as_value(x), t, caps) for x, t in zip(rows, types, strict=True)])
        lengths = tuple(map(as_value, lengths))
    return Pile._of(rows, lengths, types, table, p._tree, count)


def _with_rows(x: Any, axis: int, n: Any) -> Any:
    """Return `x` with `n` rows along `axis`.

    Known values are resized in numpy, because each number of rows would compile a program."""
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


def _named(x: Any) -> str:
    if is_pile(x):
        return f"a pile of {x._count} elements {', '.join(map(repr, x._types))}"
    return repr(x.aval) if isinstance(x, Value) else f"a value of type {type(x).__name__}"


def _whole(n: Any) -> int | None:
    """Return an index as an int; None if it is not an integer."""
    try:
        return None if isinstance(n, bool) else index(n)
    except TypeError:
        return None


def _axis(axis: Any) -> int:
    a = _whole(axis)
    if a is None:
        raise ArgumentError(f"an axis of a pile is {axis!r}", fix="give the number of an axis: 0")
    return a


def _arrays(data: Any) -> tuple[list, TreeDef]:
    """Return the leaves of a tree of arrays, where a list of numbers is one, and its structure."""
    leaves, tree = flatten(data, _is_numbers)
    return [as_value(_array(x) if isinstance(x, list) else x) for x in leaves], tree


def _array(x: Any) -> np.ndarray:
    """Return an element as a numpy array.

    Raises ShapeError for a list of lists of different sizes, ConcretizationError for traced values,
    and OperandTypeError for keys."""
    if isinstance(x, Tracer):
        raise ConcretizationError(
            f"a pile of {x!r}, whose sizes are those of every element",
            fix="make it of padded arrays and traced lengths: Pile.from_padded(x, lengths)",
        )
    if isinstance(x, Array) and not isinstance(x.dtype, np.dtype):
        raise OperandTypeError(
            f"a pile of {x.aval!r}", fix="pile up numbers; keys are mapped along an axis"
        )
    try:
        return np.asarray(x)
    except ValueError:
        raise ShapeError(
            "an element is a list of lists whose sizes differ",
            fix="make it an array: sizes differ from element to element, not inside of one",
        ) from None


def _checked(lengths: Any) -> Any:
    """Return lengths as a vector of int32; raise ArgumentError if they are anything else, or
    negative."""
    if isinstance(lengths, list | tuple):
        lengths = np.asarray(lengths) if lengths else np.zeros(0, np.int32)
    n = as_value(lengths)
    if n.aval.dtype.kind == "b":
        raise ArgumentError(
            f"lengths must be integers, got a mask {n.aval!r}",
            fix="put the rows that exist in front, and give their numbers: mask.sum(axis=1)",
        )
    if n.ndim != 1 or n.aval.dtype.kind not in "iu":
        raise ArgumentError(
            f"lengths are {n.aval!r}", fix="give a vector of integers, one for each element"
        )
    if not isinstance(n, Tracer) and np.asarray(n).min(initial=0) < 0:
        raise ArgumentError("a length is negative", fix="give lengths that are 0 or more")
    return _one_of(pnp.asarray(n, "int32"))


_vectors: "WeakValueDictionary[tuple, Array]" = WeakValueDictionary()


def _one_of(n: Any) -> Any:
    """Return the canonical array of these lengths, if they are known.

    Piles of equal lengths then share a size where lengths are compared by identity, such as among
    the arguments of jit."""
    if not isinstance(n, Array):
        return n
    key = np.asarray(n).tobytes(), n.key
    found = _vectors.get(key)
    if found is None or found.is_deleted():
        found = _vectors[key] = n
    return found


def _size(name: str, n: Any, rows: Any, longest: Any) -> Size:
    """Return the capacities for lengths; if they are traced, for the greatest possible ones."""
    if not isinstance(n, Tracer) and longest.__class__ is int:
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
    if any(is_pile(x) for x in flatten(elements, is_pile)[0]):
        return _of_piles(elements, axes)
    trees = [flatten(e, _is_numbers) for e in elements]
    tree = trees[0][1]
    for b, (_, t) in enumerate(trees):
        if t != tree:
            raise ShapeError(
                f"elements of a pile are trees of one structure, and element {b} is {t}, where "
                f"the first is {tree}",
                fix="give them one structure",
            )
    if not tree.num_leaves:
        raise ShapeError("the elements of a pile have no arrays", fix="give arrays")
    columns = [
        [np.asarray(as_value(_array(x))) for x in leaf] for leaf in zip(*[ls for ls, _ in trees])
    ]
    return _of_columns(columns, [axes] * len(columns), lambda types: tree)


def _of_columns(
    columns: list[list], axes: Sequence[tuple], tree_of: Callable[[list], Any], first: int = 0
) -> Pile:
    """Return the pile of elements with these leaves, which differ in size along these axes.

    Args:
      tree_of: returns the structure of an element, given the types of its leaves.
      first: the number of the first named size.
    """
    vectors: list[np.ndarray] = []  # the lengths of each name
    types, leaves = [], []
    for column, own in zip(columns, axes, strict=True):
        types.append(_element_type(column, own, vectors, first))
    sizes = tuple([size_of_lengths(f"n{first + i}", v) for i, v in enumerate(vectors)])
    count, tree = len(columns[0]), tree_of(types)
    caps = capacities_of(sizes, count)
    for column, t in zip(columns, types):
        leaves.append(pnp.asarray(_laid_out(column, t, caps, count)))
    lengths = [_one_of(pnp.asarray(v, "int32")) for v in vectors]
    return Pile._of(leaves, lengths, types, sizes, tree, count)


def _of_piles(elements: list, axes: tuple[int, ...]) -> Pile:
    """Return the pile of trees that contain piles: its leaves are their rows and their lengths."""
    apart = [flatten(e, lambda x: is_pile(x) or _is_numbers(x)) for e in elements]
    units, tree = apart[0]
    for b, (others, t) in enumerate(apart):
        if t != tree or any(_kind(x) != _kind(y) for x, y in zip(others, units)):
            raise ShapeError(
                f"elements of a pile are trees of one structure, and element {b} is "
                f"{elements[b]!r}, where the first is {elements[0]!r}",
                fix="give them one structure, and the piles in them elements of one type",
            )
    columns: list[list] = []
    own: list[tuple] = []
    for unit in zip(*[units for units, _ in apart]):
        if not is_pile(unit[0]):
            columns.append([np.asarray(as_value(_array(x))) for x in unit])
            own.append(axes)
            continue
        for i, t in enumerate(unit[0]._types):
            columns.append([np.asarray(p._rows(*p._columns()[i])) for p in unit])
            own.append(unit[0]._axes(t))
        columns.append([np.asarray(p.lengths) for p in unit])
        own.append((0,))

    def tree_of(types: list) -> TreeDef:
        given, spoken = iter(types), []
        for u in units:
            spoken.append(_spoken_inside(u, given) if is_pile(u) else next(given))
        return flatten(tree.unflatten(spoken))[1]

    return _of_columns(columns, own, tree_of, 1)


def _kind(x: Any) -> Any:
    """Return the properties in which the inner piles of all elements must agree; None for other
    values.

    Raises ShapeError for piles that cannot be elements."""
    if not is_pile(x):
        return None
    if len(x._sizes) != 1 or any(len(x._axes(t)) != 1 for t in x._types) or piles_in(x._tree):
        raise ShapeError(
            f"an element is {x!r}: the elements of a pile in a pile are arrays, or trees of them, "
            "that differ along one axis, and have one vector of lengths",
            fix="make a pile for each such axis",
        )
    return x._types, x._tree


def _spoken_inside(p: Pile, given: Iterator[Aval]) -> Pile:
    """Return an inner pile, given the types of its rows and lengths."""
    rows = [next(given) for _ in p._types]
    (count,) = next(given).shape
    ((a,), *_) = [p._axes(t) for t in p._types]
    have = rows[0].shape[a]
    return Pile._of(rows, (count,), p._types, (_size_inside(have, count),), p._tree, count)


def _size_inside(rows: Any, count: Any) -> Size:
    """Return the capacities of a pile of symbolic numbers of rows and elements."""
    tiles = -(-rows // TILE)
    return Size("n0", rows, rows, count * tiles * tiles + 1)


def _is_numbers(x: Any) -> bool:
    """Return whether `x` is a list of numbers, or of such lists, which is an array and not a
    tree."""
    return isinstance(x, list) and all(
        isinstance(v, int | float | complex | np.generic) or _is_numbers(v) for v in x
    )


def _element_type(column: list, axes: tuple[int, ...], vectors: list, named_from: int) -> Aval:
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
        shape.append(named(f"n{named_from + i}"))
    dtype = np.result_type(*[x.dtype for x in column])
    return Aval(tuple(shape), dtype)


def _laid_out(column: list, t: Aval, caps: Capacities, count: int) -> np.ndarray:
    """Return the elements in the layout of their type, copied one after the other."""
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
    """Resize the rows of a pile of elements of type `t`, laid out at other capacities, to these
    capacities."""
    for a, n in enumerate(layout(t, caps, place(t, caps, False)).shape):
        x = fit(x, a, n)
    return x
