"""Tracing: a function of trees of arrays becomes a Program, for types of its arguments.

Invariant: the cache key of a trace holds the signature of the arguments, the settings and the named
axes.  It holds the surroundings if the function depends on them, and nothing else.  A trace that
captured values of other interpreters is not kept.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .. import events
from .._base.config import config
from .._base.errors import ArgumentError, TypeRule
from .._base.lazy import later
from .._base.surroundings import around, ask, last_asked
from .._base.tracebacks import border
from .._base.wrapping import is_offered, name_of
from .._core.array import not_an_array
from .._core.handles import Handle, is_lasting
from .._core.interpreter import Value, current
from .._core.ir import Program
from .._core.same_parts import as_one
from .._core.staging import Stage, admitted, stage
from .._types.avals import Aval
from ..tree import TreeDef, flatten, key_paths
from .caches import kept, make_room
from .jittable import jittables
from .shapes import ShapeDtypeStruct, of_shape_only, shapes_only
from .signatures import Signature, abstracted, in_surroundings


class Traced(NamedTuple):
    """A staged function.

    Attributes:
      program: its inputs are the captured values, then the flat arguments.
      captured: values of other interpreters that the function closed over.
      tree: the structure of its results.
      values: the flat arguments.
      asked: whether the function depends on its surroundings (`plait._base.surroundings`).
      places: the placements of results that jit was given: a placement or None for each.
      parameters: the names of the positional arguments, for messages of compiled functions.
    """

    program: Program
    captured: list[Any]
    tree: TreeDef
    values: Sequence[Any]
    asked: bool = False
    places: Sequence[Any] = ()
    parameters: tuple[str, ...] = ()

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
                    sharding=a.division if p is None else p,
                )
                for a, p in zip(avals, places, strict=True)
            ]
        )


_OPENING = ("jit", "eval_shape", "make_program")
"""Transformations that take values of jittable classes apart."""


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
        raise ArgumentError(f"{does}: {f!r} is not a function", fix="pass what can be called")
    if does in _OPENING:
        args, kwargs = jittables.opened((args, kwargs))
    return trace_signature(f, abstracted(args, kwargs, does, avals, same, f), does, keep, on)


def trace_signature(
    f: Callable[..., Any],
    signature: Signature,
    does: str = "jit",
    keep: dict[tuple[Any, ...], Any] | None = None,
    on: Stage | None = None,
) -> Traced:
    """Stage `f` on a signature of its arguments, or find the trace in the table `keep`."""
    values = signature.values
    key = apart = signature.trace_key()
    if keep is not None:
        found: Any = keep.get(key)
        if found is not None:
            return Traced(found[0], found[1], found[2], values)
        apart = in_surroundings(key, around())
        found = keep.get(apart)
        if found is not None:
            ask()  # a caller that caches a result of this trace must see that it depends
            return Traced(found[0], found[1], found[2], values, True)
        if config.explain_cache_misses:
            later("_jit.misses").explain(does, f, in_surroundings(key, around() or None), keep)
    flat, trees = _flattened(f, signature, does)
    events.happened("trace", f)
    s = on or Stage(current(), does, f)
    before = last_asked()
    program, captured = stage(flat, signature.avals, name_of(f, "f"), on=s)
    asked = last_asked() is not before
    (tree,) = trees
    # Captured values belong to the interpreters around this call.  Another call with equal types
    # may capture others, so such a trace serves one call only.  A trace of shapes without values
    # may have more inputs than arguments, and serves its types only.
    whole = len(program.inputs) == len(captured) + len(signature.avals)
    if keep is not None and whole and all(map(is_lasting, captured)):
        make_room(keep)
        keep[apart if asked else key] = program, captured, tree
    return Traced(program, captured, tree, values, asked)


def _flattened(
    f: Callable[..., Any], signature: Signature, does: str
) -> tuple[Callable[..., list[Any]], list[TreeDef]]:
    """Return `f` as a function of flat values, and a list that gets the structure of its results
    when it is called.

    Tracing calls it from `trace_signature` itself: each frame below an operation costs time.
    """
    tree, one = signature.tree, signature.one
    trees: list[TreeDef] = []

    def flat(*xs: Value) -> list[Any]:
        a, k = tree.unflatten(as_one(tree, one, xs))
        try:
            out = f(*a, **k)
        except TypeError as e:
            mistake = later("_jit.call_mistakes").mistaken_call(e, f, does)
            if mistake is None:
                raise
            raise mistake from None
        if does in _OPENING:
            out = jittables.opened(out)
        outs, out_tree = flatten(out)
        trees.append(out_tree)
        return [result(o, i, out, f) for i, o in enumerate(outs)]

    return flat, trees


def result(x: object, i: int, out: object, f: Callable[..., Any]) -> Value:
    """Return leaf `i` of the results `out` of a transformed function as a value; raise TypeRule,
    naming leaf and function, if it is not an array."""
    try:
        value = admitted(x)
    except TypeRule:
        shape = of_shape_only(x)
        if shape is not None:
            return shape
        name = name_of(f, "the function")
        path = key_paths(out)[i]
        raise not_an_array(x, f"the result{path} of {name},") from None
    if isinstance(value, Handle):
        where = f"the result{key_paths(out)[i]} of {getattr(f, '__name__', 'the function')}"
        raise value.refused(where)
    return value


@border
def eval_shape(fun: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    """Return the shapes and dtypes of `fun(*args, **kwargs)`, without computing anything.

    Arguments are arrays, ShapeDtypeStructs or other objects with a shape and a dtype; the result is
    a tree of ShapeDtypeStructs.  `fun` may pass ShapeDtypeStructs to jitted functions, and return
    them.

    Raises ArgumentError if `fun` is not a function, and the errors of tracing it.

    >>> import plait
    >>> plait.eval_shape(lambda x: x @ x.T, plait.ShapeDtypeStruct((3, 2), "float32"))
    ShapeDtypeStruct(shape=(3, 3), dtype=float32)
    """
    if is_offered(fun, "eval_shape"):
        return fun.eval_shape(*args, **kwargs)  # type: ignore[attr-defined]
    return traced_shapes(fun, args, kwargs).shapes()


def traced_shapes(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Traced:
    """Stage `fun` for arguments with known shapes only."""
    return trace(fun, shapes_only(args), shapes_only(kwargs), "eval_shape", kept(fun))
