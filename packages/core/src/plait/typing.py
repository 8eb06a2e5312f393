"""Types for annotations.

Array libraries import them from here: `from plait.typing import Array, ArrayLike`.

Invariant: these are for readers and type checkers; they do not affect how programs run.
"""

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias

import numpy as np

from ._base.lazy import advise as _advise
from ._core.array_type import Array
from ._types.dims import Dim

__all__ = ["Array", "ArrayLike", "Axis", "DTypeLike", "Shape"]


class _HasDType(Protocol):
    @property
    def dtype(self) -> np.dtype: ...


ArrayLike: TypeAlias = Array | np.ndarray | np.generic | bool | int | float | complex | Dim
"""Values that functions accept as arrays: arrays, traced values, numpy's, Python scalars and
symbolic sizes. Lists are accepted only by `plait.numpy.asarray` and similar functions."""

DTypeLike: TypeAlias = str | type[Any] | np.dtype | _HasDType
"""Names of a dtype: "float32", numpy.float32, float, a dtype, or an object that has one."""

Shape: TypeAlias = Sequence[SupportsIndex | Dim]
"""The sizes of the axes: ints, or symbolic ones."""

Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
"""One axis, or several."""

_advise("plait.typing", globals())
