"""Calls of a user's function with other arguments than it takes, while it is traced.

Invariant: only an exception that Python raises for such a call is converted; an exception from
inside of the function passes unchanged.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

from .._base.errors import ArgumentError
from .._base.source import below_hidden, defined_at
from .._base.wrapping import name_of

__all__ = ["mistaken_call"]

_SAID = re.compile(r"\) (missing \d|takes |got (an unexpected keyword|multiple values))")
_GIVEN = {
    "fori_loop": "(i, carry)", "scan": "(carry, x)", "while_loop": "(carry)", "map": "(x)",
    "cond": "(*operands)", "switch": "(*operands)",
}  # fmt: skip
"""The arguments with which operations call the functions that they are given."""


def mistaken_call(error: TypeError, f: Callable[..., Any], does: str) -> ArgumentError | None:
    """Return the error for a call of `f` that Python refused with `error`, or None."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not below_hidden(trace.tb_frame.f_code.co_filename):
        return None
    if not _SAID.search(str(error)):
        return None
    try:
        has = f"{name_of(_innermost(f))}{inspect.signature(f)}"
    except (TypeError, ValueError):
        return None
    how = _GIVEN.get(does)
    return ArgumentError(
        f"{error}: {does} calls it{f' as f{how}' if how else ' with these arguments'}",
        where=defined_at(f) if how else None,
        fix=f"write a function of {how}, not {has}" if how else f"call it as {has}",
    )


def _innermost(f: Any) -> Any:
    while hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    return f
