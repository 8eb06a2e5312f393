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
from plait.ext.trace import enter, leave
from plait.typing import Array

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
            # Operands need not vary: the operation still runs once per selected element, as it
            # would in a loop over the elements.
            xs, dims = [p[0] for _, p in halves], [d for d, _ in halves]
            outs = self.each(prim, xs, dims, params, self.ambient[0])[0]
            found = [self.wrap(o, 0) for o in (outs if prim.many else [outs])]
        finally:
            leave(token)
        return found if prim.many else found[0]


def selecting(batch: Batch, mine: Array | None, acts: bool) -> tuple[Batch, list[Any]]:
    """Return the carrier that lifts a program for the elements `mine` ([size] bools), and the
    values to pass before the program's operands: none unless it `acts`."""
    if not acts:
        return Batch(batch.parent, *batch.values, of=batch.of), []
    return Selective(batch.parent, *batch.values, ambient=[mine], of=batch.of), [mine]
