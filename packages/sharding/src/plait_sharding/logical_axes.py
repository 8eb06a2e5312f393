"""Logical axes: names for axes of arrays, and the layout of each of them.

This module reads and checks the user's description of them (`{0: "rows"}`, `["rows", ...]`,
resources).  A logical axis is made of *parts*: axes of a mesh first, then the turns of a loop, then
lanes, which are mapped as by vmap.  The first part varies slowest.

Invariant: every error names the axis, the argument or the result it is about; this module neither
traces nor computes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from plait.ext.errors import ArgumentError, AxisError
from plait.ext.tree import flatten, key_paths

from .contexts import MissingMesh
from .mesh import Mesh

__all__ = [
    "Lane", "Layout", "Naming", "SerialLoop", "check_sizes", "laid_out", "named_in", "naming_tree",
    "resources_of", "size_of",
]  # fmt: skip


class SerialLoop:
    """A resource of `xmap` that processes an axis in this many turns, one after the other.

    Each turn processes an equal part of the axis, so memory is needed for one part at a time.
    Collectives cannot use an axis that is processed in turns.

    Args:
      length: the number of turns.

    Raises TypeRule if `length` is not a positive integer.

    >>> import plait
    >>> f = plait.xmap(
    ...     lambda x: x * 2, ["i", ...], ["i", ...],
    ...     axis_resources={"i": plait.sharding.SerialLoop(2)},
    ... )
    >>> f(plait.numpy.arange(4.0))
    Array([0., 2., 4., 6.], dtype=float32)
    """

    __slots__ = ("length",)
    length: int

    def __init__(self, length: int):
        if not _is_size(length) or length < 1:
            raise ArgumentError(
                f"a SerialLoop has a positive number of turns, not {length!r}",
                fix="write for instance SerialLoop(4)",
            )
        self.length = int(length)

    def __repr__(self) -> str:
        return f"SerialLoop({self.length})"


class Lane:
    """The name of the lanes of a logical axis, its last part; other code cannot use this name."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"the lanes of {self.name!r}"


def _is_size(n: Any) -> bool:
    return hasattr(n, "__index__") and not isinstance(n, bool)


# ---- named axes of arrays ------------------------------------------------------------------------


class Naming:
    """The names of the axes of an array.

    Attributes:
      axes: {axis: name}, with axes as the user gave them.
      rank: the number of axes that the array must have; None accepts any.
      said: the user's description, for messages.
    """

    __slots__ = ("axes", "rank", "said")

    axes: dict[Any, Any]
    rank: int | None

    def __init__(self, said: Any, what: str):
        self.said, self.rank = said, None
        if isinstance(said, dict):
            self.axes = dict(said)
        else:
            names = list(said)
            if ... in names[:-1]:
                raise ArgumentError(
                    f"xmap: {what} has ... before its end: {said!r}",
                    fix="end the list with ..., or write a dict: {-1: 'name'} names the last axis",
                )
            if names and names[-1] is ...:
                names.pop()
            else:
                self.rank = len(names)
            self.axes = {i: n for i, n in enumerate(names) if n is not None}
        twice = _twice(self.names)
        if twice is not None:
            raise AxisError(
                f"xmap: {what} names two axes of one array {twice!r}: {said!r}",
                fix="give each axis a name of its own; along two axes at once nothing can be "
                "mapped (take the diagonal first)",
            )

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(self.axes.values())

    def positions(self, ndim: int, of: Callable[[], str]) -> dict[str, int]:
        """Return the axis of each name in an array of `ndim` axes, which errors call `of()`."""
        if self.rank is not None and self.rank != ndim:
            raise AxisError(
                f"xmap: {of()} has {ndim} axes, and {self.said!r} says that it has {self.rank}",
                fix="end the list with ... to leave further axes without names, or write None "
                "for each of them",
            )
        out: dict[str, int] = {}
        for axis, name in self.axes.items():
            if not -ndim <= axis < ndim:
                raise AxisError(
                    f"xmap: {self.said!r} names axis {axis} {name!r}, and {of()} has {ndim} axes",
                    fix="name an axis that it has",
                )
            at = axis % ndim
            if at in out.values():
                other = next(n for n, i in out.items() if i == at)
                raise AxisError(
                    f"xmap: {self.said!r} names axis {at} of {of()} both {other!r} and {name!r}",
                    fix="give an axis one name; negative axes count from the end",
                )
            out[name] = at
        return out


def _twice(xs: Sequence[Any]) -> Any:
    return next((x for i, x in enumerate(xs) if x in xs[:i]), None)


def _is_naming(x: object) -> bool:
    """Return whether `x` describes a single array, and is not a tree of descriptions."""
    if isinstance(x, dict):
        return all(not isinstance(v, dict | list | tuple) for v in x.values())
    if not isinstance(x, list | tuple) or hasattr(x, "_fields"):
        return False
    return all(v is None or v is ... or isinstance(v, str) for v in x)


def naming_tree(said: object, what: str) -> Any:
    """Return the tree with a Naming in place of each list of names and each dict of axes.

    Raises ArgumentError for other leaves; `what` names the argument in messages.
    """
    leaves, tree = flatten(said, lambda x: x is None or _is_naming(x))
    paths = key_paths(tree.unflatten(range(len(leaves))))
    return tree.unflatten([_naming(x, what + p) for x, p in zip(leaves, paths, strict=True)])


def _naming(said: Any, what: str) -> Naming:
    names_axes = isinstance(said, dict) and all(
        _is_size(k) and isinstance(v, str) for k, v in said.items()
    )
    if not names_axes and not (isinstance(said, list | tuple) and _is_naming(said)):
        raise _no_naming(said, what)
    return Naming(said, what)


def _no_naming(said: object, what: str) -> ArgumentError:
    return ArgumentError(
        f"xmap: {what} is {said!r}, which is neither a list of names nor a dict from axes to names",
        fix='write ["rows", ...] or {0: "rows", -1: "columns"}, {} for an array without named '
        "axes, or a tree of these that is a prefix of the arguments or results",
    )


def named_in(tree: "Naming | tuple[dict[str, Any] | Naming, ...]") -> Iterator[str]:
    """Yield the names in a tree of Namings, in order."""
    for naming in flatten(tree)[0]:
        yield from naming.names


# ---- sizes ---------------------------------------------------------------------------------------


def check_sizes(axis_sizes: Any) -> dict[str, int]:
    """Return the given sizes; ArgumentError if they are not sizes of axes."""
    if not isinstance(axis_sizes, Mapping):
        raise ArgumentError(
            f"xmap: axis_sizes is {axis_sizes!r}", fix='write a dict: axis_sizes={"rows": 4}'
        )
    for name, size in axis_sizes.items():
        if not isinstance(name, str):
            raise ArgumentError(
                f"xmap: axis_sizes has {name!r}, which is not a name of an axis",
                fix='name axes by strings: axis_sizes={"rows": 4}',
            )
        if not _is_size(size) or size < 1:
            raise ArgumentError(
                f"xmap: axis_sizes says that axis {name!r} has size {size!r}",
                fix="give a positive integer",
            )
    return {name: int(size) for name, size in axis_sizes.items()}


def size_of(
    name: str, shapes: Iterable[tuple[str, tuple[Any, ...], int]], given: int | None
) -> int:
    """Return the size of a named axis.

    `shapes` lists the arrays that have it: (words for the array, its shape, the axis).  `given` is
    the size that the user gave.  Raises AxisError if two sizes differ.
    """
    size, of = given, "axis_sizes"
    for said, shape, axis in shapes:
        if size is None:
            size, of = shape[axis], said
        elif shape[axis] != size:
            raise AxisError(
                f"xmap: The size of axis {name!r} was previously inferred to be {size} (from "
                f"{of}), but found an axis of size {shape[axis]}: axis {axis} of {said}, of shape "
                f"{shape}",
                fix="axes of one name have one size: give one of them another name",
            )
    assert size is not None  # a name without a size anywhere was refused before
    return size


# ---- resources -----------------------------------------------------------------------------------


def resources_of(axis_resources: Any) -> dict[str, tuple[Any, ...]]:
    """Return the resources of each axis as a tuple; ArgumentError for other values."""
    if not isinstance(axis_resources, Mapping):
        raise ArgumentError(
            f"xmap: axis_resources is {axis_resources!r}",
            fix='write a dict: axis_resources={"rows": "x"}',
        )
    found = {}
    for name, said in axis_resources.items():
        these = tuple(said) if isinstance(said, tuple | list) else (said,)
        for r in these:
            if not isinstance(r, str | SerialLoop):
                raise ArgumentError(
                    f"xmap: axis_resources gives axis {name!r} the resource {r!r}",
                    fix="give the name of an axis of the mesh, a SerialLoop, or a tuple of these",
                )
        twice = _twice(these)
        if twice is not None:
            raise AxisError(
                f"xmap: axis_resources gives axis {name!r} the resource {twice!r} twice: {said!r}",
                fix="the resources of one axis must be distinct",
            )
        if len([r for r in these if isinstance(r, SerialLoop)]) > 1:
            raise AxisError(
                f"xmap: axis_resources gives axis {name!r} two loops: {said!r}",
                fix="write one SerialLoop with the product of their lengths",
            )
        found[name] = these
    return found


class Layout(NamedTuple):
    """The resources that a logical axis is laid out on.

    Attributes:
      name: the name of the axis.
      size: the number of its elements.
      mesh_axes: (name, size) of the axes of the mesh, the first slowest.
      turns: the length of its loop, 1 without one.
      lane: the name of its lanes.
    """

    name: str
    size: int
    mesh_axes: tuple[tuple[str, int], ...]
    turns: int
    lane: Lane

    @property
    def lanes(self) -> int:
        """The number of elements that one device processes at once."""
        return self.size // (prod([k for _, k in self.mesh_axes]) * self.turns)

    @property
    def parts(self) -> tuple[tuple[Any, int], ...]:
        """(name, size) of each part that a collective along the axis covers."""
        if self.mesh_axes and self.lanes == 1:
            return self.mesh_axes
        return *self.mesh_axes, (self.lane, self.lanes)

    @property
    def over(self) -> tuple[str, ...]:
        """The names of the axes of the mesh."""
        return tuple([name for name, _ in self.mesh_axes])


def laid_out(
    name: str,
    size: int,
    resources: tuple[Any, ...],
    lane: Lane,
    mesh: Mesh | None,
    taken: Mapping[str, str],
) -> Layout:
    """Return the layout of an axis on its resources.

    `taken` maps the mesh axes that a surrounding xmap uses to its logical axes.  Raises
    MissingMesh if the mesh lacks an axis; AxisError if an axis is taken, or if the resources do not
    divide the size.
    """
    over = tuple([r for r in resources if isinstance(r, str)])
    sizes = {} if mesh is None else mesh.shape
    missing = [r for r in over if r not in sizes]
    if missing:
        raise MissingMesh(
            f"xmap: axis {name!r} is to be laid out on {missing[0]!r}, and "
            + (f"{mesh!r} has no such axis" if mesh is not None else "no mesh is in context"),
            fix=f"call it where there is one: with Mesh(devices, ({missing[0]!r}, ...)): ...",
        )
    for r in over:
        if r in taken:
            raise AxisError(
                f"xmap: axis {name!r} is to be laid out on {r!r}, which axis {taken[r]!r} of an "
                "xmap around it is laid out on",
                fix="give one of them another axis of the mesh",
            )
    mesh_axes = tuple([(r, sizes[r]) for r in over])
    devices = prod([k for _, k in mesh_axes])
    turns = prod([r.length for r in resources if isinstance(r, SerialLoop)])
    if size % (devices * turns) != 0:
        raise AxisError(
            f"xmap: Size of axis {name!r} ({size}) is not divisible by the total resource count "
            f"({devices * turns} from {', '.join(map(repr, resources))})",
            fix="give it a size that is a multiple of that, or fewer resources",
        )
    return Layout(name, size, mesh_axes, turns, lane)
