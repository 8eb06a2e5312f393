"""Attributes that a plugin adds to classes of the core, for code written for another library.

Invariant: a plugin adds attributes and replaces none.
"""

from collections.abc import Mapping
from typing import Any

from .._base.errors import ArgumentError

__all__ = ["add_members"]


def add_members(cls: type, members: Mapping[str, Any]) -> None:
    """Give all instances of a class of the core these properties and methods.

    The class may be that of arrays, tracers, types, programs, equations or stages.  Adding the same
    members again does nothing.  `__module__` may be among them: libraries choose their functions by
    the module of a value's class.

    Raises ArgumentError for a name that the class has.

    >>> import plait
    >>> add_members(plait.Array, {"twice": property(lambda x: x * 2)})
    >>> plait.numpy.ones(2).twice.tolist()
    [2.0, 2.0]
    >>> del plait.Array.twice
    """
    for name, member in members.items():
        if name != "__module__" and getattr(cls, name, member) is not member:
            raise ArgumentError(
                f"{cls.__name__} has an attribute {name!r} already",
                fix="choose another name: members of the core are not replaced",
            )
    for name, member in members.items():
        setattr(cls, name, member)
