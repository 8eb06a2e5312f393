"""Functions of flat arguments, as JAX's inner tools pass them on (`jax.extend.linear_util`).

Invariant: a flattened function keeps the tree of its last result, and nothing else.
"""

from collections.abc import Callable
from typing import Any

from plait import tree_util

__all__ = ["WrappedFun", "flatten_fun", "flatten_fun_nokwargs", "safe_map", "wrap_init"]


class WrappedFun:
    """A function that is called by `call_wrapped`."""

    def __init__(self, f: Callable[..., Any], params: dict[str, Any] | None = None):
        self.f, self.params = f, params or {}
        self.__name__ = getattr(f, "__name__", "f")

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.f(*args, **{**self.params, **kwargs})

    def __repr__(self) -> str:
        return f"<wrapped {self.__name__}>"


def wrap_init(f: Callable[..., Any], params: Any = None, *, debug_info: Any = None) -> WrappedFun:
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


def safe_map(fun: Callable[..., Any], *xs: Any) -> list[Any]:
    """Return the list of results of a function on sequences of equal length."""
    return [fun(*each) for each in zip(*xs, strict=True)]
