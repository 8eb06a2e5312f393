"""Axes named in a pattern: `rearrange`, `reduce`, `repeat`.

    rearrange(images, "b h w c -> b (h w) c")     # the pixels of each image in one axis
    reduce(images, "b (h two) w c -> b h w c", "mean", two=2)
    repeat(row, "w -> h w", h=10)                 # ten equal rows

Names and patterns are those of the library einops.  Functions accept whatever Plait takes for an
array, and their derivatives and mappings are those of the operations that they call.

Invariant: a result depends on the types of arrays and on static arguments, never on values; wrong
patterns and sizes raise before anything is computed.
"""

import os
import re
from collections.abc import Sequence
from math import prod
from typing import Any

from plait.errors import ArgumentError, ShapeError
from plait.ext.errors import hide
from plait.ext.ops import reduction, shape
from plait.ext.surface import dispatched, fixed, value

__all__ = ["rearrange", "reduce", "repeat"]

hide(os.path.dirname(__file__))  # errors name the line of the caller

REDUCTIONS = {
    "max": reduction.max_,
    "mean": reduction.mean,
    "min": reduction.min_,
    "prod": reduction.prod,
    "sum": reduction.sum_,
}


@dispatched
def rearrange(x: Any, pattern: str, **sizes: int) -> Any:
    """Move, split and join axes: "b h w -> b (h w)" joins the last two.

    Args:
      x: an array.
      pattern: the axes before and after.  A group in parentheses is one axis of the array, the last
        name fastest; 1 is an axis of size 1; `...` stands for all axes without a name.
      sizes: sizes of names, for groups with more than one unknown size.

    Raises ArgumentError for wrong patterns and names, ShapeError for sizes that do not fit.

    >>> import plait
    >>> rearrange(plait.lax.iota("int32", 6), "(a b) -> b a", a=2).tolist()
    [[0, 3], [1, 4], [2, 5]]
    """
    left, right = _sides("rearrange", pattern)
    only = {*_flat(left)} ^ {*_flat(right)}
    if only:
        raise ArgumentError(
            f"rearrange: {_told(only)} is on one side of {pattern!r} only",
            fix="write it on both sides; reduce drops axes, and repeat adds some",
        )
    return _moved("rearrange", x, pattern, sizes, None)


@dispatched
def reduce(x: Any, pattern: str, reduction: str, **sizes: int) -> Any:
    """Reduce over the axes that the right side lacks: "b h w -> b" with "sum", "mean", "max", ...

    Args, Raises: as for `rearrange`; `reduction` is one of max, mean, min, prod, sum.

    >>> import plait
    >>> reduce(plait.lax.iota("float32", 6), "(a b) -> a", "sum", a=2).tolist()
    [3.0, 12.0]
    """
    left, right = _sides("reduce", pattern)
    new = {*_flat(right)} - {*_flat(left)}
    if new:
        raise ArgumentError(
            f"reduce: {_told(new)} is on the right side of {pattern!r} only",
            fix="write it on the left side too, or use repeat, which adds axes",
        )
    if reduction not in REDUCTIONS:
        raise ArgumentError(
            f"reduce: expected one of {', '.join(REDUCTIONS)}, got {reduction!r}",
            fix='name the reduction after the pattern: reduce(x, pattern, "sum")',
        )
    return _moved("reduce", x, pattern, sizes, REDUCTIONS[reduction])


@dispatched
def repeat(x: Any, pattern: str, **sizes: int) -> Any:
    """Repeat along the axes that the left side lacks: "w -> h w" with h=10.

    Args, Raises: as for `rearrange`; each new axis needs a size.

    >>> import plait
    >>> repeat(plait.lax.iota("int32", 2), "a -> (a n)", n=3).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    left, right = _sides("repeat", pattern)
    gone = {*_flat(left)} - {*_flat(right)}
    if gone:
        raise ArgumentError(
            f"repeat: {_told(gone)} is on the left side of {pattern!r} only",
            fix="write it on the right side too, or use reduce, which drops axes",
        )
    return _moved("repeat", x, pattern, sizes, None)


Axes = list[tuple[str, ...]]
"""The axes of an array: the names in each, none for an axis of size 1."""
REST = ("...",)


def _sides(what: str, pattern: Any) -> tuple[Axes, Axes]:
    """Return the axes on both sides of a pattern."""
    sides = pattern.split("->") if isinstance(pattern, str) else ()
    if len(sides) != 2:
        raise ArgumentError(
            f"{what}: expected a pattern with one arrow, got {pattern!r}",
            fix='write the axes before and after: "b h w -> b (h w)"',
        )
    return _axes(what, pattern, sides[0]), _axes(what, pattern, sides[1])


def _axes(what: str, pattern: str, side: str) -> Axes:
    """Return the axes on one side of a pattern."""
    found: Axes = []
    for token in re.findall(r"\([^()]*\)|\.\.\.|\S+?(?=[\s()]|$)|\S", side):
        names = tuple(token[1:-1].split()) if token[0] == "(" and token[-1] == ")" else (token,)
        found.append(tuple([n for n in names if n != "1"]))
        wrong = [n for n in found[-1] if not n.isidentifier() and (n,) != REST]
        if wrong or (names != REST and "..." in names):
            raise ArgumentError(
                f"{what}: {token!r} in {pattern!r} is not a name or a group of names",
                fix="write names, 1, ... and groups of names in parentheses, with spaces between",
            )
    names = _flat(found)
    if len({*names}) < len(names):
        twice = {n for n in names if names.count(n) > 1}
        raise ArgumentError(
            f"{what}: {_told(twice)} is twice on one side of {pattern!r}",
            fix="give each axis a name of its own",
        )
    return found


def _flat(axes: Axes) -> list[str]:
    """Return all names of axes, in order."""
    return [name for group in axes for name in group]


def _told(names: set[str]) -> str:
    """Return the first of some names, as an error shows it."""
    return repr(min(names))


def _spread(axes: Axes, rank: int) -> Axes:
    """Return axes with a name for each axis that `...` stands for."""
    rest = [(f"...{i}",) for i in range(rank)]
    return [axis for group in axes for axis in (rest if group == REST else [group])]


def _moved(what: str, x: Any, pattern: str, given: dict[str, int], reducer: Any) -> Any:
    """Return `x` split, reduced, in another order, repeated and joined."""
    x = value(x)
    left, right = _sides(what, pattern)
    rank = x.aval.ndim - len(left) + 1
    left, right = _spread(left, rank), _spread(right, rank)
    sizes = _sizes(what, pattern, left, right, x.aval, given)
    before, after = _flat(left), _flat(right)
    kept = [name for name in before if name in after]
    x = shape.reshape(x, [sizes[name] for name in before])
    if len(kept) < len(before):
        x = reducer(x, axis=tuple([i for i, n in enumerate(before) if n not in after]))
    x = shape.transpose(x, [kept.index(name) for name in after if name in kept])
    if len(kept) < len(after):
        x = shape.expand_dims(x, tuple([i for i, name in enumerate(after) if name not in kept]))
        x = shape.broadcast_to(x, [sizes[name] for name in after])
    joined = [prod([sizes[name] for name in group]) for group in right]
    return shape.materialise_at_ground(shape.reshape(x, joined))


def _sizes(
    what: str, pattern: str, left: Axes, right: Axes, aval: Any, given: dict[str, int]
) -> dict[str, Any]:
    """Return the size of each name, from those given and those of the array."""
    if len(left) != aval.ndim:
        raise ShapeError(
            f"{what}: {pattern!r} is for {len(left)} axes, and the array is {aval!r}",
            fix="name each axis of the array, or write ... for the others",
        )
    sizes: dict[str, Any] = {name: fixed(what, name, size) for name, size in given.items()}
    unused = {*sizes} - {*_flat(left), *_flat(right)}
    if unused:
        raise ArgumentError(
            f"{what}: {pattern!r} has no {_told(unused)}", fix="give sizes of names in the pattern"
        )
    for group, size in zip(left, aval.shape, strict=True):
        _divide(what, pattern, group, size, sizes)
    _all_known(what, pattern, [name for name in _flat(right) if name not in sizes])
    return sizes


def _divide(what: str, pattern: str, group: Sequence[str], size: Any, sizes: dict) -> None:
    """Find the one unknown size in a group, and check that the group has the size of its axis."""
    unknown = [name for name in group if name not in sizes]
    _all_known(what, pattern, unknown[1:])
    known = prod([sizes[name] for name in group if name in sizes])
    sizes |= dict.fromkeys(unknown, size // known if known else 0)
    if prod([sizes[name] for name in group]) != size:
        shown = ", ".join(f"{name}={sizes[name]}" for name in group if name not in unknown)
        raise ShapeError(
            f"{what}: an axis of size {size} cannot be ({' '.join(group)}) of {pattern!r} with "
            f"{shown or 'size 1'}",
            fix="give sizes whose product is that of the axis",
        )


def _all_known(what: str, pattern: str, unknown: Sequence[str]) -> None:
    """Refuse names whose sizes nothing determines."""
    if unknown:
        raise ArgumentError(
            f"{what}: the size of {unknown[0]!r} in {pattern!r} is not determined",
            fix=f"give it: {what}(x, {pattern!r}, {unknown[0]}=2)",
        )
