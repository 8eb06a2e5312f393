"""`jax.test_util`: derivatives compared with finite differences over a short step.

Invariant: Plait's own functions compare; only the step that is used where none is given differs.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

import plait
from plait import tree_util

__all__ = ["check_grads", "check_jvp", "check_vjp"]

Check = TypeVar("Check", bound=Callable[..., None])
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


def _over_short_steps(check: Check) -> Check:
    """Return a function that calls `check` with the step for its arguments."""
    parameters = inspect.signature(check)

    @functools.wraps(check)
    def checked(*args: Any, **kwargs: Any) -> None:
        try:
            given = parameters.bind(*args, **kwargs).arguments
        except TypeError:  # the function itself has the better error
            return check(*args, **kwargs)
        return check(**given | {"eps": _step(given.get("eps"), given["args"])})

    return checked  # type: ignore[return-value]


check_grads = _over_short_steps(plait.check_grads)
check_jvp = _over_short_steps(plait.test_util.check_jvp)
check_vjp = _over_short_steps(plait.test_util.check_vjp)
