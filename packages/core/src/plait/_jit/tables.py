"""Tables of limited size, which changes of settings empty.

Invariant: no table grows beyond `MOST` entries, and none keeps the object that holds it alive.
"""

from collections.abc import Callable, Iterable
from typing import Any

from .._base.config import config

MOST = 2048
"""The most traces of a function, and the most sets of static values, that are kept.  Without this
limit, calls that differ each time in a size or a static number would fill memory."""


def is_full(table: dict[Any, Any]) -> bool:
    """Return whether a table has as many entries as may be kept."""
    return len(table) >= MOST


def make_room(table: dict[Any, Any]) -> bool:
    """Drop the older half of a full table; return whether it was full."""
    if not is_full(table):
        return False
    for key in list(table)[: MOST // 2]:
        table.pop(key, None)
    return True


def forgetting(tables: Iterable[dict[Any, Any]]) -> Callable[[], None]:
    """Return a function that empties these tables; the settings call it when one changes.

    The settings hold it weakly: the caller keeps it for as long as the tables.
    """

    def forget() -> None:
        for table in tables:
            table.clear()

    config.watch(forget)
    return forget
