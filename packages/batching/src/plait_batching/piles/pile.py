"""Pile: the user's handle of a batch of arrays whose sizes differ.

Invariant: rows lie in the layout of the element's type (`operation.layout`), at static capacities;
values beyond the last row are undefined, and no method shows them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

import plait.numpy as pnp
from plait.errors import SubscriptError
from plait.ext.errors import ArgumentError, NotAnArrayError, ShapeError, border
from plait.ext.sizes import is_symbolic
from plait.ext.trace import Tracer, Value, current
from plait.ext.tree import (
    SavedClass,
    TreeDef,
    bare,
    exact,
    flatten,
    register,
    registered_by,
    tell_parts_apart,
)
from plait.ext.types import Aval, float0
from plait.ext.values import as_value
from plait.typing import ArrayLike

from .added_axes import leading, of_batch, with_added_axes
from .capacities import (
    Capacities,
    Size,
    capacities_of,
    examples_in,
    in_rows_alone,
    ragged_axes,
    sums_of,
)
from .carrier import Ragged
from .choosing import Parts, gathered, in_order, indices_of, known
from .declarations import declared
from .elements import piles_in, shown
from .frames import Frame, inner_lengths
from .guarding import is_passive
from .layouts import fit
from .length_checks import hold_lengths, hold_rows
from .lengths import checked, one_of, size_of, with_count, with_empty
from .making import (
    arrays_of,
    axis_number,
    from_elements,
    type_along,
    type_of,
    whole_number,
    with_rows,
)
from .names import named
from .on_host import is_on_host, laid_out, on_device
from .operation import FLAT, PADDED, layout
from .operators import is_pile
from .packing import PilePacking
from .picking import picked
from .pile_type import PileType
from .policy import in_force
from .saving import read, written

__all__ = ["Pile", "structure_of"]


class Pile(PilePacking):
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
    __plait_saved__: ClassVar[SavedClass]
    __slots__ = ("_about", "_count", "_leaves", "_lengths", "_sizes", "_tree", "_types")
    _leaves: tuple[Any, ...]
    _lengths: tuple[Any, ...]
    _types: tuple[Aval, ...]
    _sizes: tuple[Size, ...]
    _tree: TreeDef
    _count: int
    _about: Any

    @border
    def __init__(
        self,
        data: object,
        lengths: object,
        axis: int = 0,
        capacity: Any = None,
        *,
        at_least: int = 0,
        multiple_of: int = 1,
    ):
        xs, tree = arrays_of(data)
        policy, facts = in_force(capacity), declared(at_least, multiple_of)
        given, sums = checked(lengths)
        if facts is not None:
            facts.hold(given)
        n = with_empty(given, policy)
        if axis.__class__ is not int:
            axis = axis_number(axis)
        rows = {x.shape[axis] if -x.ndim <= axis < x.ndim else None for x in xs}
        if len(rows) != 1 or None in rows:
            raise ShapeError(
                f"a pile of rows along axis {axis} of "
                f"{', '.join(repr(type_of(x)) for x in xs) or 'no arrays'}",
                fix="give arrays that have the same number of rows along that axis",
            )
        have: Any = rows.pop()
        if isinstance(n, Tracer):
            size = size_of("n0", n, have, have, policy)
            hold_rows(n, have if policy is None else min(have, policy.rows))
            if policy is not None:
                hold_lengths(n, policy.longest)
        else:
            sums = sums or sums_of(np.asarray(given))
            # Without a policy no length was added, and those of numpy need not be read again.
            size = size_of("n0", given if policy is None else n, have, have, policy, sums)
            if sums[0] > have:
                raise ShapeError(
                    f"lengths of {sums[0]} rows in all, and there are {have}",
                    fix="give each element's number of rows",
                )
        if facts is not None:
            size = facts.of(size)
        d = named("n0")
        types = []
        for i, x in enumerate(xs):
            a = axis % x.ndim
            types.append(type_along(x, a, d))
            xs[i] = with_rows(x, a, size.rows)
        self._set(xs, (n,), types, (size,), tree, n.shape[0])

    def _set(
        self,
        leaves: Sequence[Any],
        lengths: Sequence[Any],
        types: Sequence[Aval],
        sizes: Sequence[Size],
        tree: TreeDef,
        count: int,
    ) -> None:
        self._leaves, self._lengths = tuple(leaves), tuple(lengths)
        self._types, self._sizes = tuple(types), tuple(sizes)
        self._tree, self._count, self._about = tree, count, None

    @classmethod
    def _of(
        cls,
        leaves: Sequence[Any],
        lengths: Sequence[Any],
        types: Sequence[Aval],
        sizes: Sequence[Size],
        tree: TreeDef,
        count: int,
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
        if elements.__class__ is not list and (
            not isinstance(elements, Iterable) or isinstance(elements, str | bytes | dict)
        ):
            raise ArgumentError(
                f"the elements of a pile are {shown(elements)}", fix="give a list of arrays"
            )
        policy, facts = in_force(capacity), declared(at_least, multiple_of)
        if axis.__class__ is int:
            axes: tuple[Any, ...] = (axis,)
        else:
            axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
            axes = tuple(map(axis_number, axes))
        p = from_elements(cls, list(elements), axes, policy)
        if facts is not None:
            for s, n in zip(p._sizes, p._lengths, strict=True):
                facts.hold(np.asarray(n)[: examples_in([s], {s.name: n})])
            sizes = list(map(facts.of, p._sizes))
            return cls._of(p._leaves, p._lengths, p._types, sizes, p._tree, p._count)
        return p

    @classmethod
    @border
    def from_padded(
        cls,
        x: object,
        lengths: object,
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
        xs, tree = arrays_of(x)
        xs = list(map(as_value, xs))
        n, sums = checked(lengths)
        count, axis = n.shape[0], axis_number(axis)
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
        if not isinstance(n, Tracer) and width.__class__ is int:
            sums = sums or sums_of(np.asarray(n))
            if sums[1] > width:
                raise ShapeError(
                    f"a length of {sums[1]}, and there are {width} rows",
                    fix="give lengths that fit",
                )
        policy, facts = in_force(capacity), declared(at_least, multiple_of)
        if facts is not None:
            facts.hold(n)
        n, xs = with_empty(n, policy), [with_count(v, policy) for v in xs]
        count = n.shape[0]
        size = size_of("n0", n, width * count, width, policy, sums)
        if facts is not None:
            size = facts.of(size)
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
                made.append(on_device(laid_out(rows, t, r.caps, count)))
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
        if is_on_host(n):
            return as_value(np.cumsum(np.append(0, np.asarray(n)), dtype=n.dtype))
        return pnp.concatenate([pnp.zeros(1, n.dtype), pnp.cumsum(n, dtype=n.dtype)])

    def _with_rows(self, rows: Any) -> "Pile":
        return Pile._of(rows, self._lengths, self._types, self._sizes, self._tree, self._count)

    def _expect_arrays(self, asked: str) -> None:
        if piles_in(self._tree):
            raise ShapeError(
                f"the elements of {shown(self)} are piles, and .{asked} is asked for",
                fix="map over it, vmap(f, in_axes=plait.pile_axis), or take its elements: p[0], "
                "p.to_list()",
            )

    def _columns(self) -> list[tuple[Any, Aval]]:
        """Return (rows of all elements, type of an element) for each leaf of the elements.

        The type has the axes that were added in front of all leaves, and the dtype of the rows.
        Raises ShapeError if rows do not fit the type, or if this is a stack of batches."""
        if leading(self._lengths):
            raise ShapeError(
                f"{shown(self)} holds {len(self)} batches of {self._count} elements",
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
                    f"rows, are {shown(n) if isinstance(n, Tracer) else np.asarray(n).tolist()}",
                    fix="a function of all leaves of a pile meets its lengths, which must stay: "
                    "make a pile of the new rows, plait.Pile(rows, p.lengths), or use plait.vmap",
                )

    def _fits(self, n: Value, s: Size) -> bool:
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

    def __len__(self) -> int:
        return leading(self._lengths)[0] if leading(self._lengths) else self._count

    @border
    def __getitem__(self, at: object) -> Any:
        """Return an element by its number, or the pile of the elements that are chosen.

        Args:
          at: an int, where negative ones count from the end; a slice, a vector of integers, or a
            boolean for each element; or a tuple of one of these and subscripts of each element.
            A pile of booleans keeps the rows of each element for which it is true.

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
        i = whole_number(at)
        if i is None and not _is_scalar(at):
            if is_pile(at):
                return picked(self, at)
            if not isinstance(at, slice | list | np.ndarray | Value):
                raise SubscriptError(
                    f"an element of a pile is asked for by {shown(at)}",
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

    def _gathered(self, piles: Sequence["Pile"], at: ArrayLike) -> "Pile":
        parts = [Parts(p._columns(), p._lengths, p._sizes, p._count) for p in piles]
        out = gathered(parts, at)
        rows, types = zip(*out.columns, strict=True)
        lengths = tuple(map(one_of, out.lengths))
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
        return self._gathered(piles, in_order([(p._sizes, p._lengths, p._count) for p in piles]))

    @border
    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        """Raise NotAnArrayError, since sizes differ."""
        raise NotAnArrayError(
            f"{shown(self)} is not an array: sizes of its elements differ",
            fix="map over it: vmap(f, in_axes=plait.pile_axis), or use p.data or p.to_padded()",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        children, static = _children(self)
        return _restored, (bare(static), children)

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


def _other_rows(x: Value, t: Aval) -> ShapeError:
    """Return the error for rows of a pile of elements `t` that a function of all leaves of the tree
    has changed."""
    if getattr(x, "ndim", None) == t.ndim:
        return ShapeError(
            f"the rows of a pile of elements {t!r} are {shown(x)}: the leaves of this tree were "
            "divided or sliced, regardless of where elements begin",
            fix="pass the pile whole (in shard_map by in_specs=PartitionSpec()), or pass padded "
            "elements and lengths, and make a pile of each part: Pile.from_padded(x, lengths)",
        )
    return ShapeError(
        f"the rows of a pile of elements {t!r} are {shown(x)}: axes were added to the leaves of "
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
        room = "".join(
            [f", room for {s.rows} rows along {s.name}, {s.longest} in one" for s in self.sizes]
        )
        return f"{self.number} elements {', '.join(map(repr, self.types))}{room}"


_MOST_KEPT = 4096
_kept: dict[tuple[Any, ...], Any] = {}
"""The structures of piles by their parts: equal ones are one object, so that calls need not compare
them part by part.  Those with symbolic sizes are not kept."""


def structure_of(p: Pile) -> Any:
    """Return the structure of a pile, made once, as `exact` wraps it."""
    if p._about is None:
        key = p._types, p._sizes, p._tree, p._count
        found = _kept.get(key)
        if found is None:
            found = exact(_Elements(*key))
            if not is_symbolic([c for s in p._sizes for c in s.counts]):
                if len(_kept) >= _MOST_KEPT:
                    _kept.clear()
                _kept[key] = found
        p._about = found
    return p._about


def _children(p: Pile) -> tuple:
    return (*p._leaves, *p._lengths), structure_of(p)


def again(static: Any, children: Sequence[Any]) -> Pile:
    """Return the pile of a structure with these leaves."""
    types, sizes, tree, count = static
    kids = tuple(children)
    n = len(types)
    return Pile._of(kids[:n], kids[n:], types, sizes, tree, count)


def _restored(static: "_Elements", children: tuple[Value, ...]) -> Pile:
    """Rebuild a pile that was pickled or copied, sharing known lengths with existing piles."""
    p = again(static, children)
    p._lengths = tuple(map(one_of, p._lengths))
    return p


register(Pile, _children, again)
Pile.__plait_saved__ = SavedClass(
    "plait.Pile", lambda e: written(*e), lambda text: _Elements(*read(Pile, text))
)
# Piles of the same lengths must have one size in every function, so jit must see which of their
# lengths are the same object.
tell_parts_apart(Pile, lambda static, count: range(len(static[0]), count))


def _framed(p: Pile) -> tuple:
    inner = inner_lengths(p._tree)
    rows = tuple([x for i, x in enumerate(p._leaves) if i not in inner])
    fixed = tuple([x for i, x in enumerate(p._leaves) if i in inner])
    return rows, Frame((*fixed, *p._lengths), bare(structure_of(p)))


def _unframed(frame: Frame, rows: tuple) -> Pile:
    inner = inner_lengths(frame.about[2])
    if not inner:
        return again(frame.about, (*rows, *frame.lengths))
    given, fixed = iter(rows), iter(frame.lengths)
    leaves = [next(fixed if i in inner else given) for i in range(len(frame.about[0]))]
    return again(frame.about, (*leaves, *fixed))


# Derivatives exist with respect to rows, but not with respect to lengths.
registered_by("register_adable").register(Pile, _framed, _unframed)


def _is_scalar(n: object) -> bool:
    """Return whether an index is a traced integer."""
    return isinstance(n, Tracer) and n.aval.ndim == 0 and n.aval.dtype.kind in "iu"
