"""Batching of with_sharding_constraint, inspect_array_sharding and shard_map.

The compiler chooses the sharding of the mapped axis, unless vmap's `spmd_axis_name` names the mesh
axes that divide it.  Then each device of a shard_map has its part of the elements, and the program
of one device is mapped over that part.

Invariant: only the table of plait_batching loads this.
"""

from typing import Any

from plait.ext.errors import AxisError
from plait.ext.trace import Value, rebuilt, solve, varying_inputs
from plait_batching.ext import Batch, batching_rules, insert

from .inspection import inspect_p
from .manual import shard_map_p
from .mesh import Mesh, PartitionSpec
from .named_shardings import NamedSharding
from .placement import constraint, release, transfer


def _names(batch: Batch) -> tuple[str, ...] | None:
    """Return the mesh axes that the mapped axis is divided over; None if vmap gives none.

    Releases of plait_batching before 0.3 have no such attribute.
    """
    return getattr(batch, "spmd_axis_name", None)


@batching_rules.rule(constraint)
def _(batch, xs: list[Value], dims: list[int], *, sharding: NamedSharding):
    (x,), (d,), names = xs, dims, _names(batch)
    if d is None:
        return constraint.bind(x, sharding=sharding), None
    ndim = x.aval.ndim - 1
    if names is None:
        return constraint.bind(x, sharding=sharding.open_at(d, ndim)), d
    return constraint.bind(x, sharding=sharding.divided_at(d, ndim, names)), d


@batching_rules.rule(transfer)
def _(batch, xs: list[Value], dims: list[int], *, sharding: NamedSharding, source: NamedSharding):
    (x,), (d,) = xs, dims
    ndim = x.aval.ndim - 1
    over = [s.open_at(d, ndim) for s in (sharding, source)]
    return transfer.bind(x, sharding=over[0], source=over[1]), d


@batching_rules.rule(release)
def _(batch: Batch, xs: list[Value], dims: list[int]):
    return release.bind(*xs), dims[0]


@batching_rules.rule(inspect_p)
def _(batch: Batch, xs, dims: object, *, callback):
    """Inspect the sharding of the array of all elements."""
    return inspect_p.bind(*xs, callback=callback), []


@batching_rules.rule(shard_map_p)
def _(batch, args, params: dict[str, Any]):
    names, mesh, axes = _names(batch), params["mesh"], params["axes"]
    mapped = any(batch.form_of(a) is not None for a in args)
    if mapped and names and not batch.ambient:
        _expect_free(names, params)
        if set(names) <= set(axes):
            return _in_parts(batch, args, params, names)
        if set(names) & set(axes):
            raise AxisError(
                f"vmap divides over {names} (spmd_axis_name), and shard_map divides by hand over "
                f"only some of them, {axes}",
                fix="let the shard_map's axis_names have all of them, or none",
            )
        args = [_constrained(batch, a, mesh, names) for a in args]
    return rebuilt(batch, shard_map_p, args, params, solve(batch, shard_map_p, args, params))


def _expect_free(names: tuple[str, ...], params: dict) -> None:
    """Raise AxisError if the program of one device uses one of these axes of the mesh."""
    mesh, program = params["mesh"], params["program"]
    for n in names:
        if n not in mesh.axis_names:
            raise AxisError(
                f"vmap divides over {n!r} (spmd_axis_name), which {mesh!r} does not have",
                fix=f"its axes are {', '.join(map(repr, mesh.axis_names))}",
            )
        specs = [PartitionSpec(*s) for s in (*params["in_specs"], *params["out_specs"])]
        said = [repr(s) for s in specs if n in s.names]
        said += [f"a collective along {n!r}"] if n in program.axes else []
        if said:
            raise AxisError(
                f"vmap divides the mapped axis over {n!r} (spmd_axis_name), and the shard_map "
                f"inside has {said[0]}",
                fix="leave that name out of one of them",
            )


def _in_parts(batch: Batch, args: list, params: dict, names: tuple[str, ...]) -> list:
    """Bind the operation so that each device has a part of the elements."""
    program, mesh = params["program"], params["mesh"]
    pieces = mesh.product(names)
    if batch.size % pieces != 0:
        raise AxisError(
            f"vmap: {batch.size} elements cannot be divided in {pieces} equal parts, over "
            f"{' and '.join(map(repr, names))} of {mesh!r} (spmd_axis_name)",
            fix=f"map a multiple of {pieces}, or leave spmd_axis_name out",
        )
    if batch.axis_name is not None and batch.axis_name in program.axes - set(params["axes"]):
        raise AxisError(
            f"a collective inside shard_map speaks of the mapped axis {batch.axis_name!r}, whose "
            f"elements are on several devices (spmd_axis_name={names})",
            fix="collect outside of the shard_map, or leave spmd_axis_name out",
        )
    here = Batch(batch.parent, batch.size // pieces, None, names, of=batch.of)
    forms, values = zip(*[(f, x) for f, (x,) in map(batch.split, args)])
    lifted, out_forms = here.lift_program(program, forms)
    if params["typed"]:  # the parts vary along the axes that divide the elements
        lifted = varying_inputs(lifted, frozenset(names), [d is not None for d in forms])
    specs = lambda given, at: tuple([  # noqa: E731
        s if d is None else insert(s, d, names) for s, d in zip(given, at, strict=True)
    ])  # fmt: skip
    new = {
        "program": lifted,
        "in_specs": specs(params["in_specs"], forms),
        "out_specs": specs(params["out_specs"], out_forms),
    }
    outs = shard_map_p.bind(*values, **{**params, **new})
    return [batch.wrap(o, d) for o, d in zip(outs, out_forms, strict=True)]


def _constrained(batch: Batch, x: Any, mesh: Mesh, names: tuple[str, ...]) -> Any:
    """Return `x`, constrained so that the compiler divides its mapped axis over these names."""
    d, (value,) = batch.split(x)
    if d is None:
        return x
    open_ = [PartitionSpec.UNCONSTRAINED] * x.aval.ndim
    where = NamedSharding(mesh, PartitionSpec(*insert(open_, d, names)))
    return batch.wrap(constraint.bind(value, sharding=where), d)
