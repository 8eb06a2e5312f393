"""Notes on the pages that `plait.show` makes: texts beside operations, and tables below.

Invariant: nothing is defined here.
"""

from .notes import Section, note_rules

__all__ = ["Section", "note_rules"]
