"""`jax.experimental.pjit`: jit with placements by position.

Invariant: None as a placement means a copy on each device of the mesh in context, as in JAX; where
no mesh is in context, it says nothing.
"""

from collections.abc import Callable
from typing import Any

import plait
from plait import tree_util

__all__ = ["pjit"]

_UNSPECIFIED: Any = object()


def pjit(
    fun: Callable[..., Any],
    in_shardings: Any = _UNSPECIFIED,
    out_shardings: Any = _UNSPECIFIED,
    static_argnums: Any = None,
    static_argnames: Any = None,
    donate_argnums: Any = None,
    donate_argnames: Any = None,
    **options: object,
) -> Any:
    """Return `jit(fun)` with these placements, and the options of `jit`."""
    given = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        **options,
    }
    for name, where in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        if where is not _UNSPECIFIED:
            given[name] = _placed(where)
    return plait.jit(fun, **given)


def _placed(where: Any) -> Any:
    """Return the placements, with a copy on each device for None where a mesh is in context."""
    if plait.sharding.get_abstract_mesh().empty:
        return where
    return tree_util.tree_map(
        lambda w: plait.P() if w is None else w, where, is_leaf=lambda w: w is None
    )
