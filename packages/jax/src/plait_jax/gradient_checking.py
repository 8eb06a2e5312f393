"""`jax.test_util`: derivatives compared with finite differences over a short step.

Invariant: Plait's own functions compare; only the step that is used where none is given differs.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plait
from plait import tree_util

__all__ = ["check_grads", "check_jvp", "check_vjp"]

_STEP = 1e-3
"""The step for arrays of 32 bits; JAX's is 1e-4.

Tests written for JAX choose points further than that from those without a derivative, and Plait's
own step for 32 bits, 1e-2, reaches beyond.  The shortest would lose digits: this difference is of
the fourth order, JAX's of the second, and rounding weighs a third more in it.
"""
_KINDS = (np.dtype("float32"), np.dtype("complex64"))


def _step(eps: float | None, args: Sequence[Any]) -> float | None:
    """Return the step for these arguments; None, which is Plait's own, unless all are arrays of 32
    bits: others may be narrowed, and tolerances for 64 bits leave no room for rounding."""
    kinds = [getattr(x, "dtype", None) for x in tree_util.tree_leaves(args)]
    return _STEP if eps is None and all(k in _KINDS for k in kinds) else eps


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Compare derivatives of `f` at `args` with finite differences, as `plait.check_grads` does."""
    plait.check_grads(f, args, order, modes, atol, rtol, _step(eps, args))


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare `f_jvp` with finite differences, as `plait.test_util.check_jvp` does."""
    plait.test_util.check_jvp(f, f_jvp, args, atol, rtol, _step(eps, args), err_msg)


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare `f_vjp` with finite differences, as `plait.test_util.check_vjp` does."""
    plait.test_util.check_vjp(f, f_vjp, args, atol, rtol, _step(eps, args), err_msg)
