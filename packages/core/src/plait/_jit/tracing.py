"""Tracing: a function of trees of arrays becomes a Program, for types of its arguments.

Invariant: the cache key of a trace holds the types and trees of the arguments, and which of their
parts are one object (`same_parts`); also the settings and the named axes.  It holds the
surroundings if the function depends on them, and nothing else.  A trace that captured values of
other interpreters is not kept.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from .. import events
from .._base import code_memory
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
      asked: whether the function depends on its surroundings (`plait._base.surroundings`).
      places: the placements of results that jit was given: a placement or None for each.
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
      f: the function.
      args, kwargs: its arguments.
      does: the transformation, for messages.
      keep: a table of traces, keyed on types and trees of arguments and on settings.
      on: the stage to use.
      avals: types of the flat arguments, where they differ from those of the arguments (rows).
      same: whether parts of the arguments that are one object are one value for `f`.  Loops
        must check that they stay one from turn to turn.
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
        one = ()  # a row of an array is not the whole array
    key = exact_key(tree), avals, config.state, tuple(axes.items()) if axes else None, one, None
    if keep is not None:
        found: Any = keep.get(key)
        if found is not None:
            return Traced(found[0], found[1], found[2], values)
        found = keep.get((*key[:-1], around()))
        if found is not None:
            ask()  # a caller that caches a result of this trace must see that it depends
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
    # Captured values belong to the interpreters around this call.  Another call with equal types
    # may capture others, so such a trace serves one call only.  A trace of shapes without values
    # may have more inputs than arguments, and serves its types only.
    whole = len(program.inputs) == len(captured) + len(avals)
    if keep is not None and whole and all(map(is_lasting, captured)):
        make_room(keep)
        keep[(*key[:-1], around()) if asked else key] = hit
    return Traced(*hit, values, asked)


MOST = 2048
"""The most traces of a function, and the most sets of static values, that are kept.  Without this
limit, calls that differ each time in a size or a static number would fill memory."""


def is_full(table: dict[Any, Any]) -> bool:
    """Return whether a table has as many entries as may be kept."""
    return len(table) >= MOST


def make_room(table: dict[Any, Any]) -> bool:
    """Drop the older half of a full table; return whether it was full."""
    if not is_full(table):
        return False
    for key in list(table)[: MOST // 2]:
        table.pop(key, None)
    return True


_OPENING = ("jit", "eval_shape", "make_program")
"""Transformations that take values of jittable classes apart."""


def arguments(
    args: Sequence[Any], kwargs: Mapping[str, Any], does: str
) -> tuple[list[Any], TreeDef]:
    """Return (values, tree) of the arguments of a transformed function.

    Raises TypeRule, naming the argument, if one is not an array; `does` names the transformation.
    """
    leaves, tree = flatten((args, kwargs))
    return [
        x if x.__class__ is Array else checked_argument(x, i, args, kwargs, does)
        for i, x in enumerate(leaves)
    ], tree


def checked_argument(
    x: object, i: int, args: Sequence[Any], kwargs: Mapping[str, Any], does: str
) -> Value:
    """Return leaf `i` of the arguments as a value; raise NotAnArrayError, naming it, if it is not
    an array."""
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
    naming leaf and function, if it is not an array."""
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
    """Return a value with a type only, for a ShapeDtypeStruct within `eval_shape`; else None.

    It is an input of the program that `eval_shape` stages, which is never run."""
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
        """Return the table of the traces for a set of static values."""
        if key not in self:
            make_room(self)
        return self.setdefault(key, {})

    def __reduce__(self):
        return Traces, ()  # a function that is pickled by its contents leaves its traces behind


def _nobody() -> None:
    """Return None: traces that were pickled with a function belong to no function."""


_ATTRIBUTE = "__plait_traces__"
_kept: dict[int, Traces] = {}
_all: "weakref.WeakValueDictionary[int, Traces]" = weakref.WeakValueDictionary()


def kept(f: Callable[..., Any]) -> Traces:
    """Return the traces of `f`, which are kept for as long as `f` lives.

    They are found by identity, never by equality: two layers that compare equal may hold different
    weights, and would run each other's programs.  A function holds its traces itself, instead of a
    table of weak keys.  A program may refer to the function it was traced from (in a custom rule);
    a table would then keep both forever, while a cycle is collected.
    """
    held = f.__dict__.get(_ATTRIBUTE) if f.__class__ is FunctionType else _kept.get(id(f))
    if held is not None and held.owner() is f:  # else copied by functools.wraps, or of a dead one
        return held
    traces, k, store = Traces(), id(f), _kept

    def forget(ref: object) -> None:
        # When this is called, another object may already have the id, with its own traces.
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

    Versions refer to `f`.  A function that holds them itself forms a cycle, which is collected.
    For any other callable the table of traces would hold them, and they would keep `f` alive
    forever.  So the jits of such a callable share nothing.
    """
    return kept(f).versions if f.__class__ is FunctionType else {}


@code_memory.emptied_by
def kept_traces_cleared() -> None:
    """Drop the traces of all functions."""
    for traces in list(_all.values()):
        traces.clear()


class ShapeDtypeStruct:
    """A shape and a dtype, in place of an array.

    Args:
      shape: ints or symbolic sizes.
      dtype: any value that numpy accepts as a dtype.
      weak_type: whether the dtype gives way to others.
      sharding: its placement, or the sharding in its type; None leaves that open.
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
        """Return the shape, dtype and weakness of an array, of a traced value or of any object with
        a shape and a dtype; and the sharding of an array that was placed on purpose.

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
    """An argument without contents: staging and lowering need only its type and its place."""

    __slots__ = ("key",)

    def __init__(self, aval: Aval, placement: Placement | None = None):
        self.key = aval if placement is None else Placed(aval, placement)
        self.by, self.aval, self.where = GROUND, self.key.aval, None


def shapes_only(tree_: Any) -> Any:
    """Return a tree of arguments in which ShapeDtypeStructs become Shapes, which can be staged.

    So do other objects that have a shape and a dtype and are not arrays.
    """
    leaves, tree = flatten(jittables.opened(tree_))
    shapes = [_shape_of(x) for x in leaves]
    for i, x in enumerate(shapes):
        placement = x.key.placement if x.__class__ is Shape else None
        if getattr(placement, "explicit", None) is not None:
            _expect_divisible(x, placement, key_paths(tree_)[i])
    return tree.unflatten(shapes)


def _expect_divisible(x: Any, placement: Any, path: str) -> None:
    """Raise AxisError, naming the argument, unless its sizes allow the sharding in its type."""
    try:
        placement.check(x.aval)
    except AxisError as e:
        raise AxisError(f"{e.what} (argument{path})", fix=e.fix) from None


def _shape_of(x: Any) -> Any:
    if isinstance(x, ShapeDtypeStruct):
        # A PartitionSpec alone refers to the mesh in context.
        here = getattr(x.sharding, "here", None)
        return Shape(_entering(x.aval), x.sharding if here is None else here())
    if isinstance(x, Value) or not hasattr(x, "shape") or not hasattr(x, "dtype"):
        return x
    if any(hasattr(x, name) for name in ("__array__", "__plait_array__", "__jax_array__")):
        return x
    weak = getattr(x, "weak_type", False)
    return Shape(_entering(Aval(tuple(x.shape), x.dtype, weak)), getattr(x, "sharding", None))


def _entering(aval: Aval) -> Aval:
    """Return the type that an array of this type has as an argument, under the setting x64."""
    if aval.category == OPAQUE:
        return aval
    dtype = canonical(aval.dtype)
    return aval if dtype == aval.dtype else aval.with_dtype(dtype)


@border
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the shapes and dtypes of `fun(*args, **kwargs)`, without computing anything.

    Arguments are arrays, ShapeDtypeStructs or other objects with a shape and a dtype; the result is
    a tree of ShapeDtypeStructs.  `fun` may pass ShapeDtypeStructs to jitted functions, and return
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
    """Stage `fun` for arguments with known shapes only."""
    return trace(fun, shapes_only(args), shapes_only(kwargs), "eval_shape", kept(fun))


def typeof(x: Any) -> Aval:
    """Return the type of an array, a traced value or a Python number: shape, dtype and weakness.

    >>> import plait
    >>> plait.typeof(plait.numpy.ones((2, 3))), plait.typeof(1.0)
    (f32[2,3], f32[]*)
    """
    return as_value(x).aval
