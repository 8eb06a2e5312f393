"""Names for parts of programs, which are shown where a lowered program is printed.

    with plait.named_scope("encoder"):
        x = layer(x)

Invariant: a name changes no result, no executable and no cache; operations outside of such a block
do not look for names.
"""

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from .._base.errors import ArgumentError
from .._base.wrapping import name_of, wraps
from .._core.interpreter import GROUND, current, naming

__all__ = ["named_call", "named_scope"]


class named_scope:  # noqa: N801 - used as a function is
    """A block that names the operations traced in it.

    The name is put before their source locations, where `jit(f).lower(...)` shows it
    (`.as_text(debug_info=True)`); names of nested blocks are joined by slashes.  It is a decorator,
    too.

    Raises TypeRule if the name is not a string.

    >>> import plait
    >>> def f(x):
    ...     with plait.named_scope("rescale"):
    ...         return x * 2
    >>> "rescale" in plait.jit(f).lower(1.0).as_text(debug_info=True)
    True
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise ArgumentError(
                f"named_scope needs a string, not {name!r}", fix='write named_scope("name")'
            )
        self._name = name
        self._open: list[ExitStack] = []

    def __enter__(self) -> None:
        stack = ExitStack()
        if current() is not GROUND:  # eager operations are not recorded, so they need no name
            stack.enter_context(naming(self._name))
        self._open.append(stack)

    def __exit__(self, *error: Any) -> None:
        self._open.pop().__exit__(*error)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(func)
        def named(*args: Any, **kwargs: object) -> Any:
            with named_scope(self._name):  # blocks of several threads are apart
                return func(*args, **kwargs)

        return named


def named_call(fun: Callable | None = None, *, name: str | None = None) -> Callable:
    """Return `fun`, with its operations named after it, or `name`; see `named_scope`.

    Raises ArgumentError if `fun` is not a function.

    >>> import plait
    >>> double = plait.named_call(lambda x: x * 2, name="double")
    >>> "double" in plait.jit(double).lower(1.0).as_text(debug_info=True)
    True
    """
    if fun is None:
        return functools.partial(named_call, name=name)
    if not callable(fun):
        raise ArgumentError(f"named_call needs a function, not {fun!r}", fix="write named_call(f)")
    return named_scope(name or name_of(fun, "f"))(fun)
