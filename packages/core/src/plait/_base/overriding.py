"""Versions of public functions that classes of batches bring with them.

A function of arrays refuses values of such a class.  On that path, and on no other, the class may
return the result instead: from its method `__plait_function__`.

Invariant: a call on arrays costs nothing more.
"""

from collections.abc import Callable, Iterator
from typing import Any

from .errors import NotAnArrayError

__all__ = ["overridden"]


def overridden(e: BaseException, f: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """Return the result of `f` from the class of an argument that `f` refused by raising `e`.

    Returns NotImplemented if `e` has another cause, or if the class has no version of `f`."""
    if not isinstance(e, NotAnArrayError):
        return NotImplemented
    for x in _each((*args, *kwargs.values())):
        own = getattr(type(x), "__plait_function__", None)
        if own is not None:
            return own(x, f, args, kwargs)
    return NotImplemented


def _each(args: tuple) -> Iterator[Any]:
    """Yield the arguments, and the members of lists and tuples among them."""
    for a in args:
        if a.__class__ is list or a.__class__ is tuple:
            yield from a
        else:
            yield a
