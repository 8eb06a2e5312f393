"""vmap over piles: stage the function once with symbolic sizes, and apply it to all examples.

Invariant: each lengths vector has one size name, numbered by its position among the arguments, so
equal calls have equal programs.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from plait.ext.errors import (
    ArgumentError,
    ConcretizationError,
    MissingRule,
    NotAnArrayError,
    PlaitError,
    ShapeError,
    UndecidedDim,
    argument_path,
    here,
)
from plait.ext.ir import Program, evaluate, programs_in
from plait.ext.ops.collective import varied
from plait.ext.ops.shape import convert, moveaxis
from plait.ext.sizes import Dim, is_symbolic, open_questions, question_of
from plait.ext.trace import (
    Interpreter,
    Stage,
    Value,
    current,
    name_of,
    result,
    shared_program,
    stage,
)
from plait.ext.tree import LEAF, flatten, key_paths, spread
from plait.ext.types import Aval
from plait.ext.values import as_value
from plait.typing import ArrayLike

from ..axes import added_whole, entries, inside, is_axis, may_be_sizes, one_size
from .axis import PileAxis, pile_axis
from .call_results import Taken, refuse_results, which_vary
from .call_sizes import Sizes
from .capacities import TILE, Capacities, Size, capacities_of, size_of_lengths
from .carrier import Ragged
from .elements import refitted, spoken_of
from .facts import Facts
from .groups import Found, grouped, mapped_by_groups, may_be_grouped, usual_of
from .names import SCOPE, named
from .operation import PADDED, RAGGED, SHARED, STACKED, pile_map
from .operators import is_pile
from .pile import Pile
from .short_examples import refuse_short

__all__ = [
    "depth_of_piles", "over_piles", "staged_example",
]  # fmt: skip


_ENTRY = "an axis, None or plait.pile_axis"
_NOTHING = "vmap: nothing is mapped: every in_axes entry is None (or there are no arguments)"
# Advice for errors about sizes that differ between examples.  Users cannot state facts about these
# sizes, since they have no names for them.
_AS_NUMBERS = (
    "the sizes of an example are known by name only, where lengths are traced: compute with them "
    "as numbers, pnp.asarray(x.shape[0]), and choose by pnp.where or lax.cond; as sizes, "
    "plait.core.max_dim(n, 1) and min_dim are; or map over the examples one after the other"
)


class _Argument:
    """One leaf of the arguments, where a pile is a leaf: its value for `f`, and its operands."""

    def __init__(self, x: Any, axis: PileAxis | int | None, path: str, sizes: Sizes, as_size: bool):
        self.x, self.axis, self.path = x, axis, path
        self.count: Any = None
        self.size: Dim | None = None
        self.may_be_size = False
        self.values: list[Any] = []
        self.types: list[Aval] = []
        self.kind = SHARED
        self.names: dict[str, str] = {}
        """The names in this call of the sizes of a pile."""
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
        self.names = {
            s.name: sizes.name_of(n, s, self.path)
            for s, n in zip(p._sizes, p._lengths, strict=True)
        }
        self.kind, self.count = RAGGED, p._count
        self.values, self.types = [x for x, _ in columns], [t for _, t in columns]

    def _stacked(self, x: ArrayLike, axis: Any, sizes: Sizes, as_size: bool) -> None:
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
                name = sizes.name_of(lengths, size_of_lengths("", n), self.path)
                self.names, self.kind = {"": name}, SHARED
                return
        self.kind, self.values = STACKED, [v]
        self.types = [v.aval.with_shape(v.shape[1:])]

    def settle(self, sizes: Sizes) -> None:
        """Write the types in the names of the call, whose facts all arguments determine."""
        self.renamed = {k: sizes.sizes[name].whole for k, name in self.names.items()}
        self.size = self.renamed.get("")
        self.types = [
            t.with_shape([d.substitute(self.renamed) if d.__class__ is Dim else d for d in t.shape])
            for t in self.types
        ]

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
    f: Callable[..., Any],
    in_axes: object,
    out_axes: PileAxis | int | None,
    axis_name: str | None,
    axis_size: int | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    as_sizes: bool = False,
) -> Any:
    """Map a call over piles; with `as_sizes`, mapped integers that are known become sizes."""
    args = tuple([np.asarray(a) if _is_integers(a) else a for a in args])
    leaves, tree = flatten((args, kwargs), is_pile)
    whole = flatten(args, is_pile)[1]
    like = whole.unflatten(range(whole.num_leaves))
    axes = entries("vmap", in_axes, args, like, len(leaves), is_axis, _ENTRY, f)
    for i in range(whole.num_leaves, len(leaves)):  # in_axes has no entries for keyword arguments
        if is_pile(leaves[i]):
            axes[i] = pile_axis
    told = list(zip(leaves, axes, _paths(args, kwargs, leaves, f), strict=True))
    given, sizes, count, staged = _with_sizes(f, tree, told, axis_name, axis_size, as_sizes)
    if isinstance(staged, Exception):
        return _one_size_at_a_time(_Groups(f, tree, given), sizes, count, out_axes, staged)
    sizes.check()
    program, captured, out, out_tree = staged
    if not current().staging:  # lowered once for all calls that stage the same
        program, consts = shared_program(program, by_lines=True)
        captured = [*consts, *captured]
    wanted = spread(out_axes, out, "out_axes", is_axis, _ENTRY)
    names = [s.name for s in sizes.table]
    caps = capacities_of(sizes.table, count)
    r = Ragged(current(), count, None, sizes.table, False, ambient=tuple(sizes.operands))
    kinds = [SHARED] * len(captured) + [g.kind for g in given for _ in g.values]
    results = [RAGGED if caps.axes(a) else STACKED for a in program.out_avals]
    varies = which_vary(program, kinds, names, axis_name)
    refuse_results(program.out_avals, wanted, results, varies, out, names)
    values = _operands(given, caps)
    vectors = {name: sizes.vectors[name] for name in names}
    apart = _Groups(f, tree, given)
    if axis_name is None and grouped(program, vectors, count):
        got = apart.apply(r, values, vectors, program.out_avals)[0]
    else:
        bound = {} if axis_name is None else {axis_name: count}
        alone = partial(_staged_at, f, tree, given, bound, sizes.lacks_elements)
        what = program, vectors, alone, _of_piles(out), sizes.table, sizes.questions
        refuse_short("vmap over a pile", *what)
        how = {"kinds": tuple(kinds), "outs": tuple(results), "axis_name": axis_name}
        try:
            got = _at_once(r, sizes, program, captured, values, **how)
        except MissingRule as e:
            if axis_name is not None or not may_be_grouped(vectors, count, e.what):
                raise
            got = apart.apply(r, values, vectors, program.out_avals)[0]
    taken = Taken(sizes, count, zip(got, program.out_avals, wanted, strict=True))
    units, unit_tree = flatten(out, is_pile)
    return unit_tree.unflatten([taken.unit(u) for u in units])


def _operands(given: Sequence["_Argument"], caps: Capacities) -> list[tuple[Any, Aval, str]]:
    """Return (value, type, kind) of each operand, at the capacities of the call."""
    return [
        (refitted(v, t, caps) if g.kind == RAGGED else v, t, g.kind)
        for g in given
        for v, t in zip(g.values, g.types, strict=True)
    ]


class _Groups:
    """The mapped function, applied to groups of examples of equal sizes.

    Attributes:
      made: (result, structure) of each group so far, where `f` returned.
    """

    def __init__(self, f: Callable, tree: object, given: Sequence["_Argument"]):
        self.f, self.tree, self.given = f, tree, given
        self.made: list[tuple[Any, Any]] = []

    def of_one(self, numbers: dict[str, int], *variables: Value) -> list:
        """Return the results for an example, given its sizes."""
        a, k = _arguments(self.tree, self.given, *variables, sizes=numbers)
        out = self.f(*a, **k)
        leaves, out_tree = flatten(out)
        self.made.append((out, out_tree))
        return leaves

    def apply(self, r: Ragged, values: Sequence[tuple], vectors: dict, outs: Any = None) -> tuple:
        """Return (results of all examples, their types); `outs` are types, if they are known."""
        each = [(v, t, kind != SHARED) for v, t, kind in values]
        return mapped_by_groups("vmap over a pile", self.of_one, r, each, vectors, outs)


def _one_size_at_a_time(
    groups: _Groups, sizes: Sizes, count: int, out_axes: Any, error: Exception
) -> Any:
    """Map a function that cannot be staged for all sizes at once, for the reason `error`."""
    r = Ragged(current(), count, None, sizes.table, False, ambient=tuple(sizes.operands))
    vectors = {s.name: sizes.vectors[s.name] for s in sizes.table}
    values = _operands(groups.given, r.caps)
    try:
        got, types = groups.apply(r, values, vectors)
    except PlaitError as own:
        if not groups.made and type(own) is type(error):
            raise error from None  # of all sizes, and not of those of the first example
        raise own from None
    (out, out_tree), *others = groups.made
    other = next((t for _, t in others if t != out_tree), None)
    if other is not None or any(map(is_pile, flatten(out, is_pile)[0])):
        raise error
    wanted = spread(out_axes, out, "out_axes", is_axis, _ENTRY)
    if any(w is None for w in wanted):
        raise error
    types = [_named_sizes(t, sizes) for t in types]
    caps = capacities_of(sizes.table, count)
    kinds = [RAGGED if caps.axes(t) else STACKED for t in types]
    refuse_results(types, wanted, kinds, [True] * len(types), out, list(caps.named))
    r = Ragged(current(), count, None, sizes.table, False, ambient=tuple(sizes.operands))
    got = [usual_of(r, y, t) for y, t in zip(got, types, strict=True)]
    taken = Taken(sizes, count, zip(got, types, wanted, strict=True))
    return out_tree.unflatten([taken.unit(u) for u in flatten(out)[0]])


def _named_sizes(t: Found, sizes: Sizes) -> Aval:
    """Return the type of a result with names for the sizes that differ between examples."""
    shape: list[Any] = []
    for n in t.sizes:
        if n.__class__ is tuple:
            lengths = as_value(np.asarray(n, np.int32))
            size = size_of_lengths("", np.asarray(n))
            n = sizes.sizes[sizes.name_of(lengths, size, "a result")].whole
        shape.append(n)
    return t.aval.with_shape(shape)


def _with_sizes(
    f: Callable,
    tree: object,
    told: Sequence[tuple[Any, Any, str]],
    axis_name: str | None,
    axis_size: int | None,
    as_sizes: bool,
) -> tuple[list["_Argument"], Sizes, Any, tuple | PlaitError]:
    """Return (the arguments, their sizes, the number of examples, the staged example).

    The function is staged again if integers turn out to be sizes, two sizes must be equal, or the
    lengths decide a question about sizes.  If it cannot be staged, and known lengths permit to map
    over groups of equal sizes, the error stands for the staged example.

    `told` is (argument, entry of in_axes, path) of each leaf."""
    depth = depth_of_piles()
    alike: dict[str, str] = {}
    learned: dict[str, Facts] = {}
    while True:
        sizes = Sizes(depth, alike, learned)
        given = [_Argument(*x, sizes, as_sizes) for x in told]
        for g in given:
            g.settle(sizes)
        counts = [(f"{g.path} has {g.count} elements", g.count) for g in given]
        count = one_size([c for c in counts if c[1] is not None], axis_size, _NOTHING)
        SCOPE.doubted = 0, 0
        try:
            avals = [t for g in given for t in g.types]
            bound = {} if axis_name is None else {axis_name: count}
            parts = partial(_arguments, tree, given)
            with open_questions() as questions:
                lacks = sizes.lacks_elements
                staged = staged_example(f, parts, avals, "vmap over a pile", bound, lacks)
        except PlaitError as e:
            # The function read a mapped integer as a number: stage again, with it as a size.
            number = isinstance(e, ConcretizationError) and not as_sizes
            if number and any(g.may_be_size for g in given):
                as_sizes = True
                continue
            if sizes.unify(_doubted(e)) or (isinstance(e, UndecidedDim) and sizes.learn(e)):
                continue
            if axis_name is None and may_be_grouped(sizes.operands_by_name, count, e.what):
                return given, sizes, count, e
            if isinstance(e, UndecidedDim) and any(name in e.what for name in sizes.sizes):
                needs_int = question_of(e) is None  # its advice is about the call that needs it
                e.fix = sizes.advice(e) or (f"{e.fix}; {_AS_NUMBERS}" if needs_int else _AS_NUMBERS)
            raise
        else:
            sizes.questions = tuple(questions)
            return given, sizes, count, staged


def _at_once(
    r: Ragged,
    sizes: Sizes,
    program: Program,
    captured: Sequence[Any],
    values: Sequence[tuple],
    **how: Any,
) -> Sequence[Any]:
    """Return the results for all examples, by one operation; `values` are (value, type, kind)."""
    padded = _mostly_full(r.caps) and _doubly_ragged(program, r.caps)
    laid = [_laid(r, v, t, padded) if kind == RAGGED else v for v, t, kind in values]
    given = [*captured, *laid]
    program, given = varying_as(r.ambient, program, given, how["axis_name"], r.size)
    table, lengths = sizes.marked()
    got = pile_map.bind(
        *lengths, *given, program=program, sizes=table, size=r.size, padded=padded, **how
    )
    if not padded:
        return got
    return [_unpadded(r, y, t) for y, t in zip(got, program.out_avals, strict=True)]


def varying_as(
    lengths: Sequence[Any],
    program: Program,
    operands: Sequence[Any],
    axis_name: str | None,
    size: int,
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

SHORT = 1 / 3
"""The same, where all examples are so short that padded pairs take at most half as much as tiles,
which are not smaller for them."""


def _mostly_full(caps: Capacities) -> bool:
    """Return whether padded arrays would hold little padding, as far as sizes are known."""
    known = [s for s in caps.table if not is_symbolic((*s.counts, caps.size))]
    full = [_is_full(s, caps.size) for s in known]
    return caps.size != 0 and len(known) == len(caps.table) and bool(full) and all(full)


def _is_full(s: Size, count: int) -> bool:
    pairs = count * s.longest**2
    least = SHORT if 2 * pairs <= s.squares * TILE**2 else FULL
    return s.rows >= least * count * s.longest


def _doubly_ragged(program: Program, caps: Capacities) -> bool:
    """Return whether a value in a program has two ragged axes."""
    for e in program.eqns:
        if any(len(caps.axes(v.aval)) > 1 for v in e.outputs):
            return True
        if any(_doubly_ragged(p, caps) for p in programs_in(e.params)):
            return True
    return False


def _laid(r: Ragged, x: Value, t: Aval, padded: bool) -> Any:
    """Return the rows of a pile in the layout that the operation takes."""
    if not padded or not r.axes(t):
        return x
    y = r.coerce(t, (x,), r.usual(t), (PADDED, 0))[0]
    return r.masked(y, t, r.axes(t), 0)


def _unpadded(r: Ragged, y: Value, t: Aval) -> Any:
    if not r.axes(t):
        return y
    return r.cleaned(r.coerce(t, (y,), (PADDED, 0), r.usual(t))[0], t)


def _arguments(
    tree: Any, given: Sequence["_Argument"], *variables: Value, sizes: dict[str, int] | None = None
) -> tuple[Any, Any]:
    it = iter(variables)
    return tree.unflatten([g.given(it, sizes) for g in given])


def staged_example(
    f: Callable[..., Any],
    given: Callable[..., tuple[Any, Any]],
    avals: Sequence[Aval],
    does: str,
    axes: dict[Any, Any],
    lacks_elements: bool = False,
) -> tuple[Program, list[Any], Any, Any]:
    """Return (program of one example, captured values, result of `f`, its structure).

    `given(*variables)` returns the arguments of `f`; `axes` are sizes of named axes, along which
    elements may be missing if `lacks_elements`."""
    outs: Any = None

    def flat(*variables: Value) -> list:
        nonlocal outs
        a, k = given(*variables)
        out = f(*a, **k)
        values, out_tree = flatten(out)
        outs = out, out_tree
        return [result(o, i, out, f) for i, o in enumerate(values)]

    on = _PileStage(current(), does, f)
    on.sizes = axes  # type: ignore[misc]
    on.lacks_elements = lacks_elements
    program, captured = stage(flat, avals, name_of(f, "f"), on=on)
    return program, captured, *outs


def _staged_at(
    f: Callable,
    tree: object,
    given: Sequence[_Argument],
    axes: dict,
    lacks_elements: bool,
    sizes: dict[str, int],
) -> Sequence[Aval]:
    """Return the types of the results of f for an example of these sizes."""
    avals = [
        t.with_shape([d.substitute(sizes) if d.__class__ is Dim else d for d in t.shape])
        for g in given
        for t in g.types
    ]
    parts = partial(_arguments, tree, given, sizes=sizes)
    return staged_example(f, parts, avals, "vmap", axes, lacks_elements)[0].out_avals


def _of_piles(out: Value | tuple[Value, ...]) -> list[bool]:
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


def _is_integers(x: object) -> bool:
    """Return whether `x` is a list of integers, which stands for a vector where it is mapped."""
    return isinstance(x, (list, tuple)) and bool(x) and all(v.__class__ is int for v in x)


def _paths(args: tuple, kwargs: dict, leaves: list, f: Callable) -> list[str]:
    """Return the path of each leaf, as users write it; a pile is one leaf."""
    whole = flatten((list(args), kwargs), is_pile)[1]
    paths = key_paths(whole.unflatten(range(len(leaves))))
    return [f"`{argument_path(p, f)}`" for p in paths]


added_whole(over_piles, PileAxis, Pile)
