"""Selective, the interpreter of vmap where only some elements take the current path.

A mapped `cond` computes every branch for all elements, and a mapped `while` runs until the last
element is done.  Values computed for the other elements are discarded, but side effects (a
callback) cannot be undone.  So they happen for the selected elements only.

Invariant: this interpreter lifts programs with effects.  Its ambient value is a [size] array of
bools that marks the selected elements.  The rest is as in `Batch`: collectives include all
elements.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.ir import Primitive, effects_of
from plait.ext.ops.control_flow import cond, map_axes, row
from plait.ext.ops.shape import convert
from plait.ext.trace import as_list, enter, leave, staged
from plait.ext.types import BOOL, INT32, Aval
from plait.ext.values import Literal

from .interpreter import Batch

__all__ = ["Selective", "selecting"]


class Selective(Batch):
    """Batch that performs side effects for the selected elements only."""

    def apply(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        inside = prim.higher is not None and prim.higher.custom != "mapping"
        if inside or not effects_of(prim, params):
            return super().apply(prim, args, params)
        halves = [self.split(a) for a in args]
        token = enter(self.parent)  # type: ignore[arg-type]
        try:
            outs = self._one_by_one(prim, [p[0] for _, p in halves], [d for d, _ in halves], params)
            found = [self.wrap(o, 0) for o in outs]
        finally:
            leave(token)
        return found if prim.many else found[0]

    def _one_by_one(self, prim: Primitive, xs: list, dims: list, params: dict) -> list:
        """Return stacks of the operation's results for selected elements, and of zeros for others.

        Operands need not vary: the operation still runs once per selected element, as it would in
        a loop over the elements.
        """
        name = prim.name.rpartition(".")[2]
        avals = [row(x.aval, d) for x, d in zip(xs, dims)]
        act = staged(lambda *vs: as_list(prim.bind(*vs, **params)), avals, name)
        skip = staged(lambda *vs: [Literal(0, o) for o in act.out_avals], avals, "skip")

        def one(selected: Any, *vs: Any) -> list:
            return cond.bind(convert(selected, INT32), *vs, branches=(skip, act))

        return map_axes.bind(
            self.ambient[0],
            *xs,
            program=staged(one, [Aval((), BOOL), *avals], name),
            in_axes=(0, *dims),
            out_axes=(0,) * len(act.outputs),
            size=self.size,
            parallel=False,
        )


def selecting(batch: Batch, mine: Any, acts: bool) -> tuple[Batch, list[Any]]:
    """Return the carrier that lifts a program for the elements `mine` ([size] bools), and the
    values to pass before the program's operands: none unless it `acts`."""
    if not acts:
        return Batch(batch.parent, *batch.values, of=batch.of), []
    return Selective(batch.parent, *batch.values, ambient=[mine], of=batch.of), [mine]
