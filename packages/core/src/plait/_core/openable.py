"""Classes that one transformation takes apart in a way of its own.

A tree is a tree for every function of trees.  A class may also be registered with one
transformation, which then opens the values of the class that it finds among arguments and results.
For everything else the class stays a leaf, or the tree that it is.

Invariant: an opened value is a node of a tree, and unflattening that tree makes the value again.
The class itself stays unchanged as a tree.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from .._base.errors import ArgumentError, RegistrationError
from ..tree import flatten, register

__all__ = ["Openable", "registered_by"]


class _Way:
    """A class, with the functions that take its values apart and put them together."""

    __slots__ = ("cls", "put_together", "take_apart")

    def __init__(self, cls: type, take_apart: Callable[..., Any], put_together: Callable[..., Any]):
        self.cls, self.take_apart, self.put_together = cls, take_apart, put_together

    def __repr__(self) -> str:
        return self.cls.__name__


class _Opened:
    """A value that was taken apart: a node whose children are its parts."""

    __slots__ = ("parts", "static", "way")

    def __init__(self, way: _Way, parts: list[Any], static: Hashable):
        self.way, self.parts, self.static = way, parts, static


def _closed(about: tuple[_Way, Hashable], parts: Sequence[Any]) -> Any:
    """Return the value that consists of these parts."""
    way, static = about
    return way.put_together(static, tuple(parts))


register(_Opened, lambda o: (o.parts, (o.way, o.static)), _closed)


class Openable:
    """The classes that a transformation takes apart.

    Args:
        told: the name of the function that registers a class, for messages: "register_jittable";
          see `registered_by`.

    Attributes:
        ways: how values of each class are taken apart; without any, calls need not look for them.
    """

    __slots__ = ("told", "ways")
    told: str
    ways: dict[type, _Way]

    def __init__(self, told: str):
        self.told = told
        self.ways = {}

    def __contains__(self, cls: object) -> bool:
        return cls in self.ways

    def register(
        self,
        cls: type,
        to_parts: Callable[[Any], tuple[Iterable[Any], Hashable]] | None,
        from_parts: Callable[[Any, tuple[Any, ...]], Any] | None,
    ) -> None:
        """Take values of a class apart from now on.

        Args:
          to_parts: returns (parts, static) of a value; None for its method `to_parts`.
          from_parts: `from_parts(static, parts)` is its inverse; None for the class's method.

        Raises RegistrationError if the class is registered already, ArgumentError for an object
        that is not a class, or a class that cannot be taken apart.
        """
        if not isinstance(cls, type):
            raise ArgumentError(f"{self.told}: {cls!r} is not a class", fix="pass a class")
        if cls in self.ways:
            raise RegistrationError(
                f"{self.told} was told of {cls.__qualname__} already",
                fix=f"register it once, or un{self.told} it first",
            )
        for name, given in (("to_parts", to_parts), ("from_parts", from_parts)):
            if not callable(given) and not (given is None and hasattr(cls, name)):
                raise ArgumentError(
                    f"{self.told}: {cls.__qualname__} has no method {name!r}, and "
                    f"{name}={given!r} was given",
                    fix=f"pass {name}=, or give the class such a method",
                )
        taken = to_parts if to_parts is not None else (lambda x: x.to_parts())
        made = from_parts if from_parts is not None else cls.from_parts  # type: ignore[attr-defined]
        self.ways[cls] = _Way(cls, taken, made)

    def unregister(self, cls: type) -> None:
        """Take back `register`; raise RegistrationError if the class is not registered."""
        if self.ways.pop(cls, None) is None:
            raise RegistrationError(
                f"{self.told} was not told of {getattr(cls, '__qualname__', cls)}",
                fix="unregister a class once, after registering it",
            )

    def opened(self, tree: object) -> Any:
        """Return the tree with its values of registered classes taken apart; itself if it has none.

        The structure of the returned tree unflattens to a tree of values: its new nodes are put
        together as the values they stand for.
        """
        if not self.ways:
            return tree
        leaves, kind = flatten(tree, lambda x: x.__class__ in self.ways)
        if not any(x.__class__ in self.ways for x in leaves):
            return tree
        return kind.unflatten([self._open(x) if x.__class__ in self.ways else x for x in leaves])

    def _open(self, x: object) -> _Opened:
        way = self.ways[x.__class__]
        found = way.take_apart(x)
        if not isinstance(found, tuple) or len(found) != 2:
            raise ArgumentError(
                f"{self.told}: to_parts of {way.cls.__qualname__} must return a pair (parts, "
                f"static), and returned {found!r}",
                fix="return (parts, static), with None for static if there is nothing more",
            )
        parts, static = found
        try:
            hash(static)
        except TypeError:
            raise ArgumentError(
                f"{self.told}: the static part of {way.cls.__qualname__} cannot be hashed: "
                f"{static!r}",
                fix="let arrays be parts, and lists be tuples",
            ) from None
        return _Opened(way, [self.opened(p) for p in parts], static)


_openables: dict[str, Openable] = {}


def registered_by(told: str) -> Openable:
    """Return the classes that users register with the function of this name.

    A transformation looks up its own classes by the name of its function.  A class can be
    registered under that name whether or not the transformation is installed.

    >>> from plait.ext.tree import registered_by
    >>> registered_by("register_adable") is registered_by("register_adable")
    True
    """
    return _openables.setdefault(told, Openable(told))
