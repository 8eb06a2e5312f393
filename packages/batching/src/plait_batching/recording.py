"""Mapping outside of jit by one compiled program, where the recorded function has one.

Invariant: results equal those of `vmap` without recording, up to rounding.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from plait.ext.trace import (
    GROUND,
    Handle,
    Recording,
    Value,
    is_unplaced,
    opened,
    result,
    use,
    without_axis,
)
from plait.ext.tree import TreeDef, flatten, key_paths, spread

from .axes import ENTRY, is_axis, lifted, taken, unmoved
from .interpreter import Batch
from .vmappable import data_leaf, returns_data

__all__ = ["can_be_recorded", "recorded_map"]


def can_be_recorded(xs: Sequence[Any], axes: Sequence[Any]) -> bool:
    """Return whether all mapped leaves are arrays along an axis, with no placement chosen by the
    user."""
    return all(is_unplaced(x) and (a is None or a.__class__ is int) for x, a in zip(xs, axes))


def recorded_map(
    f: Callable[..., Any],
    xs: Sequence[Any],
    axes: Sequence[Any],
    tree: TreeDef,
    size: int,
    out_axes: int | tuple[None | int, ...],
    mapping: Callable[..., Any],
) -> Any:
    """Return the results of `vmap`, computed by one compiled program if there is one.

    `xs` are the leaves of the arguments and `tree` is their structure; `mapping` is `vmap`.
    Returns NotImplemented for a function that returns values of registered classes, which it has
    not done before; it runs again, then.
    """
    batch: Batch | None = None
    moving = [i for i, a in enumerate(axes) if a is not None]

    def opening() -> tuple[Batch, list]:
        nonlocal batch
        batch = Batch(GROUND, size, None, of=f)
        return batch, [lifted(batch, xs[i], axes[i]) for i in moving]

    recording = Recording(Batch, f, opening, settles=True)
    try:
        with opened(recording):
            given = list(xs)
            for i in moving:
                given[i] = recording.input(without_axis(xs[i].aval, axes[i]))
            args, kwargs = tree.unflatten(given)
            out = f(*args, **kwargs)
            outs, out_tree = flatten(out, data_leaf())
            if returns_data(outs, f):
                return NotImplemented
            made = {i: o for i, o in enumerate(outs) if isinstance(o, Handle) and o.by is recording}
            outs = [made[i].ended() if i in made else o for i, o in enumerate(outs)]
            outs = [result(o, i, out, f) for i, o in enumerate(outs)]
            wanted = spread(out_axes, out, "out_axes", is_axis, ENTRY)
        own = [i for i, o in enumerate(outs) if recording.owns(o)]
        wanted = unmoved(wanted, out_tree, own.__contains__)
        done = None
        if own and all(wanted[i].__class__ is int for i in own):
            where = tuple([wanted[i] for i in own])
            at = tuple([axes[i] for i in moving])

            def transformed(g: Callable[..., Any], xs: list) -> Any:
                return mapping(g, in_axes=at, out_axes=list(where))(*xs)

            operands = [[xs[i] for i in moving]]
            done = recording.run([outs[i] for i in own], operands, (at, where, size), transformed)
        if done is None:
            recording.resume()
        of_own = dict(zip(own, done or ()))
        batch = batch or Batch(GROUND, size, None, of=f)
        batch.closed = True
        with use(GROUND):
            found = [
                of_own[i]
                if i in of_own
                else taken(batch, recording.value(o), w, partial(_path, out, i))
                for i, (o, w) in enumerate(zip(outs, wanted))
            ]
        found = [made[i].like(x) if i in made else x for i, x in enumerate(found)]
        return out_tree.unflatten(found)
    finally:
        recording.abandon()
        if batch is not None:
            batch.closed = True


def _path(tree: Value | tuple[Any, ...], i: int) -> str:
    return key_paths(tree)[i]
