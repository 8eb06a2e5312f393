"""vmap of some elements at a time: a loop over chunks, each mapped at once.

Invariant: elements keep their order; temporary memory, besides arguments and results, is that of
one chunk.
"""

from collections.abc import Callable
from typing import Any

import plait
from plait.ext.errors import ArgumentError
from plait.ext.ops import shape as sh
from plait.ext.ops.indexing import getitem
from plait.ext.trace import Value

from .axes import kind_of

__all__ = ["in_chunks"]


def in_chunks(
    run: Callable[..., Any], xs: list[Any], axes: list[Any], size: int, chunk: int
) -> tuple[list[Any], Any]:
    """Return (results, their tree) of a map over more elements than one chunk holds.

    `run(xs, axes, size, chosen)` maps one chunk; see `vmap`.
    """
    for x, a in zip(xs, axes):
        _expect_position(a, x, "in_axes")
    rows = [sh.moveaxis(x, a, 0) for x, a in zip(xs, axes) if a is not None]
    full = size - size % chunk
    found: tuple = ()

    def some(rows: list, n: int) -> list:
        nonlocal found
        own = iter(rows)
        given = [x if a is None else next(own) for x, a in zip(xs, axes)]
        front = [None if a is None else 0 for a in axes]
        outs, *found = run(given, front, n, _front)  # type: ignore[misc]
        return outs

    blocks = [sh.slice_in_dim(x, 0, full) for x in rows]
    blocks = [sh.reshape(x, (full // chunk, chunk, *x.aval.shape[1:])) for x in blocks]
    step = lambda _, block: (None, some(block, chunk))  # noqa: E731
    outs = plait.lax.scan(step, None, blocks, length=full // chunk)[1]
    tree, wanted = found
    rest = [None] * len(outs)
    if full < size:
        rest = some([sh.slice_in_dim(x, full, size) for x in rows], size - full)
    return [_whole(y, r, a) for y, r, a in zip(outs, rest, wanted)], tree


def _front(entry: int | None, x: Value) -> int | None:
    """Return the position of the mapped axis in a chunk's result, given its out_axes entry."""
    _expect_position(entry, x, "out_axes")
    return None if entry is None else 0


def _expect_position(entry: int | None, x: object, what: str) -> None:
    if kind_of(entry, x) is not None:
        raise ArgumentError(
            f"vmap: chunk divides axes of arrays, and {what} has {entry!r} for a "
            f"{type(x).__qualname__}",
            fix="leave chunk out",
        )


def _whole(blocks: Value, rest: Value | None, axis: int | None) -> Any:
    """Join the stacked results of full chunks with that of the remainder."""
    if axis is None:  # the result does not vary, so all chunks computed the same one
        return sh.materialise_at_ground(getitem(blocks, 0))
    number, chunk, *shape = blocks.aval.shape
    y = sh.reshape(blocks, (number * chunk, *shape))
    if rest is not None:
        y = sh.concatenate([y, rest], 0)
    return sh.materialise_at_ground(
        sh.moveaxis(y, 0, sh.normal_axis(axis, y.aval.ndim, "out_axes"))
    )
