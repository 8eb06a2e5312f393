"""shard_map: a program for one device, run on every device of a mesh.

Invariant: `in_specs` and `out_specs` say, for each operand and result, which mesh axes each of its
axes is divided over.  They are the only parameters that speak of axes of arrays, and are rebuilt
from the axis maps of components: an axis that a transformation adds is not divided.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft.calls import Traced, arguments, trace
from weft.errors import AxisError, TypeRule, WeftError
from weft.interpreter import Interpreter, current
from weft.ir import Program, derived, ordered
from weft.ops.higher import expect
from weft.primitive import Primitive
from weft.staging import Stage
from weft.tree import key_paths, spread
from weft.types import INT32, Aval
from weft.wiring import Wiring
from weft.xla.lower import Emitter, lower_rules
from weft.xla.mlir import attr

from .collectives import Binder
from .mesh import Mesh, PartitionSpec
from .placement import Grid, NamedSharding, piece_shape, quoted, spec_text
from .variance import varying

__all__ = ["shard_map", "shard_map_p"]

# ---- the operation -------------------------------------------------------------------------


class Manual(Wiring):
    """One program on the pieces of all operands; it binds the axes of the mesh."""

    def rebuild(self, params, programs, parts, operands, extra):
        n = len(params["in_specs"])
        specs = zip((*params["in_specs"], *params["out_specs"]), parts, strict=True)
        moved = [tuple([p.spread(spec, ()) for p in ps]) for spec, ps in specs]
        whole = [((),) * v.aval.ndim for v in extra]
        return [*extra, *operands], {
            "program": programs[0],
            "mesh": params["mesh"],
            "in_specs": (*whole, *sum(moved[:n], ())),
            "out_specs": sum(moved[n:], ()),
        }

    def binds(self, params):
        return frozenset(params["mesh"].axis_names)


def _rule(*xs: Aval, program: Program, mesh: Mesh, in_specs: tuple, out_specs: tuple) -> list[Aval]:
    """Apply `program` to the pieces of the operands, on each device of a mesh; the pieces of its
    results make ours."""
    acts = ordered([program])
    if acts:
        raise WeftError(
            f"shard_map: what happens in order ({', '.join(e.name for e in acts)}) can not be "
            "ordered over devices that run at once",
            fix="leave out ordered=True, or do it outside of shard_map",
        )
    pieces = [
        x.with_shape(piece_shape(mesh, x, spec)) for x, spec in zip(xs, in_specs, strict=True)
    ]
    expect("shard_map", program.in_avals, pieces)
    return [
        y.with_shape([n * mesh.product(names) for n, names in zip(y.shape, spec, strict=True)])
        for y, spec in zip(program.out_avals, out_specs, strict=True)
    ]


shard_map_p = Primitive("sharding.shard_map", _rule, many=True, higher=Manual())


@lower_rules.rule(shard_map_p)
def _(e: Emitter, xs, ins, outs, program, mesh, in_specs, out_specs):
    if any(isinstance(b, Binder) for b in e.bound.values()):
        raise _nested(mesh)
    place = Grid(mesh)
    e.unit.run_at(place)
    symbol = place.symbol(e.unit)
    # the region is closed: what every function is passed in front are operands, too
    sizes, constants = list(e.dims), program.constants
    front = [*e.dims.values(), *(e.consts[k] for k in constants)]
    types = [Aval((), INT32)] * len(sizes) + [x.aval for x in constants.values()]
    whole = [((),) * t.ndim for t in types]

    def body(b: Emitter, vs: list) -> list:
        b.dims = dict(zip(sizes, vs))
        b.consts = dict(zip(constants, vs[len(sizes) :]))
        return b.program(program, vs[len(front) :])

    r = e.op(
        "sdy.manual_computation",
        [*front, *xs],
        *outs,
        end="sdy.return",
        bound={**e.bound, **dict.fromkeys(mesh.axis_names, Binder(mesh))},
        regions=[([*types, *program.in_avals], body)],
        in_shardings=_texts(symbol, [*whole, *in_specs]),
        out_shardings=_texts(symbol, out_specs),
        manual_axes=attr(f"#sdy<manual_axes{{{', '.join(map(quoted, mesh.axis_names))}}}>"),
    )
    results = [r] if len(outs) == 1 else r
    for y, spec in zip(results, out_specs):
        e.unit.placements[y] = NamedSharding(mesh, PartitionSpec(*spec))
    return results


def _texts(symbol: str, specs: Sequence[tuple]) -> Any:
    each = ", ".join([spec_text(symbol, s) for s in specs])
    return attr(f"#sdy.sharding_per_value<[{each}]>")


def _nested(mesh: Mesh) -> WeftError:
    return WeftError(
        f"shard_map over {mesh!r} inside shard_map, where there is one device",
        fix="use one shard_map, over a mesh that has the axes of both",
    )


# ---- as users say it -----------------------------------------------------------------------


class Piece(Stage):
    """Stages the program of one device."""

    def __init__(self, parent: Interpreter, mesh: Mesh, of: Callable):
        super().__init__(parent, "shard_map", of)
        self.sizes = mesh.shape  # type: ignore[misc]


def shard_map(
    f: Callable | None = None,
    /,
    mesh: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    *,
    check_vma: bool = True,
) -> Callable:
    """`f` on the pieces of its arguments: one program, run on every device of the mesh.

    Inside, arrays are one device's, and collectives (`lax.psum`, ...) speak of the axes of the
    mesh by name.  Derivatives that are taken inside are those of one device's program, as under
    vmap with an axis_name; derivatives of the whole are taken outside.

    Args:
      f: takes and returns trees of arrays; without it, a decorator is returned.
      mesh: the devices.
      in_specs: a PartitionSpec for each argument, a tree prefix of the tuple of arguments; an
        axis that is not divided is there whole on every device.
      out_specs: how the results are put together from their pieces, a tree prefix of the results.
      check_vma: whether to refuse a result that may differ along an axis of the mesh which its
        PartitionSpec does not name.  Without the check, what differs is any of the values, and
        its derivative that of their mean.

    Returns:
      A function with `f`'s signature.  As with jit, the Python of `f` runs once per types of its
      arguments.

    Raises:
      AxisError: a PartitionSpec names an axis that the mesh does not have, or has too many
        entries; a size can not be divided evenly; a result may differ.
      TreeMismatch: in_specs or out_specs is no prefix of the arguments or results.
      WeftError: `f` does something in order, or contains a shard_map.

    >>> import weft as wf
    >>> mesh = wf.make_mesh((1,), ("x",))
    >>> f = wf.shard_map(
    ...     lambda v: wf.lax.psum(v.sum(), "x"), mesh=mesh, in_specs=wf.P("x"), out_specs=wf.P()
    ... )
    >>> f(wf.numpy.arange(4.0))
    Array(6., dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_vma
        )
    if not callable(f):
        raise TypeRule(f"shard_map needs a function, not {f!r}", fix="write shard_map(f, ...)")
    if not isinstance(mesh, Mesh):
        raise TypeRule(
            f"shard_map needs a mesh, not {mesh!r}", fix="pass mesh=make_mesh(sizes, names)"
        )
    keep: dict = {}

    @functools.wraps(f, updated=())
    def mapped(*args: Any) -> Any:
        _not_inside(mesh)
        values, tree = arguments(args, {}, "shard_map")
        paths = functools.partial(key_paths, args)
        ins = _full(mesh, in_specs, args, values, "in_specs", paths)
        pieces = tuple([v.aval.with_shape(s) for v, s in zip(values, _pieces(mesh, values, ins, paths))])
        a, _ = tree.unflatten(values)
        traced = trace(f, a, {}, "shard_map", keep, Piece(current(), mesh, f), pieces)
        program = traced.program
        like = traced.tree.unflatten(list(range(len(program.outputs))))
        outs = _full(mesh, out_specs, like, program.outputs, "out_specs", lambda: key_paths(like))
        ins = (*(((),) * v.aval.ndim for v in traced.captured), *ins)
        if check_vma:
            _level(mesh, traced, ins, outs, like)
        results = shard_map_p.bind(
            *traced.captured, *values, program=program, mesh=mesh, in_specs=ins, out_specs=outs
        )
        return traced.tree.unflatten(results)

    return mapped


def _not_inside(mesh: Mesh) -> None:
    by: Interpreter | None = current()
    while by is not None:
        if isinstance(by, Piece):
            raise _nested(mesh)
        by = by.parent


def _full(
    mesh: Mesh, specs: Any, value: Any, xs: Sequence[Any], what: str, paths: Callable
) -> tuple:
    """An entry for every axis of every leaf of `value`."""
    if isinstance(specs, list):
        specs = tuple(specs)
    entry = "a PartitionSpec"
    found = spread(specs, value, what, lambda s: isinstance(s, PartitionSpec), entry)
    for spec in dict.fromkeys(found):
        mesh.check(spec)
        if None in spec.parts:
            raise AxisError(
                f"shard_map: {what} leaves an axis to the compiler: {spec!r}",
                fix="inside shard_map sizes must be known: write a name or None",
            )
    return tuple(
        [
            spec.full(x.aval.ndim, f"{what[:-6].replace('in', 'argument').replace('out', 'result')}{paths()[i]}, {x.aval!r},")
            for i, (spec, x) in enumerate(zip(found, xs, strict=True))
        ]
    )
