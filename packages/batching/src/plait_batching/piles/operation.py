"""`pile_map`: apply a program with symbolic sizes to every example of piles.

Operands are the lengths of each named size, then values: shared by all examples, stacked, or
ragged.  A ragged value is stored in the layout of its type.  Results are of the same kinds, or
summed over all examples (cotangents of shared values).

The operation is differentiated through its wiring, on ragged types, before layouts exist.
Differentiating the lowered program instead would multiply undefined values beyond the ends by
zero, which gives nan.

Invariant: the program's types are those of one example; its symbolic sizes are those in `sizes`, or
belong to an enclosing program.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.ir import Primitive, Program
from plait.ext.rules import expand_rules
from plait.ext.trace import Slots, Value, Wiring
from plait.ext.types import Aval

from .capacities import TILE, Capacities, Size, capacities_of

__all__ = [
    "FLAT", "PADDED", "RAGGED", "SHARED", "STACKED", "SUMMED", "layout", "pile_map", "place",
]  # fmt: skip

SHARED, STACKED, RAGGED, SUMMED = "shared", "stacked", "ragged", "summed"

# Layouts of ragged values.  `flat`: the one ragged axis holds the rows of all examples, one example
# after the other.  `tiles`: for two ragged axes, a new leading axis holds the pairs of tiles of all
# examples.  `padded`: a new leading axis holds the examples, and each ragged axis has the capacity
# of the longest.  Values beyond an example's end are undefined.
FLAT, TILES, PADDED = "flat", "tiles", "padded"


def place(aval: Aval, caps: Capacities, padded: bool) -> str:
    """Return the layout in which values of a ragged type enter and leave programs."""
    count = len(caps.axes(aval))
    return PADDED if padded or count > 2 else (None, FLAT, TILES)[count] or PADDED


def layout(aval: Aval, caps: Capacities, how: str) -> Aval:
    """Return the type on the device, in the layout `how`, of all examples of an `aval`."""
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
    """Wiring of pile_map: lengths, which the program does not see, then the program's operands."""

    def slots(self, params: dict[str, Any]) -> Slots:
        n, kinds, outs = len(params["sizes"]), params["kinds"], params["outs"]
        m = n + len(kinds)
        program = params["program"]
        caps, padded = capacities_of(params["sizes"], params["size"]), params["padded"]
        avals = (*program.in_avals, *program.out_avals)
        pairs = [*zip((*kinds, *outs), avals, strict=True)]
        mapped = {
            n + i: (0,)
            for i, (k, a) in enumerate(pairs)
            if k == STACKED or (k == RAGGED and place(a, caps, padded) != FLAT)
        }
        cut = {n + i: caps.axes(a) for i, (k, a) in enumerate(pairs) if k == RAGGED}
        ins, results = range(n, m), range(m, m + len(outs))
        bodies = [(program, ins, results)]
        return Slots(range(m), results, bodies, m + len(outs), mapped, sizes=range(n), cut=cut)

    def rebuild(
        self,
        params: dict[str, Any],
        programs: list[Program],
        parts: list[tuple[Any, ...]],
        operands: list[Value],
        extra: list[Any],
    ) -> tuple[list[Any], dict[str, Any]]:
        n, kinds, outs = len(params["sizes"]), params["kinds"], params["outs"]
        m = n + len(kinds)
        w = self.slots(params)
        own = [
            SHARED if k != SHARED and _is_shared(w, s, p) else k
            for s, k in enumerate(kinds, n)
            for p in parts[s]
        ]
        new = (*(SHARED,) * len(extra), *own)
        given = [*operands[:n], *extra, *operands[n:]]
        made = {"program": programs[0], "kinds": new, "outs": _each(outs, parts[m:])}
        return given, {**params, **made}

    def carried(self, params: dict[str, Any]) -> Any:
        return lambda *xs: expand_rules.find(pile_map)(*xs, **params)  # type: ignore[misc]

    def binds(self, params: dict[str, Any]) -> frozenset[Any]:
        name = params["axis_name"]
        return frozenset() if name is None else frozenset((name,))


def _is_shared(w: Slots, s: int, part: Any) -> bool:
    """Return whether a component lacks the axis that holds the examples."""
    axes = w.mapped.get(s) or w.cut.get(s, ())
    return any(part.at[a] is None for a in axes)


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
    """Apply `program` to every example.

    `sizes` are the bounds of the named sizes, and `size` is the number of examples.  `padded`:
    whether all ragged values are padded."""
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
