"""What is found while a program is run: a code, and what goes with it for each place.

Invariant: the code is that of the first place that reported; of arrays that go with others
nothing is read.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core.array import Literal
from .._types.avals import INT32, Aval
from ..numpy import argmax, argmin, asarray, reshape, take, where
from .errors import CheckError, Error, ErrorCategory, Place, example

__all__ = ["NOTHING", "Findings", "Rethrown", "first_of", "none_of", "rows_of", "state_of"]

NOTHING = Literal(-1, Aval((), INT32))
"""The code where nothing is found."""


class Rethrown(NamedTuple):
    """What is said where an Error is given to `check_error`: its own places."""

    places: tuple[Place, ...]
    enforced = False

    def error(self, ok: Any, payload: Sequence[Any]) -> CheckError:
        """Return the first error."""
        found = Error(payload[0], payload[1:], self.places).get_exception()
        assert found is not None  # the condition was that there is none
        return found


class Findings:
    """Places so far, and what they reported: values of the current interpreter.

    Args:
      kinds: what is looked for.
      places, code, payload: to go on from.
    """

    def __init__(
        self,
        kinds: ErrorCategory,
        places: Sequence[Place] = (),
        code: Any = None,
        payload: Sequence[Any] = (),
    ):
        self.kinds = kinds
        self.places, self.code, self.payload = list(places), code, list(payload)

    @property
    def values(self) -> list[Any]:
        """The code, and what goes with it; nothing if there are no places."""
        return [self.code, *self.payload] if self.places else []

    def report(self, ok: Any, place: Place, payload: Sequence[Any] = ()) -> None:
        """Add a place, which reports unless `ok` is True everywhere.

        The axes of `ok` are the first of everything in `payload`; that of the first example that
        failed is kept.
        """
        ndim = ok.aval.ndim
        if 0 in ok.aval.shape:  # there are no examples
            self.meet(NOTHING, [place], none_of(rows_of(payload, ndim)))
            return
        if ndim:
            shape = ok.aval.shape
            at = argmin(reshape(ok, (-1,)))
            rows = [reshape(x, (-1, *x.aval.shape[ndim:])) for x in payload]
            payload = [take(x, at, axis=0, mode="clip") for x in rows]
            words = lambda i: f"in example {example(np.unravel_index(i, shape))}"  # noqa: E731
            self.meet_at(where(reshape(ok, (-1,)).all(), -1, 0), [place], payload, at, words)
            return
        self.meet(where(ok, -1, 0), [place], payload)

    def meet(self, code: Any, places: Sequence[Place], payload: Sequence[Any]) -> None:
        """Add what was found after all that is here, by a part of the program with these places."""
        if not places:
            return
        code = where(code >= 0, code + len(self.places), -1).astype(INT32)
        self.code = code if self.code is None else where(self.code >= 0, self.code, code)
        self.places += places
        self.payload += [asarray(x, dtype=x.aval.dtype) for x in payload]

    def meet_at(
        self,
        code: Any,
        places: Sequence[Place],
        payload: Sequence[Any],
        at: Any,
        words: Callable[[int], str],
    ) -> None:
        """Add what was found in one of several runs of a part of the program, in that of number
        `at`, which `words(number)` names in messages."""
        rest = iter(payload)
        each = [[*(next(rest) for _ in range(p.count)), at] for p in places]
        self.meet(code, [p.at(words) for p in places], [x for xs in each for x in xs])

    def meet_again(self, code: Any, payload: Sequence[Any], first: int) -> None:
        """Take what was found in a further turn by places that are here, from `first` on."""
        before = sum(p.count for p in self.places[:first])
        found = where(code >= 0, code + first, -1).astype(INT32)
        done = self.code >= 0
        for i, new in enumerate(payload):
            self.payload[before + i] = where(done, self.payload[before + i], new)
        self.code = where(done, self.code, found)


def rows_of(payload: Sequence[Any], ndim: int) -> list[Aval]:
    """Return the types of what goes with one example."""
    return [x.aval.with_shape(x.aval.shape[ndim:]) for x in payload]


def none_of(avals: Sequence[Aval]) -> list[Any]:
    """Return what goes with places that did not report."""
    return [Literal(0, a) for a in avals]


def state_of(avals: Sequence[Aval]) -> list[Any]:
    """Return the values of findings before anything is found; of these types, the code first."""
    return [NOTHING, *none_of(avals[1:])] if avals else []


def first_of(codes: Any, payload: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return what was found first, given what was found along a leading axis."""
    at = argmax(codes >= 0)
    return codes[at], [x[at] for x in payload]
