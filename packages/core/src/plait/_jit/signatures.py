"""The types of a call: its arguments become a flat list of values, and what a trace depends on.

Invariant: everything about the arguments that a trace may depend on is in their signature: the
structure, the types of the leaves, and which parts are one object (`same_parts`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from .._base.argument_names import names_in_call
from .._base.config import config
from .._base.errors import DeletedArrayError, NotAnArrayError, PlaitError
from .._core.array import Array
from .._core.axis_names import bound_axes
from .._core.interpreter import Value
from .._core.same_parts import Pattern, alike, parts_that_may_be_one
from .._core.staging import admitted, leaf_name
from .._types.avals import Aval, Key
from .._xla.operands import as_argument, as_donated
from ..tree import TreeDef, exact_key, flatten
from .shapes import of_shape_only


class Signature(NamedTuple):
    """The flat arguments of a call, and their types.

    Attributes:
      tree: the structure of (args, kwargs).
      values: the leaves.
      avals: the types that the function is traced for.
      one: the parts that are the same object.
    """

    tree: TreeDef
    values: Sequence[Any]
    avals: tuple[Aval, ...]
    one: Pattern

    def trace_key(self) -> tuple[Any, ...]:
        """Return the cache key of a trace for these types, without surroundings.

        The last item stands for the surroundings; see `in_surroundings`.
        """
        axes = bound_axes()
        bound = tuple(axes.items()) if axes else None
        return exact_key(self.tree), self.avals, config.state, bound, self.one, None


def call_key(tree: TreeDef, values: Sequence[Array], keys: tuple[Key, ...]) -> tuple[Any, ...]:
    """Return the cache key of a compiled call, for arrays with these dispatch keys."""
    return exact_key(tree), keys, *alike(tree, values)


def in_surroundings(
    key: tuple[Any, ...], surroundings: tuple[tuple[Any, ...], ...] | None
) -> tuple[Any, ...]:
    """Return the cache key of a trace that depends on its surroundings."""
    return *key[:-1], surroundings


def abstracted(
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    does: str,
    avals: tuple[Aval, ...] | None = None,
    same: bool = True,
    f: object = None,
) -> Signature:
    """Return the signature of the arguments of a transformed function.

    Args:
      args, kwargs: the arguments.
      does: the transformation, for messages.
      avals: types of the flat arguments, where they differ from those of the arguments (rows).
      same: whether parts that are one object count as one.
      f: the function, for messages.

    Raises NotAnArrayError, naming the argument, if one is not an array.
    """
    values, tree = arguments(args, kwargs, does, f)
    if avals is None:
        avals = tuple([v.aval for v in values])
    one = alike(tree, values) if same else ()
    if one and any(avals[i] is not avals[j] for i, j in zip(parts_that_may_be_one(tree), one)):
        one = ()  # a row of an array is not the whole array
    return Signature(tree, values, avals, one)


def of_arrays(tree: TreeDef, values: Sequence[Array]) -> Signature:
    """Return the signature of arguments that are arrays."""
    return Signature(tree, values, tuple([x.aval for x in values]), alike(tree, values))


def concrete(
    leaves: Sequence[Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    donated: Collection[int],
    f: Any,
) -> list[Array]:
    """Return the leaves of a call's arguments as arrays; those of donated ones are its own.

    Raises NotAnArrayError, naming the argument, if one is not an array, and another error for an
    array that was deleted.
    """
    values: list[Array] = []
    for i, x in enumerate(leaves):
        if x.__class__ is not Array:
            made: Any = checked_argument(x, i, args, kwargs, "jit", f)
            if made.__class__ is not Array:  # arrays of common numbers are kept, not made anew
                made = as_donated(x) if i in donated else as_argument(x)
            x = made
        values.append(x)
    try:  # a deleted array is refused before anything is traced or compiled for it
        for x in values:
            x.buffer()
    except DeletedArrayError as e:
        gone = next(i for i, x in enumerate(values) if not hasattr(x, "_buf"))
        e.of(leaf_name((tuple(args), kwargs), gone, names_in_call(f)))
        raise
    return values


def arguments(
    args: Sequence[Any], kwargs: Mapping[str, Any], does: str, f: object = None
) -> tuple[list[Any], TreeDef]:
    """Return (values, tree) of the arguments of a transformed function.

    Raises TypeRule, naming the argument, if one is not an array; `does` names the transformation.
    """
    leaves, tree = flatten((args, kwargs))
    return [
        x if x.__class__ is Array else checked_argument(x, i, args, kwargs, does, f)
        for i, x in enumerate(leaves)
    ], tree


def checked_argument(
    x: object, i: int, args: Sequence[Any], kwargs: Mapping[str, Any], does: str, f: Any = None
) -> Value:
    """Return leaf `i` of the arguments as a value; raise NotAnArrayError, naming it, if it is not
    an array."""
    try:
        return admitted(x)
    except NotAnArrayError as e:
        shape = of_shape_only(x)
        if shape is not None:
            return shape
        e.of(f"{does}: {leaf_name((tuple(args), kwargs), i, names_in_call(f))}")
        e.fix = f"{e.fix}, or make the argument static"
        raise


def name_shared(
    e: PlaitError, args: Sequence[Any], kwargs: Mapping[str, Any], f: Callable[..., Any]
) -> None:
    """Name in an error the arguments of a call of `f` that are one array."""
    whole = tuple(args), kwargs
    leaves = flatten(whole)[0]
    shared = [i for i, x in enumerate(leaves) if sum(x is y for y in leaves) > 1]
    if shared:
        e.of(" and ".join([leaf_name(whole, i, names_in_call(f)) for i in shared]))
