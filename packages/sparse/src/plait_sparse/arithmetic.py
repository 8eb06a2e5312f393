"""Elementwise functions and arithmetic of sparse arrays.

A function that maps zero to zero applies to the values.  Elements without an entry stay zero also
where the other operand is infinite or nan.

Invariant: a function that is not linear sees one entry for each index; a result that
would be dense is refused, unless an operand of its shape is dense.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import plait.numpy as pnp
from plait.ext.errors import OperandTypeError, ShapeError
from plait.ext.trace import Value

from .conversion import densified, extracted, laid_out
from .entries import Entries, clean, compiled, flat, inside, linear, rebuilt, zeroed
from .ordering import in_order, merged, with_single_entries
from .structure import broadcast

if TYPE_CHECKING:
    from .bcoo import BCOO

__all__ = ["added", "converted", "dense_refused", "divided", "mapped", "multiplied", "raised"]


def mapped(x: Entries, function: Callable[[Any], Any], is_linear: bool = False) -> Any:
    """Return a function of each element; it must map zero to zero."""
    x = x if is_linear else zeroed(with_single_entries(x))
    return rebuilt(x, function(x.data))


def converted(x: Entries, dtype: Any) -> Any:
    """Return the array with another dtype."""
    return mapped(x, lambda v: v.astype(dtype), is_linear=False)


def dense_refused(name: str, fix: str = "") -> OperandTypeError:
    """Return the error of an operation whose result has no zeros."""
    return OperandTypeError(
        f"{name} of a sparse array would be dense",
        fix=fix or "make the operand dense on purpose: plait.sparse.todense(x)",
    )


def _wide(x: Entries, shape: tuple[int, ...]) -> Any:
    """Return the array, broadcast to a shape as numpy does."""
    if x.shape == shape:
        return x
    return broadcast(x, shape, range(len(shape) - x.ndim, len(shape)))


def _with(x: Entries, y: object, function: Callable[[Any, Any], Any]) -> Any:
    """Return a function of the values and of a dense array at their places."""
    y = pnp.asarray(y)
    x = zeroed(x)
    x = _wide(x, np.broadcast_shapes(x.shape, y.shape))
    if not y.ndim:
        return rebuilt(x, function(x.data, y))
    y = y.reshape((*(1,) * (x.ndim - y.ndim), *y.shape))
    b, s = x.n_batch, x.n_batch + x.n_sparse
    sizes = [n for n in y.shape[b:s] if n != 1]
    if not sizes:  # it is equal along all sparse axes
        there = y.reshape((*y.shape[:b], 1, *y.shape[s:]))
        return rebuilt(x, function(x.data, there))
    keep = [k for k in range(x.n_sparse) if y.shape[b + k] != 1 or x.sparse_shape[k] == 1]
    inner = clean(x).indices[..., np.array(keep, int)]
    at = rebuilt(x, None, inner, sparse_shape=[x.sparse_shape[k] for k in keep])
    y = y.reshape((*y.shape[:b], *at.sparse_shape, *y.shape[s:]))
    y = pnp.broadcast_to(y, (*x.batch_shape, *at.sparse_shape, *y.shape[b + len(keep) :]))
    return rebuilt(x, function(x.data, extracted(at, y)))


def multiplied(x: object, y: Any) -> Any:
    """Return the product of the elements; one operand at least is sparse."""
    if isinstance(x, Entries) and isinstance(y, Entries):
        return _both(x, y)
    if isinstance(x, Entries):
        return _with(x, y, lambda v, w: v * w)
    return _with(y, x, lambda v, w: w * v)


def divided(x: Any, y: object, function: Callable[[Any, Any], Any] = lambda v, w: v / w) -> Any:
    """Return the quotient of the elements of a sparse array and of a dense one."""
    if isinstance(y, Entries):
        raise dense_refused(
            "division by a sparse array", "multiply by the reciprocal of a dense array instead"
        )
    return _with(x, y, function)


@compiled()
def _both(x: Entries, y: Entries) -> Any:
    """Return the product of two sparse arrays: entries of the one, times the other's values there.

    The other is brought into order, and each entry of the one is looked up there.
    """
    shape = np.broadcast_shapes(x.shape, y.shape)
    x, y = _wide(x, shape), _wide(y, shape)
    y = laid_out(y, x.n_batch, x.n_dense)
    flat_y = flat(y)
    flat_y = merged(flat_y, flat_y.nse) if not y.unique_indices else in_order(clean(flat_y))
    flat_x = clean(flat(x))
    if not flat_x.n_sparse:
        total = rebuilt(x, clean(x).data * densified(y)[None])
        return total
    like = np.result_type(flat_x.indices.dtype, flat_y.indices.dtype)
    keys_x, keys_y = (_keys(v, like) for v in (flat_x, flat_y))
    if not flat_y.nse:
        return rebuilt(x, x.data * np.zeros((), y.dtype))
    at = pnp.clip(pnp.searchsorted(keys_y, keys_x), 0, flat_y.nse - 1)
    meets = (keys_y[at] == keys_x) & inside(flat_x)
    shown = meets.reshape((-1, *(1,) * x.n_dense))
    other = pnp.where(shown, flat_y.data[at], np.zeros((), y.dtype))
    other = other.reshape((*x.batch_shape, x.nse, *x.dense_shape))
    return rebuilt(x, zeroed(x).data * other)


def _keys(x: Entries, dtype: np.dtype) -> Any:
    """Return one number for each entry, in the order of the indices; the largest for padding."""
    cols = [x.indices[:, k].astype(dtype) for k in range(x.n_sparse)]
    return pnp.where(inside(x), linear(cols, x.sparse_shape), np.iinfo(dtype).max)


def added(x: "np.ndarray | Value | BCOO", y: Any) -> Any:
    """Return the sum of the elements.

    Of two sparse arrays it is sparse, with the entries of both.  With a dense array it is dense.
    """
    if isinstance(x, Entries) and isinstance(y, Entries):
        return _joined(x, y)
    sparse, dense = (x, y) if isinstance(x, Entries) else (y, x)
    dense = pnp.asarray(dense)
    shape = np.broadcast_shapes(sparse.shape, dense.shape)
    if shape != tuple(dense.shape):
        raise ShapeError(
            f"the sum of a sparse array of shape {sparse.shape} and a dense one of shape "
            f"{tuple(dense.shape)} would be dense",
            fix="make the sparse array dense on purpose, plait.sparse.todense(x) + y, or add to "
            "its values, x.data",
        )
    return densified(_wide(sparse, shape)) + dense


def _joined(x: Entries, y: Entries) -> Any:
    """Return the sum of two sparse arrays."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    x, y = _wide(x, shape), _wide(y, shape)
    if x.indices is y.indices and (x.n_batch, x.n_dense) == (y.n_batch, y.n_dense):
        return rebuilt(x, x.data + y.data)
    n_batch, n_dense = min(x.n_batch, y.n_batch), min(x.n_dense, y.n_dense)
    x, y = laid_out(x, n_batch, n_dense), laid_out(y, n_batch, n_dense)
    dtype = pnp.promote_types(x.dtype, y.dtype)
    data = pnp.concatenate([v.data.astype(dtype) for v in (x, y)], n_batch)
    like = np.result_type(x.indices.dtype, y.indices.dtype)
    indices = pnp.concatenate([v.indices.astype(like) for v in (x, y)], n_batch)
    return rebuilt(x, data, indices, is_sorted=False, unique=False)


def raised(x: Entries, power: Any) -> Any:
    """Return a positive power of each element."""
    is_number = isinstance(power, int | float | np.number) and not isinstance(power, bool)
    if not is_number or not power > 0 or math.isnan(power):
        raise dense_refused(
            f"the power {power!r}", "use a positive number as the power, or make the array dense"
        )
    return mapped(x, lambda v: v**power)
