"""Entries of sparse arrays of scipy, which is not imported here.

Invariant: only attributes and methods of the given object are used.
"""

from typing import Any

import numpy as np

from plait.ext.errors import ArgumentError

__all__ = ["entries_of_scipy"]


def entries_of_scipy(mat: Any, index_dtype: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """Return (data, indices, shape) of a sparse array or matrix of scipy."""
    if not hasattr(mat, "tocoo"):
        raise ArgumentError(
            f"from_scipy_sparse expected a sparse array of scipy, got {type(mat).__name__}",
            fix="use fromdense for arrays",
        )
    coo = mat.tocoo()
    coords = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
    indices = np.stack([np.asarray(c) for c in coords], -1)
    return coo.data, indices.astype(index_dtype or indices.dtype), tuple(map(int, coo.shape))
