"""Reductions of `jax.numpy`, whose results keep their dtype whatever `initial` is.

In Plait `initial` counts for the dtype as another element does.

Invariant: without `initial`, and with one of the result's dtype, these are Plait's own functions.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import plait
import plait.numpy as pnp
from plait.typing import ArrayLike

__all__ = [
    "amax", "amin", "max", "min", "nanmax", "nanmin", "nanprod", "nansum", "prod", "sum",
]  # fmt: skip


def _keeping(reduction: Callable[..., Any]) -> Any:
    """Return the reduction, which converts `initial` to the dtype that the result has without."""
    signature = inspect.signature(reduction)
    position = [*signature.parameters].index("initial")

    @functools.wraps(reduction)
    def keeping(a: ArrayLike, *args: Any, **kwargs: Any) -> Any:
        if "initial" not in kwargs and len(args) < position:
            return reduction(a, *args, **kwargs)
        bound = signature.bind(a, *args, **kwargs)
        initial, dtype = bound.arguments["initial"], bound.arguments.get("dtype")
        if initial is not None and pnp.ndim(initial) == 0:
            one = plait.ShapeDtypeStruct((1,), plait.typeof(a).dtype)
            given = {} if dtype is None else {"dtype": dtype}
            kind = plait.eval_shape(lambda v: reduction(v, **given), one).dtype
            bound.arguments["initial"] = pnp.asarray(initial).astype(kind)
        return reduction(*bound.args, **bound.kwargs)

    return keeping


amax, amin, max, min = map(_keeping, (pnp.amax, pnp.amin, pnp.max, pnp.min))
nanmax, nanmin, nanprod, nansum = map(_keeping, (pnp.nanmax, pnp.nanmin, pnp.nanprod, pnp.nansum))
prod, sum = map(_keeping, (pnp.prod, pnp.sum))
