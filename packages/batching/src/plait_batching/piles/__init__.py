"""Piles: batches of arrays whose sizes differ from example to example.

A function is staged once, with sizes known by name, and becomes one operation on all examples
(`operation`); derivatives pass through that.  Running it is a carrier (`carrier`), whose values lie
on the device in one of three layouts (`layouts`), at capacities (`capacities`) by tables that are
computed from the lengths (`tables`).

Invariant: `vmap(f)(pile)[b]` is `f(pile[b])`; nothing else, neither padding nor capacity nor the
other examples, can be seen.
"""

from .axis import pile_axis
from .call import over_piles
from .masks import mask
from .pile import Pile

__all__ = ["Pile", "mask", "over_piles", "pile_axis"]
