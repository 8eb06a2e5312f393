"""Types for annotations.

Invariant: these are for readers and type checkers; nothing is decided by them when programs run.
"""

from typing import Any, Protocol, TypeAlias

import numpy as np

from .interpreter import Value
from .values import Array

__all__ = ["Array", "ArrayLike", "DTypeLike", "Shape"]


class _HasDType(Protocol):
    @property
    def dtype(self) -> np.dtype: ...


ArrayLike: TypeAlias = Value | np.ndarray | np.generic | bool | int | float | complex
"""What functions take for an array: arrays, traced values, numpy's, and Python scalars; no lists,
which only `weft.numpy.asarray` and its like take."""

DTypeLike: TypeAlias = str | type[Any] | np.dtype | _HasDType
"""What names a dtype: "float32", numpy.float32, float, a dtype, or a thing that has one."""

Shape: TypeAlias = tuple[Any, ...]
"""Sizes: ints, or symbolic ones."""
