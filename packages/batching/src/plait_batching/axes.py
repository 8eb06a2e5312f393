"""Entries of in_axes and out_axes: positions of axes, None, and instances of registered classes.

`vmap` itself maps arrays along an axis.  Each further class of entries comes with an `AxisKind`,
which maps values as an instance of the class describes.

Invariant: positions and None belong to vmap; each other class of entries has one kind.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from plait.errors import RegistrationError
from plait.ext.errors import ArgumentError, AxisError, ShapeError, names_of_arguments
from plait.ext.ops.shape import materialise_at_ground, normal_axis
from plait.ext.trace import Value
from plait.ext.tree import flatten, guarded_nodes, spread
from plait.ext.types import INTEGER
from plait.ext.values import Array, as_value
from plait.typing import Array as AnyArray

from .interpreter import Batch

__all__ = [
    "AxisKind", "added_kind", "ENTRY", "added_whole", "counted", "entries", "inside", "is_axis",
    "kind_of", "lifted", "may_be_sizes", "one_size", "removed_kind", "taken", "unmoved", "whole_of",
]  # fmt: skip


class AxisKind(Protocol):
    """A way to map values, chosen by the class of the entry."""

    def size(self, x: Any, spec: Any) -> Any:
        """Return the size of an argument's mapped axis; None if the argument does not fix it."""
        ...

    def lift(self, batch: Batch, x: Any, spec: Any) -> Any:
        """Return the argument of the mapped function; called under `batch`."""
        ...

    def take(self, batch: Batch, x: Any, spec: Any, told: Callable[[], str]) -> Any:
        """Return the result of vmap, given that of the mapped function.

        Called under the parent of `batch`.  `told()` returns the path of the result, for
        messages."""
        ...


_kinds: dict[type, AxisKind] = {}
_by_position: dict[type, AxisKind] = {}
"""Classes whose values are mapped by the position of an axis, as arrays are, each with its kind."""


def added_kind(spec_type: type[Any], kind: AxisKind, data_type: type[Any]) -> None:
    """Accept instances of a class as entries for values of `data_type`.

    Positions are entries already; with int as `spec_type` they map values of `data_type` by `kind`.

    Raises RegistrationError if they are entries of another kind, and ArgumentError for classes that
    already have a meaning in in_axes and out_axes.
    """
    if spec_type is int:
        _by_position[data_type] = kind
        return
    if spec_type in (tuple, list, dict, type(None)) or issubclass(spec_type, int):
        raise ArgumentError(
            f"{spec_type.__qualname__} has a meaning in in_axes and out_axes already",
            fix="let entries be of a class of your own",
        )
    if _kinds.setdefault(spec_type, kind) is not kind:
        raise RegistrationError(
            f"entries of type {spec_type.__qualname__} are mapped in another way already",
            fix="let entries be of a class of your own",
        )


def removed_kind(spec_type: type, data_type: type, is_last: bool) -> None:
    """Undo `added_kind`; the entries stay unless `data_type` is the last class that has them."""
    if spec_type is int:
        del _by_position[data_type]
    elif is_last:
        del _kinds[spec_type]


# ---- entries of the arguments ----------------------------------------------------------------

ENTRY = "an axis or None"


def entries(
    does: str,
    in_axes: object,
    args: tuple[Any, ...],
    like: tuple[Any, ...],
    count: int,
    is_entry: Callable[[Any], bool],
    entry: str = ENTRY,
    f: object = None,
) -> list[Any]:
    """Return the in_axes entry of each of `count` leaves; that of keyword arguments is 0.

    `like` has the structure of the positional arguments of `f`.  Raises AxisError if in_axes is a
    tuple of another length than `args`.
    """
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise AxisError(
            f"{does}: in_axes has {len(in_axes)} entries for {len(args)} positional arguments",
            fix="give one entry per positional argument, or a single one for all",
        )
    found = spread(in_axes, like, "in_axes", is_entry, entry, names_of_arguments(f))
    return found + [0] * (count - len(found))


def inside(does: str, axis: int, x: Value, told: Callable[[], str]) -> int:
    """Return an axis counted from the front; raise AxisError if the array does not have it."""
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(
            f"{does}: axis {axis} of {told()} of type {x.aval!r} is out of range",
            fix="give an axis it has, or None if it does not vary",
        )
    return normal_axis(axis, x.ndim)


def one_size(told: Sequence[tuple[str, Any]], axis_size: int | None, nothing: str) -> Any:
    """Return the size of the mapped axes, given pairs (description, size) and `axis_size`.

    Raises AxisError if sizes differ, or with the text `nothing` if none is known."""
    if axis_size is not None and not hasattr(axis_size, "__index__"):
        # An object equal to a size would be a hit in the caches keyed by that size.
        raise ShapeError(
            f"vmap: axis_size must be an integer, not {axis_size!r}",
            fix="write the number of elements that are mapped, as an int",
        )
    sizes = [s for _, s in told] + ([] if axis_size is None else [axis_size])
    if not sizes:
        raise AxisError(nothing, fix="map an argument, or pass axis_size")
    if any(s != sizes[0] for s in sizes):
        extra = "" if axis_size is None else f"; axis_size={axis_size}"
        said = ", ".join([where for where, _ in told])
        raise AxisError(
            f"vmap: the mapped axes differ in size: {said}{extra}",
            fix="mapped axes must have one size; use None for what does not vary",
        )
    return sizes[0]


def counted(does: str, name: str, given: Any, what: str, fix: str) -> int | None:
    """Return a count as an int, None if it is not given; raise ArgumentError if it is not a
    positive integer."""
    if given is None:
        return None
    try:
        n = 0 if isinstance(given, bool) else given.__index__()
    except AttributeError:
        n = 0
    if n < 1:
        raise ArgumentError(f"{does}: {name}={given!r} is not a number of {what}", fix=fix)
    return n


# ---- calls that are mapped as a whole --------------------------------------------------------

_wholes: dict[type, Callable[..., Any]] = {}


def added_whole(call: Callable[..., Any], *classes: type) -> None:
    """Register `call` to map whole calls in which an entry or an argument is an instance of one of
    the classes."""
    _wholes.update(dict.fromkeys(classes, call))


def whole_of(tree: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return the function that maps the whole call, if an entry or an argument has a registered
    class."""
    if not _wholes:
        return None
    leaves = flatten(tree, lambda x: type(x) in _wholes)[0]
    return next((_wholes[type(x)] for x in leaves if type(x) in _wholes), None)


def may_be_sizes(x: AnyArray) -> bool:
    """Return whether a mapped argument may be sizes: known integers, one for each element."""
    return isinstance(x, Array) and x.ndim == 1 and x.aval.category == INTEGER


def is_axis(x: object) -> bool:
    """Return whether this is a single entry of in_axes or out_axes, rather than a tree of them."""
    if x is None or type(x) in _kinds or type(x) in _wholes:
        return True
    return isinstance(x, int) and not isinstance(x, bool)


def kind_of(entry: int | None, x: object) -> AxisKind | None:
    """Return the kind of an entry for a value; None for the axis of an array and for None."""
    if entry.__class__ is int:
        return _by_position.get(type(x)) if _by_position else None
    return _kinds.get(type(entry))


def lifted(batch: Batch, x: object, entry: int | None) -> Any:
    """Return the mapped function's argument, for a value that is mapped by `entry`."""
    if entry is None:
        return x
    kind = kind_of(entry, x)
    if kind is not None:
        return kind.lift(batch, x, entry)
    value = as_value(x)
    at = normal_axis(entry, value.aval.ndim, "in_axes")
    size = value.aval.shape[at]
    if size != batch.size:
        raise AxisError(
            f"vmap over {batch.size} elements: axis {at} of {value.aval!r} has size {size}",
            fix=f"give axis_size={size}, or map an axis of size {batch.size}",
        )
    return batch.wrap(value, at)


def unmoved(wanted: list[Any], tree: object, varies: Callable[[int], bool]) -> list[Any]:
    """Return the entries of out_axes, with None for lengths of piles that do not vary.

    The mapped axis of such a pile is an axis of its elements, and its lengths stay."""
    nodes = guarded_nodes(tree)
    if not nodes:
        return wanted
    out = list(wanted)
    for node in nodes:
        for i in node.rows:
            if wanted[i].__class__ is int and wanted[i] != 0:
                raise AxisError(
                    f"vmap: out_axes is {wanted[i]} for a pile, whose rows have their own place",
                    fix="write out_axes=0: the mapped axis is the first of each element",
                )
        for i in node.kept:
            out[i] = wanted[i] if varies(i) else None
    return out


def taken(batch: Batch, x: object, entry: int | None, told: Callable[[], str]) -> Any:
    """Return the result of vmap, for a result of the mapped function placed by `entry`."""
    kind = kind_of(entry, x)
    if kind is not None:
        return kind.take(batch, x, entry, told)
    value = as_value(x)
    d, parts = batch.split(value)
    if entry is None:
        if d is not None:
            name = "" if batch.axis_name is None else f" (axis_name={batch.axis_name!r})"
            raise AxisError(
                f"vmap: result{told()} of type {value.aval!r} varies along the mapped "
                f"axis{name}, and its out_axes says that it does not",
                fix="give it an axis, or reduce it over the mapped axis",
            )
        return materialise_at_ground(parts[0])
    if not is_axis(entry):
        raise ArgumentError(
            f"vmap: {entry!r} says of no axis where it is",
            fix="give the position of an axis, or None",
        )
    at = normal_axis(entry, value.aval.ndim + 1, "out_axes")
    return materialise_at_ground(batch.move(parts[0], d, at))
