"""Functions of flat arguments, as JAX's inner tools pass them on (`jax.extend.linear_util`).

Invariant: a flattened function keeps the tree of its last result, and nothing else.
"""

from collections.abc import Callable
from typing import Any

from plait import tree_util

__all__ = [
    "StoreException", "WrappedFun", "flatten_fun", "flatten_fun_nokwargs", "safe_map",
    "transformation", "transformation2", "transformation_with_aux", "wrap_init",
]  # fmt: skip


class WrappedFun:
    """A function that is called by `call_wrapped`."""

    def __init__(self, f: Callable[..., Any], params: dict[str, Any] | None = None):
        self.f, self.params = f, params or {}
        self.__name__ = getattr(f, "__name__", "f")

    def call_wrapped(self, *args: int, **kwargs: object) -> Any:
        """Call the function."""
        return self.f(*args, **{**self.params, **kwargs})

    def __repr__(self) -> str:
        return f"<wrapped {self.__name__}>"


def wrap_init(
    f: Callable[..., Any], params: Any = None, *, debug_info: object = None
) -> WrappedFun:
    """Wrap a function."""
    return WrappedFun(f, params)


def flatten_fun(fun: WrappedFun, in_tree: Any) -> tuple[WrappedFun, Callable[[], Any]]:
    """Return (function of (args, kwargs) as leaves, function that returns its result's tree)."""
    return _flattened(fun, lambda leaves: tree_util.tree_unflatten(in_tree, leaves))


def flatten_fun_nokwargs(fun: WrappedFun, in_tree: Any) -> tuple[WrappedFun, Callable[[], Any]]:
    """Return (function of the leaves of args, function that returns its result's tree)."""
    return _flattened(fun, lambda leaves: (tree_util.tree_unflatten(in_tree, leaves), {}))


def _flattened(fun: WrappedFun, build: Callable[[Any], Any]) -> Any:
    trees: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = build(leaves)
        out, tree = tree_util.tree_flatten(fun.call_wrapped(*args, **kwargs))
        trees[:] = [tree]
        return out

    flat.__name__ = fun.__name__
    return WrappedFun(flat), lambda: trees[0]


class StoreException(Exception):
    """The error for an auxiliary output that is read before the function was called."""


def transformation(gen: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """Return a function that wraps a WrappedFun by a generator.

    The generator is called with the arguments.  It yields (args, kwargs) for the inner function, is
    sent its result, and yields the result of the whole.

    >>> @transformation
    ... def negated(*args):
    ...     out = yield args, {}
    ...     yield -out
    >>> negated(wrap_init(abs)).call_wrapped(-3)
    -3
    """

    def wrap(fun: WrappedFun, *first: int) -> WrappedFun:
        def run(*args: int, **kwargs: object) -> Any:
            return _sent(gen(*first, *args, **kwargs), fun)

        run.__name__ = fun.__name__
        return WrappedFun(run)

    return wrap


def transformation_with_aux(gen: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that wraps as `transformation` does, for a generator that yields a pair.

    It returns (wrapped function, function that returns the second item of the last pair).
    """

    def wrap(fun: WrappedFun, *first: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        kept: list[Any] = []

        def run(*args: int, **kwargs: object) -> Any:
            out, aux = _sent(gen(*first, *args, **kwargs), fun)
            kept[:] = [aux]
            return out

        def read() -> Any:
            if not kept:
                raise StoreException("the wrapped function was not called yet")
            return kept[0]

        run.__name__ = fun.__name__
        return WrappedFun(run), read

    return wrap


def transformation2(outer: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """Return a function that wraps a WrappedFun by a function, which is passed the inner one."""

    def wrap(fun: WrappedFun, *first: Any) -> WrappedFun:
        def run(*args: int, **kwargs: object) -> Any:
            return outer(fun.call_wrapped, *first, *args, **kwargs)

        run.__name__ = fun.__name__
        return WrappedFun(run)

    return wrap


def _sent(steps: Any, fun: WrappedFun) -> Any:
    """Return the second value that a generator yields: `fun` is applied to the first."""
    args, kwargs = next(steps)
    return steps.send(fun.call_wrapped(*args, **kwargs))


def safe_map(fun: Callable[..., Any], *xs: Any) -> list[Any]:
    """Return the list of results of a function on sequences of equal length."""
    return [fun(*each) for each in zip(*xs, strict=True)]
