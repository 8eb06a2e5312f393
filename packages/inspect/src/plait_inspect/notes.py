"""Additions of packages to the pages of programs: texts beside operations, and tables.

Invariant: a note changes nothing that a program computes.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from plait.ext.rules import Collective, RuleTable

__all__ = ["Section", "bytes_of", "note_rules"]

note_rules = RuleTable(
    "notes",
    owns=("core",),
    signature="(avals, outs, **params)",
    doc="a text that pages of programs show beside the operation, such as the bytes that it sends.",
)


class Section(NamedTuple):
    """A table below the programs of a page.

    Attributes:
      title: its heading.
      heads: the names of its columns.
      rows: its cells, as texts.
    """

    title: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def bytes_of(aval: Any) -> int:
    """Return the bytes of a value of this type; 0 if a size is known by name only."""
    laid = aval.physical
    return laid.size * laid.dtype.itemsize if isinstance(laid.size, int) else 0


@note_rules.rule(Collective)
def _(prim: object, avals: Any, outs: object, /, **params: object) -> str:
    names = params.get("axes") or params.get("name") or ()
    over = ", ".join(map(repr, names)) if isinstance(names, tuple) else repr(names)
    return f"sends {sum(map(bytes_of, avals)):,} bytes over {over}" if avals else ""
