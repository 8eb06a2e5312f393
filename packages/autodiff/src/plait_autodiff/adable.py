"""Classes whose values may be differentiated, although they are no trees.

Invariant: only the functions of derivatives take them apart; all functions of trees see leaves.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from plait.ext.tree import flatten, registered_by

__all__ = ["adables", "is_adable", "kept_parts", "register_adable", "unregister_adable"]

adables = registered_by("register_adable")


def register_adable(
    cls: type,
    to_parts: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
    from_parts: Callable[[Any, tuple[Any, ...]], Any] | None = None,
) -> None:
    """Let values of a class be arguments and results of functions that are differentiated, by
    `grad`, `value_and_grad`, `jvp`, `vjp`, `linearize`, `linear_transpose`, `jacfwd`, `jacrev` and
    `hessian`.

    Tangents, cotangents and gradients of such values are values of the class, too, of the tangents
    of their parts.  The class need not be a tree, and is not one for it.

    Args:
      cls: the class.
      to_parts: returns (parts, static) of a value: trees of arrays, with respect to which it is
        differentiated, and something hashable.  None: the value's method `to_parts()`.
      from_parts: `from_parts(static, parts)` is its inverse; parts are traced values, tangents, or
        what stands for them.  None: the class's method `from_parts`.

    Raises RegistrationError if the class is registered already.

    >>> import plait
    >>> class Celsius:
    ...     def __init__(self, degrees):
    ...         self.degrees = degrees
    >>> plait.register_adable(
    ...     Celsius, lambda c: ((c.degrees,), None), lambda static, parts: Celsius(*parts)
    ... )
    >>> plait.grad(lambda c: c.degrees ** 2)(Celsius(3.0)).degrees
    Array(6., dtype=float32, weak_type=True)
    >>> plait.unregister_adable(Celsius)
    """
    adables.register(cls, to_parts, from_parts)


def unregister_adable(cls: type) -> None:
    """Take back `register_adable`; raise RegistrationError if the class is not registered."""
    adables.unregister(cls)


def is_adable(x: Any) -> bool:
    """Whether the class of `x` is registered by `register_adable`.

    >>> import plait
    >>> plait.is_adable(3.0)
    False
    """
    return type(x) in adables


def kept_parts(x: Any, tree: Any) -> list[int]:
    """The numbers of the leaves of `x`, a tree of this structure, that values of adable classes
    keep in their tangents and cotangents as they are, for they are not differentiated (lengths)."""
    if adables.opened(x) is x:
        return []
    opened = adables.opened(tree.unflatten(range(tree.num_leaves)))
    return sorted(set(range(tree.num_leaves)) - set(flatten(opened)[0]))
