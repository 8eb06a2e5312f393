"""`jax.experimental.pjit`: jit with placements by position, over the mesh in context.

Invariant: None as a placement means a copy on each device of the mesh in context, and so does an
array that was placed nowhere, as in JAX; where no mesh is in context, both say nothing.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import plait
from plait import tree_util
from plait.errors import ArgumentError, PlacementError
from plait.ext import current
from plait.ext.trace import GROUND

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
    placed = in_shardings is not _UNSPECIFIED or out_shardings is not _UNSPECIFIED
    if placed and options.get("device") is not None:
        raise ArgumentError(
            "pjit was given device, and in_shardings or out_shardings", fix="give one of them"
        )
    for name, where in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        if where is not _UNSPECIFIED:
            given[name] = _placed(where)
    jitted = plait.jit(fun, **given)
    if options.get("device") is not None:
        return jitted
    return _over_the_mesh(jitted, in_shardings is _UNSPECIFIED)


def _over_the_mesh(jitted: Callable[..., Any], brings: bool) -> Any:
    """Return a jitted function that runs on the devices of the mesh in context, if there is one.

    `brings` is False if in_shardings say where arguments go.
    """

    @functools.wraps(jitted)
    def over_the_mesh(*args: Any, **kwargs: Any) -> Any:
        mesh = plait.sharding.get_mesh()
        if mesh.empty or mesh.size == 1 or current() is not GROUND:
            return jitted(*args, **kwargs)
        brought = functools.partial(_brought, mesh)
        if brings:
            args, kwargs = tree_util.tree_map(brought, (args, kwargs))
        return tree_util.tree_map(brought, jitted(*args, **kwargs))

    for name in ("trace", "lower", "eval_shape", "clear_cache", "_cache_size"):
        setattr(over_the_mesh, name, getattr(jitted, name))
    return over_the_mesh


def _brought(mesh: Any, x: object) -> Any:
    """Return an array with a copy on each device of a mesh, unless it was placed on these.

    Raises PlacementError for an array that was placed on other devices.
    """
    if not isinstance(x, plait.Array | np.ndarray):
        return x
    if isinstance(x, np.ndarray) or not x.committed:
        return plait.device_put(x, plait.NamedSharding(mesh, plait.P()))
    if x.sharding.device_set != {plait.devices()[i] for i in mesh.ids}:
        raise PlacementError(
            f"pjit runs on the devices of the mesh in context, {mesh!r}, and an argument of type "
            f"{x.aval!r} was placed by {x.sharding!r}",
            fix="bring it there first, by jax.device_put, or call it without the mesh in context",
        )
    return x


def _placed(where: Any) -> Any:
    """Return the placements, with a copy on each device for None where a mesh is in context."""
    if plait.sharding.get_abstract_mesh().empty:
        return where
    return tree_util.tree_map(
        lambda w: plait.P() if w is None else w, where, is_leaf=lambda w: w is None
    )
