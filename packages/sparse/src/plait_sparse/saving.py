"""Static parts of sparse arrays as bytes, for artifacts.

    [[3, 4], true, true]     the sizes of the sparse axes; whether they are in order, and unique

Invariant: a static part that is read back equals the one that was written; any other input raises
ValueError.
"""

import json
from typing import Any

from .entries import Shape

__all__ = ["read", "read_of_matrix", "written"]


def written(static: tuple[Shape, bool, bool]) -> bytes:
    """Return a static part as bytes.

    Raises ValueError for sizes that are known by name only.
    """
    sizes, is_sorted, unique = static
    if any(type(n) is not int for n in sizes):
        raise ValueError(f"sparse axes of sizes {sizes} have no form in artifacts")
    return json.dumps([list(sizes), is_sorted, unique]).encode()


def read(text: bytes) -> tuple[Shape, bool, bool]:
    """Return a static part from bytes; raise ValueError for any other bytes."""
    try:
        given: Any = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise ValueError("not the static part of a sparse array") from e
    is_triple = type(given) is list and len(given) == 3 and type(given[0]) is list
    if is_triple and all(type(flag) is bool for flag in given[1:]):
        sizes, is_sorted, unique = given
        if all(type(n) is int and n >= 0 for n in sizes):
            return tuple(sizes), is_sorted, unique
    raise ValueError("not the static part of a sparse array")


def read_of_matrix(text: bytes) -> tuple[Shape, bool, bool]:
    """Return a static part with two sparse axes from bytes; raise ValueError for any others."""
    found = read(text)
    if len(found[0]) != 2:
        raise ValueError("not the static part of a matrix, which has two sparse axes")
    return found
