"""An operation that applies a program to the pieces of arrays, one piece after the other.

It divides axes as `shard_map` does, and needs neither devices nor a mesh.

Invariant: its wiring states which axes are cut, and its meaning follows from slices and
concatenation alone.
"""

from collections.abc import Callable
from typing import Any

from plait.ext import Aval, Primitive, Program, Slots, Wiring, evaluate, expand_rules, staged
from plait.ext.ops.shape import concatenate, slice_in_dim
from plait.ext.trace import Value, as_list
from plait.ext.values import as_value

from .report import Inapplicable


class _Cut(Wiring):
    """The wiring of a program on pieces: `axes` has the axis of each operand and result, or None
    for values that every piece sees whole."""

    def slots(self, params: dict[str, Any]) -> Slots:
        p, axes = params["program"], params["axes"]
        n, m = len(p.inputs), len(p.outputs)
        cut = {s: (axis,) for s, axis in enumerate(axes) if axis is not None}
        ins, outs = range(n), range(n, n + m)
        return Slots(ins, outs, [(p, ins, outs)], n + m, cut=cut)

    def rebuild(self, params, programs, parts, operands, extra):
        axes = [
            None if axis is None else part.at[axis]
            for axis, slot in zip(params["axes"], parts, strict=True)
            for part in slot
        ]
        made = {"program": programs[0], "axes": (*(None,) * len(extra), *axes)}
        return [*extra, *operands], {**params, **made}


def _rule(*xs: Aval, program: Program, axes: tuple, count: int) -> list[Aval]:
    """Apply `program` to each of `count` pieces of the operands, and join the results."""
    ends = axes[len(xs) :]
    return [_sized(o, axis, count) for o, axis in zip(program.out_avals, ends, strict=True)]


def _sized(aval: Aval, axis: int | None, count: int) -> Aval:
    if axis is None:
        return aval
    shape = aval.shape
    return aval.with_shape((*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


on_pieces = Primitive("testing.on_pieces", _rule, many=True, higher=_Cut())


@expand_rules.rule(on_pieces)
def _(*xs: Any, program: Program, axes: tuple, count: int) -> list[Any]:
    found = [
        evaluate(program, [_piece(x, a, k, count) for x, a in zip(xs, axes[: len(xs)])])
        for k in range(count)
    ]
    ends = axes[len(xs) :]
    return [
        ys[0] if axis is None else concatenate(ys, axis)
        for ys, axis in zip(map(list, zip(*found)), ends, strict=True)
    ]


def _piece(x: Value, axis: int | None, k: int, count: int) -> Any:
    if axis is None:
        return x
    size = x.aval.shape[axis] // count
    return slice_in_dim(x, k * size, (k + 1) * size, axis=axis)


def by_halves(f: Callable[[Any], Any], axis: int = 0) -> Callable[[Any], Any]:
    """Return a function that applies `f` to the halves of an array along `axis`.

    Raises Inapplicable for an array without such an axis, or of an odd size.
    """

    def halved(x: Value) -> Any:
        x = as_value(x)
        shape = x.aval.shape
        if axis >= len(shape) or shape[axis] % 2 or not shape[axis]:
            raise Inapplicable(f"the values have no axis {axis} that can be halved")
        half = x.aval.with_shape((*shape[:axis], shape[axis] // 2, *shape[axis + 1 :]))
        program = staged(lambda v: as_list(as_value(f(v))), [half], "half")
        return on_pieces.bind(x, program=program, axes=(axis, axis), count=2)[0]

    return halved
