"""xmap: a function of arrays with named axes, laid out on a mesh, loops or lanes separately.

The function is staged once, for elements; its logical axes are then only names and sizes.  The
program runs under jit(shard_map(loops(vmap(...)))): a logical axis is composed of existing
transformations.  The carrier `Named` rewrites collectives along it to its parts.  So this module
has no primitive, and transformations need no rules for it.

Invariant: between the steps the named axes of arguments and results are in front, in the order in
which xmap's arguments name them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plait import jit, lax
from plait.ext.errors import ArgumentError, AxisError, border, names_of_arguments
from plait.ext.ir import Program, evaluate
from plait.ext.rules import resolve
from plait.ext.trace import (
    Interpreter,
    Stage,
    Value,
    arguments,
    current,
    opened,
    surround,
    surrounding,
    trace,
    wraps,
)
from plait.ext.tree import key_paths, spread
from plait.ext.types import Aval

from .contexts import mesh_here
from .logical_axes import (
    Lane,
    Layout,
    Naming,
    check_sizes,
    laid_out,
    named_in,
    naming_tree,
    resources_of,
    size_of,
)
from .manual import over_pieces
from .mesh import Mesh, P
from .naming import Named
from .variance import varying

__all__ = ["Elements", "xmap"]

At = dict[str, int]
"""The axis of an array that has each name."""


class Elements(Stage):
    """A stage for a function of elements, whose logical axes have sizes only.

    `on_devices` says whether the elements will be on devices of a mesh.
    """

    def __init__(self, parent: Interpreter, sizes: dict[str, int], on_devices: bool, of: Callable):
        super().__init__(parent, "xmap", of)
        self.sizes, self.on_devices = sizes, on_devices  # type: ignore[misc]


@border
def xmap(
    fun: Callable[..., Any],
    in_axes: object,
    out_axes: object,
    *,
    axis_sizes: Mapping[str, int] = {},  # noqa: B006
    axis_resources: Mapping[str, Any] = {},  # noqa: B006
    donate_argnums: int | Sequence[int] = (),
    backend: str | None = None,
) -> Callable[..., Any]:
    """Return a function that applies `fun` at every position along the named axes.

    The names of axes are given here; their layout may be given separately.  Without resources, all
    axes are mapped as by vmap.  With them, axes are divided over axes of the mesh in context
    (`with mesh:`) or done in turns.  Collectives inside (`lax.psum`, ...) use the names, whatever
    the layout.

    Args:
      fun: takes and returns trees of arrays; it sees them without their named axes.
      in_axes: the names of the axes of each argument.  A list has a name for each axis, None for
        an unnamed one, and `...` for all that follow.  A dict maps axes, negative ones counted
        from the end, to names; `{}` passes the whole argument everywhere.  Or a tree prefix of
        these of the tuple of arguments.
      out_axes: the named axes of the results, a tree prefix of the results.
      axis_sizes: sizes of axes that no argument has.
      axis_resources: the layout of axes: the name of an axis of the mesh, a `SerialLoop`, or a
        tuple of these, in which the first name varies slowest.  The rest of an axis is mapped on
        each device.
      donate_argnums: arguments whose memory results may reuse; they are deleted.
      backend: the platform; this process has one.

    Returns:
      A compiled function with `fun`'s positional arguments, and the methods of `jit`'s functions.
      Its names hide surrounding axes of the same name.

    Raises:
      AxisError: names, sizes or axes that do not fit the arrays or each other; a result that
        varies along an axis which its `out_axes` lacks; two axes on one resource where they meet.
      MissingMesh: a resource that is not an axis of a mesh in context.
      TypeRule, TreeMismatch: in_axes or out_axes that do not describe arrays.

    >>> import plait
    >>> f = plait.xmap(
    ...     lambda x, w: plait.lax.psum(x * w, "batch"),
    ...     in_axes=(["batch", ...], {}),
    ...     out_axes={},
    ...     axis_resources={"batch": "x"},
    ... )
    >>> with plait.make_mesh((1,), ("x",)):
    ...     f(plait.numpy.ones((4, 2)), plait.numpy.arange(2.0))
    Array([0., 4.], dtype=float32)
    """
    if not callable(fun):
        raise ArgumentError(f"xmap needs a function, not {fun!r}", fix="write xmap(f, ...)")
    ins, outs = naming_tree(in_axes, "in_axes"), naming_tree(out_axes, "out_axes")
    given, resources = check_sizes(axis_sizes), resources_of(axis_resources)
    order = tuple(dict.fromkeys([*named_in(ins), *given]))
    _expect_known(order, named_in(outs), "axis names appearing in out_axes must also appear")
    _expect_known(order, resources, "axes that were assigned resources have to appear")
    lanes = {n: Lane(n) for n in order}

    @border
    @wraps(fun)
    def mapped(*args: object, **kwargs: object) -> Any:
        if kwargs:
            raise ArgumentError(
                f"xmap: arguments are positional, and {min(kwargs)!r} was given by name",
                fix="give all arguments in order; in_axes speaks of positions",
            )
        values, tree = arguments(args, {}, "xmap", fun)
        told = [f"{names_of_arguments(fun)(p)} of type {x.aval!r}"
                for p, x in zip(key_paths(args), values)]  # fmt: skip
        names = spread(ins, args, "in_axes", _is_naming, "a list or dict of names")
        at = [
            spec.positions(x.aval.ndim, lambda i=i: told[i])
            for i, (spec, x) in enumerate(zip(names, values, strict=True))
        ]
        where = [(p, x.shape, pos) for p, x, pos in zip(told, values, at)]
        sizes = {
            n: size_of(n, [(s, shape, pos[n]) for s, shape, pos in where if n in pos], given.get(n))
            for n in order
        }
        mesh, outer = mesh_here(), surrounding("xmap")
        # Both map an axis of the mesh to the logical axis that is laid out on it.
        around: dict[str, str] = {} if outer is None else dict(outer)  # type: ignore[call-overload]
        layouts = {
            n: laid_out(n, sizes[n], resources.get(n, ()), lanes[n], mesh, around) for n in order
        }
        used = {r: n for n, layout in layouts.items() for r in layout.over}
        avals = tuple([x.aval.with_shape(_without(x.shape, pos)) for x, pos in zip(values, at)])
        elements, _ = tree.unflatten(values)
        surround("xmap", tuple({**around, **used}.items()))
        try:
            stage = Elements(current(), sizes, bool(used), fun)
            traced = trace(fun, elements, {}, "xmap", None, stage, avals)
        finally:
            surround("xmap", outer)
        program, captured = traced.program, traced.captured
        like = traced.tree.unflatten(program.out_avals)
        results = _result_axes(outs, like, program)
        _expect_no_loop(program, layouts)
        _expect_other_names(program, layouts, used)
        _expect_apart(program, [{}] * len(captured) + at, results, layouts, like)
        body = _run(program, captured, layouts, fun)
        for n in reversed(order):
            body = _along(body, layouts[n], at, results)
        if used and mesh is not None:
            body = _over_mesh(body, mesh, layouts, at, results)
        got = body(*[_to_front(x, pos, order) for x, pos in zip(values, at)])
        return traced.tree.unflatten([_put(y, pos, order) for y, pos in zip(got, results)])

    return jit(mapped, donate_argnums=donate_argnums, backend=backend)


def _expect_known(order: tuple[str, ...], names: Any, what: str) -> None:
    missing = sorted({n for n in names if n not in order}, key=repr)
    if missing:
        raise AxisError(
            f"xmap: All {what} in in_axes or axis_sizes, but the following are missing: "
            f"{{{', '.join(map(repr, missing))}}}",
            fix=f"name an axis of an argument so, or write axis_sizes={{{missing[0]!r}: size}}",
        )


def _is_naming(x: Naming | tuple[Naming, ...]) -> bool:
    return isinstance(x, Naming)


def _without(shape: tuple, pos: At) -> tuple:
    return tuple([n for i, n in enumerate(shape) if i not in pos.values()])


# ---- checks of the staged program ------------------------------------------------------------


def _result_axes(
    outs: Naming | tuple[Naming, ...], like: Aval | tuple[Aval, ...], program: Program
) -> list[At]:
    """Return the positions of the named axes of each result."""
    names = spread(outs, like, "out_axes", _is_naming, "a list or dict of names")
    paths = key_paths(like)
    return [
        spec.positions(
            aval.ndim + len(spec.names),
            lambda p=p, aval=aval, spec=spec: (
                f"the result{p}, of type {aval!r} and with {len(spec.names)} named axes more,"
            ),
        )
        for spec, aval, p in zip(names, program.out_avals, paths, strict=True)
    ]


def _expect_no_loop(program: Program, layouts: dict[str, Layout]) -> None:
    looped = [n for n, layout in layouts.items() if layout.turns > 1 and n in program.axes]
    if looped:
        raise AxisError(
            f"xmap: a collective speaks of axis {looped[0]!r}, which is done in turns (SerialLoop):"
            " what comes in later turns is not there yet",
            fix=f"lay {looped[0]!r} out on axes of the mesh, or on nothing (lanes)",
        )


def _expect_other_names(program: Program, layouts: dict[str, Layout], used: dict[str, str]) -> None:
    """Raise AxisError if a surrounding axis that the program uses has the name of a mesh axis that
    is bound here."""
    clash = sorted(program.axes & used.keys() - layouts.keys())
    if clash:
        raise AxisError(
            f"xmap: a collective speaks of axis {clash[0]!r}, which is bound outside, and axis "
            f"{used[clash[0]]!r} is laid out on the axis of the mesh that has this name",
            fix="give the axis that is bound outside another name than axes of the mesh",
        )


def _expect_apart(
    program: Program,
    ins: list[At],
    outs: list[At],
    layouts: dict[str, Layout],
    like: Aval | tuple[Aval, ...],
) -> None:
    """Raise AxisError for a result that varies along an axis it lacks, and for two axes on one mesh
    axis that meet in a value."""
    users: dict[str, list[str]] = {}
    for n, layout in layouts.items():
        for r in layout.over:
            users.setdefault(r, []).append(n)
    shared = {r: frozenset(names) for r, names in users.items() if len(names) > 1}

    def check(axes: Any, said: str, where: object = None) -> None:
        for r, names in shared.items():
            both = sorted(names & frozenset(axes))
            if len(both) > 1:
                raise AxisError(
                    f"xmap: axes {' and '.join(map(repr, both))} are both laid out on {r!r}, and "
                    f"coincide in {said}",
                    where=where,
                    fix="give one of them another axis of the mesh: a value has one device for "
                    "each place along its axes",
                )

    for i, pos in enumerate(ins):
        check(pos, f"an argument ({program.in_avals[i]!r} for each place along them)")
    meet = lambda e, axes: check(axes, f"the operation {e.prim.name}", e.where)  # noqa: E731
    found = varying(program, [frozenset(pos) for pos in ins], meet if shared else None)
    paths = key_paths(like)
    for axes, pos, aval, p in zip(found, outs, program.out_avals, paths, strict=True):
        left = [n for n in layouts if n in axes and n not in pos]
        if left:
            names = " and ".join(map(repr, left))
            raise AxisError(
                f"xmap: the result{p} of type {aval!r} is mapped along {names}, and its out_axes "
                f"has only {list(pos)}",
                fix=f"name an axis of the result {left[0]!r} in out_axes, or reduce over it: "
                f"lax.psum(..., {left[0]!r})",
            )
        check(pos, f"the result{p}")


# ---- maps that bind the parts ----------------------------------------------------------------


def _run(program: Program, captured: list, layouts: dict[str, Layout], fun: Callable) -> Callable:
    """Return the program as a function of elements, for maps that bind the parts of its axes."""
    parts = tuple([(n, layout.parts) for n, layout in layouts.items() if layout.turns == 1])

    @wraps(fun)
    def run(*elements: Value) -> list:
        with opened(Named(current(), parts, of=fun)):
            return evaluate(program, [*captured, *elements])

    return run


def _along(f: Callable, layout: Layout, at: list[At], results: list[At]) -> Callable:
    """Return `f` mapped over one axis on one device: over lanes, and over turns of these."""
    n, lanes, turns = layout.name, layout.lanes, layout.turns
    ins = tuple([0 if n in pos else None for pos in at])
    outs = [0 if n in pos else None for pos in results]
    if (layout.lane, lanes) in layout.parts:
        in_lanes = resolve("vmap")(f, ins, outs, axis_name=layout.lane, axis_size=lanes)
    else:  # one element; no collective names the axis, so it need not be bound

        def in_lanes(*xs: Value) -> list:
            got = f(*[x if a is None else x.reshape(x.shape[1:]) for x, a in zip(xs, ins)])
            return [y if a is None else y.reshape(1, *y.shape) for y, a in zip(got, outs)]

    if turns == 1:
        return in_lanes

    def in_turns(*xs: Value) -> list:
        cut = [x.reshape(turns, lanes, *x.shape[1:]) for x, a in zip(xs, ins) if a == 0]

        def turn(some: list) -> list:
            mine = iter(some)
            return in_lanes(*[x if a is None else next(mine) for x, a in zip(xs, ins)])

        # Without an operand that has the axis, all turns compute the same values.
        got = lax.map(turn, cut) if cut else [lax.broadcast(y, (turns,)) for y in turn([])]
        return [
            y[0] if a is None else y.reshape(turns * lanes, *y.shape[2:]) for y, a in zip(got, outs)
        ]

    return in_turns


def _over_mesh(
    f: Callable, mesh: Mesh, layouts: dict[str, Layout], at: list[At], results: list[At]
) -> Callable:
    """Return `f` applied to the pieces of each device.

    Mesh axes that are not resources are left to the compiler, or to an xmap around or inside.
    """

    def spec(pos: At) -> P:
        return P(*[layout.over for n, layout in layouts.items() if n in pos])

    used = {r for layout in layouts.values() for r in layout.over}
    return over_pieces(f, mesh, tuple(map(spec, at)), list(map(spec, results)), used)


# ---- named axes in front, and back -------------------------------------------------------------


def _to_front(x: Value, pos: At, order: tuple[str, ...]) -> Any:
    rest = [i for i in range(x.ndim) if i not in pos.values()]
    return lax.transpose(x, (*[pos[n] for n in order if n in pos], *rest))


def _put(y: Value, pos: At, order: tuple[str, ...]) -> Any:
    front = {pos[n]: k for k, n in enumerate([n for n in order if n in pos])}
    rest = iter(range(len(pos), y.ndim))
    return lax.transpose(y, tuple([front[i] if i in front else next(rest) for i in range(y.ndim)]))
