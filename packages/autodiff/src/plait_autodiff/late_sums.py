"""Products that are summed over all turns of a loop, computed once after the loop.

The cotangent of a matrix w that each turn multiplies, `h @ w`, is a sum over turns of products of
`h` with the cotangent of that turn.  If the loop adds them, each turn reads and writes as many
elements as w has.  Instead the loop stacks the factors.  After it, one contraction sums over turns
as well.  (Appleyard, Kocisky and Blunsom, "Optimizing performance of recurrent neural networks on
GPUs", 2016.)

Invariant: the factors that are stacked are at most as large as the rows that the loop reads anyway,
so a loop needs less than twice its memory.
"""

import math
from collections.abc import Container, Sequence
from typing import Any, NamedTuple

from plait.ext.ir import Eqn, Program, Var
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.elementwise import add
from plait.ext.ops.shape import transpose_
from plait.ext.types import Aval

__all__ = ["LateProduct", "late_products"]


class LateProduct(NamedTuple):
    """A sum over turns of one product.

    Attributes:
      factors: for both factors, their number among the stacks that a loop reads and makes.
      params: the parameters of the contraction in one turn.
      perms: the permutations of its axes, one after the other.
    """

    factors: tuple[int, int]
    params: dict[str, Any]
    perms: tuple[tuple[int, ...], ...]

    def sum(self, stacks: Sequence[Any], aval: Aval) -> Any:
        """Return the sum over all turns, with the dtype of `aval`."""
        (cx, cy), (bx, by) = self.params["contract"], self.params["shared"]
        after = lambda axes: tuple([a + 1 for a in axes])  # noqa: E731
        params = {
            **self.params,
            "contract": ((0, *after(cx)), (0, *after(cy))),
            "shared": (after(bx), after(by)),
            "out_dtype": aval.dtype,
        }
        out = dot_general.bind(*[stacks[i] for i in self.factors], **params)
        for perm in self.perms:
            out = transpose_.bind(out, perm=perm)
        return out


def late_products(
    turn: Program, sums: Sequence[Any], rows: Sequence[Var], constants: Container[Var]
) -> tuple[list[list[LateProduct] | None], list[Var]]:
    """Return for each of some sums the products that are its terms, and the factors to stack.

    A sum has None if the loop should add it up.

    Args:
      turn: one turn of a loop.
      sums: those results of it that are summed over all turns.
      rows: the inputs that are elements of stacks.
      constants: the variables that are the same in all turns.
    """
    made = {y: e for e in turn.eqns for y in e.outputs}
    places = {x: i for i, x in enumerate(rows)}
    budget = _size([x.aval for x in rows])
    found: list[list[LateProduct] | None] = []
    extra: list[Var] = []
    for x in sums:
        terms = _terms(x, made, ())
        factors = dict.fromkeys([a for e, _ in terms or () for a in e.inputs])
        new = [a for a in factors if a not in places]
        size = _size([a.aval for a in new])
        worth = size < math.inf and size <= min(budget, _size([x.aval]))
        if not terms or not worth or any(a in constants for a in factors):
            found.append(None)
            continue
        budget -= size
        places |= {a: len(places) + i for i, a in enumerate(new)}
        extra += new
        found.append([
            LateProduct((places[e.inputs[0]], places[e.inputs[1]]), e.params, perms)
            for e, perms in terms
        ])  # fmt: skip
    return found, extra


def _terms(x: Any, made: dict[Any, Eqn], perms: tuple) -> list[tuple[Eqn, tuple]] | None:
    """Return the products whose sum is `x`, each with permutations of its axes; None if `x` is
    anything else."""
    e = made.get(x) if x.__class__ is Var else None
    if e is None:
        return None
    if e.prim is dot_general:
        return [(e, perms)] if all(a.__class__ is Var for a in e.inputs) else None
    if e.prim is transpose_:
        return _terms(e.inputs[0], made, (e.params["perm"], *perms))
    if e.prim is add:
        parts = [_terms(a, made, perms) for a in e.inputs]
        return None if None in parts else [t for p in parts for t in p or ()]
    return None


def _size(avals: Sequence[Aval]) -> float:
    """Return the bytes of values of these types; infinity if that is not known."""
    shapes_known = all(d.__class__ is int for a in avals for d in a.shape)
    return sum([a.size * a.dtype.itemsize for a in avals]) if shapes_known else math.inf
