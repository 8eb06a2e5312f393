"""Calls of functions with custom rules: their arguments, and the trees of these and of results.

Invariant: every argument of a custom function has a position; what belongs to one call is kept in
its `Call`, never in the function.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .errors import TypeRule, UndefinedRule
from .tree import flatten
from .values import as_value


class Call:
    """One call of a custom function: its arguments, and its tree of results once known."""

    def __init__(self, user: Callable, static: dict[int, Any], args: tuple):
        self.user, self.static = user, static
        leaves, self.tree = flatten(args)
        self.leaves = [as_value(x) for x in leaves]
        self.avals = [x.aval for x in self.leaves]
        self.out: Any = None

    def arguments(self, xs: Sequence[Any]) -> list:
        """All positional arguments, static ones in their places."""
        out = list(self.tree.unflatten(xs))
        for i in sorted(self.static):
            out.insert(i, self.static[i])
        return out

    def results(self, out: Any) -> list:
        """Flat results; their tree is that of the call."""
        outs, self.out = flatten(out)
        return [as_value(o) for o in outs]


class Function:
    """What functions with custom rules share: arguments by position, static ones apart."""

    def __init__(self, fun: Callable, static: Sequence[int] | int = ()):
        functools.update_wrapper(self, fun)  # type: ignore[arg-type]
        self.fun = fun
        self.static = (static,) if isinstance(static, int) else tuple(static)
        try:
            self.signature: Any = inspect.signature(fun)
        except (TypeError, ValueError):
            self.signature = None

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else functools.partial(self, instance)  # type: ignore[arg-type]

    def positional(self, args: tuple, kwargs: dict) -> tuple:
        """All arguments by position; raises TypeError for keyword-only ones."""
        if not kwargs and self.signature is None:
            return args
        if self.signature is None:
            raise TypeRule(
                f"{self.name()} takes no keyword arguments, since it has no signature",
                fix="pass them by position",
            )
        given = self.signature.bind(*args, **kwargs)
        given.apply_defaults() if kwargs else None
        left = {k: v for k, v in given.kwargs.items() if k in kwargs}
        if left:
            raise TypeRule(
                f"keyword arguments ({', '.join(left)}) could not be resolved to positions of "
                f"{self.name()}",
                fix="pass them by position, or close over them",
            )
        return given.args

    def name(self) -> str:
        """The function's own name."""
        return getattr(self.fun, "__name__", "f")

    def call(self, args: tuple, kwargs: dict) -> Call:
        """A call with these arguments."""
        args = self.positional(args, kwargs)
        n = len(args)
        fixed: dict[int, Any] = {}
        for i in self.static:
            if not -n <= i < n:
                raise TypeRule(
                    f"{self.name()} has a static argument {i}, and was called with {n} arguments",
                    fix="name arguments that every call has",
                )
            fixed[i % n] = args[i]
        return Call(self.fun, fixed, tuple([a for i, a in enumerate(args) if i not in fixed]))

    def missing(self, what: str, kind: str, how: str) -> UndefinedRule:
        """The error for a function that has no rule yet: AttributeError."""
        return UndefinedRule(
            f"No {what} defined for {kind} function {self.name()} using {how}.",
            fix=f"Did you forget to use {how}?",
        )
