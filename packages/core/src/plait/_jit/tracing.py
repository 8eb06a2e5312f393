"""Tracing: a function of trees of arrays becomes a Program, for types of its arguments.

Invariant: a trace is remembered by the types and trees of the arguments, which of their parts are
one (`same_parts`), the settings, the named axes around it and, if it asked for them, its
surroundings, and nothing else; one that captured values of other interpreters is not kept.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from .. import events
from .._base.config import config
from .._base.errors import ArgumentError, AxisError, NotAnArrayError, TypeRule
from .._base.surroundings import around, ask, last_asked
from .._base.tracebacks import border
from .._base.wrapping import OFFERED
from .._core.array import Array, as_value, not_an_array
from .._core.axis_names import bound_axes
from .._core.handles import Handle, is_lasting
from .._core.interpreter import GROUND, Interpreter, Tracer, Value, current
from .._core.ir import Program
from .._core.same_parts import alike, as_one, parts_that_may_be_one
from .._core.staging import Stage, admitted, stage
from .._types.avals import OPAQUE, Aval, Placed, Placement, canonical
from ..tree import TreeDef, exact_key, flatten, key_paths
from .jittable import jittables
from .misses import explain


class Traced(NamedTuple):
    """A staged function.

    Attributes:
      program: its inputs are the captured values, then the flat arguments.
      captured: values of other interpreters that the function closed over.
      tree: the structure of its results.
      values: the flat arguments.
      asked: whether the function asked what surrounds it (`plait._base.surroundings`).
      places: where jit was told that results shall lie, if it was: a placement or None for each.
    """

    program: Program
    captured: list[Any]
    tree: TreeDef
    values: list[Any]
    asked: bool = False
    places: Sequence[Any] = ()

    def shapes(self) -> Any:
        """Return the results as a tree of ShapeDtypeStructs."""
        avals = self.program.out_avals
        places = self.places or (None,) * len(avals)
        return self.tree.unflatten(
            [
                ShapeDtypeStruct(
                    a.shape,
                    a.dtype,
                    weak_type=a.weak_type,
                    sharding=a.sharding if p is None else p,
                )
                for a, p in zip(avals, places, strict=True)
            ]
        )


def trace(
    f: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    does: str = "jit",
    keep: dict[tuple[Any, ...], Any] | None = None,
    on: Stage | None = None,
    avals: tuple[Aval, ...] | None = None,
    same: bool = True,
) -> Traced:
    """Stage `f` on the types of its arguments.

    Args:
      does: the transformation, for messages.
      keep: remembers traces, by types and trees of arguments and by settings.
      on: the stage to use.
      avals: types of the flat arguments, where they are not those of the arguments (rows).
      same: whether parts of arguments that are one object are one value for `f`; loops, whose next
        turn has others, see to it that they stay so.
    """
    if not callable(f):
        raise ArgumentError(f"{does}: {f!r} is no function", fix="pass what can be called")
    if does in _OPENING:
        args, kwargs = jittables.opened((args, kwargs))
    values, tree = arguments(args, kwargs, does)
    if avals is None:
        avals = tuple([v.aval for v in values])
    axes = bound_axes()
    one = alike(tree, values) if same else ()
    if one and any(avals[i] is not avals[j] for i, j in zip(parts_that_may_be_one(tree), one)):
        one = ()  # a row of an array, and the whole of it
    key = exact_key(tree), avals, config.state, tuple(axes.items()) if axes else None, one, None
    if keep is not None:
        found: Any = keep.get(key)
        if found is not None:
            return Traced(found[0], found[1], found[2], values)
        found = keep.get((*key[:-1], around()))
        if found is not None:
            ask()  # whoever keeps what is made of this trace must know that it depends
            return Traced(found[0], found[1], found[2], values, True)
        if config.explain_cache_misses:
            explain(does, f, (*key[:-1], around() or None), keep)
    out_tree: TreeDef | None = None

    def flat(*xs: Any) -> list[Any]:
        nonlocal out_tree
        a, k = tree.unflatten(as_one(tree, one, xs))
        out = f(*a, **k)
        if does in _OPENING:
            out = jittables.opened(out)
        outs, out_tree = flatten(out)
        return [result(o, i, out, f) for i, o in enumerate(outs)]

    events.happened("trace", f)
    s = on or Stage(current(), does, f)
    name = getattr(f, "__name__", "f")
    before = last_asked()
    program, captured = stage(flat, avals, name, on=s)
    asked = last_asked() is not before
    assert out_tree is not None  # `flat` was run
    hit = program, captured, out_tree
    # Captured values belong to the interpreters around this very call: another call with equal
    # types may capture others, so such a trace is good for one call only.  One that was given
    # shapes for values has more inputs than arguments, and is good for its types only.
    whole = len(program.inputs) == len(captured) + len(avals)
    if keep is not None and whole and all(map(is_lasting, captured)):
        make_room(keep)
        keep[(*key[:-1], around()) if asked else key] = hit
    return Traced(*hit, values, asked)


MOST = 2048
"""The most traces of a function, and its most sets of static values, that are kept: calls that
differ each time, in a size or a number that is static, would take all memory in the end."""


def is_full(table: dict[Any, Any]) -> bool:
    """Return whether a table has as many entries as are kept."""
    return len(table) >= MOST


def make_room(table: dict[Any, Any]) -> bool:
    """Drop the older half of a table that is full; return whether it was."""
    if not is_full(table):
        return False
    for key in list(table)[: MOST // 2]:
        table.pop(key, None)
    return True


_OPENING = ("jit", "eval_shape", "make_program")
"""What takes values of jittable classes apart."""


def arguments(
    args: Sequence[Any], kwargs: Mapping[str, Any], does: str
) -> tuple[list[Any], TreeDef]:
    """Return (values, tree) of the arguments of a transformed function.

    Raises TypeRule, naming the argument, if one is no array; `does` names the transformation.
    """
    leaves, tree = flatten((args, kwargs))
    return [
        x if x.__class__ is Array else checked_argument(x, i, args, kwargs, does)
        for i, x in enumerate(leaves)
    ], tree


def checked_argument(
    x: object, i: int, args: Sequence[Any], kwargs: Mapping[str, Any], does: str
) -> Value:
    """Return leaf `i` of the arguments as a value; raise NotAnArrayError, naming it,
    if it is no array."""
    try:
        return admitted(x)
    except NotAnArrayError as e:
        shape = of_shape_only(x)
        if shape is not None:
            return shape
        path = key_paths((list(args), kwargs))[i]
        where = path.replace("[0]", "args", 1) if path.startswith("[0]") else path[3:]
        raise NotAnArrayError(
            f"{e.what} ({does}: {where})", fix=f"{e.fix}, or make the argument static"
        ) from None


def result(x: object, i: int, out: object, f: Callable[..., Any]) -> Value:
    """Return leaf `i` of the results `out` of a transformed function as a value; raise TypeRule,
    naming leaf and function, if it is no array."""
    try:
        value = admitted(x)
    except TypeRule:
        shape = of_shape_only(x)
        if shape is not None:
            return shape
        name = getattr(f, "__name__", "the function")
        path = key_paths(out)[i]
        raise not_an_array(x, f"the result{path} of {name},") from None
    if isinstance(value, Handle):
        where = f"the result{key_paths(out)[i]} of {getattr(f, '__name__', 'the function')}"
        raise value.refused(where)
    return value


def of_shape_only(x: object) -> Value | None:
    """Return a value that has a type and nothing else, for a ShapeDtypeStruct where shapes are all
    that is asked for: within `eval_shape`; else None.

    It is an input of the program that `eval_shape` stages, which nobody runs."""
    by: Interpreter | None = current() if isinstance(x, ShapeDtypeStruct) else None
    while by is not None:
        if isinstance(by, Stage) and by.does == "eval_shape":
            return by.input(x.aval)  # type: ignore[attr-defined]  # x was looked at above
        by = by.parent
    return None


class Traces(dict[tuple[Any, ...], Any]):
    """Traces of one function, by types and trees of arguments."""

    __slots__ = ("owner", "versions", "__weakref__")
    owner: Callable[[], Any]
    versions: dict[Any, Any]
    """The versions that jits of the function share; see `shared`."""

    def __init__(self) -> None:
        self.versions, self.owner = {}, _nobody

    def under(self, key: Any) -> dict[Any, Any]:
        """Return the table of the traces that are kept for a set of static values."""
        if key not in self:
            make_room(self)
        return self.setdefault(key, {})

    def __reduce__(self):
        return Traces, ()  # a function that is pickled by its contents leaves them behind


def _nobody() -> None:
    """Return None: traces that were pickled with a function are those of no function."""


_ATTRIBUTE = "__plait_traces__"
_kept: dict[int, Traces] = {}
_all: "weakref.WeakValueDictionary[int, Traces]" = weakref.WeakValueDictionary()


def kept(f: Callable[..., Any]) -> Traces:
    """Return the traces of `f`, which are kept for as long as `f` lives.

    They are found by identity, never by equality: two layers that compare equal may hold different
    weights, and would run each other's programs.  A function holds its traces itself rather than in
    a table of weak keys: a program may refer to the function it was traced from (by a custom rule
    that mentions it), and a table would then keep both for ever, while a cycle is collected.
    """
    held = f.__dict__.get(_ATTRIBUTE) if f.__class__ is FunctionType else _kept.get(id(f))
    if held is not None and held.owner() is f:  # else copied by functools.wraps, or of the dead
        return held
    traces, k, store = Traces(), id(f), _kept

    def forget(ref: object) -> None:
        # by the time this is called another object may have the number, and traces of its own
        if k in store and store[k].owner is ref:
            del store[k]

    try:
        if f.__class__ is FunctionType:
            traces.owner = weakref.ref(f)
            f.__dict__[_ATTRIBUTE] = traces
        else:
            traces.owner = weakref.ref(f, forget)
            store[k] = traces
    except TypeError:
        return traces
    _all[id(traces)] = traces
    return traces


def shared(f: Callable[..., Any]) -> dict[Any, Any]:
    """Return the dictionary that all jits of `f` share, for as long as `f` lives.

    Versions refer to `f`.  A function that holds them itself is a cycle, which is collected; for
    any other callable the table of traces would hold them, and they would keep `f` alive for ever:
    its jits share nothing.
    """
    return kept(f).versions if f.__class__ is FunctionType else {}


def kept_traces_cleared() -> None:
    """Forget the traces of all functions."""
    for traces in list(_all.values()):
        traces.clear()


class ShapeDtypeStruct:
    """A shape and a dtype, where an array would be too much.

    Args:
      shape: ints or symbolic sizes.
      dtype: anything numpy takes for a dtype.
      weak_type: whether the dtype gives way to others.
      sharding: where it is, or how a type says that it is divided; None leaves that open.
    """

    __slots__ = ("shape", "dtype", "weak_type", "sharding")

    def __init__(self, shape: Any, dtype: Any, *, weak_type: bool = False, sharding: Any = None):
        aval = Aval(tuple(shape), dtype, weak_type)
        self.shape, self.dtype, self.weak_type = aval.shape, aval.dtype, weak_type
        self.sharding = sharding

    @property
    def aval(self) -> Aval:
        return Aval(self.shape, self.dtype, self.weak_type)

    @classmethod
    def like(cls, x: Any) -> "ShapeDtypeStruct":
        """The shape, the dtype and the weakness of an array, of a traced value or of anything that
        has a shape and a dtype; where an array was placed on purpose, its sharding too.

        >>> import plait
        >>> plait.ShapeDtypeStruct.like(plait.numpy.ones((2, 3)))
        ShapeDtypeStruct(shape=(2, 3), dtype=float32)
        """
        found = _shape_of(x)
        value = found if isinstance(found, Shape) else as_value(found)
        key: Any = getattr(value, "key", value.aval)
        placement = key.placement if isinstance(key, Placed) else None
        aval = value.aval
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=placement)

    def update(self, **changes: Any) -> "ShapeDtypeStruct":
        """Return a copy with some of shape, dtype, weak_type and sharding changed."""
        old = {name: getattr(self, name) for name in ("weak_type", "sharding")}
        shape, dtype = changes.pop("shape", self.shape), changes.pop("dtype", self.dtype)
        return ShapeDtypeStruct(shape, dtype, **old | changes)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        return self.aval.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return False
        return self.aval is other.aval and self.sharding == other.sharding

    def __hash__(self) -> int:
        return hash(self.aval)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        there = f", sharding={self.sharding!r}" if self.sharding is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak}{there})"


class Shape(Tracer):
    """An argument without contents: staging and lowering need its type and its place only."""

    __slots__ = ("key",)

    def __init__(self, aval: Aval, placement: Placement | None = None):
        self.key = aval if placement is None else Placed(aval, placement)
        self.by, self.aval, self.where = GROUND, self.key.aval, None


def shapes_only(tree_: Any) -> Any:
    """Return a tree of arguments with a Shape, which can be staged, for each ShapeDtypeStruct and
    each other object that has a shape and a dtype and is no array."""
    leaves, tree = flatten(jittables.opened(tree_))
    shapes = [_shape_of(x) for x in leaves]
    for i, x in enumerate(shapes):
        placement = x.key.placement if x.__class__ is Shape else None
        if getattr(placement, "explicit", None) is not None:
            _expect_divisible(x, placement, key_paths(tree_)[i])
    return tree.unflatten(shapes)


def _expect_divisible(x: Any, placement: Any, path: str) -> None:
    """Raise, naming the argument, unless its type can say that it is divided so."""
    try:
        placement.check(x.aval)
    except AxisError as e:
        raise AxisError(f"{e.what} (argument{path})", fix=e.fix) from None


def _shape_of(x: Any) -> Any:
    if isinstance(x, ShapeDtypeStruct):
        # a PartitionSpec alone is over the mesh in context
        here = getattr(x.sharding, "here", None)
        return Shape(_entering(x.aval), x.sharding if here is None else here())
    if isinstance(x, Value) or not hasattr(x, "shape") or not hasattr(x, "dtype"):
        return x
    if any(hasattr(x, name) for name in ("__array__", "__plait_array__", "__jax_array__")):
        return x
    weak = getattr(x, "weak_type", False)
    return Shape(_entering(Aval(tuple(x.shape), x.dtype, weak)), getattr(x, "sharding", None))


def _entering(aval: Aval) -> Aval:
    """The type that an array of this type has where it enters, as the setting x64 says."""
    if aval.category == OPAQUE:
        return aval
    dtype = canonical(aval.dtype)
    return aval if dtype == aval.dtype else aval.with_dtype(dtype)


@border
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of `fun(*args, **kwargs)`, without computing anything.

    Arguments are arrays, ShapeDtypeStructs or other objects with a shape and a dtype; the result is
    a tree of ShapeDtypeStructs.  `fun` may give ShapeDtypeStructs to jitted functions, and return
    them.

    >>> import plait
    >>> plait.eval_shape(lambda x: x @ x.T, plait.ShapeDtypeStruct((3, 2), "float32"))
    ShapeDtypeStruct(shape=(3, 3), dtype=float32)
    """
    if fun.__class__ is FunctionType and "eval_shape" in fun.__dict__.get(OFFERED, ()):
        return fun.eval_shape(*args, **kwargs)  # type: ignore[attr-defined]
    return traced_shapes(fun, args, kwargs).shapes()


def traced_shapes(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Traced:
    """Stage `fun` for arguments of which the shapes alone are known."""
    return trace(fun, shapes_only(args), shapes_only(kwargs), "eval_shape", kept(fun))


def typeof(x: Any) -> Aval:
    """The type of an array, a traced value or a Python number: its shape, dtype and weakness.

    >>> import plait
    >>> plait.typeof(plait.numpy.ones((2, 3))), plait.typeof(1.0)
    (f32[2,3], f32[]*)
    """
    return as_value(x).aval
