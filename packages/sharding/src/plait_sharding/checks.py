"""Checks inside of shard_map: the error is that of the first device with a failed check.

Every device has its own failed checks.  Along the axes over which they may differ, the devices
agree on the first device with a failure.  All get its error, which names that device.

Invariant: only the table of plait.checks loads this.  The results of `checkify` are the same on
all devices.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.ext.ir import Program, derived, evaluate
from plait.ext.ops.collective import axis_index_, pmin_, psum_, pvary_
from plait.ext.ops.elementwise import select
from plait.ext.ops.shape import convert, fill
from plait.ext.rules import checks_rules
from plait.ext.trace import staged

from .manual import shard_map_p
from .variance import varying

__all__: list[str] = []


@checks_rules.rule(shard_map_p)
def _(found: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    inner, mesh, typed = found.checked(params["program"]), params["mesh"], params["typed"]
    w = inner.width
    over = _differing(inner.program, w, params)
    sizes = tuple([mesh.shape[n] for n in over])
    program = inner.program
    if over:
        key = "found by the first device", w, over, sizes, typed
        program = derived(inner.program, key, lambda: _agreed(inner.program, w, over, sizes, typed))
    state = program.out_avals[: w + bool(over)]
    outs = shard_map_p.bind(
        *args,
        **{
            **params,
            "program": program,
            "out_specs": (*(((),) * a.ndim for a in state), *params["out_specs"]),
        },
    )
    if not over:
        return found.taken(inner, outs)
    at, code, *payload = outs[: w + 1]

    def words(i: int) -> str:
        where = zip(over, np.unravel_index(i, sizes), strict=True)
        return f"on the device at {', '.join(f'{n}={k}' for n, k in where)}"

    found.meet_at(code, inner.places, payload, at, words)
    return list(outs[w + 1 :])


def _differing(program: Program, w: int, params: dict[str, Any]) -> tuple[str, ...]:
    """Return the axes along which one of the first `w` results may differ between devices."""
    divided = [frozenset([n for names in spec for n in names]) for spec in params["in_specs"]]
    some = frozenset().union(*varying(program, divided)[:w])
    return tuple([n for n in params["axes"] if n in some and params["mesh"].shape[n] > 1])


def _agreed(
    program: Program, w: int, over: tuple[str, ...], sizes: tuple[int, ...], typed: bool
) -> Program:
    """Return the program with the error of the first failing device, after that device's number."""

    def run(*xs: Any) -> list[Any]:
        outs = evaluate(program, xs)
        code, here = outs[0], _number(over, sizes, typed)
        first = pmin_.bind(select(code >= 0, here, fill(math.prod(sizes), here.aval)), axes=over)
        told = [_of_first(x, here == first, over) for x in (code + 1, *outs[1:w])]
        return [first, told[0] - 1, *told[1:], *outs[w:]]

    return staged(run, program.in_avals, program.name)


def _number(over: tuple[str, ...], sizes: tuple[int, ...], typed: bool) -> Any:
    """Return the number of a device among those along the axes, the first slowest."""
    number: Any = 0
    for n, size in zip(over, sizes, strict=True):
        index = axis_index_.bind(name=n)
        number = number * size + (pvary_.bind(index, axes=(n,)) if typed else index)
    return number


def _of_first(x: Any, is_first: Any, over: tuple[str, ...]) -> Any:
    """Return the value that the first failing device has; meaningless if no device fails."""
    dtype = x.aval.dtype
    narrow = dtype.itemsize < 4
    # Not every platform can sum narrow types; the sum has one nonzero term, so it is exact.
    if narrow:
        x = convert(x, "float32" if x.aval.inexact else "int32")
    total = psum_.bind(select(is_first, x, fill(0, x.aval)), axes=over)
    return convert(total, dtype) if narrow else total
