"""What entries of in_axes and out_axes may be: positions of axes, None, and specs of other kinds.

`vmap` itself knows how arrays are mapped along an axis.  A kind of entries (a class, whose
instances are entries) brings an `AxisKind`, which says how values are mapped as an entry tells.

Invariant: positions and None belong to vmap; each other class of entries has one kind.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from plait.errors import RegistrationError
from plait.ext.errors import ArgumentError, AxisError, ShapeError
from plait.ext.ops.shape import materialise_at_ground, normal_axis
from plait.ext.tree import flatten, spread
from plait.ext.types import INTEGER
from plait.ext.values import Array, as_value

from .interpreter import Batch

__all__ = [
    "AxisKind",
    "added_kind",
    "ENTRY",
    "added_whole",
    "counted",
    "entries",
    "inside",
    "is_axis",
    "kind_of",
    "lifted",
    "may_be_sizes",
    "one_size",
    "removed_kind",
    "taken",
    "whole_of",
]


class AxisKind(Protocol):
    """How values are mapped as entries of some class say."""

    def size(self, x: Any, spec: Any) -> Any:
        """The size of the mapped axis of an argument; None if that is not known from it."""
        ...

    def lift(self, batch: Batch, x: Any, spec: Any) -> Any:
        """What the mapped function gets for an argument; called under `batch`."""
        ...

    def take(self, batch: Batch, x: Any, spec: Any, told: Callable[[], str]) -> Any:
        """The result, of what the mapped function returns; called under the parent of `batch`.

        `told()` is where it is among the results, for messages."""
        ...


_kinds: dict[type, AxisKind] = {}


def added_kind(spec_type: type, kind: AxisKind) -> None:
    """Let instances of a class be entries.

    Raises RegistrationError if they are entries of another kind, and ArgumentError for classes that
    have a meaning where entries stand.
    """
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


def removed_kind(spec_type: type) -> None:
    """Let instances of a class be no entries any more."""
    del _kinds[spec_type]


# ---- what is said of arguments ---------------------------------------------------------------

ENTRY = "an axis or None"


def entries(
    does: str,
    in_axes: Any,
    args: tuple,
    like: Any,
    count: int,
    is_entry: Callable[[Any], bool],
    entry: str = ENTRY,
) -> list[Any]:
    """The entry of in_axes for each of `count` leaves; those of keyword arguments are 0.

    `like` has the structure of the positional arguments.  Raises AxisError if in_axes has entries
    for another number of them.
    """
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise AxisError(
            f"{does}: in_axes has {len(in_axes)} entries for {len(args)} positional arguments",
            fix="give one entry per positional argument, or a single one for all",
        )
    found = spread(in_axes, like, "in_axes", is_entry, entry)
    return found + [0] * (count - len(found))


def inside(does: str, axis: int, x: Any, told: Callable[[], str]) -> int:
    """An axis counted from the front; raises AxisError if the array does not have it."""
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(
            f"{does}: axis {axis} of {told()} of type {x.aval!r} is out of range",
            fix="give an axis it has, or None if it does not vary",
        )
    return normal_axis(axis, x.ndim)


def one_size(told: Sequence[tuple[str, Any]], axis_size: Any, nothing: str) -> Any:
    """The size of the mapped axes, of which (what to tell of it, size) are known, and what the
    caller says; raises AxisError if they differ, or `nothing` is known."""
    if axis_size is not None and not hasattr(axis_size, "__index__"):
        # it may equal a size, and what is kept for that size would be found
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
    """A number of things, None if it is not given; raises ArgumentError for what is none."""
    if given is None:
        return None
    try:
        n = 0 if isinstance(given, bool) else given.__index__()
    except AttributeError:
        n = 0
    if n < 1:
        raise ArgumentError(f"{does}: {name}={given!r} is no number of {what}", fix=fix)
    return n


# ---- calls that are mapped as a whole --------------------------------------------------------

_wholes: dict[type, Callable[..., Any]] = {}


def added_whole(call: Callable[..., Any], *classes: type) -> None:
    """Let calls of mapped functions be done by `call`, if an entry or an argument is of one of the
    classes."""
    _wholes.update(dict.fromkeys(classes, call))


def whole_of(tree: Any) -> Callable[..., Any] | None:
    """How calls are mapped as a whole, if something among entries or arguments asks for it."""
    if not _wholes:
        return None
    leaves = flatten(tree, lambda x: type(x) in _wholes)[0]
    return next((_wholes[type(x)] for x in leaves if type(x) in _wholes), None)


def may_be_sizes(x: Any) -> bool:
    """Whether a mapped argument may be sizes: known integers, one for each element."""
    return isinstance(x, Array) and x.ndim == 1 and x.aval.category == INTEGER


def is_axis(x: Any) -> bool:
    """Whether this is an entry of in_axes or out_axes, and not a tree of them."""
    if x is None or type(x) in _kinds or type(x) in _wholes:
        return True
    return isinstance(x, int) and not isinstance(x, bool)


def kind_of(entry: Any) -> AxisKind | None:
    """The kind of an entry; None if it is the position of an axis, or None."""
    return _kinds.get(type(entry))


def lifted(batch: Batch, x: Any, entry: Any) -> Any:
    """What the mapped function gets for a value that is mapped as the entry says."""
    if entry is None:
        return x
    kind = kind_of(entry)
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


def taken(batch: Batch, x: Any, entry: Any, told: Callable[[], str]) -> Any:
    """What vmap returns for a result that is mapped as the entry says."""
    kind = kind_of(entry)
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
