"""Lengths in functions of all leaves: they describe rows, and are left alone.

Invariant: piles of different lengths are never combined row by row; known lengths are compared at
once, and traced ones when the program runs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.checks import FailedCheckError, Place
from plait.ext.errors import ShapeError, here
from plait.ext.ops.checks import check_p
from plait.ext.trace import Tracer, Value
from plait.ext.types import float0
from plait.ext.values import as_value

__all__ = ["expect_equal", "is_passive"]


def expect_equal(lengths: Sequence[Any]) -> None:
    """Raise ShapeError if the lengths of piles that are combined row by row differ.

    Traced ones are compared when the program runs."""
    first, *rest = [n for n in lengths if isinstance(n, Value | np.ndarray)] or [None]
    for n in rest:
        if n is not first:
            _expect_pair(first, n)


def _expect_pair(a: Any, b: Any) -> None:
    known = not isinstance(a, Tracer) and not isinstance(b, Tracer)
    if a.shape != b.shape or (known and not np.array_equal(a, b)):
        raise ShapeError(
            _told(a, b) if known else f"the lengths of two piles are {a!r} and {b!r}",
            fix="combine piles of equal lengths; choose whole elements by p[indices]",
        )
    if not known:
        a, b = as_value(a), as_value(b)
        text = lambda payload: _told(*payload)  # noqa: E731
        place = Place(FailedCheckError, text, 2, here(), enforced=True)
        check_p.bind((a == b).all(), a, b, said=place, optional=True)


def _told(a: Any, b: Any) -> str:
    with np.printoptions(threshold=8):
        return (
            "piles that are combined row by row must have equal lengths, and these are "
            f"{np.asarray(a)} and {np.asarray(b)}"
        )


def is_passive(x: Any) -> bool:
    """Return whether a leaf has no values: the derivative of integers or keys."""
    return getattr(x, "dtype", None) == float0
