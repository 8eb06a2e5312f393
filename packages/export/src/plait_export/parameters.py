"""What users give for parameters: names, and yes or no.

Invariant: what is of no such kind is an ArgumentError that names the parameter; nothing is guessed.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from plait.ext.errors import ArgumentError


def names_of(given: Any, what: str) -> list[str]:
    """The names of a list of them.  Raises ArgumentError for what is none, as a single name is."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        try:
            found: list[Any] = list(given)
        except TypeError:  # of an array without axes
            found = [None]
        if all(isinstance(name, str) for name in found):
            return found
    raise ArgumentError(
        f"{what} is {given!r}, and is a list of names", fix=f'write {what}=["name"]'
    )


def flag_of(given: Any, what: str) -> bool:
    """Whether something is to be.  Raises ArgumentError for what says neither."""
    if isinstance(given, bool | np.bool_):
        return bool(given)
    raise ArgumentError(
        f"{what} is {given!r}, and is True or False", fix=f"write {what}=True, or leave it out"
    )
