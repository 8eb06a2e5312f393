"""Traced values whose elements are known, for functions whose results have shapes by values.

Invariant: a value that is not known is returned as it is, so that the caller says what needs it.
"""

from typing import Any

from plait.errors import ConcretizationError
from plait.ext import Tracer


def known(x: Any) -> Any:
    """Return the array that a traced value stands for, if its elements are known; else `x`.

    They are known under transformations that run at once, if each example has the same.
    """
    if isinstance(x, Tracer):
        try:
            return x.concrete()
        except ConcretizationError:
            return x
    return x
