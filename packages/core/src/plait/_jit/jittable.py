"""Classes whose values jitted functions take and return although they are not trees.

Invariant: only `jit` and functions that stage as it does take these values apart; functions of
trees see leaves.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from .._core.openable import registered_by

__all__ = ["is_jittable", "jittables", "register_jittable", "unregister_jittable"]

jittables = registered_by("register_jittable")


def register_jittable(
    cls: type,
    to_parts: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
    from_parts: Callable[[Any, tuple[Any, ...]], Any] | None = None,
) -> None:
    """Let values of a class be arguments and results of `jit`.

    The class need not be a tree, and is not one for it: `tree.map`, `vmap` and other functions see
    its values as leaves.

    Args:
      cls: the class.
      to_parts: returns (parts, static) of a value: trees of arrays, and a hashable value that
        functions are compiled for.  None: the value's method `to_parts()`.
      from_parts: `from_parts(static, parts)` is its inverse; parts are traced values or
        placeholders.  None: the class's method `from_parts`.

    Raises RegistrationError if the class is registered already.

    >>> import plait
    >>> class Celsius:
    ...     def __init__(self, degrees):
    ...         self.degrees = degrees
    >>> plait.register_jittable(
    ...     Celsius, lambda c: ((c.degrees,), None), lambda static, parts: Celsius(*parts)
    ... )
    >>> warmer = plait.jit(lambda c: Celsius(c.degrees + 1))
    >>> warmer(Celsius(plait.numpy.float32(20))).degrees
    Array(21., dtype=float32)
    >>> plait.unregister_jittable(Celsius)
    """
    jittables.register(cls, to_parts, from_parts)


def unregister_jittable(cls: type) -> None:
    """Take back `register_jittable`; raise RegistrationError if the class is not registered."""
    jittables.unregister(cls)


def is_jittable(x: object) -> bool:
    """Return whether the class of `x` is registered by `register_jittable`.

    >>> import plait
    >>> plait.is_jittable(3.0)
    False
    """
    return x.__class__ in jittables
