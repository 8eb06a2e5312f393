"""Fallback for functions that cannot be applied to all sizes at once: examples of equal sizes form
a group.

The sizes of a group are numbers, so the function may branch and loop over them, and every primitive
with a batching rule can be mapped over its examples.  Each group compiles its own program, so this
is the last resort.

Invariant: lengths are known; the result is that of `vmap` for each group, in the original order of
the examples.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import plait.numpy as pnp
from plait import config
from plait.ext.errors import PlaitError, ShapeError, warn
from plait.ext.ir import Program, dims_of, programs_in
from plait.ext.rules import expand_rules
from plait.ext.trace import Value
from plait.ext.types import Aval
from plait.ext.values import Array

from ..api import vmap
from ..interpreter import batching_rules
from .capacities import examples_in
from .carrier import Ragged, pile_rules
from .layouts import fit
from .operation import PADDED
from .padding import padding_rules
from .short_examples import subject

__all__ = ["Found", "grouped", "mapped_by_groups", "may_be_grouped", "usual_of"]


def _without_rule(program: Program, names: frozenset[str]) -> Iterator[Any]:
    """Yield the primitives in a program that have no rule for sizes of these names."""
    for e in program.eqns:
        inner = list(programs_in(e.params))
        for p in inner:
            yield from _without_rule(p, names)
        seen = [[v.aval for v in (*e.inputs, *e.outputs)], *e.params.values()]
        if inner or names.isdisjoint(dims_of(seen)):
            continue
        own, plain = pile_rules.find(e.prim), batching_rules.find(e.prim)
        if (own is None or own is plain) and expand_rules.find(e.prim) is None:
            if plain is None or padding_rules.find(e.prim) is None:
                yield e.prim


def may_be_grouped(vectors: dict[str, Any], count: int, reason: str) -> bool:
    """Return whether a function may be applied to groups of examples of equal sizes.

    That is so if the lengths are known, and the setting `ragged_fallback` is not "error".  Warns of
    the reason if it is "warn"."""
    if config.ragged_fallback == "error" or count.__class__ is not int or count == 0:
        return False
    if not vectors or not all(isinstance(v, Array) for v in vectors.values()):
        return False
    if config.ragged_fallback == "warn":
        groups = len(_groups(vectors, count))
        warn(
            f"vmap over a pile: {reason}, so the function is applied to {groups} groups of equal "
            "sizes",
        )
    return True


def grouped(program: Program, vectors: dict[str, Any], count: int) -> bool:
    """Return whether a primitive in a program has no rule, and it may be applied to groups."""
    missing = next(_without_rule(program, frozenset(vectors)), None)
    if missing is None:
        return False
    reason = f"{missing} has no rule for sizes that differ between examples"
    return may_be_grouped(vectors, count, reason)


def _groups(vectors: dict[str, Any], count: int) -> dict[tuple[int, ...], list[int]]:
    """Return the examples of each combination of lengths."""
    lengths = [np.asarray(v).tolist() for v in vectors.values()]
    found: dict[tuple[int, ...], list[int]] = {}
    for b in range(count):
        found.setdefault(tuple([n[b] for n in lengths]), []).append(b)
    return found


def mapped_by_groups(
    does: str,
    f: Callable[..., list[Any]],
    r: Ragged,
    values: Sequence[tuple[Any, Aval, bool]],
    vectors: dict[str, Any],
    outs: Sequence[Aval] | None,
) -> tuple[list[Any], Sequence[Any]]:
    """Return the results of all examples, and their types.

    If the types are given, results have the usual layout.  Otherwise they are padded, and their
    types are `Found`.

    Args:
      does: the transformation, for messages.
      f: `f(sizes, *variables)` returns the results for one example of these named sizes.
      r: the carrier of all examples.
      values: (value, type of one example, whether it varies) for each variable, in the layout of
        the operation on all examples.
      vectors: the lengths of each named size.
      outs: types of results, with symbolic sizes.
    """
    padded = [
        r.coerce(t, (x,), r.usual(t), (PADDED, 0) if r.axes(t) else 0)[0] if varies else x
        for x, t, varies in values
    ]
    axes = tuple([0 if varies else None for _, _, varies in values])
    columns: list[list] = []
    places: list[int] = []
    count = examples_in(r.table, vectors) or r.size
    for lengths, members in _groups(vectors, count).items():
        rows = dict(zip(vectors, lengths, strict=True))
        sizes = {name: r.caps.named[name].part(n) for name, n in rows.items()}
        given = [
            _of(x, t, members, sizes) if varies else x
            for x, (_, t, varies) in zip(padded, values, strict=True)
        ]
        of_group = vmap(lambda *xs, sizes=sizes: f(sizes, *xs), axes, axis_size=len(members))
        try:
            columns.append(of_group(*given))
        except PlaitError as error:
            error.what = f"{subject(does, members[0], rows, r.caps.named)}: {error.what}"
            raise
        places += members
    if len(set(map(len, columns))) != 1:
        raise ShapeError(
            f"{does}: the results of examples are {sorted(set(map(len, columns)))} arrays",
            fix="return the same number of arrays, whatever the sizes of an example are",
        )
    back = np.argsort(np.asarray(places, np.int32)).astype(np.int32)
    results = list(zip(*columns, strict=True))
    types = outs if outs is not None else [_found(parts, back, does, r.size) for parts in results]
    together = [fit(_joined(_widened(parts))[back], 0, r.size) for parts in results]
    if outs is None:
        return together, types
    return [usual_of(r, y, t) for y, t in zip(together, outs, strict=True)], outs


class Found(NamedTuple):
    """The type of a result of groups; a size that differs is a tuple of those of all examples."""

    aval: Aval
    sizes: Sequence[Any]


def _found(parts: Sequence[Any], back: np.ndarray, does: str, count: int) -> Found:
    first = parts[0].aval
    if any(y.aval.ndim != first.ndim for y in parts):
        raise ShapeError(
            f"{does}: a result is {first.with_shape(first.shape[1:])!r} in one example, and of "
            "another rank in others",
            fix="return arrays of one rank, whatever the sizes of an example are",
        )
    shape: list[Any] = []
    for a in range(1, first.ndim):
        each = np.concatenate([np.full(y.shape[0], y.shape[a]) for y in parts])[back].tolist()
        added = [0] * (count - len(each))
        shape.append(each[0] if len(set(each)) == 1 else (*each, *added))
    return Found(first.with_dtype(_common(parts)), shape)


def _common(parts: Sequence[Any]) -> Any:
    """Return the dtype of a result of all groups, as `Pile.from_list` promotes it."""
    dtypes = {y.aval.dtype for y in parts}
    return dtypes.pop() if len(dtypes) == 1 else pnp.result_type(*parts)


def _widened(parts: Sequence[Any]) -> list[Any]:
    """Return results of several groups with one dtype, padded to one shape."""
    dtype = _common(parts)
    parts = [y if y.aval.dtype == dtype else y.astype(dtype) for y in parts]
    for a in range(1, parts[0].ndim):
        widest = max(y.shape[a] for y in parts)
        parts = [fit(y, a, widest) for y in parts]
    return parts


def _of(x: Value, t: Aval, members: Sequence[int], sizes: dict[str, int]) -> Any:
    """Return the rows of some examples of equal sizes, taken from padded values."""
    shape = [d if d.__class__ is int else d.substitute(sizes) for d in t.shape]
    rows = x[np.asarray(members, np.int32)]
    return rows[(slice(None), *[slice(0, n) for n in shape])]


def _joined(parts: list) -> Any:
    return pnp.concatenate(parts) if len(parts) > 1 else parts[0]


def usual_of(r: Ragged, y: Value, t: Aval) -> Any:
    """Return padded values of all examples in the usual layout of their type."""
    if not r.axes(t):
        return y
    for a in r.axes(t):
        y = fit(y, a + 1, r.caps.longest(t.shape[a]))
    return r.cleaned(r.coerce(t, (y,), (PADDED, 0), r.usual(t))[0], t)
