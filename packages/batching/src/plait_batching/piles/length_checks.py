"""Run-time checks of traced lengths.

They are compared once, on the device, where the pile is made; Python is called if they do not fit.
`checkify` returns that as an error.  Artifacts cannot call Python and leave the check out.

Invariant: known lengths are not checked here, since they are checked where the pile is made.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait.checks import FailedCheckError, Place
from plait.ext.errors import here
from plait.ext.ops.checks import check_p
from plait.ext.trace import Tracer, Value
from plait.typing import Array

__all__ = ["hold_facts", "hold_flag", "hold_lengths", "hold_rows", "hold_size"]


def hold_lengths(lengths: Value, width: int) -> None:
    """Check that each length is from 0 to `width`, if they are traced."""
    _hold(lengths, width, lambda n: (n >= 0) & (n <= width), _told_length)


def hold_rows(lengths: Value, have: int) -> None:
    """Check that no length is negative, and that they sum to at most `have`, if traced."""
    _hold(lengths, have, lambda n: (n >= 0) & _sum_fits(n, have), _told_rows)


def _sum_fits(n: Any, have: int) -> Any:
    """Return whether lengths sum to at most `have`, where their sum may not be an int32."""
    total = n.sum(dtype="int32")
    # Sums up to 1.5 times that range are negative when they wrap around; floats tell all others.
    return (total >= 0) & (total <= have) & (n.astype("float32").sum() < 1.5 * 2**31)


def hold_size(size: Any, longest: Any, name: str) -> None:
    """Check that a size of `mask` is from 0 to `longest`, if it is traced."""

    def told(n: object, have: object) -> str:
        return f"mask: {name} is {n}, and the padded arguments have {have}"

    _hold(size, longest, lambda n: (n >= 0) & (n <= longest), told)


def hold_facts(lengths: Any, at_least: int, multiple_of: int, words: str) -> None:
    """Check that no length is less than `at_least`, and all are multiples, if they are traced.

    `words` are the facts, for the message."""

    def told(n: Any, _: object) -> str:
        b = int(((n < at_least) | (n % multiple_of != 0)).argmax())
        return f"element {b} has {n[b]} rows, and the pile is declared to have {words}"

    _hold(lengths, 0, lambda n: (n >= at_least) & (n % multiple_of == 0), told)


def _told_length(n: Any, have: object) -> str:
    if n.min(initial=0) < 0:
        return "a length is negative"
    return f"a length of {n.max()}, and there are {have} rows"


def _told_rows(n: Any, have: object) -> str:
    if n.min(initial=0) < 0:
        return "a length is negative"
    return f"lengths of {n.sum(dtype=np.int64)} rows in all, and there are {have}"


def hold_flag(flag: Value, payload: Sequence[Any], told: Callable[..., str]) -> None:
    """Check a traced flag; `told` makes the message from the payload."""

    def text(given: Sequence[Any]) -> str:
        return told(*map(np.asarray, given))

    place = Place(FailedCheckError, text, len(payload), here(), enforced=True)
    check_p.bind(flag, *payload, said=place, optional=True)


def _hold(n: Array, have: int, fits: Callable[[Any], Any], told: Callable[[Any, Any], str]) -> None:
    if isinstance(n, Tracer):
        hold_flag(fits(n).all(), [n, pnp.asarray(have)], told)
