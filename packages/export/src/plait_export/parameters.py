"""Checks of parameters that users give: lists of names, and flags.

Invariant: a value of another kind raises an ArgumentError that names the parameter; nothing is
guessed.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from plait.ext.errors import ArgumentError


def names_of(given: Any, what: str) -> list[str]:
    """Return a list of names.  Raises ArgumentError for anything else, even a single string."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        try:
            found: list[Any] = list(given)
        except TypeError:  # Arrays without axes have __iter__, but it raises.
            found = [None]
        if all(isinstance(name, str) for name in found):
            return found
    raise ArgumentError(
        f"{what} is {given!r}, and is a list of names", fix=f'write {what}=["name"]'
    )


def flag_of(given: bool, what: str) -> bool:
    """Return a flag as a bool.  Raises ArgumentError for anything but True and False."""
    if isinstance(given, bool | np.bool_):
        return bool(given)
    raise ArgumentError(
        f"{what} is {given!r}, and is True or False", fix=f"write {what}=True, or leave it out"
    )
