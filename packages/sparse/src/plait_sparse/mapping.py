"""Sparse arrays under `vmap`: they are mapped along their batch axes.

As trees of arrays they could be mapped along any axis of the leaves, and mapping along that of the
entries would give another array.

Invariant: only the public function `plait.register_vmappable` is used; without it, nothing is done.
"""

from collections.abc import Callable
from typing import Any

import plait
from plait import ext
from plait.ext.errors import ArgumentError

from .bcoo import BCOO
from .bcsr import BCSR
from .matrices import COO, CSC, CSR, Matrix

__all__ = ["register"]


def _with_leaves(x: BCOO | BCSR, change: Callable[[Any], Any]) -> Any:
    """Return a sparse array with each of its leaves changed."""
    leaves, static = x.tree_flatten()
    return type(x).tree_unflatten(static, [change(leaf) for leaf in leaves])


def to_element(
    cont: Callable[..., Any], get_idx: Callable[[], Any], x: BCOO | BCSR, axis: int
) -> Any:
    """Return the array without a batch axis.

    Raises ArgumentError for any other axis.
    """
    _expect_batches(x)
    if not -x.n_batch <= axis < x.n_batch:
        raise ArgumentError(
            f"vmap of a {type(x).__name__} with n_batch={x.n_batch} expected a batch axis, got "
            f"axis {axis}",
            fix="make it a batch axis: x.update_layout(n_batch=1, on_inefficient=None), or "
            "transpose the batch axes",
        )
    return _with_leaves(x, lambda leaf: cont(leaf, axis % x.n_batch))


def from_element(cont: Callable[..., Any], size: int, x: BCOO | BCSR, axis: int) -> Any:
    """Return the array with a new batch axis.

    Raises ArgumentError for an axis behind the batch axes.
    """
    _expect_batches(x)
    if not 0 <= axis <= x.n_batch:
        raise ArgumentError(
            f"vmap of a function that returns a {type(x).__name__} with n_batch={x.n_batch} "
            f"expected out_axes from 0 to {x.n_batch}, got {axis}",
            fix="write out_axes=0, then transpose the result",
        )
    return _with_leaves(x, lambda leaf: cont(size, leaf, axis))


def _expect_batches(x: Any) -> None:
    """Raise ArgumentError for an array in a format without batch axes."""
    if isinstance(x, Matrix):
        raise ArgumentError(
            f"vmap expected arrays in a format with batch axes, got a {type(x).__name__}",
            fix="use BCOO or BCSR with n_batch=1: BCSR.from_bcoo(x.to_bcoo())",
        )


def register() -> None:
    """Register the classes with `vmap`, if it is installed."""
    if "register_vmappable" in ext.plugins.names("plait.api"):
        for kind in (BCOO, BCSR, COO, CSR, CSC):
            plait.register_vmappable(kind, int, int, to_element, from_element)
