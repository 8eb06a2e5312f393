"""The forms of values in a function under `sparsify`: how a sparse value is laid out.

Invariant: a form and the type of a value determine the types of the components.
"""

from typing import Any, NamedTuple

import numpy as np

from plait.ext.types import Aval

from .bcoo import BCOO
from .entries import Entries

__all__ = ["DENSE", "Layout", "array_of", "layout_of", "types_of"]

DENSE = "dense"
"""The form of a value that is dense; every value can be brought to it."""


class Layout(NamedTuple):
    """The static part of a sparse value."""

    n_batch: int
    n_dense: int
    nse: Any
    index_dtype: np.dtype
    indices_sorted: bool
    unique_indices: bool

    def meet(self, other: "Layout") -> "Layout | str":
        """Return the least layout that both can be brought to."""
        if (self.n_batch, self.n_dense) != (other.n_batch, other.n_dense):
            return DENSE
        wide = max((self.index_dtype, other.index_dtype), key=lambda d: d.itemsize)
        ordered = self.indices_sorted and other.indices_sorted
        unique = self.unique_indices and other.unique_indices
        return self._replace(
            nse=max(self.nse, other.nse), index_dtype=wide, indices_sorted=ordered,
            unique_indices=unique,
        )  # fmt: skip


def layout_of(x: Entries) -> Layout:
    """Return the layout of a sparse array."""
    return Layout(
        x.n_batch, x.n_dense, x.nse, np.dtype(x.indices.dtype), x.indices_sorted, x.unique_indices
    )


def types_of(aval: Aval, form: Any) -> tuple[Aval, ...]:
    """Return the types of the components of a value."""
    if form == DENSE:
        return (aval,)
    end = aval.ndim - form.n_dense
    batch, n_sparse = aval.shape[: form.n_batch], end - form.n_batch
    data = aval.with_shape((*batch, form.nse, *aval.shape[end:]))
    return data, Aval((*batch, form.nse, n_sparse), form.index_dtype)


def array_of(aval: Aval, form: Layout, parts: tuple[Any, ...]) -> BCOO:
    """Return the sparse array of these components."""
    sizes = aval.shape[form.n_batch : aval.ndim - form.n_dense]
    data, indices = parts
    return BCOO.made(data, indices, sizes, form.indices_sorted, form.unique_indices)


def positions_of(aval: Aval, form: Any) -> tuple[tuple[int | None, ...], ...]:
    """Return, for each component, the position of each axis of the value in it."""
    if form == DENSE:
        return (tuple(range(aval.ndim)),)
    b, s = form.n_batch, aval.ndim - form.n_dense
    data = [k if k < b else None if k < s else k - s + b + 1 for k in range(aval.ndim)]
    indices = [k if k < b else None for k in range(aval.ndim)]
    return tuple(data), tuple(indices)
