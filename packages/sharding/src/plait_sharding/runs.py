"""Programs observed inside of shard_map: each device runs them.

Further results are stacked, one for each device.  A passage that takes those of one run gets them
of the first device that has any: along the axes over which they may differ, the devices agree on
it.

Invariant: only the rule table `runs` loads this module.  What devices agree on is the same on all.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plait.ext.ir import Program, evaluate
from plait.ext.observers import Watched, runs_rules
from plait.ext.ops.collective import axis_index_, pmin_, psum_, pvary_
from plait.ext.ops.elementwise import minimum, select
from plait.ext.ops.shape import convert, fill, reshape_, squeeze_
from plait.ext.trace import Value, staged

from .manual import shard_map_p
from .variance import varying

if TYPE_CHECKING:
    from .mesh import Mesh

__all__: list[str] = []


@runs_rules.rule(shard_map_p)
def _(passage: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    mesh, axes = params["mesh"], params["axes"]
    count = math.prod([mesh.shape[n] for n in axes])
    along = frozenset(axes if params["typed"] else ())
    inner = passage.examples(params["program"], count, along)
    if not passage.picks:
        outs = _applied(_stacking(inner), inner, (axes,), args, params)
        return passage.taken_examples(inner, outs, _words(axes, mesh))
    over = _differing(inner, params)
    if not over:
        return passage.taken(inner, _applied(inner.program, inner, (), args, params))
    program = _agreeing(inner, passage.finds, over, mesh, params["typed"])
    front = inner._replace(width=inner.width + 1)
    at, *outs = _applied(program, front, (), args, params)
    return passage.taken_one(inner, at, outs, _words(over, mesh))


def _applied(
    program: Program, inner: Watched, front: tuple, args: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """Apply shard_map over a program with further results, divided along `front`."""
    whole = [((),) * x.aval.ndim for x in inner.operands]
    rows = [(params["axes"], *((),) * (x.aval.ndim - 1)) for x in inner.rows]
    found = program.out_avals[: inner.width]
    divided = [(*front, *((),) * (a.ndim - len(front))) for a in found]
    new = {
        **params,
        "program": program,
        "in_specs": (*whole, *rows, *params["in_specs"]),
        "out_specs": (*divided, *params["out_specs"]),
    }
    return shard_map_p.bind(*inner.operands, *inner.rows, *args, **new)


def _words(over: tuple[str, ...], mesh: "Mesh") -> Callable[[int], str]:
    """Return a function that names the device with a number."""
    sizes = [mesh.shape[n] for n in over]

    def words(i: int) -> str:
        where = zip(over, np.unravel_index(i, sizes), strict=True)
        return f"on the device at {', '.join(f'{n}={k}' for n, k in where)}"

    return words


def _differing(inner: Watched, params: dict[str, Any]) -> tuple[str, ...]:
    """Return the axes along which one of the further results may differ between devices."""
    divided = [frozenset([n for names in spec for n in names]) for spec in params["in_specs"]]
    some = frozenset().union(*varying(inner.program, divided)[: inner.width])
    return tuple([n for n in params["axes"] if n in some and params["mesh"].shape[n] > 1])


def _stacking(inner: Watched) -> Program:
    """Return the program with an axis of devices in front of rows and of further results."""
    p, k, n, w = inner.program, len(inner.operands), len(inner.rows), inner.width

    def run(*xs: Value) -> list[Any]:
        rows = [squeeze_.bind(x, axes=(0,)) for x in xs[k : k + n]]
        outs = evaluate(p, [*xs[:k], *rows, *xs[k + n :]])
        return [*[reshape_.bind(x, shape=(1, *x.aval.shape)) for x in outs[:w]], *outs[w:]]

    types = p.in_avals
    rows = [a.with_shape((1, *a.shape)) for a in types[k : k + n]]
    return staged(run, [*types[:k], *rows, *types[k + n :]], p.name)


def _agreeing(
    inner: Watched, finds: Callable[..., Any], over: tuple[str, ...], mesh: "Mesh", typed: bool
) -> Program:
    """Return the program with the further results of the first device for which `finds` is true,
    after that device's number."""
    sizes, w = [mesh.shape[n] for n in over], inner.width
    last = math.prod(sizes) - 1

    def run(*xs: Value) -> list[Any]:
        outs = evaluate(inner.program, xs)
        here = _number(over, sizes, typed)
        mine = select(finds(outs[:w]), here, fill(last + 1, here.aval))
        first = pmin_.bind(mine, axes=over)
        at = minimum.bind(first, fill(last, first.aval))
        found = [_of_first(x, here == at, over) for x in outs[:w]]
        return [at, *found, *outs[w:]]

    return staged(run, inner.program.in_avals, inner.program.name)


def _number(over: tuple[str, ...], sizes: Sequence[int], typed: bool) -> Any:
    """Return the number of a device among those along the axes, the first slowest."""
    number: Any = 0
    for n, size in zip(over, sizes, strict=True):
        index = axis_index_.bind(name=n)
        number = number * size + (pvary_.bind(index, axes=(n,)) if typed else index)
    return number


def _of_first(x: Value, is_first: Value, over: tuple[str, ...]) -> Any:
    """Return the value that the first device has."""
    dtype = x.aval.dtype
    narrow = dtype.itemsize < 4
    # Not every platform can sum narrow types; the sum has one nonzero term, so it is exact.
    if narrow:
        x = convert(x, "float32" if x.aval.inexact else "int32")
    total = psum_.bind(select(is_first, x, fill(0, x.aval)), axes=over)
    return convert(total, dtype) if narrow else total
