"""`jax.smap`: a function over the pieces of its arguments along one axis of the mesh.

Invariant: it is `shard_map` over one axis, with positions in place of specs.
"""

import functools
from collections.abc import Callable
from typing import Any

import plait
import plait.numpy as pnp
from plait import tree_util

from .signatures import flatten_axes

__all__ = ["smap"]


_FROM_TYPES: Any = object()
"""The default of `in_axes`."""


def smap(
    f: Callable[..., Any] | None = None,
    /,
    *,
    in_axes: Any = _FROM_TYPES,
    out_axes: Any,
    axis_name: Any,
) -> Any:
    """Return `f` over the devices along one mesh axis; without `f`, a decorator.

    Args:
      f: the function of one device's pieces.
      in_axes: the axis of each argument that is divided, as for `vmap`; None divides nothing.
        Omitted, arguments are divided as their types say, over an explicit axis of the mesh.
      out_axes: the axis along which pieces of results are joined, as for `vmap`.
      axis_name: the axis of the mesh in context.
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)

    @functools.wraps(f)
    def mapped(*args: Any) -> Any:
        given: dict[str, Any] = {}
        if in_axes is not _FROM_TYPES:
            leaves, tree = tree_util.tree_flatten(args)
            axes = flatten_axes("smap: in_axes", tree, in_axes)
            specs = [_spec(a, axis_name, pnp.ndim(x)) for a, x in zip(axes, leaves, strict=True)]
            given["in_specs"] = tree.unflatten(specs)
        wanted: list[Any] = []

        def front(*args: Any) -> Any:
            # The rank of a result is known here only, so axes are counted from the front here.
            outs, tree = tree_util.tree_flatten(f(*args))
            wanted[:] = flatten_axes("smap: out_axes", tree, out_axes)
            rows = zip(outs, wanted, strict=True)
            return tree.unflatten([x if a is None else pnp.moveaxis(x, a, 0) for x, a in rows])

        first = tree_util.tree_map(
            lambda a: plait.P() if a is None else plait.P(axis_name), out_axes, is_leaf=_is_none
        )
        inside = plait.shard_map(front, out_specs=first, axis_names={axis_name}, **given)
        outs, tree = tree_util.tree_flatten(inside(*args))
        rows = zip(outs, wanted, strict=True)
        return tree.unflatten([x if a is None else pnp.moveaxis(x, 0, a) for x, a in rows])

    return mapped


def _spec(axis: int | None, name: Any, rank: int) -> Any:
    """Return the spec that divides one axis of an array."""
    if axis is None:
        return plait.P()
    return plait.P(*[None] * (axis % rank), name)


def _is_none(x: object) -> bool:
    """Return whether an entry is None, which is a leaf here."""
    return x is None
