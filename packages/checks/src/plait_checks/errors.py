"""The kinds of errors, the places that can report one, and errors as values.

Invariant: an Error is a tree of arrays, and its structure holds the places; it reports the first
error in the order of execution.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.ext import PlaitError
from plait.ext.errors import border
from plait.tree import register

__all__ = [
    "CheckError", "DivisionByZeroError", "Error", "ErrorCategory", "FailedCheckError", "NaNError",
    "OutOfBoundsError", "Place",
]  # fmt: skip


class CheckError(PlaitError, ValueError):
    """A check did not hold; the subclasses are the kinds of checks."""


class FailedCheckError(CheckError):
    """A condition given to `check` was False."""


class NaNError(CheckError, FloatingPointError):
    """An operation returned a nan."""


class OutOfBoundsError(CheckError, IndexError):
    """An index was outside of its array."""


class DivisionByZeroError(CheckError, ZeroDivisionError):
    """A divisor was zero."""


ErrorCategory = frozenset[type[CheckError]]
"""Kinds of errors to look for."""


class Place:
    """A line that can report an error.

    Attributes:
      kind: the class of its errors.
      text: makes the message from the payload.
      count: the number of arrays in the payload.
      where: the location of the line.
      enforced: whether compiled code outside of `checkify` calls Python to raise the error.
    """

    __slots__ = ("kind", "text", "count", "where", "enforced")
    kind: type[CheckError]
    count: int
    where: object
    enforced: bool

    def __init__(
        self,
        kind: type[CheckError],
        text: Callable[[Sequence[Any]], str],
        count: int,
        where: object,
        enforced: bool = False,
    ):
        self.kind, self.text, self.count, self.where = kind, text, count, where
        self.enforced = enforced

    def at(self, words: Callable[[int], str]) -> "Place":
        """Return a place that reports from one of several runs, and names the run.

        The number of the run is the last array of the payload; `words(number)` describes it.
        """

        def text(payload: Sequence[Any]) -> str:
            return f"{self.text(payload[:-1])}, {words(int(payload[-1]))}"

        return Place(self.kind, text, self.count + 1, self.where, self.enforced)

    def error(self, ok: Any, payload: Sequence[Any]) -> CheckError:
        """Return the error of the first example that failed."""
        if not np.ndim(ok):
            return self.kind(self.text(payload), where=self.where)
        at = np.unravel_index(np.argmin(ok), ok.shape)
        text = self.text([p[at] for p in payload])
        return self.kind(f"{text}, in example {example(at)}", where=self.where)


def example(at: Sequence[Any]) -> str:
    """Return the position of an example in words."""
    return ", ".join(str(int(i)) for i in at)


class Error:
    """The result of `checkify`: no error, or the first one; a tree, so functions may return it.

    Under `vmap` it holds an error or none for each example.

    >>> import plait
    >>> from plait.checks import check, checkify
    >>> def f(x):
    ...     check(x > 0, "x must be positive, and is {}", x)
    ...     return plait.numpy.log(x)
    >>> err, _ = plait.jit(checkify(f))(-1.0)
    >>> err.get()
    'x must be positive, and is -1.0'
    >>> checkify(f)(1.0)[0].get() is None
    True
    """

    __slots__ = ("code", "payload", "places")
    code: Any
    payload: tuple[Any, ...]
    places: tuple[Place, ...]

    def __init__(self, code: Any, payload: Sequence[Any], places: Sequence[Place]):
        self.code, self.payload, self.places = code, tuple(payload), tuple(places)

    @border
    def get(self) -> str | None:
        """Return the message; None without an error.  Under `vmap`, one line per example."""
        found = self._found()
        if not np.ndim(self.code):
            return found[0][1].what if found else None
        lines = [f"at mapped index {example(at)}: {error.what}" for at, error in found]
        return "\n".join(lines) or None

    @border
    def get_exception(self) -> CheckError | None:
        """Return the error as an exception (of the first example under `vmap`); or None."""
        found = self._found()
        if not found:
            return None
        at, error = found[0]
        if not at:
            return error
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return type(error)(
            f"{error.what}, at mapped index {example(at)}{more}", where=self._place(at).where
        )

    @border
    def throw(self) -> None:
        """Raise the error, if there is one."""
        error = self.get_exception()
        if error is not None:
            raise error

    def _place(self, at: Any) -> Place:
        return self.places[int(np.asarray(self.code)[at])]

    def _found(self) -> list[tuple[Any, CheckError]]:
        """Return the errors, with the positions of their examples."""
        codes = np.asarray(self.code)
        out = []
        for at in zip(*np.nonzero(codes >= 0)) if codes.ndim else [()] * bool(codes >= 0):
            k = int(codes[at])
            start = sum(p.count for p in self.places[:k])
            own = self.payload[start : start + self.places[k].count]
            error = self.places[k].error(np.False_, [np.asarray(x)[at] for x in own])
            out.append((at, error))
        return out

    def __repr__(self) -> str:
        return f"<Error at {len(self.places)} places: {self.code!r}>"


register(
    Error,
    lambda e: ((e.code, *e.payload), e.places),
    lambda places, kids: Error(kids[0], tuple(kids[1:]), places),
)
