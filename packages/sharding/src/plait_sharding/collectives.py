"""Collectives inside shard_map: communication between the devices of a mesh.

Invariant: the interpreter that binds an axis lowers the operations along it.  Here the axes are
those of one mesh, and groups of devices are given by their positions in its order.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from plait.ext.errors import PlaitError
from plait.ext.ir import Primitive
from plait.ext.lower import Emitter, IrValue, attr, i64, matrix
from plait.ext.ops import collective
from plait.ext.rules import RuleTable
from plait.ext.types import INT32, UINT32, Aval

from .mesh import Mesh
from .named_shardings import Grid
from .tilings import quoted, spec_text

__all__ = ["Binder", "manual_rules"]

manual_rules = RuleTable(
    "manual",
    signature="(e, mesh, xs, ins, outs, **params)",
    doc="one MLIR value: what a primitive that "
    "speaks of axes of the mesh is on one of its devices.",
)


class Binder(NamedTuple):
    """The mesh whose axes are bound while a module is lowered, and its lowering rules."""

    mesh: Mesh

    def lowering(self, prim: Primitive) -> Any:
        """Return the lowering rule of a primitive on this mesh."""
        rule = manual_rules[prim]
        return lambda e, xs, ins, outs, /, **params: rule(e, self.mesh, xs, ins, outs, **params)

    def once(
        self,
        e: Emitter,
        xs: list[IrValue],
        ins: list[Aval],
        outs: list[Aval],
        act: Callable[..., Any],
    ) -> Any:
        """Emit an operation with effects, which happens once for each position along the axes that
        are bound.

        The compiler refuses effects where it may divide values, so the first position along the
        other axes does it.
        """
        left = tuple([n for n in self.mesh.axis_names if n not in e.bound])
        if not left:
            return act(e, xs)
        if outs:
            raise PlaitError(
                "shard_map: a callback with effects returns results to devices along "
                f"{' and '.join(map(repr, left))}, which axis_names leaves to the compiler",
                fix="leave axis_names out; or use pure_callback, or a callback without results",
            )
        at_first = lambda b, vs: _at_first(b, self.mesh, left, vs, act)  # noqa: E731
        return _by_hand(e, self.mesh, left, xs, ins, (), at_first)


@cache
def _groups(mesh: Mesh, names: tuple[str, ...], groups: tuple) -> Any:
    """Return the replica groups along these axes; `groups` divides those of a single axis further.

    StableHLO can name whole axes, in a text that does not grow with the mesh.  But where a module
    has two meshes, jaxlib 0.10 looks the names up in the wrong one.
    """
    rows = [tuple(row) for row in mesh.groups(names)]
    if groups:
        rows = [tuple([row[i] for i in g]) for row in rows for g in groups]
    longest = max(map(len, rows))
    return matrix(tuple([(*row, *(-1,) * (longest - len(row))) for row in rows]))


@cache
def _alone(mesh: Mesh, names: tuple[str, ...], groups: tuple) -> bool:
    """Return whether every group is a single device, so that there is nothing to combine."""
    return max(map(len, groups or mesh.groups(names))) == 1


@cache
def _along(mesh: Mesh, names: tuple[str, ...], groups: tuple = ()) -> dict[str, Any]:
    """Return the attributes of an operation between the devices that differ along these axes."""
    return {
        "replica_groups": _groups(mesh, names, groups),
        "channel_handle": _channel(),
        "use_global_device_ids": attr("unit"),
    }


def _channel() -> Any:
    return attr("#stablehlo.channel_handle<handle = 1, type = 1>")


def _combining(name: str, aval: Aval) -> list:
    """Return the region that combines two elements."""
    cell = Aval((), aval.dtype)
    return [((cell, cell), lambda b, pair: [b.op("stablehlo." + name, pair, cell)])]


def _reduction(prim: Primitive, name: str) -> None:
    @manual_rules.rule(prim)
    def _(
        e: Emitter,
        mesh: Mesh,
        xs: list[IrValue],
        ins: list[Aval],
        outs: list[Aval],
        *,
        axes: tuple[str, ...],
        groups: tuple[tuple[Any, ...], ...] = (),
    ):
        if _alone(mesh, axes, groups):
            return xs[0] if len(xs) == 1 else list(xs)
        along = {**_along(mesh, axes, groups), "regions": _combining(name, ins[0])}
        return e.op("stablehlo.all_reduce", xs, *outs, **along)


_reduction(collective.psum_, "add")
_reduction(collective.pmax_, "maximum")
_reduction(collective.pmin_, "minimum")


def _tuple(name: Any) -> tuple[str, ...]:
    """Return the mesh axes of an operation as a tuple."""
    return name if name.__class__ is tuple else (name,)


def _device(e: Emitter, mesh: Mesh) -> Any:
    """Return the number of the device.

    `partition_id` is defined only where no axis is left to the compiler, so a nested
    `manual_computation` makes the remaining axes manual.
    """
    u32 = Aval((), UINT32)
    left = [n for n in mesh.axis_names if n not in e.bound]
    if not left:
        return e.op("stablehlo.partition_id", [], u32)
    number = lambda b, _: [b.op("stablehlo.partition_id", [], u32)]  # noqa: E731
    return _by_hand(e, mesh, left, [], [], [u32], number)


def _by_hand(
    e: Emitter,
    mesh: Mesh,
    axes: Sequence[str],
    xs: list[IrValue],
    ins: list[Aval],
    outs: Sequence[Aval],
    body: Callable,
) -> Any:
    """Emit `body(emitter, xs)` where these axes are divided by hand as well, on whole values."""
    symbol = Grid(mesh).symbol(e.unit)
    whole = lambda avals: ", ".join([spec_text(symbol, ((),) * a.ndim) for a in avals])  # noqa: E731
    return e.op(
        "sdy.manual_computation",
        xs,
        *outs,
        end="sdy.return",
        bound={**e.bound, **dict.fromkeys(axes, Binder(mesh))},
        regions=[(ins, body)],
        in_shardings=attr(f"#sdy.sharding_per_value<[{whole(ins)}]>"),
        out_shardings=attr(f"#sdy.sharding_per_value<[{whole(outs)}]>"),
        manual_axes=attr(f"#sdy<manual_axes{{{', '.join(map(quoted, axes))}}}>"),
    )


def _at_first(
    e: Emitter, mesh: Mesh, axes: Sequence[str], xs: list[IrValue], act: Callable
) -> list:
    """Emit `act(emitter, xs)`, without results, for the first position along these axes."""
    i32 = Aval((), INT32)
    place: Any = e.constant(0, i32)
    for n in axes:
        place = e.op("stablehlo.add", [place, _index(e, mesh, n, i32)], i32)
    acts = lambda b, _: act(b, xs)  # noqa: E731
    e.op("stablehlo.case", [place], regions=[((), acts), ((), lambda b, _: [])])
    return []


@manual_rules.rule(collective.axis_index_)
def _(e: Emitter, mesh: Mesh, xs: list[Any], ins: list[Any], outs: list[Aval], *, name: str):
    return _index(e, mesh, name, *outs)


def _index(e: Emitter, mesh: Mesh, name: str, out: Aval) -> Any:
    """Compute the index along one axis from the device number, whose last axis varies fastest."""
    at = mesh.axis_names.index(name)
    size, faster = mesh.axis_sizes[at], math.prod(mesh.axis_sizes[at + 1 :])
    u32 = Aval((), UINT32)
    place = _device(e, mesh)
    if faster > 1:
        place = e.op("stablehlo.divide", [place, e.constant(faster, u32)], u32)
    if faster * size < mesh.size:
        place = e.op("stablehlo.remainder", [place, e.constant(size, u32)], u32)
    return e.op("stablehlo.convert", [place], out)


@manual_rules.rule(collective.all_gather_)
def _(
    e: Emitter,
    mesh: Mesh,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    *,
    name: str | tuple[str, ...],
    axis: int,
    size: int,
    groups: tuple[tuple[Any, ...], ...] = (),
):
    along = _along(mesh, _tuple(name), groups)
    return e.op("stablehlo.all_gather", xs, *outs, all_gather_dim=i64(axis), **along)


@manual_rules.rule(collective.psum_scatter_)
def _(
    e: Emitter,
    mesh: Mesh,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    *,
    name: str | tuple[str, ...],
    axis: int,
    size: int,
    groups: tuple[tuple[Any, ...], ...] = (),
):
    regions, along = _combining("add", ins[0]), _along(mesh, _tuple(name), groups)
    at = i64(axis)
    return e.op(
        "stablehlo.reduce_scatter", xs, *outs, regions=regions, scatter_dimension=at, **along
    )


@manual_rules.rule(collective.ppermute_)
def _(
    e: Emitter,
    mesh: Mesh,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    *,
    name: str | tuple[str, ...],
    perm: tuple[tuple[Any, ...], ...],
    size: int,
):
    pairs = tuple([(g[i], g[j]) for g in mesh.groups(_tuple(name)) for i, j in perm])
    if not pairs:  # no device sends, and every device receives zeros
        return e.constant(0, outs[0])
    moves = {"source_target_pairs": matrix(pairs), "channel_handle": _channel()}
    return e.op("stablehlo.collective_permute", xs, *outs, **moves)


@manual_rules.rule(collective.all_to_all_)
def _(
    e: Emitter,
    mesh: Mesh,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    *,
    name: str,
    split: int,
    concat: int,
    size: int,
    groups: tuple[tuple[Any, ...], ...] = (),
):
    how = {"split_dimension": i64(split), "concat_dimension": i64(concat), "split_count": i64(size)}
    among, channel = _groups(mesh, _tuple(name), groups), _channel()
    return e.op(
        "stablehlo.all_to_all", xs, *outs, **how, replica_groups=among, channel_handle=channel
    )
