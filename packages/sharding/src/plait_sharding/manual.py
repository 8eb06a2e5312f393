"""shard_map: a program for one device, run on every device of a mesh.

If it is `typed`, types inside contain the mesh axes along which values may differ (`Aval.vma`), and
derivatives use them.  A value that is not divided is then one value, whose cotangent is the sum of
all devices' cotangents.  Otherwise every device has its own values, and derivatives taken inside
are those of one device's program, as under vmap with an axis_name.

Invariant: `in_specs` and `out_specs` give, for each operand and result, the mesh axes that each of
its axes is divided over.  No other parameter refers to axes of arrays.  They are rebuilt from the
axis maps of components: an axis that a transformation adds is not divided.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.errors import ArgumentError, AxisError, MissingRule, PlaitError, border
from plait.ext.ir import Primitive, Program, ordered
from plait.ext.lower import Emitter, attr
from plait.ext.ops.control_flow import expect
from plait.ext.rules import lower_rules
from plait.ext.trace import (
    Handle,
    Interpreter,
    Lending,
    Slots,
    SplitCall,
    Stage,
    Value,
    Wiring,
    arguments,
    current,
    trace,
    wraps,
)
from plait.ext.tree import TreeDef, exact_key, flatten
from plait.ext.types import INT32, Aval

from .collectives import Binder
from .contexts import MissingMesh, concrete, divide_by_hand, known_here, mesh_here
from .mesh import AbstractMesh, AxisType, Mesh, PartitionSpec
from .named_shardings import Grid, NamedSharding, piece_shape
from .specs import check_level, entries, given_apart, said, spread_specs
from .tilings import quoted, spec_text
from .variance import varying

__all__ = ["manual_here", "shard_map", "shard_map_p"]


class _FromTypes:
    """The default of `in_specs`: the types of the arguments give their division."""

    def __repr__(self) -> str:
        return "<as the types of the arguments say>"

    def __reduce__(self) -> str:
        return "FROM_TYPES"


FROM_TYPES = _FromTypes()
_KEPT = 128
"""The number of programs kept for each function, of meshes and static parts of arguments."""

# ---- the operation -------------------------------------------------------------------------


class Manual(Wiring):
    """The wiring of one program on the pieces of all operands; it binds axes of the mesh."""

    def slots(self, params: dict[str, Any]) -> Slots:
        p = params["program"]
        n, m = len(p.inputs), len(p.outputs)
        ins, outs = range(n), range(n, n + m)
        within: dict[int, frozenset[Any]] = {}
        if params["typed"]:
            for s, spec in enumerate(params["in_specs"]):
                within[s] = frozenset([n for names in spec for n in names])
        cut: dict[int, tuple[int, ...]] = {}
        for s, spec in enumerate((*params["in_specs"], *params["out_specs"])):
            cut[s] = tuple([i for i, names in enumerate(spec) if names])
        return Slots(ins, outs, [(p, ins, outs)], n + m, within=within, cut=cut)

    def rebuild(
        self,
        params: dict[str, Any],
        programs: list[Program],
        parts: list[tuple[Any, ...]],
        operands: list[Value],
        extra: list[Any],
    ) -> tuple[list[Any], dict[str, Any]]:
        n = len(params["in_specs"])
        specs = zip((*params["in_specs"], *params["out_specs"]), parts, strict=True)
        moved = [tuple([p.spread(spec, ()) for p in ps]) for spec, ps in specs]
        whole = [((),) * v.aval.ndim for v in extra]
        _check_whole(params, programs[0], (*whole, *sum(moved[:n], ())), parts[n:])
        return [*extra, *operands], {
            "program": programs[0],
            "mesh": params["mesh"],
            "axes": params["axes"],
            "typed": params["typed"],
            "in_specs": (*whole, *sum(moved[:n], ())),
            "out_specs": sum(moved[n:], ()),
        }

    def binds(self, params: dict[str, Any]) -> frozenset[Any]:
        return frozenset(params["axes"])


def _check_whole(params: dict, program: Program, ins: tuple, outs: Sequence[Any]) -> None:
    """Raise MissingRule if a component of a divided result has no axis for the pieces, and may
    differ between them: one of them would stand for all."""
    flat = [(p, spec) for spec, ps in zip(params["out_specs"], outs, strict=True) for p in ps]
    lacking = [
        frozenset([name for at, names in zip(p.at, spec) if at is None for name in names])
        for p, spec in flat
    ]
    if not any(lacking):
        return
    divided = tuple([frozenset([n for names in spec for n in names]) for spec in ins])
    for (p, _), axes, found in zip(flat, lacking, varying(program, divided), strict=True):
        if axes & found:
            raise MissingRule(
                f"shard_map: a component {p.aval!r} of a result differs between devices along "
                f"{', '.join(map(repr, sorted(axes & found)))}, and has no axis for the pieces",
                fix="let part_axes() name the axis of the component for every axis of the value, "
                "or combine it in the rules (lax.pmax, lax.psum)",
            )


def _rule(
    *xs: Aval,
    program: Program,
    mesh: Mesh | AbstractMesh,
    axes: tuple,
    typed: bool,
    in_specs: tuple,
    out_specs: tuple,
) -> list[Aval]:
    """Apply `program` to the pieces of the operands, at each position along some mesh axes.

    The pieces of its results form the results of the operation.
    """
    acts = ordered([program])
    if acts:
        raise PlaitError(
            f"shard_map: what happens in order ({', '.join(e.name for e in acts)}) cannot be "
            "ordered over devices that run at once",
            fix="leave out ordered=True, or do it outside of shard_map",
        )
    pieces = [
        x.with_shape(piece_shape(mesh, x, spec)) for x, spec in zip(xs, in_specs, strict=True)
    ]
    expect("shard_map", program.in_avals, pieces)
    return [
        _whole(mesh, y.with_shape([n * mesh.product(k) for n, k in zip(y.shape, spec)]), y, spec)
        for y, spec in zip(program.out_avals, out_specs, strict=True)
    ]


def _whole(mesh: Mesh | AbstractMesh, whole: Aval, piece: Aval, spec: tuple) -> Aval:
    """Return the type of a result of several pieces.

    It is divided over the explicit axes of the mesh: as in `out_specs` over the axes that are
    divided by hand, and as the piece over the others.
    """
    if not mesh.explicit_axes:
        return whole
    inner = ((),) * piece.ndim if piece.division is None else piece.division.entries(piece.ndim)
    entries = [(*names, *more) for names, more in zip(spec, inner, strict=True)]
    return whole.with_sharding(NamedSharding(mesh, PartitionSpec(*entries)).explicit)


shard_map_p = Primitive("sharding.shard_map", _rule, many=True, higher=Manual())


@lower_rules.rule(shard_map_p)
def _(e: Emitter, xs, ins, outs, program, mesh, axes, typed, in_specs, out_specs):
    if isinstance(mesh, AbstractMesh):
        mesh = mesh.on(e.unit.place)
    for name, by in e.bound.items():
        if isinstance(by, Binder) and (by.mesh != mesh or name in axes):
            raise _nested(mesh, axes)
    place = Grid(mesh)
    e.unit.run_at(place)
    symbol = place.symbol(e.unit)
    # The region is closed, so sizes and constants of the enclosing function become operands.
    sizes, constants = list(e.dims), e.unit.needs(program)
    front = [*e.dims.values(), *map(e.array, constants.values())]
    types = [Aval((), INT32)] * len(sizes) + [x.aval for x in constants.values()]
    whole = [((),) * t.ndim for t in types]
    alone = len(axes) == len(mesh.axis_names)
    texts = lambda specs: _texts(symbol, specs, not alone)  # noqa: E731

    # Operands without elements are made inside.  The compiler replaces them by constants outside,
    # and then no longer recognises a region whose other operands are unused.
    given = [i for i, a in enumerate(program.in_avals) if not _is_empty(a)]

    def body(b: Emitter, vs: list) -> list:
        b.dims = dict(zip(sizes, vs))
        b.consts = dict(zip(constants, vs[len(sizes) :]))
        known = dict(zip(given, vs[len(front) :], strict=True))
        pieces = [
            known[i] if i in known else b.constant(0, a.physical)
            for i, a in enumerate(program.in_avals)
        ]
        return b.program(program, pieces)

    r = e.op(
        "sdy.manual_computation",
        [*front, *[xs[i] for i in given]],
        *outs,
        end="sdy.return",
        bound={**e.bound, **dict.fromkeys(axes, Binder(mesh))},
        regions=[([*types, *[program.in_avals[i] for i in given]], body)],
        in_shardings=texts([*whole, *[in_specs[i] for i in given]]),
        out_shardings=texts(out_specs),
        manual_axes=attr(f"#sdy<manual_axes{{{', '.join(map(quoted, axes))}}}>"),
    )
    results = [r] if len(outs) == 1 else r
    if alone:  # otherwise the compiler may also divide the results over the other axes
        for y, spec in zip(results, out_specs):
            e.unit.placements[y] = NamedSharding(mesh, PartitionSpec(*spec))
    return results


def _is_empty(a: Aval) -> bool:
    """Return whether the type has no elements for certain."""
    return any(n.__class__ is int and n == 0 for n in a.shape)


def _texts(symbol: str, specs: Sequence[tuple], open_: bool) -> Any:
    each = ", ".join([spec_text(symbol, s, open_) for s in specs])
    return attr(f"#sdy.sharding_per_value<[{each}]>")


def _nested(mesh: Mesh | AbstractMesh, axes: Sequence[str]) -> PlaitError:
    return PlaitError(
        f"shard_map over {' and '.join(map(repr, axes))} of {mesh!r}, inside a shard_map that has "
        "divided them or has another mesh",
        fix="let the outer one leave these axes out of its axis_names, on the same mesh",
    )


# ---- the user's function -------------------------------------------------------------------


class Piece(Stage):
    """A stage for the program of one position along some axes of a mesh."""

    def __init__(
        self,
        parent: Interpreter,
        mesh: Mesh | AbstractMesh,
        axes: Sequence[str],
        typed: bool,
        of: Callable[..., Any],
    ):
        super().__init__(parent, "shard_map", of)
        self.mesh = mesh
        self.sizes = {n: mesh.shape[n] for n in axes}  # type: ignore[misc]
        self.typed_axes = frozenset(axes if typed else ())

    def joins(self, name: str) -> Mesh | AbstractMesh:
        return self.mesh


@border
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    mesh: Any = None,
    in_specs: object = FROM_TYPES,
    out_specs: object = None,
    *,
    axis_names: Any = None,
    check_vma: bool = True,
) -> Callable[..., Any]:
    """Return a function that runs `f` on every device of the mesh, on the pieces of its arguments.

    Inside, arrays are one device's, and collectives (`lax.psum`, ...) name the axes of the mesh.
    The type of an array contains the axes along which it may differ between devices
    (`typeof(x).vma`), and derivatives use them.  An argument that is not divided is one value; its
    gradient, also one taken inside, is the sum over all devices.

    Args:
      f: takes and returns trees of arrays; without it, a decorator is returned.
      mesh: the devices; by default those of the mesh in context (`with mesh:`) at the call.  An
        AbstractMesh stands for the one in context if that has these axes.  Otherwise it stands for
        the devices of the computation's arguments, or for the first ones.  The latter must
        exist to compile, but not to lower.
      in_specs: a PartitionSpec for each argument, a tree prefix of the tuple of arguments; every
        device has the whole of an axis that is not divided.  None is `P()`, and the argument need
        not be an array (a function, a shape).  It may be omitted if all axes divided by hand are
        explicit; then the types of the arguments give the division.
      out_specs: the way in which pieces form the results, a tree prefix of the results.
      axis_names: the axes of the mesh that are divided by hand, a set of names; by default all,
        of a mesh in context those that no surrounding shard_map has divided.
        Over the others the compiler divides arrays inside, as it does outside.
      check_vma: if true, types contain the mesh axes along which values vary; a result that may
        vary along an axis which its PartitionSpec lacks is refused.  If false, such a result is one
        of the values, and its derivative that of their mean.  Derivatives taken inside are then
        those of one device's program, as under vmap with an axis_name.

    Returns:
      A function with `f`'s signature.  As with jit, the Python of `f` runs once per types of its
      arguments.

    Raises:
      AxisError: a PartitionSpec names an axis that the mesh does not have, or has too many
        entries; a size cannot be divided evenly; a result may differ between devices.
      ArgumentError: in_specs is omitted, and an axis that is divided by hand is not explicit.
      TreeMismatch: in_specs or out_specs is not a prefix of the arguments or results.
      PlaitError: `f` has ordered effects, or contains a shard_map over the same axes.
      MissingMesh: no mesh is given, and none is in context.

    >>> import plait
    >>> mesh = plait.make_mesh((1,), ("x",))
    >>> f = plait.shard_map(
    ...     lambda v: plait.lax.psum(v.sum(), "x"),
    ...     mesh=mesh,
    ...     in_specs=plait.P("x"),
    ...     out_specs=plait.P(),
    ... )
    >>> f(plait.numpy.arange(4.0))
    Array(6., dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map,
            mesh=mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    return over_pieces(f, mesh, in_specs, out_specs, axis_names, check_vma, check_vma)


def over_pieces(
    f: Callable[..., Any],
    mesh: AbstractMesh | Mesh | str | None,
    in_specs: object,
    out_specs: object,
    axis_names: set[Any] | None = None,
    check: bool = True,
    typed: bool = False,
) -> Callable[..., Any]:
    """Return `shard_map` of `f`, with or without a check of the results and types with `vma`."""
    if not callable(f):
        raise ArgumentError(f"shard_map needs a function, not {f!r}", fix="write shard_map(f, ...)")
    if mesh is not None:
        _chosen(_a_mesh(mesh), axis_names)
    kept: dict = {}

    @border
    @wraps(f)
    def mapped(*args: object) -> Any:
        over = _a_mesh(mesh_here() if mesh is None else mesh)
        leaves, tree = flatten(args)
        which = [i for i, x in enumerate(leaves) if isinstance(x, Handle)]
        names = _left(over) if mesh is None and not axis_names else axis_names
        if which:
            return with_parts(over, names, Lending(leaves, tree, which), which)
        apart = None if in_specs is FROM_TYPES else given_apart(in_specs, args, leaves)
        if apart is not None:
            return with_static(over, names, tree, *apart)
        return on_pieces(over, _chosen(over, names), args)

    def with_static(
        mesh: Mesh | AbstractMesh, axes: Any, tree: TreeDef, specs: list, call: SplitCall
    ) -> Any:
        """Call `f` with some parts of its arguments as they are, since they are not arrays."""
        n = tree.num_leaves

        @wraps(f)
        def flat(*leaves: object) -> Any:
            return f(*tree.unflatten(leaves))

        def of_arrays() -> Callable[..., Any]:
            rest = call.bind(flat, n)
            return over_pieces(rest, mesh, tuple(specs), out_specs, axes, check, typed)

        try:
            fixed = call.key(n)
        except TypeError:  # objects without a hash: nothing is kept for the next call
            return of_arrays()(*call.args)
        key = exact_key(tree), mesh, tuple(axes or ()), fixed
        if key not in kept:
            if len(kept) >= _KEPT:  # the oldest is made again if it is used again
                del kept[next(iter(kept))]
            kept[key] = of_arrays()
        return kept[key](*call.args)

    def with_parts(
        mesh: Mesh | AbstractMesh, axes: Any, lending: Lending, which: Sequence[int]
    ) -> Any:
        """Call `f` with handles for the pieces of handles' contents, and write the ends back."""
        plain = lending.plain
        specs = _from_types(mesh, axes, plain) if in_specs is FROM_TYPES else in_specs
        specs = spread_specs(specs, plain, "in_specs")
        outer = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        back = (outer, [specs[i] for i in which])

        @wraps(f)
        def run(*args: Any) -> Any:
            args, parts = lending.lent(args)
            out = f(*args)
            return out, lending.returned(parts, out)

        with lending:
            over = over_pieces(run, mesh, in_specs, back, axes, check, typed)
            out, ends = over(*plain)
        lending.restore(ends)
        return out

    def on_pieces(mesh: Mesh | AbstractMesh, axes: tuple[str, ...], args: tuple) -> Any:
        keep = kept.setdefault((mesh, axes), {})
        _not_inside(mesh, axes)
        values, tree = arguments(args, {}, "shard_map", f)
        specs = _from_types(mesh, axes, args) if in_specs is FROM_TYPES else in_specs
        ins = entries(mesh, axes, specs, args, values, "in_specs", f)
        shapes = [
            piece_shape(mesh, v.aval, spec, lambda i=i: said("in_specs", args, i, values[i], f))
            for i, (v, spec) in enumerate(zip(values, ins))
        ]
        pieces = tuple(
            [
                _piece(mesh, axes, v.aval, s, lambda i=i: said("in_specs", args, i, values[i], f))
                for i, (v, s) in enumerate(zip(values, shapes))
            ]
        )
        if typed:
            pieces = tuple([divided(a, spec) for a, spec in zip(pieces, ins)])
        given, _ = tree.unflatten(values)
        by = Piece(current(), mesh, axes, typed, f)
        divide_by_hand(mesh, manual_here().union(axes))
        try:
            traced = trace(f, given, {}, "shard_map", keep, by, pieces)
        finally:
            divide_by_hand(_mesh_around(), manual_here())
        outputs = traced.program.outputs
        like = traced.tree.unflatten(traced.program.out_avals)
        outs = entries(mesh, axes, out_specs, like, outputs, "out_specs")
        ins = (*[((),) * v.aval.ndim for v in traced.captured], *ins)
        if check:
            check_level(axes, traced.program, ins, outs, like)
        results = shard_map_p.bind(
            *traced.captured,
            *values,
            program=traced.program,
            mesh=mesh,
            axes=axes,
            typed=typed,
            in_specs=ins,
            out_specs=outs,
        )
        return traced.tree.unflatten(results)

    return mapped


def _piece(
    mesh: Mesh | AbstractMesh,
    axes: tuple[str, ...],
    aval: Aval,
    shape: tuple[int, ...],
    said: Callable[[], str],
) -> Aval:
    """Return the type of a piece; over other axes of the mesh it is divided as the whole is.

    Raises AxisError if it cannot be; the message names the whole by `said()`.
    """
    piece, inner = aval.with_shape(shape), mesh.typed(axes, AxisType.Manual)
    if aval.division is None or not inner.explicit_axes:
        return piece
    over = aval.division.entries(aval.ndim)
    entries = tuple([tuple([n for n in names if n not in axes]) for names in over])
    piece_shape(inner, piece, entries, lambda: f"the pieces, {piece!r}, of {said()}")
    return piece.with_sharding(NamedSharding(inner, PartitionSpec(*entries)).explicit)


def _from_types(mesh: Mesh | AbstractMesh, axes: Sequence[str] | None, args: tuple) -> Any:
    """Return the PartitionSpec in the type of each argument, for the axes divided by hand."""
    axes = _chosen(mesh, axes)
    values, tree = arguments(args, {}, "shard_map")
    others = [n for n in axes if n not in mesh.explicit_axes]
    if others and values:
        raise ArgumentError(
            f"shard_map got no in_specs, and types say nothing of {others[0]!r}, which is not an "
            "explicit axis of the mesh",
            fix="give in_specs=P('axis', ...) for arguments that are divided, P() for whole ones",
        )
    specs = []
    for aval in [v.aval for v in values]:
        over = () if aval.division is None else aval.division.entries(aval.ndim)
        specs.append(PartitionSpec(*[tuple([n for n in names if n in axes]) for names in over]))
    return tree.unflatten(specs)[0]


def divided(aval: Aval, spec: tuple[tuple[str, ...], ...]) -> Aval:
    """Return the type of a piece, which varies along the axes that its spec divides over."""
    return aval.with_vma(aval.vma.union(*spec))


def _a_mesh(mesh: Any) -> Mesh | AbstractMesh:
    if mesh is None or (isinstance(mesh, AbstractMesh) and mesh.empty):
        raise MissingMesh(
            "shard_map needs a mesh, and none is in context",
            fix="pass mesh=make_mesh(sizes, names), or put one in context: with mesh: ...",
        )
    if isinstance(mesh, AbstractMesh):  # explicit axes in types need a mesh with devices
        return concrete(mesh) if mesh.explicit_axes else known_here(mesh)
    if not isinstance(mesh, Mesh):
        raise ArgumentError(
            f"shard_map needs a mesh, not {mesh!r}",
            fix="pass mesh=make_mesh(sizes, names), or put one in context: with mesh: ...",
        )
    return mesh


def _chosen(mesh: Mesh | AbstractMesh, axis_names: Any) -> tuple[str, ...]:
    """Return the axes divided by hand, in the order of the mesh."""
    if not axis_names:
        return mesh.axis_names
    names = {axis_names} if isinstance(axis_names, str) else set(axis_names)
    unknown = names - set(mesh.axis_names)
    if unknown:
        raise AxisError(
            f"shard_map: axis_names has {min(unknown)!r}, which {mesh!r} does not have",
            fix=f"its axes are {', '.join(map(repr, mesh.axis_names))}",
        )
    return tuple([n for n in mesh.axis_names if n in names])


def _left(mesh: Mesh | AbstractMesh) -> frozenset[str]:
    """Return the axes of a mesh from the context that no surrounding `shard_map` has divided; all
    of them if that leaves none."""
    return frozenset(mesh.axis_names) - manual_here() or frozenset(mesh.axis_names)


def manual_here() -> frozenset[str]:
    """Return the axes of the mesh that a surrounding `shard_map` has divided."""
    found: frozenset[str] = frozenset()
    by: Interpreter | None = current()
    while by is not None:
        if isinstance(by, Piece):
            found = found.union(by.sizes)
        by = by.parent
    return found


def _mesh_around() -> Mesh | AbstractMesh | None:
    """Return the mesh of the surrounding shard_map; None outside.

    It walks the interpreters: reading `surrounding` would make the cache keys of calls depend on
    the mesh.
    """
    by: Interpreter | None = current()
    while by is not None:
        if isinstance(by, Piece):
            return by.mesh
        by = by.parent
    return None


def _not_inside(mesh: Mesh | AbstractMesh, axes: tuple[str, ...]) -> None:
    by: Interpreter | None = current()
    while by is not None:
        if isinstance(by, Piece) and (by.mesh != mesh or by.sizes.keys() & set(axes)):
            raise _nested(mesh, axes)
        by = by.parent
