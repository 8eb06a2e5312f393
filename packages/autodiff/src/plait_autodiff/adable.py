"""Classes whose values may be differentiated although they are not trees.

Invariant: only the functions of derivatives take such values apart; functions of trees treat them
as leaves.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from plait.ext.trace import admitted
from plait.ext.tree import flatten, registered_by

__all__ = [
    "adables", "beside_numbers", "is_adable", "kept_parts", "register_adable", "unregister_adable",
]  # fmt: skip

adables = registered_by("register_adable")


def register_adable(
    cls: type,
    to_parts: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
    from_parts: Callable[[Any, tuple[Any, ...]], Any] | None = None,
) -> None:
    """Register a class whose values may be arguments and results of differentiated functions.

    It then works with `grad`, `value_and_grad`, `jvp`, `vjp`, `linearize`, `linear_transpose`,
    `jacfwd`, `jacrev` and `hessian`.  Tangents, cotangents and gradients of such values are values
    of the class, too, made of the tangents of the parts.  The class need not be a tree, and does
    not become one.

    Args:
      cls: the class.
      to_parts: returns (parts, static) of a value.  The parts are trees of arrays, with respect
        to which it is differentiated; `static` is hashable.  None: the value's method `to_parts()`.
      from_parts: `from_parts(static, parts)` is its inverse; parts are traced values, tangents, or
        placeholders for them.  None: the class's method `from_parts`.

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
    """Undo `register_adable`; raise RegistrationError if the class is not registered."""
    adables.unregister(cls)


def is_adable(x: object) -> bool:
    """Return whether the class of `x` is registered by `register_adable`.

    >>> import plait
    >>> plait.is_adable(3.0)
    False
    """
    return type(x) in adables


def beside_numbers(tree: tuple[Any, ...]) -> set[int]:
    """Return the numbers of integers and keys that are parts of a value with floating parts.

    Such a value is differentiated with respect to its floating parts.  The numbers are those of
    leaves of the opened tree."""
    found: set[int] = set()
    at = 0
    for x in flatten(tree, is_adable)[0]:
        parts = flatten(adables.opened(x))[0] if is_adable(x) else [x]
        if len(parts) > 1:
            varies = [admitted(p).aval.varies for p in parts]
            found.update([at + i for i, v in enumerate(varies) if not v and any(varies)])
        at += len(parts)
    return found


def kept_parts(x: object, tree: Any) -> list[int]:
    """Return the numbers of leaves that tangents and cotangents of `x` hold unchanged.

    These are leaves that values of adable classes do not differentiate, such as lengths.  `tree`
    is the structure of `x`.
    """
    if adables.opened(x) is x:
        return []
    opened = adables.opened(tree.unflatten(range(tree.num_leaves)))
    return sorted(set(range(tree.num_leaves)) - set(flatten(opened)[0]))
