"""Ragged, the carrier of piles: it evaluates a program of one example on all examples.

A value without ragged sizes has the form that `vmap` gives it (the position of the axis of
examples, or None).  Other forms are layouts: FLAT, (TILES, at) or (PADDED, at), where `at` is the
position of the axis that the layout adds.  A contraction along a ragged axis stays unevaluated,
(PARTIAL, ...), until its use is known.  If its results are then summed over all examples, it is
evaluated as one product.

Invariant: forms follow from types, except for the choice of a layout.  A rule that reads across
rows first fills the places without rows with neutral values.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import plait.numpy as pnp
from plait.ext.errors import MissingRule, PlaitError
from plait.ext.ir import Primitive, ambient_of, dims_of, speaks_of
from plait.ext.rules import RuleTable, expand_rules
from plait.ext.sizes import Dim, decide_eq, decide_ge
from plait.ext.trace import Carrier, Interpreter, Lifted, Value, as_list, use
from plait.ext.types import Aval, Opaque
from plait.ext.values import Literal
from plait.typing import Array

from ..interpreter import Batch, batching_rules
from .capacities import PRESENCE, Size, capacities_of
from .layouts import converted, fit
from .operation import FLAT, PADDED, layout, place
from .padding import padding_rules
from .row_access import chosen
from .tables import I32, Pairs, Rows

__all__ = ["PARTIAL", "Ragged", "lazily", "partial_rules", "pile_rules", "undone"]

pile_rules = RuleTable(
    "piles",
    signature="(ragged, args, out, **params)",
    programs="(ragged, args, params)",
    base=batching_rules,
    doc="lifted values, of the types `out`, where sizes differ between examples; lists if the "
    "primitive has many.",
)

PARTIAL = "partial"
partial_rules: dict[str, Callable[..., Any]] = {}
"""Evaluation of undone contractions: "each" gives one result per example, "all" their sum."""
lazily: dict[Any, Callable[..., Any]] = {}
"""Rules of primitives that keep contractions undone; they may return NotImplemented."""


class Ragged(Batch):
    """Carrier over the examples of piles; its ambient values are the lengths of named sizes."""

    rules = pile_rules
    does = "vmap over a pile"
    fields = ("size", "axis_name", "table", "padded", "full")
    table: tuple[Size, ...]
    padded: bool
    full: bool
    spmd_axis_name = None

    def __init__(
        self,
        parent: Interpreter | None,
        size: Any,
        axis_name: Any,
        table: tuple[Size, ...],
        padded: bool,
        full: bool = False,
        ambient: Sequence[Any] = (),
        of: Callable | None = None,
    ):
        """`full`: whether every example has the rows of the longest, as `running` decides."""
        values = size, axis_name, table, padded, full
        Carrier.__init__(self, parent, *values, ambient=ambient, of=of)
        if any(s.label for s in table):
            self.does = "mask"
        self.sizes = {} if axis_name is None else {axis_name: size}  # type: ignore[misc]
        self.caps = capacities_of(table, size)
        self.dims = frozenset(self.caps.named)
        self._rows: dict[str, Rows] = {}
        self._pairs: dict[tuple[str, str], Pairs] = {}
        self._same: dict[tuple[str, str], bool] = {}
        self.lacks_elements = PRESENCE in self.dims
        self._present: Any = None

    def concerns(self, axes: frozenset[Any]) -> bool:
        # An example that is missing contributes to no collective, over whatever axis.
        return self.lacks_elements or super().concerns(axes)

    def hidden_by(self, axes: frozenset[Any]) -> "Ragged":
        if not super().concerns(axes):
            return self
        values = self.size, None, self.table, self.padded, self.full
        return Ragged(self.parent, *values, ambient=self.ambient, of=self.of)

    # ---- sizes

    def axes(self, aval: Aval) -> tuple[int, ...]:
        """Return the ragged axes of a type."""
        return self.caps.axes(aval) if aval.dims else ()

    def lengths(self, d: Any) -> Any:
        """Return a size for every example: int32[size]."""
        named = dict(zip([s.name for s in self.table], self.ambient, strict=True))
        whole = self.caps.whole.get(str(d))
        if whole is not None:
            return named[whole.name]
        return d.fold(
            lambda c: pnp.full(self.size, c, I32),
            lambda name: self.caps.named[name].part(named[name]),
            lambda a, b: a + b,
            lambda a, b: a * b,
            lambda a, b: a // b,
            lambda a, b: a % b,
            pnp.maximum,
            pnp.minimum,
        )

    def fills(self, d: Any) -> bool:
        """Return whether every example has as many rows along a size as its capacity has."""
        return self.full and self.caps.fills(d)

    def rows(self, d: Any) -> Rows:
        """Return the tables of a size, made once."""
        key = str(d)
        found = self._rows.get(key)
        if found is None:
            assert self.parent is not None
            with use(self.parent):
                n = pnp.maximum(self.lengths(d), 0)
            caps = self.caps.rows(d), self.caps.longest(d)
            found = self._rows[key] = Rows(self.parent, n, self.size, *caps)
        return found

    def pairs(self, a: Dim, b: Dim) -> Pairs:
        """Return the tables of pairs of tiles, made once."""
        key = str(a), str(b)
        found = self._pairs.get(key)
        if found is None:
            rows = self.rows(a), self.rows(b)
            with use(self.parent):  # type: ignore[arg-type]
                found = self._pairs[key] = Pairs(*rows, self.caps.pairs(a, b))
        return found

    # ---- forms

    def usual(self, aval: Aval) -> Any:
        """Return the form in which values of a type enter and leave programs."""
        if not self.axes(aval):
            return 0
        how = place(aval, self.caps, self.padded)
        return FLAT if how == FLAT else (how, 0)

    def part_avals(self, aval: Aval, form: Any) -> tuple[Aval, ...]:
        if form.__class__ is int:
            return super().part_avals(aval, form)
        if form == FLAT:
            return (layout(aval, self.caps, FLAT),)
        if form[0] == PARTIAL:
            operands = [a for term in form[1] for a in term[-2:]]
            return tuple([layout(a, self.caps, FLAT) for a in operands])
        how, at = form
        a = layout(aval, self.caps, how)
        first, *rest = a.shape
        return (a.with_shape((*rest[:at], first, *rest[at:])),)

    def part_axes(self, aval: Aval, form: Any) -> tuple[Any, ...]:
        if form == FLAT:
            return (tuple(range(aval.ndim)),)
        if _is_undone(form):
            return ((None,) * aval.ndim,) * (2 * len(form[1]))
        at = form if form.__class__ is int else form[1]
        return (tuple([i + (i >= at) for i in range(aval.ndim)]),)

    def form_of(self, x: Any) -> Any:
        if x.__class__ is Lifted and x.by is self:
            return x.form
        return self.usual(x.aval) if self.axes(x.aval) else None

    def split(self, x: Any) -> tuple[Any, tuple[Any, ...]]:
        if x.__class__ is Lifted and x.by is self:
            return x.form, x.parts
        if not self.axes(x.aval):
            return None, (x,)
        if x.__class__ is not Literal:
            raise PlaitError(
                f"{self.does}: a value of type {x.aval!r}, a size of which differs between "
                "examples, comes from outside",
                fix="pass it as an argument",
            )
        form = self.usual(x.aval)
        return form, (Literal(x.value, self.part_avals(x.aval, form)[0]),)

    def join(self, aval: Aval, f: object, g: object) -> Any:
        return self.usual(aval)

    def whole(self, aval: Aval) -> Any:
        return self.usual(aval)

    def least(self, aval: Aval) -> Any:
        return self.usual(aval) if self.axes(aval) else None

    def entering(self, aval: Aval, form: Any) -> Any:
        return 0 if _is_undone(form) else form

    def grow(self, form: Any, axis: int, aval: Aval | None = None) -> Any:
        if form.__class__ is int:
            return super().grow(form, axis)
        return form if form == FLAT else (form[0], form[1] + (axis <= form[1]))

    def drop(self, form: Any, axis: int, aval: Aval | None = None) -> Any:
        if form.__class__ is int:
            return super().drop(form, axis)
        return form if form == FLAT else (form[0], form[1] - (axis < form[1]))

    def coerce(self, aval: Aval, parts: tuple[Any, ...], f: Any, g: Any) -> tuple[Any, ...]:
        if f.__class__ is tuple and f[0] == PARTIAL:
            done = partial_rules["each"](self, f, parts)
            return (self.move(done, 0, g),)
        if not self.axes(aval):
            return super().coerce(aval, parts, f, g)
        if f == g:
            return parts
        how, at = (FLAT, None) if f == FLAT else f
        to, goal = (FLAT, None) if g == FLAT else g
        x = parts[0] if at is None else self.move(parts[0], at, 0)
        if how != to:
            x = converted(self, aval, x, how, to)
        return (x if goal is None else self.move(x, 0, goal),)

    def collect(self, aval: Aval, parts: tuple[Any, ...], f: Any, g: Any) -> tuple[Any, ...]:
        if g is None and f.__class__ is tuple and f[0] == PARTIAL:
            return (partial_rules["all"](self, f, parts),)
        if g is None and f is not None:
            parts = (self.of_examples(parts[0], f), *parts[1:])
        return super().collect(aval, parts, f, g)

    @property
    def present(self) -> Any:
        """bool[size]: which elements are examples; None if all are."""
        if not self.lacks_elements:
            return None
        if self._present is None:
            at = [s.name for s in self.table].index(PRESENCE)
            with use(self.parent):  # type: ignore[arg-type]
                self._present = self.ambient[at] > 0
        return self._present

    def of_examples(self, x: Value, axis: int, fill: int = 0) -> Any:
        """Return values with `fill` for missing elements.

        Undefined results of these, such as the mean of no rows, reach neither sums nor derivatives.
        """
        if self.present is None or x.aval.dtype.__class__ is Opaque:
            return x
        return chosen(self.present, (axis,), x, fill)

    def of_elements(self, x: Any, dim: int | None, fill: Any) -> tuple[Any, int | None]:
        if self.present is None or x.aval.dtype.__class__ is Opaque:
            return x, dim
        return self.of_examples(self.front(x, dim), 0, fill), 0

    # ---- for rules

    def settled(self, x: Any) -> Any:
        """Evaluate an undone contraction; return other values unchanged."""
        if undone(self, x):
            return self.lift(x.aval, 0, self.coerce(x.aval, x.parts, x.form, 0))
        return x

    def data(self, x: Any, how: str) -> Any:
        """Return the values of all examples in a layout, with its new axis in front; [size, ...]
        for a value without ragged axes."""
        if x.__class__ is Literal:
            aval = layout(x.aval, self.caps, how)
            return Literal(x.value, aval)
        if not self.axes(x.aval):
            return self.to_form(x, 0)[0]
        return self.to_form(x, how if how == FLAT else (how, 0))[0]

    def how(self, x: Any) -> str | None:
        """Return the layout of a ragged value; None if no axis is ragged."""
        f = self.form_of(x)
        if f is None or f.__class__ is int or not self.axes(x.aval):
            return None
        return f if f == FLAT else f[0]

    def like(self, args: Sequence[Any], *avals: Aval) -> str:
        """Return the layout for an elementwise operation: that of the operands if they agree, else
        the usual one."""
        found = {self.how(a) for a in args if a.__class__ is not Literal} - {None}
        if len(found) == 1:
            (how,) = found
            return how  # type: ignore[return-value]
        ragged = next(a for a in (*avals, *[x.aval for x in args]) if self.axes(a))
        return place(ragged, self.caps, self.padded)

    def dense(self, x: Any) -> tuple[Any, int | None]:
        """Return (values, position of the axis of examples or None) of a value without ragged
        axes."""
        f, parts = self.split(self.settled(x))
        return parts[0], f

    def result(self, aval: Aval, x: Array, how: str | None = None) -> Any:
        """Return a lifted value, given the values of all examples in a layout; [size, ...] for a
        type without ragged axes."""
        if not self.axes(aval):
            return self.lift(aval, 0, (x,))
        return self.lift(aval, FLAT if how == FLAT else (how, 0), (x,))

    def may_lack(self, n: Dim | int, m: Dim | int) -> bool:
        """Return whether a ragged axis of size `n` may have fewer than `m` rows in an example."""
        return self.caps.mine(n) and decide_ge(n, m) is not True

    def masked(self, x: Any, aval: Aval, axes: Sequence[int], fill: float | str) -> Any:
        """Return padded values with `fill` beyond the end of these axes."""
        for a in axes:
            d = aval.shape[a]
            if self.caps.mine(d) and not self.fills(d):
                x = chosen(self.rows(d).inside, (0, a + 1), x, fill)
        return x

    def cleaned(self, x: Any, aval: Aval) -> Any:
        """Return a value in the usual form of its type, with zeros in places without rows.

        Derivatives taken outside of `pile_map` need it: cotangents of undefined places are
        undefined as well, and must not mix with those of rows.
        """
        form, axes = self.usual(aval), self.axes(aval)
        if not axes:
            return x
        if form != FLAT and form[0] == PADDED:
            return self.masked(x, aval, axes, 0)
        sizes = [aval.shape[a] for a in axes]
        if form == FLAT:
            return chosen(self.rows(sizes[0]).there, axes, x, 0)
        p = self.pairs(*sizes)
        for a, there in zip(axes, (p.left_there, p.right_there)):
            x = chosen(there, (0, a + 1), x, 0)
        return x

    def defined(self, x: Value) -> tuple[Any, ...]:
        if undone(self, x) or not self.axes(x.aval):
            return () if undone(self, x) else self.split(x)[1]
        with use(self.parent):  # type: ignore[arg-type]
            return (self.cleaned(self.to_form(x, self.usual(x.aval))[0], x.aval),)

    def concerned(self, args: Sequence[Any], outs: list[Aval], params: dict[str, Any]) -> bool:
        """Return whether operands, results or parameters contain a ragged size."""
        for a in outs:
            if a.dims and not self.dims.isdisjoint(a.dims):
                return True
        return speaks_of(self.dims, args, params)

    def run(self, prim: Any, rule: Any, args: Any, params: dict[str, Any]) -> Any:
        wanted = out = prim.infer(tuple([a.aval for a in args]), params)
        alike = self._alike(args)
        if alike is not args:
            args, out = alike, prim.infer(tuple([a.aval for a in alike]), params)
        outs = out if prim.many else [out]
        if not self.concerned(args, outs, params):
            own = batching_rules.find(prim)
            if own is None:
                raise batching_rules.missing(prim)
            late = lazily.get(prim)
            if late is not None and any(undone(self, a) for a in args):
                got = late(self, args, out, params)
                if got is not NotImplemented:
                    return got
            return super().run(prim, own, [self.settled(a) for a in args], params)
        args = self._written_as(outs, args)
        if rule is not batching_rules.find(prim):
            made = rule(self, args, out, **params)
        else:
            made = self.by_padding(prim, args, out, params)
        if made is None:
            say = expand_rules.find(prim)
            if say is None:
                raise self._missing(prim, args, params)
            with use(self):
                made = say(*args, **params)
        if prim.many:
            return [self._typed(a, y) for a, y in zip(wanted, as_list(made), strict=True)]
        return self._typed(wanted, made)

    def _alike(self, args: Sequence[Any]) -> Sequence[Any]:
        """Return the operands with equal sizes written in one way, that of the first."""
        ragged = [a for a in args if self.axes(a.aval)]
        seen: dict[str, Any] = {}
        for a in ragged:
            seen.update((str(d), d) for d in a.aval.shape if d.__class__ is Dim)
        if len(ragged) < 2 or len(seen) < 2:
            return args
        first: dict[str, Any] = {}
        for key, d in seen.items():
            first[key] = next((e for e in first.values() if self._equal(e, d)), d)
        typed = [(a.aval.with_shape(_written(a.aval.shape, first)), a) for a in args]
        return [
            Literal(a.value, t) if a.__class__ is Literal else self._typed(t, a) for t, a in typed
        ]

    def _written_as(self, outs: Sequence[Aval], args: Sequence[Any]) -> Sequence[Any]:
        """Return the operands with their sizes written as equal ones of the results.

        Rows that an operation leaves where they are then have the capacity that the result's type
        gives them."""
        mine = {id(d): d for t in outs for d in t.shape if d.__class__ is Dim}
        new = list(args)
        for i, a in enumerate(args):
            if not a.aval.dims or a.__class__ is Literal:
                continue
            shape = [
                d if d.__class__ is not Dim or id(d) in mine else self._among(mine.values(), d)
                for d in a.aval.shape
            ]
            if any(d is not e for d, e in zip(shape, a.aval.shape)):
                new[i] = self._typed(a.aval.with_shape(shape), self.settled(a))
        return new

    def _among(self, found: Iterable[Dim], d: Dim) -> Dim:
        """Return the size that equals another one, if it is found written in another way."""
        key = str(d)
        each = {str(e): e for e in found}
        if key in each:
            return d
        return next((e for e in each.values() if self._equal(d, e)), d)

    def _equal(self, d: Dim, e: Dim) -> bool:
        key = str(d), str(e)
        if key not in self._same:
            self._same[key] = decide_eq(d, e) is True
        return self._same[key]

    def _typed(self, aval: Aval, x: Any) -> Any:
        """Return a result converted to its type.

        Equal sizes may be written in two ways, whose bounds, and so capacities, differ."""
        if x.__class__ is not Lifted or x.by is not self or x.aval is aval or undone(self, x):
            return x
        if not self.axes(aval) or list(map(str, x.aval.shape)) == list(map(str, aval.shape)):
            return x
        how, at = (FLAT, None) if x.form == FLAT else x.form
        y = x.parts[0] if at is None else self.move(x.parts[0], at, 0)
        for a, n in enumerate(layout(aval, self.caps, how).shape):
            y = fit(y, a, n)
        return self.result(aval, y, how)

    def by_padding(
        self, prim: Primitive, args: Sequence[Array], out: Any, params: dict[str, Any]
    ) -> Any:
        """Apply the operation to padded values, with neutral elements where it reads across
        padding.

        Returns None if the neutral elements are not known."""
        say, own = padding_rules.find(prim), batching_rules.find(prim)
        if say is None or own is None or not self.dims.isdisjoint(dims_of(params.values())):
            return None
        xs, dims = [], []
        for a, fills in zip(args, say([a.aval for a in args], **params), strict=True):
            x, d = self.dense(a) if not self.axes(a.aval) else (self.data(a, PADDED), 0)
            for axis, fill in fills.items():
                x = self.masked(x, a.aval, (axis,), fill)
            xs.append(x)
            dims.append(d)
        got, at = own(self, xs, dims, **params)
        if not prim.many:
            return self._padded_result(out, got, at)
        return [self._padded_result(a, y, d) for a, y, d in zip(out, got, at, strict=True)]

    def _padded_result(self, aval: Aval, x: Value, at: int | None) -> Any:
        if not self.axes(aval):
            return self.wrap(x, at)
        x = self.move(x, at, 0)
        for a in self.axes(aval):
            x = fit(x, a + 1, self.caps.longest(aval.shape[a]))
        return self.result(aval, x, PADDED)

    def _missing(self, prim: Any, args: Sequence[Any], params: dict) -> MissingRule:
        of = ", ".join(
            f"{d} at axis {i} of {a.aval!r}"
            for a in args
            for i, d in enumerate(a.aval.shape)
            if d.__class__ is Dim and self.caps.mine(d)
        )
        short = prim.name.rpartition(".")[2]
        mine = not ambient_of(prim, params).isdisjoint(self.sizes)
        if mine and self.does != "mask":  # rows of one example have no counterparts in others
            return MissingRule(
                f"{self.does}: {prim} over {self.axis_name!r} of what differs in size between "
                f"examples ({of})",
                fix="reduce it over that axis before, or pad it to one size for all",
            )
        if self.does == "mask":
            return MissingRule(
                f"Masking rule for {prim} not implemented yet: padding may change what it gives"
                + (f" ({of})" if of else ""),
                fix="do it on arrays without padding, or add a rule: "
                f"@pile_rules.rule({short}), or @padding_rules.rule({short})",
            )
        return MissingRule(
            f"{self.does}: {prim} has no rule for sizes that differ between examples"
            + (f" ({of})" if of else ""),
            fix="map where lengths are known, outside of jit; or do it on padded arrays "
            f"(Pile.to_padded); or add a rule: @pile_rules.rule({short})",
        )

    def plainly(self, prim: Primitive, args: Any, params: dict[str, Any]) -> list[Any]:
        """Apply an operation with programs, by its batching rule or by its wiring."""
        rule = batching_rules.find(prim)
        return self.through(prim, args, params) if rule is None else rule(self, args, params)

    def through(self, prim: Primitive, args: Any, params: dict[str, Any]) -> list[Any]:
        return super().through(prim, [self.settled(a) for a in args], params)


def _is_undone(form: Any) -> bool:
    return form.__class__ is tuple and form[0] == PARTIAL


def undone(r: Ragged, x: Any) -> bool:
    """Return whether a value is an undone contraction."""
    return x.__class__ is Lifted and x.by is r and _is_undone(x.form)


def _written(shape: Sequence[Any], first: dict[str, Any]) -> list[Any]:
    return [first[str(d)] if d.__class__ is Dim else d for d in shape]
