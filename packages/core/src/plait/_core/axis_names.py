"""Named axes: which interpreter binds a name here, and the size of the axis.

Invariant: a name means the innermost axis of that name.
"""

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any, NamedTuple

from .._base.errors import AxisError, UnboundAxisName
from .interpreter import Interpreter, current


def axis_size(axis_name: Any) -> int:
    """Return the size of the innermost axis of that name (of a tuple of names: the product).

    Raises UnboundAxisName if no axis of that name is bound.  Raises AxisError if elements of a
    batch may be missing along it: `psum(1, axis_name)` is the number of those that are there.
    """
    if axis_name.__class__ in (tuple, list):
        return prod([axis_size(name) for name in axis_name])
    size = positions(axis_name)
    if binder(axis_name).lacks_elements:
        raise AxisError(
            f"axis {axis_name!r} has room for {size} elements, and some may be missing",
            fix=f"write lax.psum(1, {axis_name!r}) for the number of those that are there",
        )
    return size


def positions(axis_name: Any) -> int:
    """Return the number of positions along an axis (along a tuple of axes: the product), elements
    that may be missing among them.

    Raises UnboundAxisName if no axis of that name is bound.
    """
    if axis_name.__class__ in (tuple, list):
        return prod([positions(name) for name in axis_name])
    return binder(axis_name).sizes[axis_name]


def binder(axis_name: object) -> Interpreter:
    """Return the interpreter that binds the innermost axis of that name.

    Raises UnboundAxisName if none does.
    """
    by: Interpreter | None = current()
    try:
        while by is not None:
            if axis_name in by.sizes:
                return by
            by = by.parent
    except TypeError:  # an object that is not hashable cannot be a name
        pass
    raise unbound(axis_name)


def is_complete(axis_name: str | tuple[str, ...]) -> bool:
    """Return whether each position of that axis (of each axis in a tuple) contributes to a
    collective here, so that the number of contributions is the size of the axis."""
    if axis_name.__class__ in (tuple, list):
        return all(map(is_complete, axis_name))
    end = binder(axis_name)
    by: Interpreter | None = current()
    while by is not None and by is not end and not by.lacks_elements:
        by = by.parent
    return by is end and not end.lacks_elements


def joined(names: Sequence[Any]) -> tuple[Any, ...]:
    """Return the names of axes, with a tuple for consecutive ones that are bound together.

    Raises UnboundAxisName if a name is not bound.
    """
    rows: list[tuple[Hashable, list[Any]]] = []
    for name in names:
        kind = binder(name).joins(name)
        if rows and kind is not None and rows[-1][0] == kind:
            rows[-1][1].append(name)
        else:
            rows.append((kind, [name]))
    return tuple([tuple(row) if len(row) > 1 else row[0] for _, row in rows])


def named_axes() -> dict[Any, Any]:
    """Return the names and sizes of all axes that are bound here."""
    found: dict[Any, Any] = {}
    by: Interpreter | None = current()
    while by is not None:
        if by.sizes:
            found = {**by.sizes, **found}
        by = by.parent
    return found


class Binding(NamedTuple):
    """The binding of a named axis: its size, whether types record what varies along it, the object
    that it is an axis of (`Interpreter.joins`), and whether each position contributes to
    collectives."""

    size: Any
    typed: bool
    joins: Hashable
    complete: bool


def bound_axes() -> dict[Any, Binding]:
    """Return the binding of each axis that is bound here: staged programs depend on all of it."""
    found: dict[Any, Binding] = {}
    for name, size in named_axes().items():
        by = binder(name)
        found[name] = Binding(size, name in by.typed_axes, by.joins(name), is_complete(name))
    return found


def unbound(name: object) -> UnboundAxisName:
    """Return the error for an axis name that is not bound."""
    bound = ", ".join([repr(known) for known in named_axes()])
    instead = f"use an axis that is bound here ({bound}), or " if bound else ""
    return UnboundAxisName(
        f"no axis named {name!r} is bound here",
        fix=f"{instead}bind it outside: map over an axis with axis_name={name!r}, or over devices",
    )
