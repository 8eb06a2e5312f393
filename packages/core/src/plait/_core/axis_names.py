"""Named axes: which interpreter binds a name here, and of which size the axis is.

Invariant: a name means the innermost axis of that name.
"""

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

from .._base.errors import AxisError
from .interpreter import Interpreter, current


def axis_size(axis_name: Any) -> Any:
    """Return the size of the innermost axis of that name (of a tuple of names: the product).

    Raises AxisError if none is bound.
    """
    if axis_name.__class__ in (tuple, list):
        return prod([axis_size(name) for name in axis_name])
    return binder(axis_name).sizes[axis_name]


def binder(axis_name: Any) -> Interpreter:
    """Return the interpreter that binds the innermost axis of that name.

    Raises AxisError if none does.
    """
    by: Interpreter | None = current()
    try:
        while by is not None:
            if axis_name in by.sizes:
                return by
            by = by.parent
    except TypeError:  # not hashable, so no name
        pass
    raise unbound(axis_name)


def joined(names: Sequence[Any]) -> tuple[Any, ...]:
    """Return the names of axes, a tuple for those in a row that are bound together.

    Raises AxisError if none is bound of a name.
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


def unbound(name: object) -> AxisError:
    """Return the error for an axis name that nobody binds."""
    return AxisError(
        f"no axis named {name!r} is bound here",
        fix=f"bind it outside: map over an axis with axis_name={name!r}, or over devices",
    )
