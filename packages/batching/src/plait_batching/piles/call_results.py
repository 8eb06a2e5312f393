"""Results of one call over piles: which vary, which `out_axes` admits, and how users get them.

Invariant: a result of ragged type becomes a pile, at the capacities of its lengths.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from plait.ext.errors import AxisError, ShapeError
from plait.ext.ir import Program, ambient_of, dims_of, speaks_of
from plait.ext.ops.collective import all_gather_, pmax_, pmin_, psum_
from plait.ext.ops.shape import moveaxis, normal_axis
from plait.ext.sizes import Dim
from plait.ext.trace import Tracer, Value
from plait.ext.tree import LEAF, flatten, key_paths
from plait.ext.types import Aval
from plait.typing import Array

from .axis import PileAxis, pile_axis
from .call_sizes import Sizes
from .capacities import Size, capacities_of, in_rows_alone, ragged_axes
from .elements import names_inside, refitted, spoken_of
from .facts import in_rows
from .names import named
from .operation import RAGGED, SHARED
from .operators import is_pile
from .pile import Pile

__all__ = ["Taken", "refuse_results", "which_vary"]


_ALIKE = (psum_, pmax_, pmin_, all_gather_)
"""Collectives whose results are the same for all examples."""


def which_vary(
    program: Program, kinds: Sequence[str], names: Sequence[str], axis_name: Any
) -> list[bool]:
    """Return which results may differ between examples."""
    moving = {v for v, k in zip(program.inputs, kinds, strict=True) if k != SHARED}
    mine = frozenset(names)
    for e in program.eqns:
        if axis_name is not None and axis_name in ambient_of(e.prim, e.params):
            if e.prim not in _ALIKE or e.params.get("groups"):
                moving.update(e.outputs)
            continue
        speaks = speaks_of(mine, (*e.inputs, *e.outputs), e.params)
        if speaks or any(v in moving for v in e.inputs if isinstance(v, Tracer)):
            moving.update(e.outputs)
    return [isinstance(o, Tracer) and o in moving for o in program.outputs]


def refuse_results(
    avals: Sequence[Aval],
    wanted: list[Any],
    results: list[Any],
    varies: list[Any],
    out: object,
    names: list[Any],
) -> None:
    paths: list[str] | None = None
    for i, (a, w, k, v) in enumerate(zip(avals, wanted, results, varies, strict=True)):
        if isinstance(w, PileAxis) or (k != RAGGED and (w is not None or not v)):
            continue
        paths = paths or key_paths(out)
        if k == RAGGED:
            at = ragged_axes(a.shape, names)[0]
            raise ShapeError(
                f"vmap: result{paths[i]} of type {a!r} has a size of its own for each example, "
                f"{a.shape[at]} at axis {at} (ragged output without using pile_axis out_axes spec)",
                fix="write out_axes=plait.pile_axis for it, or reduce it over that axis",
            )
        raise AxisError(
            f"vmap: result{paths[i]} of type {a!r} varies along the mapped axis, and its out_axes "
            "says that it does not",
            fix="give it an axis, or reduce it over the mapped axis",
        )


class Taken:
    """The user's results, assembled from (values, type, out_axes entry) of each leaf."""

    def __init__(self, sizes: Sizes, count: int, leaves: Iterable[tuple[Any, ...]]):
        self.sizes, self.count, self.leaves = sizes, count, iter(leaves)

    def unit(self, u: Value) -> Any:
        """Return the result for one leaf, or one pile, of an example's results."""
        if not is_pile(u):
            y, t, wanted = next(self.leaves)
            return self.pile((y,), (t,), u) if wanted is pile_axis else self.array(y, wanted)
        tree = flatten(u)[1]
        ys, types, wanted = zip(*[next(self.leaves) for _ in range(tree.num_leaves)], strict=True)
        if all(w is pile_axis for w in wanted):  # a pile of piles
            return self.pile(ys, types, u)
        triples = zip(ys, types, wanted, strict=True)
        return tree.unflatten(
            [self.pile((y,), (t,), y) if w is pile_axis else self.array(y, w)
             for y, t, w in triples]
        )  # fmt: skip

    def array(self, y: Value, wanted: int | None) -> Any:
        if wanted is None:
            return y[0]
        return moveaxis(y, 0, normal_axis(wanted, y.ndim, "out_axes"))

    def pile(self, ys: Sequence[Array], types: tuple[Aval, ...], element: Value) -> Pile:
        seen = dims_of([types])
        used = [s for s in self.sizes.table if s.name in seen]
        first = names_inside(element)
        names = {s.name: f"n{first + k}" for k, s in enumerate(used)}
        mine = {s.name: s for s in used}
        avals = [
            t.with_shape([in_rows(d, mine, names) if d.__class__ is Dim else d for d in t.shape])
            for t in types
        ]
        renamed = {k: in_rows(named(k), mine, names) for k in mine}
        table = [self._declared(s, names[s.name]) for s in used]
        tree = flatten(spoken_of(element, renamed))[1] if is_pile(element) else LEAF
        lengths = [self.sizes.vectors[s.name] for s in used]
        caps = capacities_of(in_rows_alone(table), self.count)  # facts may give smaller ones
        ys = [refitted(y, t, caps) for y, t in zip(ys, avals, strict=True)]
        return Pile._of(ys, lengths, avals, table, tree, self.count)

    def _declared(self, s: Size, name: str) -> Size:
        """Return a size with another name, and the facts that arguments declare."""
        least, multiple = self.sizes.declared[s.name]
        return s._replace(name=name, least=least, multiple=multiple)
