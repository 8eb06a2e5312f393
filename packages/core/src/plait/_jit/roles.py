"""The roles of a jitted function's arguments: static ones, donated ones, and their placements.

Invariant: positions and names of a role agree by the signature; an argument has at most one role.
"""

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from .._base.argument_names import argument_path, numbers_of
from .._base.errors import ArgumentError, OperandTypeError
from .._base.freezing import freeze
from .._base.wrapping import name_of, wraps
from .._core.interpreter import Value
from .._core.same_parts import parts_that_may_be_one
from ..tree import flatten
from .jittable import jittables


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
    found = [n for n in found if n >= 0]  # from the end of arguments whose number is open
    known = {p.name for p in parameters}
    takes_any = not parameters or any(p.kind is p.VAR_KEYWORD for p in parameters)
    rest = {p.name for p in parameters if p.kind is p.VAR_POSITIONAL}
    for name in given:
        if name in rest or (not takes_any and name not in known):
            raise ArgumentError(
                f"{what}_argnames {name!r} is not an argument of the function",
                fix=f"its arguments are {', '.join(known)}",
            )
        if any(p.name == name and p.kind is p.POSITIONAL_ONLY for p in parameters):
            raise ArgumentError(
                f"{what}_argnames {name!r} is a positional-only argument, which has no name in a "
                "call",
                fix=f"write {what}_argnums={places.index(name)}",
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
    return () if x is None else numbers_of(x)


def _names(x: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if x is None else (x,) if isinstance(x, str) else tuple(x)


class SplitCall(NamedTuple):
    """A call, divided by the roles of its arguments: the `fixed` ones are static."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    fixed: dict[int, Any]
    fixed_names: dict[str, Any]

    def key(self, n: int) -> tuple[Hashable, ...]:
        """Return a key of the static values of a call with `n` positional arguments.

        Raises TypeError if one is not hashable.
        """
        fixed, fixed_names = sorted(self.fixed.items()), sorted(self.fixed_names.items())
        return (
            n,
            tuple([(i, freeze(v)) for i, v in fixed]),
            tuple([(k, freeze(v)) for k, v in fixed_names]),
        )

    def refused(self, f: Callable[..., Any]) -> OperandTypeError:
        """Return the error for a call of `f` with a static value that is not hashable."""
        paths = [(f"[0][{i}]", v) for i, v in sorted(self.fixed.items())]
        paths += [(f"[1]['{k}']", v) for k, v in sorted(self.fixed_names.items())]
        path, bad = next((p, v) for p, v in paths if not _hashable(v))
        return OperandTypeError(
            f"static arguments of {name_of(f, 'f')} must be hashable, and `"
            f"{argument_path(path, f)}`, {bad!r} of type {type(bad).__name__}, is not",
            fix=_STATIC_INSTEAD.get(type(bad).__name__, _NOT_STATIC),
        )

    def bind(self, f: Callable[..., Any], n: int) -> Callable[..., Any]:
        """Return `f` as a function of the arguments that are not static."""
        if not self.fixed and not self.fixed_names:
            return f
        fixed, fixed_names = self.fixed, self.fixed_names

        @wraps(f)
        def rest(*dynamic: object, **named: Value) -> Any:
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


def not_compared(call: SplitCall, f: Callable[..., Any], e: Exception) -> OperandTypeError:
    """Return the error for a call of `f` with static values whose comparison raised `e`."""
    values = [*call.fixed.values(), *call.fixed_names.values()]
    kinds = ", ".join(sorted({type(v).__name__ for v in values}))
    return OperandTypeError(
        f"static arguments of {name_of(f, 'f')}, of {kinds}, could not be compared with those of "
        f"an earlier call: {type(e).__name__}: {e}",
        fix="let __eq__ of their classes return a bool, or do not make them static",
    )


_NOT_STATIC = "do not make the argument static, or give its class __hash__ and __eq__"
_STATIC_INSTEAD = {
    "list": "pass a tuple instead of a list, or do not make the argument static",
    "dict": "pass tuple(d.items()), or a frozen dataclass, or do not make the argument static",
    "set": "pass a frozenset instead of a set, or do not make the argument static",
    "Array": "do not make the argument static: arrays are what a jitted function takes",
    "ndarray": "do not make the argument static: arrays are what a jitted function takes",
}


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


class DividedCall(NamedTuple):
    """A call whose arguments are divided by all roles of a jitted function.

    Attributes:
      call: the call, with its static arguments set apart.
      positional: the number of its positional arguments.
      donated: the numbers of its donated leaves, among those that are not static.
      key: a key of the static values and of `donated`.
    """

    call: SplitCall
    positional: int
    donated: tuple[int, ...]
    key: tuple[Hashable, ...]

    def bind(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Return `f` as a function of the arguments that are not static."""
        return self.call.bind(f, self.positional)


class Roles(NamedTuple):
    """All roles of a jitted function: static arguments, donated ones, and placements.

    A function without any has None instead.  `in_shardings` are placements of the arguments that
    are not static, or a tree prefix of them.  `by_position` is True if they do not reach arguments
    that a call gives by name.
    """

    static: Role
    donate: Role
    in_shardings: Any
    by_position: bool

    def divide(
        self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> DividedCall:
        """Divide a call of `f`; raise ArgumentError or OperandTypeError if that is impossible."""
        n, static, donate = len(args), self.static, self.donate
        check_count(name_of(f, "f"), n, static, donate)
        call = without_static(args, kwargs, static)
        if self.by_position and call.kwargs:
            raise ArgumentError(
                f"{name_of(f, 'f')} has in_shardings, which are for arguments by position, and was "
                f"given {', '.join([f'`{k}`' for k in call.kwargs])} by name",
                fix="give the arguments by position, or place them before by plait.device_put",
            )
        donated = donated_leaves(args, kwargs, static, donate) if donate else ()
        try:
            key = call.key(n)
        except TypeError:
            raise call.refused(f) from None
        return DividedCall(call, n, donated, (*key, donated))


def roles_of(
    static: Role, donate: Role, in_shardings: object, by_position: bool = True
) -> Roles | None:
    """Return these roles together, or None if no argument has one.

    Raises ArgumentError if an argument has two of them.
    """
    if static is NO_ROLE and donate is NO_ROLE and in_shardings is None:  # the usual case
        return None
    if not (static or donate or in_shardings is not None):
        return None
    both = sorted(static.nums & donate.nums) or sorted(static.names & donate.names)
    if both:
        raise ArgumentError(
            f"no argument can be both static and donated: {both}",
            fix="an argument is static, or donated, or neither",
        )
    return Roles(static, donate, in_shardings, by_position and in_shardings is not None)
