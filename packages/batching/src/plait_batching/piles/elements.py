"""Piles as elements of piles, and as leaves of trees.

Invariant: a pile in the structure of elements has the numbers of leaves in place of arrays.
"""

from typing import TYPE_CHECKING, Any

from plait.ext.sizes import Dim
from plait.ext.trace import Value
from plait.ext.tree import LEAF, TreeDef, flatten
from plait.ext.types import Aval
from plait.ext.values import as_value

from .capacities import COUNTS, Capacities, capacities_of, in_rows_alone
from .layouts import fit
from .operation import layout, place
from .operators import is_pile

if TYPE_CHECKING:
    from .pile import Pile

__all__ = ["names_inside", "piles_in", "refitted", "shown", "spoken_of"]


def piles_in(tree: TreeDef) -> list[Any]:
    """Return the piles of a structure; their leaves are the numbers of the structure's leaves."""
    if tree is LEAF:
        return []
    return list(filter(is_pile, flatten(tree.unflatten(range(tree.num_leaves)), is_pile)[0]))


def names_inside(element: "Value | Pile") -> int:
    """Return the number of the first size, n0 and so on, that the piles of an element do not name.

    The outer pile names its own sizes so, since the types of elements may contain both."""
    piles = filter(is_pile, flatten(element, is_pile)[0])
    return max([int(s.name[1:]) + 1 for p in piles for s in p._sizes], default=0)


def spoken_of(x: object, sizes: dict[str, Any]) -> Any:
    """Return a tree in whose piles the outer pile's named sizes are replaced by these values."""
    leaves, tree = flatten(x, is_pile)
    if not any(map(is_pile, leaves)):
        return x
    return tree.unflatten([_spoken_of(p, sizes) if is_pile(p) else p for p in leaves])


def _spoken_of(p: "Pile", sizes: dict[str, Any]) -> Any:
    def told(d: Any, of: dict[str, Any]) -> Any:
        return d.substitute(of) if d.__class__ is Dim else d

    around = {k: v for k, v in sizes.items() if k not in [s.name for s in p._sizes]}
    types = [t.with_shape([told(d, around) for d in t.shape]) for t in p._types]
    table = [s._replace(**{k: told(getattr(s, k), sizes) for k in COUNTS}) for s in p._sizes]
    count = told(p._count, sizes)
    rows, lengths = p._leaves, p._lengths
    if any(n.__class__ is int for n in around.values()):  # capacities are at least one row
        caps = capacities_of(in_rows_alone(table), count)
        rows = tuple([refitted(as_value(x), t, caps) for x, t in zip(rows, types, strict=True)])
        lengths = tuple(map(as_value, lengths))
    return type(p)._of(rows, lengths, types, table, p._tree, count)


def refitted(x: Any, t: Aval, caps: Capacities) -> Any:
    """Resize the rows of a pile of elements of type `t`, laid out at other capacities, to these
    capacities."""
    for a, n in enumerate(layout(t, caps, place(t, caps, False)).shape):
        x = fit(x, a, n)
    return x


def shown(x: Any) -> str:
    if is_pile(x):
        return f"a pile of {x._count} elements {', '.join(map(repr, x._types))}"
    return repr(x.aval) if isinstance(x, Value) else f"a value of type {type(x).__name__}"
