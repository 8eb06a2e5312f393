"""Owners of sizes: the map, or the mask, in which a user read a size.

Names of sizes are the same in equal maps, so that equal maps are one program.  A size that is kept
would therefore mean the size of that name wherever it is used next.  So a size that a user reads in
a map has that map as its owner.  Using it after the map has ended is an error.

Invariant: owners are not part of a size: sizes that differ by owners alone are equal, and neither
types nor recorded operations have sizes with owners.
"""

from collections.abc import Collection, Iterable
from typing import Any, Protocol

from ..._base.errors import UnexpectedTracerError
from ..._base.source import user_line


class Map(Protocol):
    """The part of an interpreter that sizes use."""

    closed: bool

    def title(self) -> str: ...


Owner = tuple[Map, Any]
"""A map, and the location of the value whose size was read."""
Owners = tuple[Owner, ...]


def refuse_ended(size: Any, owners: Iterable[Owner], inside: Collection[Map] = ()) -> None:
    """Raise UnexpectedTracerError if a map that owns a size has ended, unless it is among `inside`:
    functions staged late belong to the maps around their call."""
    for by, where in owners:
        if by.closed and by not in inside:
            raise UnexpectedTracerError(
                f"the size {size} was used, and it is a size in {by.title()}, which has ended.\n"
                f"  It was read from a value that was created on line {user_line(where)}",
                fix="use the sizes of the arguments that the function has now; to keep one, return "
                "it as a number: plait.numpy.asarray(x.shape[0])",
            )
