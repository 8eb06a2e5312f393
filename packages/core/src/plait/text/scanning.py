"""A text taken piece by piece, from left to right.

Invariant: blanks and comments never matter; an unexpected piece is an error with its line and
column.
"""

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

from .._base.errors import ProgramError


class Pattern:
    """A regular expression that is compiled when first needed: texts are read rarely, but this
    module is imported always."""

    def __init__(self, source: str):
        self.source = source

    @cached_property
    def match(self) -> "Callable[[str, int], re.Match[str] | None]":
        return re.compile(self.source).match


_SKIP = Pattern(r"(?:\s+|#[^\n]*)*")


class Scanner:
    """A text, and the position up to which it has been taken."""

    text: str
    at: int

    def __init__(self, text: str):
        self.text, self.at = text, 0

    def skip(self) -> int:
        """Skip blanks and comments; return the position of the next piece."""
        self.at = _SKIP.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.at

    def peek(self, what: Pattern | str) -> bool:
        """Return whether `what` is the next piece."""
        at = self.skip()
        if isinstance(what, str):
            return self.text.startswith(what, at)
        return what.match(self.text, at) is not None

    def find(self, what: Pattern) -> "re.Match[str] | None":
        """Take `what` if it is next, and return its match; None if it is not."""
        found = what.match(self.text, self.skip())
        if found is not None:
            self.at = found.end()
        return found

    def take(self, what: Pattern, said: str) -> "re.Match[str]":
        """Take `what`; raise an error, which calls it `said`, if it is not next."""
        found = self.find(what)
        if found is None:
            raise self.error(f"{said} is expected")
        return found

    def has(self, word: str) -> bool:
        """Take `word` if it is next."""
        if not self.peek(word):
            return False
        self.at += len(word)
        return True

    def need(self, word: str) -> None:
        """Take `word`, which must be next."""
        if not self.has(word):
            raise self.error(f"{word!r} is expected")

    def listed(self, item: Callable[[], Any], end: str) -> list[Any]:
        """Take items with commas between them (and maybe after the last), up to `end`; return
        them."""
        items: list[Any] = []
        while not self.has(end):
            items.append(item())
            if not self.has(","):
                self.need(end)
                break
        return items

    def error(self, what: str, at: int | None = None, fix: str | None = None) -> ProgramError:
        """Return an error at the current position or at `at`, with the line and a mark under it."""
        at = self.skip() if at is None else at
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        shown = self.text.split("\n")[line - 1]
        return ProgramError(
            f"line {line}, column {column}: {what}\n    {shown}\n    {' ' * (column - 1)}^",
            fix=fix or "write it as plait.text.show prints it",
        )
