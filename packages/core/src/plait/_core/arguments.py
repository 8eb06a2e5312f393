"""Calls of functions with custom rules: their arguments, and the trees of these and of results.

Invariant: every argument of a custom function has a position; what belongs to one call is kept in
its `Call`, never in the function.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import numpy as np

from .._base.argument_names import names_at, numbers_of
from .._base.errors import ArgumentError, UndefinedRule
from .._base.wrapping import copy_names, name_of
from ..tree import flatten
from .handles import Handle, handle_among
from .interpreter import Value
from .staging import admitted, admitted_leaves

P = ParamSpec("P")
R = TypeVar("R")


class Call:
    """One call of a custom function: its arguments, and the tree of its results after it ran.

    Attributes:
      handles: handles among the leaves of the arguments, by position, if they are kept apart: the
        function and its rules get them as if they closed over them.
    """

    user: Callable[..., Any]
    static: dict[int, Any]
    leaves: list[Any]
    avals: list[Any]

    def __init__(
        self,
        user: Callable[..., Any],
        static: dict[int, Any],
        args: tuple[Any, ...],
        apart: bool = False,
    ):
        self.user, self.static = user, static
        leaves, self.tree = flatten(args)
        self.leaves = admitted_leaves(leaves, args, lambda: names_at(user, self._positions(args)))
        self.handles: dict[int, Handle] = {}
        if apart and handle_among(self.leaves) is not None:
            self.handles = {i: x for i, x in enumerate(self.leaves) if isinstance(x, Handle)}
            self.leaves = [x for i, x in enumerate(self.leaves) if i not in self.handles]
        self.avals = [x.aval for x in self.leaves]
        self.out: Any = None

    def _positions(self, args: tuple) -> list[int]:
        """Return the positions of the arguments that are not static."""
        every = range(len(args) + len(self.static))
        return [i for i in every if i not in self.static]

    def all_leaves(self, xs: Sequence[Any]) -> list[Any]:
        """Return the leaves of the arguments, with handles in their places."""
        out = list(xs)
        for i in sorted(self.handles):
            out.insert(i, self.handles[i])
        return out

    def arguments(self, xs: Sequence[Any]) -> list[Any]:
        """Return all positional arguments, static ones in their places."""
        out = list(self.tree.unflatten(self.all_leaves(xs) if self.handles else xs))
        for i in sorted(self.static):
            out.insert(i, self.static[i])
        return out

    def results(self, out: object) -> list[Any]:
        """Return flat results, and remember their tree.

        The tree belongs to this call, since a function that branches on values may return another
        tree in another call.
        """
        outs, self.out = flatten(out)
        return [admitted(o) for o in outs]


class Function(Generic[P, R]):
    """Base of functions with custom rules: arguments by position, static ones apart."""

    __signature__: Any
    static: tuple[int, ...]

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] | int = (),
        nondiff_argnames: Sequence[str] | str = (),
    ):
        if not callable(fun):
            kind = type(self).__name__
            raise ArgumentError(f"{kind} needs a function, not {fun!r}", fix=f"write {kind}(f)")
        self.__dict__.update(getattr(fun, "__dict__", {}))
        copy_names(self, fun)  # type: ignore[arg-type]
        self.fun: Callable[..., Any] = fun
        try:
            self.signature: Any = inspect.signature(fun)
        except (TypeError, ValueError):
            self.signature = None
        self._needed: int | None = None
        """The fewest arguments of the function that its rule can be called with, if known."""
        if self.signature is not None:
            self.__signature__ = self.signature
        self.static = nums = numbers_of(nondiff_argnums)
        names = (
            (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
        )
        if nums or names:
            self.static += self._places(nums, names)
        self._takes_defaults = self.signature is not None and self._has_inexact_defaults()

    def _places(self, nums: tuple[int, ...], names: tuple[str, ...]) -> tuple[int, ...]:
        """Return the positions of named arguments; raise ArgumentError for names or numbers that
        the function does not have."""
        every = [] if self.signature is None else list(self.signature.parameters.values())
        places = [p.name for p in every if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if every and not any(p.kind is p.VAR_POSITIONAL for p in every):
            for n in nums:
                if not -len(places) <= n < len(places):
                    raise ArgumentError(
                        f"{self.name()} has a static argument {n}, and takes {len(places)}",
                        fix="number them from 0",
                    )
        for name in names:
            if name not in places:
                raise ArgumentError(
                    f"nondiff_argnames names {name!r}, which is not a positional argument of "
                    f"{self.name()}",
                    fix=f"its positional arguments are {', '.join(places) or 'none'}",
                )
        return tuple([places.index(name) for name in names])

    @property
    def nondiff_argnums(self) -> tuple[int, ...]:
        """The positions of the arguments that are not arrays, by number or by name."""
        return self.static

    if not TYPE_CHECKING:  # else every attribute would be known

        def __getattr__(self, name: str) -> Any:
            # The rules of a custom function inside are set on the outermost one, too.
            inner = self.__dict__.get("fun")
            if name.startswith("def") and isinstance(inner, Function):
                return getattr(inner, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __get__(self, instance: Any, owner: object) -> Any:
        return self if instance is None else functools.partial(self, instance)  # type: ignore[arg-type]

    def positional(self, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> tuple[Any, ...]:
        """Return all arguments by position; raise ArgumentError for keyword-only ones.

        Defaults are among them where some are given by name, a static one is not given, or the
        rule takes them.
        """
        if self.signature is None:
            if not kwargs:
                return args
            raise ArgumentError(
                f"{self.name()} takes no keyword arguments, since it has no signature",
                fix="pass them by position",
            )
        try:
            given = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(
                f"{self.name()} was called with other arguments than it takes: {error}",
                fix=f"its signature is {self.name()}{self.signature}",
            ) from None
        count = len(given.args)
        if kwargs or max(self.static, default=-1) >= count or self._rule_takes_more(count):
            given.apply_defaults()
        left = {k: v for k, v in given.kwargs.items() if k in kwargs}
        if left:
            raise ArgumentError(
                f"the keyword arguments ({', '.join(left)}) of {self.name()} have no position in "
                "its signature",
                fix="pass them by position, or close over them",
            )
        return given.args

    def _rule_takes_more(self, count: int) -> bool:
        """Return whether the rule takes more arguments than the `count` that are given.

        If its signature does not tell, it takes defaults that could be differentiated: integers are
        options as a rule, and `f=f` binds a function.
        """
        return self._takes_defaults if self._needed is None else count < self._needed

    def _has_inexact_defaults(self) -> bool:
        """Return whether all defaults of arguments that are not static could be differentiated."""
        every = [*self.signature.parameters.values()]
        static = {i % len(every) for i in self.static} if every else ()
        defaults = [
            p.default
            for i, p in enumerate(every)
            if i not in static and p.default is not p.empty and p.kind is not p.KEYWORD_ONLY
        ]
        return all(isinstance(v, _INEXACT) for v in flatten(defaults)[0])

    def name(self) -> str:
        """Return the function's own name."""
        return name_of(self.fun, "f")

    def call(self, args: tuple[Any, ...], kwargs: dict[Any, Any], apart: bool = False) -> Call:
        """Return a call with these arguments, handles `apart` or not; raise ArgumentError if it
        lacks a static one."""
        args = self.positional(args, kwargs)
        n = len(args)
        fixed: dict[int, Any] = {}
        for i in self.static:
            if not -n <= i < n:
                raise ArgumentError(
                    f"{self.name()} has a static argument {i}, and was called with {n} arguments",
                    fix="name arguments that every call has",
                )
            fixed[i % n] = args[i]
        fixed = dict(sorted(fixed.items()))
        return Call(
            self.fun, fixed, tuple([a for i, a in enumerate(args) if i not in fixed]), apart
        )

    def expect_rule(self, how: str, rule: object, takes: str, more: int, own: bool = False) -> None:
        """Raise ArgumentError unless a rule, given by the method `how`, can be called as needed.

        It must take `more` arguments after the static ones; with `own`, `more` arguments before the
        function's own ones.
        """
        if not callable(rule):
            raise ArgumentError(
                f"{how} of {self.name()} needs a function, not {rule!r}",
                fix=f"write a function of {takes}",
            )
        counts = [more + n for n in (self._counts() if own else [len(self.static)])]
        try:
            # The wrapper is called, and its arguments may differ from those of the wrapped
            # function.
            signature = inspect.signature(rule, follow_wrapped=False) if counts else None
        except (TypeError, ValueError):
            return
        taken = [] if signature is None else [n for n in counts if _takes(signature, n)]
        if own and taken:
            self._needed = min(taken) - more
        if signature is not None and not taken:
            name = name_of(rule, "rule")
            raise ArgumentError(
                f"{how} of {self.name()} was given {name}{signature}, that cannot be called with "
                f"{' or '.join(map(str, counts))} arguments",
                fix=f"write a function of {takes}",
            )

    def _counts(self) -> list[int]:
        """Return the numbers of positional arguments that the function takes; none if unknown."""
        every = [] if self.signature is None else list(self.signature.parameters.values())
        if any(p.kind is p.VAR_POSITIONAL for p in every):
            return []
        own = [p for p in every if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        needed = sum(p.default is p.empty for p in own)
        return list(range(needed, len(own) + 1)) if every else []

    def missing(self, what: str, kind: str, how: str) -> UndefinedRule:
        """Return the error for a function that has no rule yet: an AttributeError, too."""
        return UndefinedRule(
            f"the {kind} function {self.name()} has no {what} rule",
            fix=f"give it one before it is called: {self.name()}.{how}(...)",
        )


_INEXACT = (float, complex, np.ndarray, np.inexact, Value)


def _takes(signature: inspect.Signature, count: int) -> bool:
    """Return whether a function can be called with so many positional arguments."""
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True
