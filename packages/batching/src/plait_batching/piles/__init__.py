"""Piles: batches of arrays whose sizes differ from example to example.

A function is staged once, with symbolic sizes, and becomes one operation on all examples
(`operation`); it is differentiated as such.  A carrier (`carrier`) evaluates the operation.  Its
values lie on the device in one of three layouts (`layouts`), at fixed capacities (`capacities`).
Index tables are computed from the lengths (`tables`).

Invariant: `vmap(f)(pile)[b]` equals `f(pile[b])`; padding, capacities and the other examples never
affect it.
"""

from . import combining as combining
from . import fitting as fitting
from .axis import pile_axis
from .call import over_piles
from .masks import mask
from .pile import Pile
from .policy import Capacities

__all__ = ["Capacities", "Pile", "mask", "over_piles", "pile_axis"]
