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
from plait.ext.ops.opaque import unwrap, wrap
from plait.ext.sizes import Dim, is_symbolic
from plait.ext.trace import Tracer, Value, current
from plait.ext.tree import LEAF, TreeDef, flatten, guard, register, registered_by, tell_parts_apart
from plait.ext.types import Aval, Opaque, float0
from plait.ext.values import Array, as_value

from .added_axes import leading, of_batch, with_added_axes
from .capacities import (
    COUNTS,
    TILE,
    Capacities,
    Size,
    capacities_of,
    examples_in,
    in_rows_alone,
    ragged_axes,
    rounded,
    size_of_lengths,
)
from .carrier import Ragged
from .choosing import Parts, gathered, indices_of, known
from .declarations import declared
from .guarding import expect_equal, is_passive
from .layouts import fit
from .length_checks import hold_lengths, hold_rows
from .names import named
from .on_host import elements_on_host, is_on_host, laid_out, padded_on_host
from .operation import FLAT, PADDED, layout, place
from .operators import PileOperators
from .policy import Capacities as Policy
from .policy import bounded, in_force
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


class Pile(PileOperators):
    """Batch of arrays, or of trees of arrays, in which some sizes differ between elements.

    vmap maps over the elements where `in_axes` has `plait.pile_axis`.  To jit, grad and the
    functions of `plait.tree` a pile is a tree, whose leaves are its rows and its lengths.

    Args:
      data: the rows of all elements, one after the other along `axis`: an array, a list of numbers,
        or a tree of arrays.  Rows after those are spare room that belongs to no element.
      lengths: int[number of elements], the number of rows of each; they may be traced.
      axis: the axis along which the sizes of elements differ.
      capacity: (rows of all elements, rows of the longest), or `plait.Capacities`: batches of equal
        capacity have one program.  By default it follows from the lengths; where they are traced,
        one element may have all the rows.
      at_least: the number of rows that every element has at least.
      multiple_of: a number that divides the rows of every element.  With these facts mapped
        functions may read `x[1]`, or reshape to pairs of rows, also where lengths are traced; they
        are checked, if lengths are traced when the program runs.  They do not hold for empty
        elements that a capacity adds.

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
        capacity: Any = None,
        *,
        at_least: int = 0,
        multiple_of: int = 1,
    ):
        xs, tree = _arrays(data)
        policy, facts = in_force(capacity), declared(at_least, multiple_of)
        n = _checked(lengths)
        facts.hold(n)
        n = _with_empty(n, policy)
        axis = _axis(axis)
        rows = {x.aval.shape[axis] if -x.ndim <= axis < x.ndim else None for x in xs}
        if len(rows) != 1 or None in rows:
            raise ShapeError(
                f"a pile of rows along axis {axis} of "
                f"{', '.join(repr(x.aval) for x in xs) or 'no arrays'}",
                fix="give arrays that have the same number of rows along that axis",
            )
        have: Any = rows.pop()
        size = facts.of(_size("n0", n, have, have, policy))
        hold_rows(n, have if policy is None else min(have, policy.rows))
        if policy is not None:
            hold_lengths(n, policy.longest)
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
        capacity: Any = None,
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
          capacity: see `Pile`; it holds for each of the axes.
          at_least, multiple_of: facts about all sizes along these axes; see the class.

        Raises ShapeError for elements that differ along other axes, ArgumentError for no elements,
        and ConcretizationError for traced ones.

        >>> import plait
        >>> plait.Pile.from_list([[1.0, 2.0], [3.0]])
        Pile([[1. 2.], [3.]], f32[n0])
        """
        if not isinstance(elements, Iterable) or isinstance(elements, str | bytes | dict):
            raise ArgumentError(
                f"the elements of a pile are {_named(elements)}", fix="give a list of arrays"
            )
        axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
        policy, facts = in_force(capacity), declared(at_least, multiple_of)
        p = _from_list(list(elements), tuple([_axis(a) for a in axes]), policy)
        p._sizes = tuple(map(facts.of, p._sizes))
        for s, n in zip(p._sizes, p._lengths, strict=True):
            facts.hold(np.asarray(n)[: examples_in([s], {s.name: n})])
        return p

    @classmethod
    @border
    def from_padded(
        cls,
        x: Any,
        lengths: Any,
        axis: int = 0,
        capacity: Any = None,
        *,
        at_least: int = 0,
        multiple_of: int = 1,
    ) -> "Pile":
        """Return the pile of the first `lengths[b]` rows, along `axis`, of each element `x[b]`.

        Args:
          x: an array, or a tree of arrays, with the elements along axis 0.
          lengths: int[x.shape[0]], which may be traced.
          axis: the axis of the elements: axis `axis + 1` of `x`, unless it counts from the end.
          capacity: see `Pile`.
          at_least, multiple_of: facts about all lengths; see the class.

        Raises ShapeError for arrays that lack these axes or have too few rows.

        >>> import plait
        >>> plait.Pile.from_padded(plait.numpy.ones((2, 3)), plait.numpy.array([1, 2]))
        Pile([[1.], [1. 1.]], f32[n0])
        """
        xs, tree = _arrays(x)
        n = _checked(lengths)
        count, axis = n.shape[0], _axis(axis)
        for v in xs:
            if not -v.ndim < axis + (axis >= 0) < v.ndim or v.shape[0] != count:
                raise ShapeError(
                    f"{v.aval!r} is not a padded array of {count} elements with an axis {axis}",
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
        policy, facts = in_force(capacity), declared(at_least, multiple_of)
        facts.hold(n)
        n, xs = _with_empty(n, policy), [_with_count(v, policy) for v in xs]
        count = n.shape[0]
        size = facts.of(_size("n0", n, width * count, width, policy))
        hold_lengths(n, width if policy is None else min(width, policy.longest))
        hold_rows(n, size.rows)
        r = Ragged(current(), count, None, in_rows_alone([size]), False, ambient=(n,))
        types, made = [], []
        on_host = is_on_host(n, *xs)
        for v, a in zip(xs, at):
            t = v.aval.with_shape((*v.shape[: a + 1], named("n0"), *v.shape[a + 2 :])[1:])
            types.append(t)
            if on_host:
                cut = (slice(None),) * a
                rows = [e[(*cut, slice(0, k))] for e, k in zip(np.asarray(v), np.asarray(n))]
                made.append(as_value(laid_out(rows, t, r.caps, count)))
                continue
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
        types = [t for _, t in self._columns()]
        return self._tree.unflatten([PileType(self._count, t, lengths) for t in types])

    @property
    def lengths(self) -> Any:
        """int32[number of elements]: the sizes along the axis in which elements differ.

        If several axes differ, this is the first; raises ArgumentError if none does.  A stack of
        batches has those of each."""
        if leading(self._lengths):
            return self._lengths[0]
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
        return self._tree.unflatten([self._on_rows(self._rows, *c) for c in self._columns()])

    def _on_rows(self, f: Callable[..., Any], x: Any, t: Aval) -> Any:
        """Return `f(x, t)`; where the leaf `x` is a pile, the pile of these results for its leaves.

        Such leaves are blocks of second derivatives, whose first axes are those of this pile."""
        if not is_pile(x):
            return f(x, t)
        rank = len(layout(t, self._caps(), place(t, self._caps(), False)).shape)
        return x._with_rows([f(y, t.with_shape((*t.shape, *y.shape[rank:]))) for y in x._leaves])

    def _with_rows(self, rows: Any) -> "Pile":
        return Pile._of(rows, self._lengths, self._types, self._sizes, self._tree, self._count)

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
        if not is_on_host(*self._lengths):
            rows = self._ragged().rows(t.shape[a])
            if isinstance(rows.lengths, Tracer):
                return chosen(rows.there, (a,), as_value(x), 0)
            total = int(np.asarray(rows.lengths).sum())
        else:
            total = sum([_size_of(t.shape[a], own) for own in self._each_size()])
        cut = (slice(None),) * a + (slice(0, total),)
        return as_value(np.asarray(x)[cut]) if is_on_host(x) else x[cut]

    def _columns(self) -> list[tuple[Any, Aval]]:
        """Return (rows of all elements, type of an element) for each leaf of the elements.

        The type has the axes that were added in front of all leaves, and the dtype of the rows.
        Raises ShapeError if rows do not fit the type, or if this is a stack of batches."""
        if leading(self._lengths):
            raise ShapeError(
                f"{_named(self)} holds {len(self)} batches of {self._count} elements",
                fix="take one of them, p[0], or map over the batches by plait.lax.map or scan",
            )
        caps, found = self._caps(), []
        for x, t in zip(self._leaves, self._types, strict=True):
            if is_pile(x):
                found.append((x, t))
                continue
            fitted = with_added_axes(x, t, caps)
            if fitted is None:
                raise _other_rows(x, t)
            x, t = fitted
            dtype = x.aval.dtype if isinstance(x, Value) else x.dtype
            found.append((x, t if dtype in (t.dtype, float0) else t.with_dtype(dtype)))
        self._expect_lengths()
        return found

    def __defined__(self) -> "Pile":
        """Return the pile with zeros beyond its last row."""
        r = self._ragged()

        def defined(x: Any, t: Aval, given: Any) -> Any:
            is_plain = not is_pile(x) and not is_passive(x) and x.shape == given.shape
            return r.cleaned(as_value(x), t) if is_plain else given

        return self._with_rows(
            [defined(x, t, y) for (x, t), y in zip(self._columns(), self._leaves, strict=True)]
        )

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
        own = each[: examples_in([s], {s.name: each})]
        if own.min(initial=s.least) < s.least or (own % s.multiple).any():
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
        padded = lambda x, t: self._padded(x, t, fill, capacity)  # noqa: E731
        return self._tree.unflatten([self._on_rows(padded, *c) for c in self._columns()])

    def _padded(self, x: Any, t: Aval, fill: Any, capacity: int | None) -> Any:
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

    def _padded_on_host(self, x: Any, t: Aval, fill: Any, capacity: int | None) -> Any:
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
            return [of_batch(self, i) for i in range(len(self))]
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

    def __len__(self) -> int:
        return leading(self._lengths)[0] if leading(self._lengths) else self._count

    @border
    def __getitem__(self, at: Any) -> Any:
        """Return an element by its number, or the pile of the elements that are chosen.

        Args:
          at: an int, where negative ones count from the end; a slice, a vector of integers, or a
            boolean for each element; or a tuple of one of these and subscripts of each element.

        If lengths are traced, an element is a pile of one.  Raises SubscriptError, an IndexError,
        for a number that is out of range.

        >>> import plait
        >>> p = plait.Pile.from_list([[1.0, 2.0], [], [3.0]])
        >>> p[[2, 0]]
        Pile([[3.], [1. 2.]], f32[n0])
        >>> p[2]
        array([3.], dtype=float32)
        """
        if isinstance(at, tuple) and at:
            first, *rest = at
            p = self if first is Ellipsis else self[first] if first != slice(None) else self
            inner = (Ellipsis, *rest) if first is Ellipsis else tuple(rest)
            return p._mapped(lambda x: x[inner]) if is_pile(p) else p[inner]
        if leading(self._lengths):
            return of_batch(self, at)
        i = _whole(at)
        if i is None and not _is_scalar(at):
            if not isinstance(at, slice | list | np.ndarray | Value):
                raise SubscriptError(
                    f"an element of a pile is asked for by {_named(at)}",
                    fix="give its number, an int: p[0]; or a slice, or several numbers",
                )
            return self._gathered([self], indices_of(at, self._count))
        if i is None:
            return self._gathered([self], indices_of(pnp.reshape(as_value(at), (1,)), self._count))
        if not -self._count <= i < self._count:
            count = self._count
            raise SubscriptError(
                f"element {i} of a pile of {count} elements",
                fix=f"give {-count} <= number < {count}" if count else "there are none",
            )
        if known(*self._lengths, *self._leaves):
            return self.to_list()[i]
        one = self._gathered([self], np.array([i % self._count]))
        if not known(*self._lengths) or piles_in(self._tree):
            return one
        return one._tree.unflatten([x[0] for x in flatten(one.to_padded())[0]])

    def _gathered(self, piles: Sequence["Pile"], at: Any) -> "Pile":
        parts = [Parts(p._columns(), p._lengths, p._sizes, p._count) for p in piles]
        out = gathered(parts, at)
        rows, types = zip(*out.columns, strict=True)
        lengths = tuple(map(_one_of, out.lengths))
        return Pile._of(rows, lengths, types, out.sizes, self._tree, out.count)

    def _joined(self, piles: Sequence["Pile"]) -> "Pile":
        """Return one batch of the elements of several, of one type."""
        kind = [t.shape for t in self._types], self._tree
        for i, p in enumerate(piles):
            if ([t.shape for t in p._types], p._tree) != kind:
                raise ShapeError(
                    f"a batch of elements {self._types!r} is joined with one of {p._types!r}, "
                    f"number {i}",
                    fix="join batches whose elements differ in size along the same axes only",
                )
        return self._gathered(piles, np.arange(sum(p._count for p in piles)))

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
        text = str(self)
        types = ", ".join(map(repr, self._types))
        return f"{text[:-1]}, {types})" if text.startswith("Pile([") else text

    def __str__(self) -> str:
        if any(isinstance(v, Tracer) for v in (*self._leaves, *self._lengths)):
            return f"Pile<{', '.join(f'{self._count} x {t!r}' for t in self._types)}>"
        try:
            with np.printoptions(threshold=8):
                inside = ", ".join(str(e) for e in self.to_list()[:6])
        except Exception:  # while trees are rebuilt, leaves may be objects that are not arrays
            return f"Pile<{self._count} elements>"
        more = ", ..." if len(self) > 6 else ""
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
        "this tree, or removed",
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


def _lengths_among(static: Any, count: int) -> list[int]:
    """Return the numbers of the children that are lengths, of this pile or of its elements."""
    types, _, tree, _ = static
    return [*_inner_lengths(tree), *range(len(types), count)]


# A step of an optimiser changes rows, but not lengths.
guard(Pile, _lengths_among, expect_equal, is_passive)


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
    if any(n.__class__ is int for n in around.values()):  # capacities are at least one row
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


def _is_scalar(n: Any) -> bool:
    """Return whether an index is a traced integer."""
    return isinstance(n, Tracer) and n.aval.ndim == 0 and n.aval.dtype.kind in "iu"


_NUMBERS = (bool, int, float, complex, np.generic)


def _size_of(d: Any, sizes: dict[str, int]) -> int:
    return d.substitute(sizes) if d.__class__ is Dim else d


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

    Raises ShapeError for a list of lists of different sizes, and ConcretizationError for traced
    values."""
    if isinstance(x, Tracer):
        raise ConcretizationError(
            f"a pile of {x!r}, whose sizes are those of every element",
            fix="make it of padded arrays and traced lengths: Pile.from_padded(x, lengths)",
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
    if is_on_host(n):  # a conversion on the device would be compiled for each number of elements
        return _one_of(as_value(np.asarray(n).astype(np.int32)))
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


def _size(name: str, n: Any, rows: Any, longest: Any, policy: Policy | None = None) -> Size:
    """Return the capacities for lengths; if they are traced, for the greatest possible ones."""
    count = n.shape[0]
    if policy is not None:
        if not isinstance(n, Tracer):
            policy.expect(n)
        return policy.size(name, count)
    if not isinstance(n, Tracer) and longest.__class__ is int:
        return size_of_lengths(name, np.asarray(n))
    rows, longest = rounded(rows, 8, 64), rounded(longest, 1, 8)
    if not is_symbolic((rows, longest, count)):
        return bounded(name, rows, longest, count)
    tiles = -(-longest // TILE)
    return Size(name, rows, longest, count * tiles * tiles + 1)


def _with_empty(n: Any, policy: Policy | None) -> Any:
    """Return lengths with those of the empty elements that the policy adds."""
    more = 0 if policy is None else policy.missing(n.shape[0])
    if not more:
        return n
    if isinstance(n, Tracer):
        return pnp.pad(n, (0, more))
    return _one_of(as_value(np.pad(np.asarray(n), (0, more))))


def _with_count(x: Any, policy: Policy | None) -> Any:
    """Return an array of elements, with the empty ones that the policy adds."""
    more = 0 if policy is None else policy.missing(x.shape[0])
    if more and is_on_host(x):
        return as_value(np.pad(np.asarray(x), [(0, more), *[(0, 0)] * (x.ndim - 1)]))
    return fit(x, 0, x.shape[0] + more) if more else x


def _from_list(elements: list, axes: tuple[int, ...], policy: Policy | None) -> Pile:
    if not elements:
        raise ArgumentError(
            "a pile of no elements has no type",
            fix="give an element, or make it of an array: Pile(data, lengths)",
        )
    if any(is_pile(x) for x in flatten(elements, is_pile)[0]):
        return _of_piles(elements, axes, policy)
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
    columns = list(zip(*[leaves for leaves, _ in trees], strict=True))
    return _of_columns(columns, [axes] * len(columns), lambda types: tree, policy)


def _of_columns(
    columns: Sequence[Sequence],
    axes: Sequence[tuple],
    tree_of: Callable[[list], Any],
    policy: Policy | None,
    first: int = 0,
) -> Pile:
    """Return the pile of elements with these leaves, which differ in size along these axes.

    Args:
      tree_of: returns the structure of an element, given the types of its leaves.
      first: the number of the first named size.
    """
    vectors: list[np.ndarray] = []  # the lengths of each name
    types, leaves = [], []
    made = [_numbers(column) for column in columns]
    for (column, opaque), own in zip(made, axes, strict=True):
        if opaque is not None:
            own = [a - len(opaque.shape) * (a < 0) for a in own]
        types.append(_element_type(column, tuple(own), vectors, first))
    more = 0 if policy is None else policy.missing(len(columns[0]))
    vectors = [np.pad(v, (0, more)) for v in vectors]
    names = [f"n{first + i}" for i in range(len(vectors))]
    sizes = tuple([_size(k, v, 0, 0, policy) for k, v in zip(names, vectors, strict=True)])
    count, tree = len(columns[0]) + more, tree_of(types)
    caps = capacities_of(sizes, count)
    for i, ((column, opaque), t) in enumerate(zip(made, types, strict=True)):
        leaf = pnp.asarray(laid_out(column, t, caps, count))
        if opaque is not None:
            leaf = wrap(leaf, opaque)
            types[i] = Aval(t.shape[: t.ndim - len(opaque.shape)], opaque)
        leaves.append(leaf)
    lengths = [_one_of(pnp.asarray(v, "int32")) for v in vectors]
    return Pile._of(leaves, lengths, types, sizes, tree, count)


def _numbers(column: Sequence) -> tuple[list[np.ndarray], Opaque | None]:
    """Return the elements as numpy arrays; for keys, (the words of each, their dtype)."""
    dtypes: set[Any] = {
        x.dtype for x in column if isinstance(x, Array) and x.dtype.__class__ is Opaque
    }
    if not dtypes:
        return [np.asarray(as_value(_array(x))) for x in column], None
    (opaque, *others) = dtypes
    if others or not all(isinstance(x, Array) and x.dtype == opaque for x in column):
        raise OperandTypeError(
            "elements of a pile have one dtype, and some are keys of another kind, or numbers",
            fix="make a pile for each dtype",
        )
    return [np.asarray(unwrap(x)) for x in column], opaque


def _of_piles(elements: list, axes: tuple[int, ...], policy: Policy | None) -> Pile:
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
    columns: list[Sequence] = []
    own: list[tuple] = []
    for unit in zip(*[units for units, _ in apart]):
        if not is_pile(unit[0]):
            columns.append(unit)
            own.append(axes)
            continue
        for i, t in enumerate(unit[0]._types):
            columns.append([p._rows(*p._columns()[i]) for p in unit])
            own.append(unit[0]._axes(t))
        columns.append([np.asarray(p.lengths) for p in unit])
        own.append((0,))

    def tree_of(types: list) -> TreeDef:
        given, spoken = iter(types), []
        for u in units:
            spoken.append(_spoken_inside(u, given) if is_pile(u) else next(given))
        return flatten(tree.unflatten(spoken))[1]

    return _of_columns(columns, own, tree_of, policy, 1)


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


def refitted(x: Any, t: Aval, caps: Capacities) -> Any:
    """Resize the rows of a pile of elements of type `t`, laid out at other capacities, to these
    capacities."""
    for a, n in enumerate(layout(t, caps, place(t, caps, False)).shape):
        x = fit(x, a, n)
    return x
