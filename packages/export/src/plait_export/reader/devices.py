"""Reading per-device regions and collectives.

A region is read as `shard_map`.  The artifact gives names and sizes of the mesh axes but no
devices; the devices are chosen when the program is lowered again.  In the module devices are
numbers; here they are places along axes, as in the original program.

Types record the axes along which values vary, as in a `shard_map` with checks.  A region may return
as replicated a value that could differ between devices.  It was written without checks, and is read
without them.

Invariant: device numbers become axis names only if both mean the same for all devices; anything
else is refused.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, permutations
from math import prod
from typing import Any, NamedTuple

import numpy as np

import plait
from plait import lax
from plait.ext.errors import AxisError

from ..errors import NotReadable
from .comparisons import body_of
from .module import Block, Divided, Op
from .sizes import Known, Place
from .table import OF_SEVERAL_DEVICES, RULES, reads, refuses
from .walking import Walk, takes_known

Axes = tuple[tuple[str, int], ...]


class Region(NamedTuple):
    """The region around a per-device operation.

    Attributes:
      mesh: (name, size) of each axis.
      bound: the names of the manual axes, along which each device runs its own program.
    """

    mesh: Axes
    bound: frozenset[str]

    def moving(self) -> list[str]:
        """Return the bound axes with more than one device, in order."""
        return [n for n, k in self.mesh if k > 1 and n in self.bound]


# ---- regions -------------------------------------------------------------------------------


@reads("sdy.manual_computation")
@takes_known
def _(walk: Walk, op: Op, xs):
    (body,), outer = op.regions, walk.region
    if not xs and outer is not None and _asks_where(body):
        # Such a region only makes the remaining axes manual, without which the device number is
        # undefined.
        return [_number_of(outer)]
    ins, outs = (_divided(op, side) for side in ("in_shardings", "out_shardings"))
    axes = frozenset(op.attributes["manual_axes"])
    (mesh,) = {d.mesh for d in (*ins, *outs)}
    region = Region(mesh, axes if outer is None else outer.bound | axes)
    if outer is not None and (outer.mesh != mesh or outer.bound & axes):
        raise NotReadable(f"{op.name} divides what a region around it has divided")
    entries = [[_by_hand(d, mesh, axes) for d in side] for side in (ins, outs)]
    # Sizes and other known values are the same on all devices.
    given = [i for i, x in enumerate(xs) if x.__class__ is not Known or any(entries[0][i])]

    def of_one(*pieces: Any) -> tuple:
        found = list(xs)
        for i, x in zip(given, pieces, strict=True):
            found[i] = x
        before, walk.region = walk.region, region
        try:
            return tuple([walk.value(y) for y in walk.block(body, found)])
        finally:
            walk.region = before

    sizes, names = [k for _, k in mesh], [n for n, _ in mesh]
    over = plait.sharding.AbstractMesh(sizes, names)
    specs = [[plait.P(*e) for e in side] for side in entries]
    values = [walk.value(xs[i]) for i in given]

    def mapped(checked: bool) -> list:
        f = plait.shard_map(
            of_one, over, tuple([specs[0][i] for i in given]), tuple(specs[1]),
            axis_names={*axes}, check_vma=checked,
        )  # fmt: skip
        return list(f(*values))

    with plait.sharding.set_mesh(None):  # The program must not depend on the current devices.
        try:
            return mapped(True)
        except AxisError:
            return mapped(False)


def _divided(op: Op, side: str) -> Sequence[Divided]:
    found = op.attributes[side]
    if any(d is None for d in found):
        raise NotReadable(f"{op.name} divides by parts of axes, or over devices out of their order")
    return found


def _by_hand(d: Divided, mesh: Axes, axes: frozenset[str]) -> tuple[tuple[str, ...], ...]:
    """Return the manual axes that divide each axis of a value.

    Mesh axes of size 1 are left out: they divide nothing, and nothing varies along them.
    """
    sizes = dict(mesh)
    return tuple([tuple([n for n in names if n in axes and sizes[n] > 1]) for names in d.spec])


def _asks_where(body: Block) -> bool:
    """Return whether a region only returns the device number."""
    names = [op.name for op in body.ops]
    return names == ["stablehlo.partition_id"] and body.returned == body.ops[0].results


# ---- where we are --------------------------------------------------------------------------


@reads("stablehlo.partition_id")
def _(walk: Walk, op: Op, xs: object):
    return _number_of(_around(walk, op))


def _number_of(region: Region) -> Place:
    return Place(region.mesh, 1, prod([k for _, k in region.mesh]), np.dtype(np.uint32))


def _around(walk: Walk, op: Op) -> Region:
    if walk.region is None:
        raise NotReadable(f"{op.name} is done outside of what single devices do")
    return walk.region


# ---- collectives ---------------------------------------------------------------------------


@cache
def _lines(mesh: Axes, along: tuple[str, ...]) -> np.ndarray:
    """Return device numbers in rows; the devices of a row differ along these axes only."""
    names = [n for n, _ in mesh]
    grid = np.arange(prod([k for _, k in mesh])).reshape([k for _, k in mesh])
    at = [names.index(n) for n in along]
    rest = [i for i in range(len(mesh)) if i not in at]
    return grid.transpose([*rest, *at]).reshape(-1, prod([mesh[i][1] for i in at]))


def _some(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield all subsets of axes, small ones first."""
    for n in range(len(names) + 1):
        yield from combinations(names, n)


def _in_lines(region: Region, rows: Sequence[Sequence[int]]) -> Any:
    """Return (axes, rows of places along them) that are equivalent to rows of devices.

    The rows of places must be the same on every line of devices along the axes.  Returns None if
    no axes fit.
    """
    for along in _some(region.moving()):
        lines = _lines(region.mesh, along)
        line, place = np.empty((2, lines.size), int)
        line[lines] = np.arange(len(lines))[:, None]
        place[lines] = np.arange(lines.shape[1])
        said: list[list] = [[] for _ in lines]
        for row in rows:
            if len({*line[row]}) > 1:
                break
            said[line[row[0]]].append(tuple(place[row].tolist()))
        else:
            first = sorted(said[0])
            if all(sorted(each) == first for each in said[1:]):
                return along, first
    return None


def _groups(walk: Walk, op: Op, ordered: bool = True) -> tuple[Any, dict[str, Any]] | None:
    """Return (axis names, parameters with groups along them) of a collective.

    Returns None if each group is a single device.  `ordered` is false if the order of devices in a
    group does not matter.
    """
    region, said = _around(walk, op), op.attributes["replica_groups"]
    by_number = op.attributes.get("use_global_device_ids", op.name == "stablehlo.all_to_all")
    count = prod([k for _, k in region.mesh])
    if "channel_handle" not in op.attributes or by_number is False or said.__class__ is str:
        raise NotReadable(f"{op.name} is not among devices by their numbers")
    rows = [[n for n in row if n >= 0] for row in said.tolist()]
    if sorted(n for row in rows for n in row) != list(range(count)):
        raise NotReadable(f"{op.name} is among {rows}, which are not all of {count} devices")
    found = _in_lines(region, rows if ordered else [*map(sorted, rows)])
    if found is None:
        raise _odd(op, region)
    along, groups = found
    if not along:
        return None
    if len(groups) == 1:
        for order in permutations(along):
            if _same_order(region.mesh, along, order, groups[0]):
                return order, {}
    if len(along) > 1:
        raise _odd(op, region)
    return along, {"axis_index_groups": [list(g) for g in groups]}


def _same_order(mesh: Axes, along: tuple, order: tuple, group: Sequence[int]) -> bool:
    """Return whether a group lists all places in the order that permuted axes count them."""
    line = _lines(mesh, along)[0]
    return line[list(group)].tolist() == _lines(mesh, order)[0].tolist()


def _odd(op: Op, region: Region) -> NotReadable:
    names = " and ".join([repr(n) for n, _ in region.mesh])
    return NotReadable(f"{op.name} is among devices that no axes, of {names}, tell from others")


def _each(
    walk: Walk, op: Op, xs: list, collective: Callable, ordered: bool = True, **how: object
) -> list:
    """Apply a collective to each value; return the values unchanged for groups of one device."""
    among = _groups(walk, op, ordered)
    if among is None:
        return xs
    names, groups = among
    return [collective(x, names, **how, **groups) for x in xs]


@reads("stablehlo.all_reduce")
def _(walk: Walk, op: Op, xs):
    combine = _COMBINED.get(_combines(op, xs[0]))
    if combine is None:
        raise NotReadable(f"{op.name} combines by a function that is not a sum or extreme")
    return _each(walk, op, xs, combine, ordered=False)


def _combines(op: Op, x: Any) -> str:
    """Return the operation that combines elements; booleans use maximum and minimum."""
    body = str(body_of(op.regions[0]))
    return _OF_FLAGS.get(body, body) if x.aval.dtype == np.bool_ else body


_COMBINED = {
    "stablehlo.add": lax.psum,
    "stablehlo.maximum": lax.pmax,
    "stablehlo.minimum": lax.pmin,
}
_OF_FLAGS = {
    "stablehlo.add": "stablehlo.maximum", "stablehlo.or": "stablehlo.maximum",
    "stablehlo.maximum": "stablehlo.maximum", "stablehlo.and": "stablehlo.minimum",
    "stablehlo.multiply": "stablehlo.minimum", "stablehlo.minimum": "stablehlo.minimum",
}  # fmt: skip


@reads("stablehlo.reduce_scatter")
def _(walk: Walk, op: Op, xs):
    if _combines(op, xs[0]) != "stablehlo.add":
        raise NotReadable(f"{op.name} combines by a function that is not a sum")
    at = op.attributes["scatter_dimension"]
    return _each(walk, op, xs, lax.psum_scatter, scatter_dimension=at, tiled=True)


@reads("stablehlo.all_gather")
def _(walk: Walk, op: Op, xs):
    return _each(walk, op, xs, lax.all_gather, axis=op.attributes["all_gather_dim"], tiled=True)


@reads("stablehlo.all_to_all")
def _(walk: Walk, op: Op, xs):
    split, concat = (op.attributes[f"{k}_dimension"] for k in ("split", "concat"))
    return _each(walk, op, xs, lax.all_to_all, split_axis=split, concat_axis=concat, tiled=True)


@reads("stablehlo.collective_permute")
def _(walk: Walk, op: Op, xs):
    region, pairs = _around(walk, op), op.attributes["source_target_pairs"]
    if "channel_handle" not in op.attributes:
        raise NotReadable(f"{op.name} is not among devices by their numbers")
    found = _in_lines(region, pairs.tolist())
    if found is None:
        raise _odd(op, region)
    along, moves = found
    if not along:
        return xs if moves else [plait.numpy.zeros(x.aval.shape, x.aval.dtype) for x in xs]
    return [lax.ppermute(x, along, moves) for x in xs]


refuses(
    "it says what each of several devices does, in a way that Plait has no word for",
    *[name for name in OF_SEVERAL_DEVICES if name not in RULES],
)
