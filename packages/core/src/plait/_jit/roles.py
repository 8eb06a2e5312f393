"""The roles of a jitted function's arguments: static ones, donated ones, and their placements.

Invariant: positions and names of a role agree by the signature; an argument has at most one role.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from .._base.errors import ArgumentError, OperandTypeError, TreeMismatch
from .._base.freezing import freeze
from .._base.source import warn
from .._base.wrapping import wraps
from .._core.array import Array, as_value, is_tracer
from .._core.ir import Program
from .._core.same_parts import parts_that_may_be_one
from .._core.topologies import topology_of
from .._types.avals import OPAQUE, Aval, Placement
from ..tree import each_leaf, flatten, spread
from .jittable import jittables
from .tracing import Shape, Traced


class Role(NamedTuple):
    """The arguments that have a role, by position and by name.

    `beyond` is the last position without a name, for a function with `*args`; -1 if there is
    none.
    """

    nums: frozenset[int]
    names: frozenset[str]
    beyond: int = -1

    def __bool__(self) -> bool:
        return bool(self.nums or self.names)


NO_ROLE = Role(frozenset(), frozenset())


def role(
    f: Callable[..., Any],
    nums: int | Sequence[int] | None,
    names: str | Sequence[str] | None,
    what: str,
) -> Role:
    """Return the positions and names of a role; if one of them is None, it is derived from the
    other by the signature.

    Raises ArgumentError for an argument that `f` does not have; `what` names the role.
    """
    if nums is None and names is None:  # the usual case
        return NO_ROLE
    found, given = list(_numbers(nums)), set(_names(names))
    try:
        parameters = list(inspect.signature(f).parameters.values()) if found or given else []
    except (TypeError, ValueError):
        parameters = []
    places = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    open_ended = not parameters or any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for i, n in enumerate(found):
        if not open_ended and not -len(places) <= n < len(places):
            raise ArgumentError(
                f"{what}_argnums {n} is out of range: the function takes {len(places)} positional "
                "arguments",
                fix=f"number them from 0 to {len(places) - 1}",
            )
        found[i] = n + len(places) if n < 0 else n
    known = {p.name for p in parameters}
    takes_any = not parameters or any(p.kind is p.VAR_KEYWORD for p in parameters)
    for name in given:
        if not takes_any and name not in known:
            raise ArgumentError(
                f"{what}_argnames {name!r} is no argument of the function",
                fix=f"its arguments are {', '.join(known)}",
            )
    derive = nums is None or names is None
    by_number = {places[n] for n in found if n < len(places)} if derive else set[str]()
    by_name = {places.index(n) for n in given if n in places} if derive else set[int]()
    beyond = max([n for n in found if n >= len(places)], default=-1)
    return Role(frozenset({*found, *by_name}), frozenset(given | by_number), beyond)


def check_count(name: str, n: int, static: Role, donate: Role) -> None:
    """Raise ArgumentError if a call with `n` positional arguments leaves out one that has a role
    and cannot be given by name."""
    if max(static.beyond, donate.beyond) >= n:
        raise ArgumentError(
            f"{n} positional arguments were given to {name}, of which some beyond are static "
            f"({_said(static)}) or donated ({_said(donate)})",
            fix="give all of these arguments, by position",
        )


def _said(role: Role) -> str:
    return ", ".join(map(str, sorted(role.nums))) or "()"


def _numbers(x: int | Sequence[int] | None) -> tuple[int, ...]:
    return () if x is None else (x,) if isinstance(x, int) else tuple(x)


def _names(x: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if x is None else (x,) if isinstance(x, str) else tuple(x)


class SplitCall(NamedTuple):
    """A call, divided by the roles of its arguments: the `fixed` ones are static."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    fixed: dict[int, Any]
    fixed_names: dict[str, Any]

    def key(self, n: int, name: str) -> tuple[Hashable, ...]:
        """Return a key of the static values of a call with `n` positional arguments.

        Raises OperandTypeError if one is not hashable.
        """
        fixed, fixed_names = sorted(self.fixed.items()), sorted(self.fixed_names.items())
        try:
            return (
                n,
                tuple([(i, freeze(v)) for i, v in fixed]),
                tuple([(k, freeze(v)) for k, v in fixed_names]),
            )
        except TypeError:
            bad = [v for _, v in (*fixed, *fixed_names) if not _hashable(v)]
            raise OperandTypeError(
                f"static arguments of {name} must be hashable, and {bad[0]!r} of type "
                f"{type(bad[0]).__name__} is not",
                fix="pass a tuple instead of a list, or do not make the argument static",
            ) from None

    def bind(self, f: Callable[..., Any], n: int) -> Callable[..., Any]:
        """Return `f` as a function of the arguments that are not static."""
        if not self.fixed and not self.fixed_names:
            return f
        fixed, fixed_names = self.fixed, self.fixed_names

        @wraps(f)
        def rest(*dynamic: Any, **named: Any) -> Any:
            values = iter(dynamic)
            full = [fixed[i] if i in fixed else next(values) for i in range(n)]
            return f(*full, **named, **fixed_names)

        rest.__plait_static__ = fixed, fixed_names  # type: ignore[attr-defined]
        return rest


def without_static(args: tuple[Any, ...], kwargs: dict[str, Any], static: Role) -> SplitCall:
    """Divide a call into its static arguments and the others."""
    return SplitCall(
        tuple([a for i, a in enumerate(args) if i not in static.nums]),
        {k: v for k, v in kwargs.items() if k not in static.names},
        {i: args[i] for i in static.nums if i < len(args)},
        {k: kwargs[k] for k in kwargs if k in static.names},
    )


def _hashable(x: object) -> bool:
    try:
        freeze(x)
    except TypeError:
        return False
    return True


def donated_leaves(
    args: tuple[Any, ...], kwargs: dict[str, Any], static: Role, donate: Role
) -> tuple[int, ...]:
    """Return the numbers of the donated leaves among the flat arguments that are not static."""
    out: list[int] = []
    at = 0
    for donated, x in [
        *((i in donate.nums, a) for i, a in enumerate(args) if i not in static.nums),
        *((k in donate.names, kwargs[k]) for k in sorted(kwargs) if k not in static.names),
    ]:
        kind = flatten(jittables.opened(x))[1]
        # Parts that other values may share are not donated.
        shared = parts_that_may_be_one(kind) if donated else ()
        n = kind.num_leaves
        out += [at + k for k in range(n) if k not in shared] if donated else ()
        at += n
    return tuple(out)


def warn_of_unusable(program: Program, donated: Sequence[int]) -> None:
    """Warn, at the user's line, of donated arguments whose memory no result can take.

    They are deleted all the same; for opaque elements (keys) that may be the purpose.
    """
    left = Counter([(a.shape, a.dtype) for a in program.out_avals])
    unusable: list[Aval] = []
    for i in donated:
        aval = program.in_avals[i]
        if left[aval.shape, aval.dtype] > 0:
            left[aval.shape, aval.dtype] -= 1
        elif aval.category != OPAQUE:
            unusable.append(aval)
    if unusable:
        warn(
            f"No result can use the memory of what was donated: {', '.join(map(repr, unusable))}\n"
            "  a result of the same shape and dtype is needed; donate no more than there are"
        )


# ---- placements ----------------------------------------------------------------------------


class Destination(Placement, Protocol):
    """A placement from the user; plait-sharding defines such classes."""

    def accept(self, x: Any) -> Array:
        """Move an argument there."""
        ...

    def constrain(self, x: Any) -> Any:
        """Return a result constrained to lie there."""
        ...


def destinations(args: tuple[Any, ...], placements: object) -> list[Destination | None]:
    """Return the destination of each leaf of the arguments, from placements that are a tree prefix
    of them; None leaves the choice open."""
    return _each(placements, args, "in_shardings")


def _each(placements: object, tree: Any, what: str) -> list[Destination | None]:
    """Return the destination of each leaf of a tree, from placements that are a prefix of it."""
    for p in flatten(placements, _is_placement)[0]:
        if not _is_placement(p):
            raise TreeMismatch(
                f"{what} leaf specifications are expected to be PartitionSpec instances or None, "
                f"but got {p}",
                fix=f"give {_ENTRY}, or a tree prefix of them",
            )
    return [_settled(p) for p in spread(placements, tree, what, _is_placement, _ENTRY)]


def bring(args: tuple[Any, ...], there: Sequence[Destination | None]) -> tuple[Any, ...]:
    """Return the arguments, moved to the destinations of their leaves."""
    leaves, tree = flatten(args)
    brought = (x if p is None else _brought(x, p) for x, p in zip(leaves, there))
    return tree.unflatten(each_leaf(brought, args, "in_shardings: args"))


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


def _is_elsewhere(placement: Any) -> bool:
    """Return whether a destination is on devices of a topology."""
    return topology_of(getattr(placement, "place", None)) is not None


def is_chosen_by_compiler(placement: Any) -> bool:
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
    def constrained(*args: Any, **kwargs: Any) -> Any:
        out = jittables.opened(f(*args, **kwargs))
        leaves, tree = flatten(out)
        there = _each(placements, out, "out_shardings")
        made = (x if p is None else p.constrain(x) for x, p in zip(leaves, there))
        return tree.unflatten(each_leaf(made, out, "out_shardings: the result"))

    setattr(constrained, _PLACED, placements)
    return constrained


_PLACED = "__plait_placed__"
"""The attribute with the placements of a function that `placed` made."""


def with_places(f: Callable[..., Any], traced: Traced) -> Traced:
    """Return a trace of `f` with the placements of its results, if `placed` made it."""
    placements = getattr(f, _PLACED, None)
    if placements is None:
        return traced
    like = traced.tree.unflatten(traced.program.out_avals)
    there = _each(placements, like, "out_shardings")
    return traced._replace(places=[None if is_chosen_by_compiler(p) else p for p in there])


_ENTRY = "a sharding (plait.NamedSharding, for instance), a PartitionSpec or None"


def _is_placement(x: object) -> bool:
    return x is None or hasattr(x, "constrain")
