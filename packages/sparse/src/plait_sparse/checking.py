"""Checks of the fields that callers give.

Invariant: values are read only where they are here, in arrays that no transformation traces; shapes
and dtypes are always checked.
"""

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait import ext
from plait.ext.errors import ArgumentError, OperandTypeError, ShapeError
from plait.ext.trace import Value
from plait.typing import Array

__all__ = ["check_coordinates", "check_fields", "check_order", "here_as_numpy", "sizes_of"]


def sizes_of(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of integers."""
    try:
        return tuple(d if isinstance(d, ext.sizes.Dim) else index(d) for d in shape)
    except TypeError:
        raise ArgumentError(
            f"expected `shape` to be a sequence of integers, got {shape!r}",
            fix="pass the sizes of all axes, such as shape=(3, 4)",
        ) from None


def here_as_numpy(x: Any) -> np.ndarray | None:
    """Return the values of an array; None while they are traced."""
    if isinstance(x, np.ndarray):
        return x
    return np.asarray(x) if isinstance(x, ext.Array) and not isinstance(x, ext.Tracer) else None


def whole_numbers(x: object, name: str) -> Any:
    """Return an argument as an array of integers."""
    x = pnp.asarray(x)
    if not pnp.issubdtype(x.dtype, pnp.integer):
        raise OperandTypeError(
            f"expected `{name}` to be integers, got {x.dtype}", fix=f"pass {name}.astype('int32')"
        )
    return x


def check_fields(data: Array, indices: Value, shape: tuple[int, ...]) -> None:
    """Raise ShapeError unless the shapes of data and indices fit the shape of the array."""
    if indices.ndim < 2:
        raise ShapeError(
            f"expected `indices` of shape (*batch, nse, n_sparse), got {indices.shape}",
            fix="give each entry a row of indices; for a vector that is indices[:, None]",
        )
    n_batch, nse, n_sparse = indices.ndim - 2, *indices.shape[-2:]
    n_dense = len(shape) - n_batch - n_sparse
    batch, dense = shape[:n_batch], shape[n_batch + n_sparse :]
    if n_dense < 0:
        raise ShapeError(
            f"expected a shape with at least {n_batch + n_sparse} axes for indices of shape "
            f"{indices.shape}, got {shape}",
            fix="indices have the batch axes, the entries, and a column for each sparse axis",
        )
    if data.ndim != n_batch + 1 + n_dense:
        raise ShapeError(
            f"expected data with {n_batch + 1 + n_dense} axes, (*batch, nse, *dense), for shape "
            f"{shape}, got shape {data.shape}",
            fix="check `shape`, which counts batch, sparse and dense axes together",
        )
    wanted = (*batch, nse, *dense)
    sides = [("indices", tuple(indices.shape[:n_batch]), batch),
             ("data", tuple(data.shape), wanted)]  # fmt: skip
    for name, got, want in sides:
        spread = [g == w or (k < n_batch and g == 1) for k, (g, w) in enumerate(zip(got, want))]
        if not all(spread):
            raise ShapeError(
                f"expected {name} whose sizes fit {want} for shape {shape}, got {got}",
                fix="data and indices need the same number of entries, and the sizes of the shape",
            )


def check_coordinates(indices: Value, sizes: Sequence[int], is_sorted: bool, unique: bool) -> None:
    """Raise ArgumentError for indices out of bounds, and for promises that do not hold.

    An entry whose indices all equal the sizes is padding.
    """
    found = here_as_numpy(indices)
    if found is None or not found.size or any(isinstance(n, ext.sizes.Dim) for n in sizes):
        return
    limits = np.array(sizes)
    padding = (found == limits).all(-1)
    wrong = ((found < 0) | (found >= limits)).any(-1) & ~padding
    if wrong.any():
        at = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ArgumentError(
            f"expected indices from 0 to below {tuple(sizes)}, got {found[at].tolist()} at "
            f"indices[{', '.join(map(str, at))}]",
            fix="indices count from 0; padding entries have indices equal to the shape, "
            f"{list(sizes)}",
        )
    check_order(found, padding, is_sorted, unique)


def check_order(found: np.ndarray, padding: np.ndarray, is_sorted: bool, unique: bool) -> None:
    """Raise ArgumentError unless indices are in order and without duplicates, where promised."""
    if is_sorted:
        less, more = found[..., :-1, :], found[..., 1:, :]
        differ = less != more
        first = np.argmax(differ, -1)[..., None]
        falls = np.take_along_axis(less, first, -1) > np.take_along_axis(more, first, -1)
        falls = falls[..., 0] if found.shape[-1] else np.zeros(falls.shape[:-1], bool)
        if falls.any():
            at = tuple(int(k) for k in np.argwhere(falls)[0])
            raise ArgumentError(
                f"expected sorted indices, because indices_sorted=True, got {less[at].tolist()} "
                f"before {more[at].tolist()}",
                fix="leave indices_sorted out, then call .sort_indices()",
            )
    if unique:
        for at in np.ndindex(found.shape[:-2]):
            rows = found[at][~padding[at]]
            if len(np.unique(rows, axis=0)) < len(rows):
                raise ArgumentError(
                    "expected each index once, because unique_indices=True, got duplicates",
                    fix="leave unique_indices out, then call .sum_duplicates()",
                )
