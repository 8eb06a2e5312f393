"""vtile: map a function over tiles of its arguments.

Invariant: axes are divided before the call and joined after it, so arguments and results have as
many axes as those of the function itself.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from plait.ext.errors import ArgumentError, AxisError, border, names_in_call
from plait.ext.ops.shape import materialise_at_ground, moveaxis, reshape
from plait.ext.trace import Value, leaf_name, result, wraps
from plait.ext.tree import flatten, key_paths, spread
from plait.ext.values import as_value
from plait.typing import Array

from .api import vmap
from .axes import ENTRY, counted, entries, inside

__all__ = ["vtile"]


@border
def vtile(
    fun: Callable[..., Any] | None = None,
    in_axes: object = 0,
    out_axes: object = 0,
    tile_size: int | None = None,
    axis_name: object = None,
) -> Callable[..., Any]:
    """Map `fun` over the tiles of its arguments, computing all tiles at once.

    Args:
      fun: takes and returns trees of arrays; without it, a decorator is returned.
      in_axes: which axis of each positional argument is divided into tiles, as in `vmap`; None
        passes the whole argument to every tile.  Keyword arguments are divided along axis 0.
      out_axes: the axis along which the results of the tiles are joined; None for results that are
        the same for all tiles.
      tile_size: the number of tiles: an axis of size n is reshaped to [tile_size, n // tile_size].
        By default it is the size of the first axis that is divided.
      axis_name: the name of the axis of tiles for collectives inside `fun`.

    Returns:
      A function with `fun`'s signature.

    Raises AxisError if no argument is divided, an axis does not divide evenly, or does not exist.

    >>> import plait
    >>> rows = plait.vtile(lambda v: v - plait.lax.psum(v.sum(), "t"), tile_size=2, axis_name="t")
    >>> rows(plait.numpy.arange(6.0))
    Array([-15., -14., -13., -12., -11., -10.], dtype=float32)
    """
    if fun is None:
        return partial(
            vtile, in_axes=in_axes, out_axes=out_axes, tile_size=tile_size, axis_name=axis_name
        )
    if not callable(fun):
        raise ArgumentError(f"vtile needs a function, not {fun!r}", fix="write vtile(f)")
    count = counted("vtile", "tile_size", tile_size, "tiles", "write tile_size=2")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    f = fun

    @border
    @wraps(f)
    def tiled(*args: object, **kwargs: object) -> Any:
        leaves, tree = flatten((args, kwargs))
        axes = entries("vtile", in_axes, args, args, len(leaves), _is_position, f=f)
        xs = [x if a is None else as_value(x) for x, a in zip(leaves, axes)]
        told = lambda i: leaf_name((args, kwargs), i, names_in_call(f))  # noqa: E731
        at = [
            a if a is None else inside("vtile", a, x, partial(told, i))
            for i, (x, a) in enumerate(zip(xs, axes))
        ]
        sizes = [x.aval.shape[a] for x, a in zip(xs, at) if a is not None]
        if not sizes:
            raise AxisError(
                "vtile: no mapped arguments: every in_axes entry is None",
                fix="say of an argument which axis is divided",
            )
        k = sizes[0] if count is None else count
        parts = [
            x if a is None else _divided(x, a, k, told, i) for i, (x, a) in enumerate(zip(xs, at))
        ]
        out_tree: Any = None
        wanted: list = []

        def tile(*parts: Value) -> tuple[list, list]:
            nonlocal out_tree, wanted
            a, kw = tree.unflatten(parts)
            out = f(*a, **kw)
            outs, out_tree = flatten(out)
            values = [result(o, i, out, f) for i, o in enumerate(outs)]
            wanted = spread(out_axes, out, "out_axes", _is_position, ENTRY)
            wanted = [
                w if w is None else inside("vtile", w, v, lambda i=i: f"result{key_paths(out)[i]}")
                for i, (w, v) in enumerate(zip(wanted, values))
            ]
            mapped = [v for v, w in zip(values, wanted) if w is not None]
            return mapped, [v for v, w in zip(values, wanted) if w is None]

        mapped, same = map(iter, vmap(tile, tuple(at), (0, None), axis_name, k)(*parts))
        outs = [next(same) if w is None else _together(next(mapped), w) for w in wanted]
        return out_tree.unflatten(outs)

    return tiled


def _is_position(x: object) -> bool:
    return x is None or (isinstance(x, int) and not isinstance(x, bool))


def _divided(x: Value, axis: int, k: int, told: Callable[[int], str], i: int) -> Any:
    """Reshape the axis into two: the number of the tile, and the position in it."""
    s = x.aval.shape
    if s[axis] % k != 0:
        raise AxisError(
            f"vtile: axis {axis} of {told(i)} of type {x.aval!r} cannot be divided in {k} equal "
            "tiles",
            fix=f"give it a size that is a multiple of {k}, or another tile_size",
        )
    return reshape(x, (*s[:axis], k, s[axis] // k, *s[axis + 1 :]))


def _together(x: Array, axis: int) -> Any:
    """Merge the leading axis, that of tiles, into `axis` of the rest."""
    x = moveaxis(x, 0, axis)
    s = x.aval.shape
    return materialise_at_ground(reshape(x, (*s[:axis], s[axis] * s[axis + 1], *s[axis + 2 :])))
