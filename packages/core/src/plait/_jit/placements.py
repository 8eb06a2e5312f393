"""The placements of a jitted function's arguments and results, as its user gave them.

Invariant: placements are given as tree prefixes; a leaf has one placement, or None, which leaves
the choice open.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .._base.argument_names import Namer, names_of_arguments
from .._base.errors import TreeMismatch
from .._base.wrapping import wraps
from .._core.array import Array, as_value, is_tracer
from .._core.interpreter import Value
from .._core.topologies import topology_of
from .._types.avals import Placement
from ..tree import TreeDef, each_leaf, flatten, spread
from .jittable import jittables
from .shapes import Shape


class Destination(Placement, Protocol):
    """A placement from the user; plait-sharding defines such classes."""

    def accept(self, x: Any) -> Array:
        """Move an argument there."""
        ...

    def constrain(self, x: Any) -> Any:
        """Return a result constrained to lie there."""
        ...


def destinations(
    args: tuple[Any, ...], placements: object, f: Callable[..., Any]
) -> list[Destination | None]:
    """Return the destination of each leaf of the arguments of `f`, from placements that are a tree
    prefix of them; None leaves the choice open."""
    return _each(placements, args, "in_shardings", names_of_arguments(f))


def expect_placements(placements: object, what: str) -> None:
    """Raise TreeMismatch unless all leaves are placements or None."""
    for p in flatten(placements, _is_placement)[0]:
        if not _is_placement(p):
            raise TreeMismatch(
                f"{what} places arrays, and {p!r} is not a placement",
                fix=f"give {_ENTRY}, or a tree prefix of them",
            )


def _each(
    placements: object, tree: object, what: str, named: Namer | None = None
) -> list[Destination | None]:
    """Return the destination of each leaf of a tree, from placements that are a prefix of it."""
    return [_settled(p) for p in spread(placements, tree, what, _is_placement, _ENTRY, named)]


def bring(
    args: tuple[Any, ...], there: Sequence[Destination | None], f: Callable[..., Any]
) -> tuple[Any, ...]:
    """Return the arguments of `f`, moved to the destinations of their leaves."""
    leaves, tree = flatten(args)
    brought = (x if p is None else _brought(x, p) for x, p in zip(leaves, there))
    return tree.unflatten(each_leaf(brought, args, _of_in_shardings(f)))


def _of_in_shardings(f: Callable[..., Any]) -> Namer:
    named = names_of_arguments(f)
    return lambda path: f"{named(path)}, by in_shardings"


def without_chosen(
    args: tuple[Any, ...], there: Sequence[Destination | None]
) -> tuple[tuple[Any, ...], list[Destination | None]]:
    """Return the arguments with some leaves replaced by shapes, and the other destinations.

    Leaves that the compiler places become shapes, and so do leaves on devices of a topology, to
    which nothing can be moved.
    """
    leaves, tree = flatten(args)
    rest = [None if is_chosen_by_compiler(p) or _is_elsewhere(p) else p for p in there]
    return tree.unflatten([_to_be_placed(x, p) for x, p in zip(leaves, there)]), rest


def _to_be_placed(x: Any, placement: Any) -> Any:
    traced = is_tracer(x) and x.__class__ is not Shape  # the compiler places traced values anyway
    if _is_elsewhere(placement):
        aval = as_value(x).aval
        placement.check(aval)
        return placement.constrain(x) if traced else Shape(aval, placement)
    if traced or not is_chosen_by_compiler(placement):
        return x
    return Shape(as_value(x).aval, placement)


def _is_elsewhere(placement: object) -> bool:
    """Return whether a destination is on devices of a topology."""
    return topology_of(getattr(placement, "place", None)) is not None


def is_chosen_by_compiler(placement: object) -> bool:
    """Return whether the compiler chooses a destination."""
    return getattr(placement, "is_chosen", False)


def _settled(placement: Any) -> Any:
    """Return a placement that depends on the mesh in context as it is in this context."""
    return placement.here() if hasattr(placement, "here") else placement


def _brought(x: Any, placement: Destination) -> Any:
    return Shape(x.aval, placement) if x.__class__ is Shape else placement.accept(x)


def placed(f: Callable[..., Any], placements: object) -> Callable[..., Any]:
    """Return `f` with its results constrained to the placements (a tree prefix of them)."""

    @wraps(f)
    def constrained(*args: Value, **kwargs: object) -> Any:
        out = jittables.opened(f(*args, **kwargs))
        leaves, tree = flatten(out)
        there = _each(placements, out, "out_shardings")
        made = (x if p is None else p.constrain(x) for x, p in zip(leaves, there))
        return tree.unflatten(each_leaf(made, out, "out_shardings: the result"))

    setattr(constrained, _PLACED, placements)
    return constrained


_PLACED = "__plait_placed__"
"""The attribute with the placements of a function that `placed` made."""


def places_of_results(f: Callable[..., Any], tree: TreeDef, avals: Sequence[Any]) -> Sequence[Any]:
    """Return the placements of the results of `f`, which have this structure and these types; none
    if `placed` did not make `f`."""
    placements = getattr(f, _PLACED, None)
    if placements is None:
        return ()
    there = _each(placements, tree.unflatten(avals), "out_shardings")
    return [None if is_chosen_by_compiler(p) else p for p in there]


_ENTRY = "a sharding (plait.NamedSharding, for instance), a PartitionSpec or None"


def _is_placement(x: object) -> bool:
    return x is None or hasattr(x, "constrain")
