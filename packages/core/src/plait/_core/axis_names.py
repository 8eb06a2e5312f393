"""Named axes: which interpreter binds a name here, and the size of the axis.

Invariant: a name means the innermost axis of that name.
"""

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any, NamedTuple

from .._base.errors import UnboundAxisName
from .interpreter import Interpreter, current


def axis_size(axis_name: Any) -> int:
    """Return the size of the innermost axis of that name (of a tuple of names: the product).

    Raises UnboundAxisName if no axis of that name is bound.
    """
    if axis_name.__class__ in (tuple, list):
        return prod([axis_size(name) for name in axis_name])
    return binder(axis_name).sizes[axis_name]


def binder(axis_name: Any) -> Interpreter:
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
    """The binding of a named axis: its size, whether types record what varies along it, and the
    object that it is an axis of (`Interpreter.joins`)."""

    size: Any
    typed: bool
    joins: Hashable


def bound_axes() -> dict[Any, Binding]:
    """Return the binding of each axis that is bound here: staged programs depend on all of it."""
    found: dict[Any, Binding] = {}
    for name, size in named_axes().items():
        by = binder(name)
        found[name] = Binding(size, name in by.typed_axes, by.joins(name))
    return found


def unbound(name: object) -> UnboundAxisName:
    """Return the error for an axis name that is not bound."""
    return UnboundAxisName(
        f"no axis named {name!r} is bound here",
        fix=f"bind it outside: map over an axis with axis_name={name!r}, or over devices",
    )
