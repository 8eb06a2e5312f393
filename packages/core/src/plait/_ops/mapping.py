"""Apply a program along given axes of its operands, element by element.

A package can map over an axis with it, without importing another package.

Invariant: transformations update the axes in the parameters through the axis maps of components
(`Part.at`), so no transformation needs a rule for it.
"""

from typing import Any

from .._base.errors import ShapeError
from .._core.carrier import expand_rules
from .._core.divided import with_axis, without_axis
from .._core.higher_order import Slots, Wiring
from .._core.interpreter import Value
from .._core.ir import Program, derived
from .._core.primitive import Primitive
from .._plugins.rules import RuleTable
from .._types.avals import Aval
from .._types.dims import Dim
from .control_flow import expect, scan
from .shape import moveaxis

__all__ = ["map_axes", "row"]


class Along(Wiring):
    """The wiring of map: operands and results that have an axis are mapped along it."""

    def slots(self, params: dict[str, Any]) -> Slots:
        axes = (*params["in_axes"], *params["out_axes"])
        n = len(params["in_axes"])
        ins, outs = range(n), range(n, len(axes))
        mapped = {s: (a,) for s, a in enumerate(axes) if a is not None}
        return Slots(ins, outs, [(params["program"], ins, outs)], len(axes), mapped)

    def carried(self, params: dict[str, Any]):
        return lambda *xs: _one_by_one(*xs, **{**params, "parallel": False})

    def rebuild(
        self,
        params: dict[str, Any],
        programs: list[Program],
        parts: list[tuple[Any, ...]],
        operands: list[Value],
        extra: list[Any],
    ):
        n, axes = len(params["in_axes"]), (*params["in_axes"], *params["out_axes"])
        moved = [tuple([a if a is None else p.at[a] for p in ps]) for ps, a in zip(parts, axes)]
        ins = (*(None for _ in extra), *sum(moved[:n], ()))
        return [*extra, *operands], {
            "program": programs[0],
            "in_axes": ins,
            "out_axes": sum(moved[n:], ()),
            "size": params["size"],
            "parallel": params["parallel"],
        }


def row(aval: Aval, axis: int | None) -> Aval:
    """Return the type of a row along `axis`."""
    if axis is None:
        return aval
    return without_axis(aval, axis)


def _map(
    *xs: Aval, program: Program, in_axes: tuple, out_axes: tuple, size: int, parallel: bool
) -> list[Aval]:
    """Apply `program` to every row along `in_axes`, and stack results along `out_axes`.

    An axis of None passes the whole operand each time.  `parallel` allows all rows at once.
    """
    for x, a in zip(xs, in_axes, strict=True):
        if a is not None and x.shape[a] != size:
            raise ShapeError(f"map: axis {a} of {x!r} does not have size {size}")
    expect("map", program.in_avals, [row(x, a) for x, a in zip(xs, in_axes)])
    return [with_axis(y, a, size) for y, a in zip(program.out_avals, out_axes, strict=True)]


map_axes = Primitive("core.map_axes", _map, many=True, higher=Along())


parallel_rules = RuleTable(
    "parallel",
    doc="results: an operation on every row, all rows at once; called as rule(*args, **params).",
)


@expand_rules.rule(map_axes)
def _(
    *xs: Value,
    program: Program,
    in_axes: tuple[None | int, ...],
    out_axes: tuple[int, ...],
    size: int,
    parallel: bool,
):
    at_once = parallel_rules.find(map_axes) if parallel and not program.effects else None
    if at_once is not None:
        return at_once(
            *xs, program=program, in_axes=in_axes, out_axes=out_axes, size=size, parallel=True
        )
    return _one_by_one(
        *xs, program=program, in_axes=in_axes, out_axes=out_axes, size=size, parallel=False
    )


def _one_by_one(
    *xs: Value, program: Program, in_axes: tuple, out_axes: tuple, size: Dim | int, parallel: bool
) -> list[Any]:
    """Apply a map as a scan over the rows."""
    same = [i for i, a in enumerate(in_axes) if a is None]
    order = same + [i for i, a in enumerate(in_axes) if a is not None]
    body = derived(
        program,
        ("rows last", tuple(order)),
        lambda: program.with_inputs([program.inputs[i] for i in order]),
    )
    rows = [xs[i] if in_axes[i] is None else moveaxis(xs[i], in_axes[i], 0) for i in order]
    ys = scan.bind(
        *rows, body=body, consts=len(same), carry=0, length=size, reverse=False, unroll=1
    )
    return [moveaxis(y, 0, a) for y, a in zip(ys, out_axes)]
