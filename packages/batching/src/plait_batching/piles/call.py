"""vmap over piles: stage the function once with symbolic sizes, and apply it to all examples.

Invariant: each lengths vector has one size name, numbered by its position among the arguments, so
equal calls have equal programs.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from plait import debug, lax
from plait.ext.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    NotAnArrayError,
    PlaitError,
    ShapeError,
    UndecidedDim,
    here,
)
from plait.ext.ir import Program, ambient_of, dims_of, evaluate, programs_in, speaks_of
from plait.ext.ops.collective import all_gather_, pmax_, pmin_, psum_, varied
from plait.ext.ops.shape import convert, moveaxis, normal_axis
from plait.ext.sizes import Dim, is_symbolic, max_dim
from plait.ext.trace import Interpreter, Stage, Tracer, current, name_of, result, stage
from plait.ext.tree import LEAF, flatten, key_paths, spread
from plait.ext.types import Aval
from plait.ext.values import Array, as_value

from ..axes import added_whole, entries, inside, is_axis, may_be_sizes, one_size
from .axis import PileAxis, pile_axis
from .capacities import Capacities, Size, capacities_of, ragged_axes, size_of_lengths
from .carrier import Ragged
from .groups import grouped, mapped_by_groups
from .operation import PADDED, RAGGED, SHARED, STACKED, pile_map
from .pile import SCOPE, Pile, is_pile, named, names_inside, refitted, spoken_of
from .short_examples import refuse_short

__all__ = [
    "depth_of_piles", "over_piles", "staged_example",
]  # fmt: skip


_ENTRY = "an axis, None or plait.pile_axis"
_NOTHING = "vmap: nothing is mapped: every in_axes entry is None (or there are no arguments)"
# Advice for errors about sizes that differ between examples.  Users cannot state facts about these
# sizes, since they have no names for them.
_AS_NUMBERS = (
    "the sizes of an example are known by name only: compute with them as numbers, "
    "pnp.asarray(x.shape[0]), and choose by pnp.where or lax.cond; as sizes, "
    "plait.core.max_dim(n, 1) and min_dim are; or map over the examples one after the other"
)


class Sizes:
    """The named sizes of one call, one for each vector of lengths.

    Args:
      depth: the number of enclosing calls over piles, whose sizes have other names.
      alike: {name: name of the vector that it is assumed equal to}.
    """

    def __init__(self, depth: int, alike: dict[str, str]):
        self.depth, self.alike = depth, alike
        self.vectors: dict[str, Any] = {}
        self.sizes: dict[str, Size] = {}
        self.paths: dict[str, str] = {}

    def name_of(self, lengths: Any, size: Size, path: str) -> str:
        """Return the name of these lengths.  The same vector has one name, and so do known vectors
        that are equal."""
        name = next(
            (k for k, v in self.vectors.items() if v is lengths or _equal(v, lengths)), None
        )
        if name is None:
            name = f"n{self.depth}_{len(self.vectors)}"
            self.vectors[name], self.paths[name] = lengths, path
        name = self.alike.get(name, name)
        old = self.sizes.get(name, size)
        counts: Any = [max_dim(p, q) for p, q in zip(old.counts, size.counts, strict=True)]
        self.sizes[name] = Size(name, *counts)
        return name

    @property
    def table(self) -> tuple[Size, ...]:
        return tuple(self.sizes.values())

    @property
    def operands(self) -> list[Any]:
        return [as_value(self.vectors[name]) for name in self.sizes]

    def unify(self, names: tuple[str, str] | None) -> bool:
        """Treat two sizes as one, if one of their lengths is traced; return whether that was done.

        Raises ShapeError if both are known, since they differ."""
        if names is None or any(n not in self.sizes for n in names):
            return False
        first, second = sorted(names)
        a, b = self.vectors[first], self.vectors[second]
        if not isinstance(a, Tracer) and not isinstance(b, Tracer) or a.shape != b.shape:
            raise ShapeError(
                f"vmap: sizes of {self.paths[first]} and of {self.paths[second]} must be equal in "
                f"every example, and are {_told(a)} and {_told(b)}",
                fix="make the piles of the same lengths, or use each for itself",
            )
        self.alike[second] = first
        return True

    def check(self) -> None:
        """Check at run time that lengths assumed to be equal are equal."""
        for second, first in self.alike.items():
            a, b = as_value(self.vectors[first]), as_value(self.vectors[second])
            refuse = _Refusal(self.paths[first], self.paths[second])
            if self.depth:  # a cond with effects has no rule in an outer map, so the host compares
                debug.callback(refuse.unless_equal, a, b)
            else:
                lax.cond((a != b).any(), partial(debug.callback, refuse, a, b), lambda: None)


class _Refusal:
    """Callback for lengths that were assumed equal."""

    def __init__(self, first: str, second: str):
        self.first, self.second = first, second

    def unless_equal(self, a: Any, b: Any) -> None:
        if not np.array_equal(a, b):
            self(a, b)

    def __call__(self, a: Any, b: Any) -> None:
        raise ShapeError(
            f"vmap: sizes of {self.first} and of {self.second} must be equal in every example, and "
            f"are {_told(a)} and {_told(b)}",
            fix="make the piles of the same lengths, or use each for itself",
        )


def _told(lengths: Any) -> str:
    if isinstance(lengths, Tracer):
        return "traced"
    with np.printoptions(threshold=8):
        return str(np.asarray(lengths))


def _equal(a: Any, b: Any) -> bool:
    known = isinstance(a, Array) and isinstance(b, Array) and a.shape == b.shape
    return known and bool((np.asarray(a) == np.asarray(b)).all())


class _Argument:
    """One leaf of the arguments, where a pile is a leaf: its value for `f`, and its operands."""

    def __init__(self, x: Any, axis: Any, path: str, sizes: Sizes, as_size: bool):
        self.x, self.axis, self.path = x, axis, path
        self.count: Any = None
        self.size: Dim | None = None
        self.may_be_size = False
        self.values: list[Any] = []
        self.types: list[Aval] = []
        self.kind = SHARED
        self.renamed: dict[str, Any] = {}
        if is_pile(x) and axis is not None:
            self._pile(x, sizes)
        elif is_pile(x):
            return  # every example is given the whole pile
        elif axis is None:
            try:
                self.values = [as_value(x)]
            except NotAnArrayError:
                return  # a function, a string: passed as it is
            self.types = [self.values[0].aval]
        else:
            self._stacked(x, axis, sizes, as_size)

    def _pile(self, p: Pile, sizes: Sizes) -> None:
        if self.axis is not pile_axis:
            raise ArgumentError(
                f"vmap: argument {self.path} is a pile, and its in_axes is {self.axis!r} "
                "(pile input without using pile_axis in_axes spec)",
                fix="write in_axes=plait.pile_axis for it",
            )
        columns = p._columns()
        self.renamed = renamed = {
            s.name: named(sizes.name_of(n, s, self.path))
            for s, n in zip(p._sizes, p._lengths, strict=True)
        }
        self.kind, self.count = RAGGED, p._count
        self.types = [
            t.with_shape([d.substitute(renamed) if d.__class__ is Dim else d for d in t.shape])
            for _, t in columns
        ]
        self.values = [x for x, _ in columns]

    def _stacked(self, x: Any, axis: Any, sizes: Sizes, as_size: bool) -> None:
        v = as_value(x)
        if axis is pile_axis:
            raise ArgumentError(
                f"vmap: in_axes says that argument {self.path} is a pile, and it is {v.aval!r}",
                fix="make it one: plait.Pile.from_list, or plait.Pile.from_padded",
            )
        v = moveaxis(v, inside("vmap", axis, v, lambda: f"argument {self.path}"), 0)
        self.count = v.shape[0]
        self.may_be_size = may_be_sizes(v)
        if as_size and self.may_be_size:
            n = np.asarray(v)
            if n.min(initial=0) >= 0:
                lengths = convert(v, np.dtype("int32"))
                self.size = named(sizes.name_of(lengths, size_of_lengths("", n), self.path))
                self.kind = SHARED
                return
        self.kind, self.values = STACKED, [v]
        self.types = [v.aval.with_shape(v.shape[1:])]

    def given(self, variables: Any, sizes: dict[str, int] | None = None) -> Any:
        """Return the argument of `f`, made of its program's variables.  `sizes` replaces named
        sizes by numbers."""
        if self.size is not None:
            own = self.size.owned((current(), here()))
            return own if sizes is None else self.size.substitute(sizes)
        if is_pile(self.x) and self.values:
            x = self.x._tree.unflatten([next(variables) for _ in self.values])
            if self.x._tree is LEAF:
                return x
            # Piles among the elements have types that contain the sizes of this pile.
            told = self.renamed if sizes is None else {
                k: d.substitute(sizes) for k, d in self.renamed.items()
            }  # fmt: skip
            return spoken_of(x, told)
        return next(variables) if self.values else self.x


def over_piles(
    f: Callable,
    in_axes: Any,
    out_axes: Any,
    axis_name: Any,
    axis_size: Any,
    args: tuple,
    kwargs: dict,
    as_sizes: bool = False,
) -> Any:
    """Map a call over piles; with `as_sizes`, mapped integers that are known become sizes."""
    args = tuple([np.asarray(a) if _is_integers(a) else a for a in args])
    leaves, tree = flatten((args, kwargs), is_pile)
    whole = flatten(args, is_pile)[1]
    like = whole.unflatten(range(whole.num_leaves))
    axes = entries("vmap", in_axes, args, like, len(leaves), is_axis, _ENTRY)
    for i in range(whole.num_leaves, len(leaves)):  # in_axes has no entries for keyword arguments
        if is_pile(leaves[i]):
            axes[i] = pile_axis
    told = list(zip(leaves, axes, _paths(args, kwargs, leaves), strict=True))
    given, sizes, count, staged = _with_sizes(f, tree, told, axis_name, axis_size, as_sizes)
    sizes.check()
    program, captured, out, out_tree = staged
    wanted = spread(out_axes, out, "out_axes", is_axis, _ENTRY)
    names = [s.name for s in sizes.table]
    caps = capacities_of(sizes.table, count)
    r = Ragged(current(), count, None, sizes.table, False, ambient=tuple(sizes.operands))
    kinds = [SHARED] * len(captured) + [g.kind for g in given for _ in g.values]
    results = [RAGGED if caps.axes(a) else STACKED for a in program.out_avals]
    varies = _varying(program, kinds, names, axis_name)
    _refuse(program, wanted, results, varies, out, names)
    values = [
        (refitted(v, t, caps) if g.kind == RAGGED else v, t, g.kind)
        for g in given
        for v, t in zip(g.values, g.types, strict=True)
    ]
    vectors = {name: sizes.vectors[name] for name in names}
    if axis_name is None and grouped("vmap over a pile", program, vectors, count):

        def of_group(numbers: dict[str, int], *variables: Any) -> list:
            a, k = _arguments(tree, given, *variables, sizes=numbers)
            return flatten(f(*a, **k))[0]

        each = [(v, t, kind != SHARED) for v, t, kind in values]
        got = mapped_by_groups(of_group, r, each, vectors, program.out_avals)
    else:
        bound = {} if axis_name is None else {axis_name: count}
        alone = partial(_staged_at, f, tree, given, bound)
        refuse_short(program, vectors, alone, _of_piles(out))
        how = {"kinds": tuple(kinds), "outs": tuple(results), "axis_name": axis_name}
        got = _at_once(r, program, captured, values, **how)
    taken = _Taken(sizes, count, zip(got, program.out_avals, wanted, strict=True))
    units, unit_tree = flatten(out, is_pile)
    return unit_tree.unflatten([taken.unit(u) for u in units])


def _with_sizes(
    f: Callable,
    tree: Any,
    told: Sequence[tuple[Any, Any, str]],
    axis_name: Any,
    axis_size: Any,
    as_sizes: bool,
) -> tuple[list["_Argument"], Sizes, Any, tuple]:
    """Return (the arguments, their sizes, the number of examples, the staged example).

    The function is staged again if integers turn out to be sizes, or two sizes must be equal.
    `told` is (argument, entry of in_axes, path) of each leaf."""
    depth = depth_of_piles()
    alike: dict[str, str] = {}
    while True:
        sizes = Sizes(depth, alike)
        given = [_Argument(*x, sizes, as_sizes) for x in told]
        counts = [(f"{g.path} has {g.count} elements", g.count) for g in given]
        count = one_size([c for c in counts if c[1] is not None], axis_size, _NOTHING)
        SCOPE.doubted = 0, 0
        try:
            avals = [t for g in given for t in g.types]
            bound = {} if axis_name is None else {axis_name: count}
            parts = partial(_arguments, tree, given)
            staged = staged_example(f, parts, avals, "vmap over a pile", bound)
        except ConcretizationError:
            # The function read a mapped integer as a number: stage again, with it as a size.
            if as_sizes or not any(g.may_be_size for g in given):
                raise
            as_sizes = True
        except UndecidedDim as e:
            if not sizes.unify(_doubted(e)):
                if any(name in e.what for name in sizes.sizes):
                    e.fix = _AS_NUMBERS
                raise
        except PlaitError as e:
            if not sizes.unify(_doubted(e)):
                raise
        else:
            return given, sizes, count, staged


def _at_once(
    r: Ragged, program: Program, captured: Sequence[Any], values: Sequence[tuple], **how: Any
) -> Sequence[Any]:
    """Return the results for all examples, by one operation; `values` are (value, type, kind)."""
    padded = _mostly_full(r.caps) and _doubly_ragged(program, r.caps)
    laid = [_laid(r, v, t, padded) if kind == RAGGED else v for v, t, kind in values]
    given = [*captured, *laid]
    program, given = varying_as(r.ambient, program, given, how["axis_name"], r.size)
    operands = (*r.ambient, *given)
    got = pile_map.bind(
        *operands, program=program, sizes=r.table, size=r.size, padded=padded, **how
    )
    if not padded:
        return got
    return [_unpadded(r, y, t) for y, t in zip(got, program.out_avals, strict=True)]


def varying_as(
    lengths: Sequence[Any], program: Program, operands: Sequence[Any], axis_name: Any, size: Any
) -> tuple[Program, list[Any]]:
    """Make the program and its operands vary along all mesh axes that the lengths vary along.

    Otherwise the transpose would sum cotangents over devices for each example, although other
    devices hold other examples, and once more outside of the operation."""
    axes: frozenset = frozenset().union(*[n.aval.vma for n in lengths])
    if not axes:
        return program, list(operands)
    avals = [a.with_vma(a.vma | axes) for a in program.in_avals]
    on = _PileStage(current(), "vmap over a pile")
    on.sizes = {} if axis_name is None else {axis_name: size}  # type: ignore[misc]
    made, captured = stage(lambda *xs: evaluate(program, xs), avals, program.name, on=on)
    assert not captured, captured  # a program closes over nothing
    return made, [varied(as_value(x), axes) for x in operands]


FULL = 0.8
"""Fill ratio of padded arrays above which tiles of pairs cost more than they save: their rows are
gathered and scattered, and there are nearly as many."""


def _mostly_full(caps: Capacities) -> bool:
    """Return whether padded arrays would hold little padding, as far as sizes are known."""
    known = [s for s in caps.table if not is_symbolic(s.counts)]
    full = [s.rows >= FULL * caps.size * s.longest for s in known]
    return caps.size != 0 and len(known) == len(caps.table) and bool(full) and all(full)


def _doubly_ragged(program: Program, caps: Capacities) -> bool:
    """Return whether a value in a program has two ragged axes."""
    for e in program.eqns:
        if any(len(caps.axes(v.aval)) > 1 for v in e.outputs):
            return True
        if any(_doubly_ragged(p, caps) for p in programs_in(e.params)):
            return True
    return False


def _laid(r: Ragged, x: Any, t: Aval, padded: bool) -> Any:
    """Return the rows of a pile in the layout that the operation takes."""
    if not padded or not r.axes(t):
        return x
    y = r.coerce(t, (x,), r.usual(t), (PADDED, 0))[0]
    return r.masked(y, t, r.axes(t), 0)


def _unpadded(r: Ragged, y: Any, t: Aval) -> Any:
    if not r.axes(t):
        return y
    return r.cleaned(r.coerce(t, (y,), (PADDED, 0), r.usual(t))[0], t)


def _arguments(
    tree: Any, given: Sequence["_Argument"], *variables: Any, sizes: dict[str, int] | None = None
) -> tuple[Any, Any]:
    it = iter(variables)
    return tree.unflatten([g.given(it, sizes) for g in given])


def staged_example(
    f: Callable,
    given: Callable[..., tuple[Any, Any]],
    avals: Sequence[Aval],
    does: str,
    axes: dict[Any, Any],
) -> tuple[Program, list, Any, Any]:
    """Return (program of one example, captured values, result of `f`, its structure).

    `given(*variables)` returns the arguments of `f`; `axes` are sizes of named axes."""
    outs: Any = None

    def flat(*variables: Any) -> list:
        nonlocal outs
        a, k = given(*variables)
        out = f(*a, **k)
        values, out_tree = flatten(out)
        outs = out, out_tree
        return [result(o, i, out, f) for i, o in enumerate(values)]

    on = _PileStage(current(), does, f)
    on.sizes = axes  # type: ignore[misc]
    program, captured = stage(flat, avals, name_of(f, "f"), on=on)
    return program, captured, *outs


def _staged_at(
    f: Callable, tree: Any, given: Sequence[_Argument], axes: dict, sizes: dict[str, int]
) -> Sequence[Aval]:
    """Return the types of the results of f for an example of these sizes."""
    avals = [
        t.with_shape([d.substitute(sizes) if d.__class__ is Dim else d for d in t.shape])
        for g in given
        for t in g.types
    ]
    parts = partial(_arguments, tree, given, sizes=sizes)
    return staged_example(f, parts, avals, "vmap", axes)[0].out_avals


def _of_piles(out: Any) -> list[bool]:
    """Return which leaves belong to piles among the results; those have spare capacity."""
    units = flatten(out, is_pile)[0]
    return [of for u in units for of in [is_pile(u)] * flatten(u)[1].num_leaves]


def _doubted(e: PlaitError) -> tuple[str, str] | None:
    """Return the names of two sizes that failed to match, or None.

    They are returned if the error is about them, and they become equal when the names do."""
    a, b = SCOPE.doubted
    told = isinstance(e, ShapeError) or all(str(d) in e.what for d in (a, b))
    if not told or not isinstance(a, Dim) or not isinstance(b, Dim):
        return None
    mine, theirs = a.variables - b.variables, b.variables - a.variables
    if len(mine) != 1 or len(theirs) != 1:
        return None
    (p,), (q,) = mine, theirs
    return (p, q) if str(a.substitute({p: named(q)})) == str(b) else None


class _Example(Interpreter):
    """The owner of the sizes in one example's program.

    It is apart from the stage, which would be garbage in a cycle if it were one of its own maps.
    """

    def __init__(self, depth: int, does: str, of: Callable | None):
        self.depth_of_piles, self.does, self.of = depth, does, of
        self.sizes_read = {}

    def names_size(self, name: str) -> bool:
        d = self.depth_of_piles
        return name.startswith(f"n{d}_") or name.endswith(f"_m{d}")


class _PileStage(Stage):
    """Stage of one example's program; the number of open ones is part of the names of sizes."""

    def __init__(self, parent: Interpreter, does: str, of: Callable | None = None):
        self.example = _Example(len(parent.maps), does, of)
        super().__init__(parent, does, of)
        self.maps = (*parent.maps, self.example)

    @property
    def closed(self) -> bool:  # type: ignore[override]
        """True once the stage has ended, and with it the sizes that were read in it."""
        return self.example.closed

    @closed.setter
    def closed(self, value: bool) -> None:
        self.example.closed = value
        if value:
            self.example.sizes_read = {}  # they hold the example

    def abandon(self) -> None:
        super().abandon()
        self.example.of = self.of


def depth_of_piles() -> int:
    """Return the number of example programs that are being staged."""
    return len(current().maps)


def _is_integers(x: Any) -> bool:
    """Return whether `x` is a list of integers, which stands for a vector where it is mapped."""
    return isinstance(x, (list, tuple)) and bool(x) and all(v.__class__ is int for v in x)


def _paths(args: tuple, kwargs: dict, leaves: list) -> list[str]:
    """Return the path of each leaf, as users write it; a pile is one leaf."""
    whole = flatten((list(args), kwargs), is_pile)[1]
    paths = key_paths(whole.unflatten(range(len(leaves))))
    return [p.replace("[0]", "args", 1) if p.startswith("[0]") else p[3:] for p in paths]


_ALIKE = (psum_, pmax_, pmin_, all_gather_)
"""Collectives whose results are the same for all examples."""


def _varying(
    program: Program, kinds: Sequence[str], names: Sequence[str], axis_name: Any
) -> list[bool]:
    """Return which results may differ between examples."""
    moving = {v for v, k in zip(program.inputs, kinds, strict=True) if k != SHARED}
    mine = frozenset(names)
    for e in program.eqns:
        if axis_name is not None and axis_name in ambient_of(e.prim, e.params):
            if e.prim not in _ALIKE or e.params.get("groups"):
                moving.update(e.outputs)
            continue
        speaks = speaks_of(mine, (*e.inputs, *e.outputs), e.params)
        if speaks or any(v in moving for v in e.inputs if isinstance(v, Tracer)):
            moving.update(e.outputs)
    return [isinstance(o, Tracer) and o in moving for o in program.outputs]


def _refuse(
    program: Program, wanted: list, results: list, varies: list, out: Any, names: list
) -> None:
    paths: list[str] | None = None
    for i, (a, w, k, v) in enumerate(zip(program.out_avals, wanted, results, varies, strict=True)):
        if isinstance(w, PileAxis) or (k != RAGGED and (w is not None or not v)):
            continue
        paths = paths or key_paths(out)
        if k == RAGGED:
            at = ragged_axes(a.shape, names)[0]
            raise ShapeError(
                f"vmap: result{paths[i]} of type {a!r} has a size of its own for each example, "
                f"{a.shape[at]} at axis {at} (ragged output without using pile_axis out_axes spec)",
                fix="write out_axes=plait.pile_axis for it, or reduce it over that axis",
            )
        raise AxisError(
            f"vmap: result{paths[i]} of type {a!r} varies along the mapped axis, and its out_axes "
            "says that it does not",
            fix="give it an axis, or reduce it over the mapped axis",
        )


class _Taken:
    """The user's results, assembled from (values, type, out_axes entry) of each leaf."""

    def __init__(self, sizes: Sizes, count: int, leaves: Iterable[tuple]):
        self.sizes, self.count, self.leaves = sizes, count, iter(leaves)

    def unit(self, u: Any) -> Any:
        """Return the result for one leaf, or one pile, of an example's results."""
        if not is_pile(u):
            y, t, wanted = next(self.leaves)
            return self.pile((y,), (t,), u) if wanted is pile_axis else self.array(y, wanted)
        tree = flatten(u)[1]
        ys, types, wanted = zip(*[next(self.leaves) for _ in range(tree.num_leaves)], strict=True)
        if all(w is pile_axis for w in wanted):  # a pile of piles
            return self.pile(ys, types, u)
        triples = zip(ys, types, wanted, strict=True)
        return tree.unflatten(
            [self.pile((y,), (t,), y) if w is pile_axis else self.array(y, w)
             for y, t, w in triples]
        )  # fmt: skip

    def array(self, y: Any, wanted: Any) -> Any:
        if wanted is None:
            return y[0]
        return moveaxis(y, 0, normal_axis(wanted, y.ndim, "out_axes"))

    def pile(self, ys: Any, types: Any, element: Any) -> Pile:
        seen = dims_of([types])
        used = [s for s in self.sizes.table if s.name in seen]
        first = names_inside(flatten(element)[1])
        names = {s.name: f"n{first + k}" for k, s in enumerate(used)}
        renamed = {k: named(v) for k, v in names.items()}
        avals = [
            t.with_shape([d.substitute(renamed) if d.__class__ is Dim else d for d in t.shape])
            for t in types
        ]
        table = [s._replace(name=names[s.name]) for s in used]
        tree = flatten(spoken_of(element, renamed))[1] if is_pile(element) else LEAF
        lengths = [self.sizes.vectors[s.name] for s in used]
        return Pile._of(ys, lengths, avals, table, tree, self.count)


added_whole(over_piles, PileAxis, Pile)
