"""`pile_map`: a program with symbolic sizes, on every example of piles.

Operands are the lengths of each named size, then values: shared by all examples, stacked, or
ragged, which is how types with a size of its own for each example lie on the device.  Results are
the same, or summed over all examples (cotangents of what is shared).

Derivatives pass through it by its wiring, on ragged types, before layouts exist: what
differentiates what was lowered instead multiplies the garbage beyond the end by zero, and gets nan.

Invariant: the program's types are those of one example; its dims are the names of `sizes`, or
those of an operation around it.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.ir import Primitive, Program
from plait.ext.trace import Slots, Wiring
from plait.ext.types import Aval

from .capacities import TILE, Capacities, Size, capacities_of

__all__ = [
    "FLAT", "PADDED", "RAGGED", "SHARED", "STACKED", "SUMMED", "layout", "pile_map", "place",
]  # fmt: skip

SHARED, STACKED, RAGGED, SUMMED = "shared", "stacked", "ragged", "summed"

# Layouts of what is ragged.  `flat`: along its one ragged axis a value has the rows of all
# examples, in place, one example after the other.  `tiles`: with two ragged axes, a new axis in
# front with the pairs of tiles of all examples.  `padded`: a new axis in front, and the capacity of
# the longest along each ragged one.  What lies beyond an example's end is garbage.
FLAT, TILES, PADDED = "flat", "tiles", "padded"


def place(aval: Aval, caps: Capacities, padded: bool) -> str:
    """The layout in which values of a ragged type pass into and out of programs."""
    count = len(caps.axes(aval))
    return PADDED if padded or count > 2 else (None, FLAT, TILES)[count] or PADDED


def layout(aval: Aval, caps: Capacities, how: str) -> Aval:
    """The type on the device, in the layout `how`, of all examples of an `aval`."""
    found = caps.laid_out.get((aval, how))
    if found is None:
        found = caps.laid_out[aval, how] = _layout(aval, caps, how)
    return found


def _layout(aval: Aval, caps: Capacities, how: str) -> Aval:
    shape = list(aval.shape)
    axes = caps.axes(aval)
    if how == FLAT:
        (a,) = axes
        shape[a] = caps.rows(shape[a])
    elif how == TILES:
        a, b = axes
        pairs = caps.pairs(shape[a], shape[b])
        shape[a] = shape[b] = TILE
        shape.insert(0, pairs)
    else:
        for a in axes:
            shape[a] = caps.longest(shape[a])
        shape.insert(0, caps.size)
    return aval.with_shape(shape)


class Along(Wiring):
    """Lengths, which no program sees, then the operands of the program; its results."""

    def slots(self, params: dict[str, Any]) -> Slots:
        n, kinds, outs = len(params["sizes"]), params["kinds"], params["outs"]
        m = n + len(kinds)
        program = params["program"]
        caps, padded = capacities_of(params["sizes"], params["size"]), params["padded"]
        pairs = zip((*kinds, *outs), (*program.in_avals, *program.out_avals), strict=True)
        mapped = {
            n + i: (0,)
            for i, (k, a) in enumerate(pairs)
            if k == STACKED or (k == RAGGED and place(a, caps, padded) != FLAT)
        }
        ins, results = range(n, m), range(m, m + len(outs))
        return Slots(range(m), results, [(program, ins, results)], m + len(outs), mapped)

    def rebuild(self, params, programs, parts, operands, extra):
        n, kinds, outs = len(params["sizes"]), params["kinds"], params["outs"]
        m = n + len(kinds)
        new = (SHARED,) * len(extra) + _each(kinds, parts[n:m])
        given = [*operands[:n], *extra, *operands[n:]]
        made = {"program": programs[0], "kinds": new, "outs": _each(outs, parts[m:])}
        return given, {**params, **made}

    def binds(self, params: dict[str, Any]) -> frozenset[Any]:
        name = params["axis_name"]
        return frozenset() if name is None else frozenset((name,))


def _each(kinds: Sequence[str], parts: Sequence[tuple]) -> tuple[str, ...]:
    return tuple([k for k, ps in zip(kinds, parts, strict=True) for _ in ps])


def _pile_map(
    *xs: Aval,
    program: Program,
    kinds: tuple[str, ...],
    outs: tuple[str, ...],
    sizes: tuple[Size, ...],
    size: int,
    axis_name: Any,
    padded: bool,
) -> list[Aval]:
    """Apply `program` to every example; `sizes` are what is known of the named ones, and `size`
    the number of examples.  `padded`: whether everything ragged is padded."""
    caps = capacities_of(sizes, size)
    return [
        a
        if k == SUMMED
        else a.with_shape((size, *a.shape))
        if k == STACKED
        else layout(a, caps, place(a, caps, padded))
        for a, k in zip(program.out_avals, outs, strict=True)
    ]


pile_map = Primitive("piles.map", _pile_map, many=True, higher=Along())
