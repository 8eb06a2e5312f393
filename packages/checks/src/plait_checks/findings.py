"""Findings of a running program: a code, and a payload for each place.

Invariant: the code is that of the first place that reported; payloads of other places are not read.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from plait.ext import Aval, Literal
from plait.ext.types import INT32
from plait.numpy import argmax, argmin, asarray, reshape, take, where
from plait.typing import Array, ArrayLike

from .errors import CheckError, Error, ErrorCategory, Place, example

__all__ = ["NOTHING", "Findings", "Rethrown", "first_of", "none_of", "rows_of", "state_of"]

NOTHING = Literal(-1, Aval((), INT32))
"""The code of a program without findings."""


class Rethrown(NamedTuple):
    """The places of an Error that is given to `check_error`."""

    places: tuple[Place, ...]
    enforced = False

    def error(self, ok: ArrayLike, payload: Sequence[Any]) -> CheckError:
        """Return the first error."""
        found = Error(payload[0], payload[1:], self.places).get_exception()
        assert found is not None  # the condition was false, so there is an error
        return found


class Findings:
    """The places so far, and their findings, as values of the current interpreter.

    Args:
      kinds: the kinds of errors to look for.
      places, code, payload: the findings to start from.
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
        """The code and the payloads; empty without places."""
        return [self.code, *self.payload] if self.places else []

    def report(self, ok: Array, place: Place, payload: Sequence[Any] = ()) -> None:
        """Add a place, which reports unless `ok` is True everywhere.

        The axes of `ok` are the first axes of every array in `payload`; the payload of the first
        example that failed is kept.
        """
        ndim = ok.aval.ndim
        if 0 in ok.aval.shape:  # without examples nothing can fail
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

    def meet(self, code: Array, places: Sequence[Place], payload: Sequence[Any]) -> None:
        """Add the findings of a later part of the program with these places."""
        if not places:
            return
        code = where(code >= 0, code + len(self.places), -1).astype(INT32)
        self.code = code if self.code is None else where(self.code >= 0, self.code, code)
        self.places += places
        self.payload += [asarray(x, dtype=x.aval.dtype) for x in payload]

    def meet_at(
        self,
        code: Array,
        places: Sequence[Place],
        payload: Sequence[Any],
        at: Array,
        words: Callable[[int], str],
    ) -> None:
        """Add the findings of run number `at` among several runs of a part of the program.

        `words(number)` names the run in messages.
        """
        rest = iter(payload)
        each = [[*(next(rest) for _ in range(p.count)), at] for p in places]
        self.meet(code, [p.at(words) for p in places], [x for xs in each for x in xs])

    def meet_again(self, code: Array, payload: Sequence[Any], first: int) -> None:
        """Add the findings of a further turn, for places that are here from `first` on."""
        before = sum(p.count for p in self.places[:first])
        found = where(code >= 0, code + first, -1).astype(INT32)
        done = self.code >= 0
        for i, new in enumerate(payload):
            self.payload[before + i] = where(done, self.payload[before + i], new)
        self.code = where(done, self.code, found)


def rows_of(payload: Sequence[Any], ndim: int) -> list[Aval]:
    """Return the types of the payload of one example."""
    return [x.aval.with_shape(x.aval.shape[ndim:]) for x in payload]


def none_of(avals: Sequence[Aval]) -> list[Any]:
    """Return the payload of places that did not report."""
    return [Literal(0, a) for a in avals]


def state_of(avals: Sequence[Aval]) -> list[Any]:
    """Return the values of findings at the start, of these types; the first one is the code."""
    return [NOTHING, *none_of(avals[1:])] if avals else []


def first_of(codes: Any, payload: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return the first finding among findings along a leading axis."""
    at = argmax(codes >= 0)
    return codes[at], [x[at] for x in payload]
