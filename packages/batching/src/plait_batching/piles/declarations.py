"""Facts about lengths that a constructor of piles declares: `at_least=` and `multiple_of=`.

Invariant: lengths that contradict them are refused, where the pile is made if they are known, and
when the program runs if they are traced.
"""

from operator import index
from typing import NamedTuple

import numpy as np

from plait.ext.errors import ArgumentError, ShapeError
from plait.ext.trace import Tracer
from plait.typing import ArrayLike

from .capacities import Size
from .facts import Facts, both
from .length_checks import hold_facts

__all__ = ["declared"]


class _Declared(NamedTuple):
    """The values of `at_least` and `multiple_of`."""

    at_least: int
    multiple_of: int

    def of(self, size: Size) -> Size:
        """Return a size with these facts."""
        least, multiple = both(Facts(self.at_least), Facts(0, self.multiple_of))
        return size._replace(least=least, multiple=multiple)

    def hold(self, lengths: ArrayLike) -> None:
        """Raise ShapeError if known lengths contradict the facts; check traced ones at run time."""
        if isinstance(lengths, Tracer):
            hold_facts(lengths, *self, self.told())
            return
        n = np.asarray(lengths)
        bad = (n < self.at_least) | (n % self.multiple_of != 0)
        if bad.any():
            b = int(bad.argmax())
            raise ShapeError(
                f"element {b} has {n[b]} rows, and the pile is declared to have {self.told()}",
                fix="give elements that agree with at_least= and multiple_of=, or leave them out",
            )

    def told(self) -> str:
        """Return the facts in words."""
        told = [f"at least {self.at_least}"] * (self.at_least > 0)
        told += [f"a multiple of {self.multiple_of}"] * (self.multiple_of > 1)
        return " and ".join(told)


def declared(at_least: int, multiple_of: int) -> _Declared | None:
    """Return the facts of these arguments; None if they hold for all lengths.

    Raises ArgumentError if they are not numbers of rows."""
    if at_least.__class__ is multiple_of.__class__ is int and (at_least, multiple_of) == (0, 1):
        return None
    for name, value, low in (("at_least", at_least, 0), ("multiple_of", multiple_of, 1)):
        try:
            valid = not isinstance(value, bool) and index(value) >= low
        except TypeError:
            valid = False
        if not valid:
            raise ArgumentError(
                f"{name} must be an int of {low} or more, got {value!r}",
                fix=f"give the number of rows, as {name}=4, or leave it out",
            )
    found = _Declared(index(at_least), index(multiple_of))
    return None if found == (0, 1) else found
