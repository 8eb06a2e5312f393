"""Fallback for primitives without a rule for ragged sizes: examples of equal sizes form a group.

The sizes of a group are numbers, so every primitive with a batching rule can be mapped over its
examples.  Each group compiles its own program, so this is the last resort.

Invariant: lengths are known; the result is that of `vmap` for each group, in the original order of
the examples.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait import config
from plait.ext.errors import warn
from plait.ext.ir import Program, dims_of, programs_in
from plait.ext.rules import expand_rules
from plait.ext.types import Aval
from plait.ext.values import Array

from ..api import vmap
from ..interpreter import batching_rules
from .carrier import Ragged, pile_rules
from .layouts import fit
from .operation import PADDED
from .padding import padding_rules

__all__ = ["grouped", "mapped_by_groups"]


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


def grouped(does: str, program: Program, vectors: dict[str, Any], count: Any) -> bool:
    """Return whether to apply a program to groups of examples of equal sizes.

    That is so if a primitive in it has no rule, the lengths are known, and the setting
    `ragged_fallback` is not "error"."""
    if config.ragged_fallback == "error" or count.__class__ is not int or count == 0:
        return False
    if not all(isinstance(v, Array) for v in vectors.values()):
        return False
    missing = next(_without_rule(program, frozenset(vectors)), None)
    if missing is not None and config.ragged_fallback == "warn":
        groups = len(_groups(vectors, count))
        warn(
            f"{does}: {missing} has no rule for sizes that differ between examples, so the "
            f"function is applied to {groups} groups of equal sizes",
        )
    return missing is not None


def _groups(vectors: dict[str, Any], count: int) -> dict[tuple[int, ...], list[int]]:
    """Return the examples of each combination of lengths."""
    lengths = [np.asarray(v).tolist() for v in vectors.values()]
    found: dict[tuple[int, ...], list[int]] = {}
    for b in range(count):
        found.setdefault(tuple([n[b] for n in lengths]), []).append(b)
    return found


def mapped_by_groups(
    f: Callable[..., list],
    r: Ragged,
    values: Sequence[tuple[Any, Aval, bool]],
    vectors: dict[str, Any],
    outs: Sequence[Aval],
) -> list[Any]:
    """Return the results of all examples, in the usual layout of their types `outs`.

    Args:
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
    columns: list[list] = [[] for _ in outs]
    places: list[int] = []
    for lengths, members in _groups(vectors, r.size).items():
        sizes = dict(zip(vectors, lengths, strict=True))
        given = [
            _of(x, t, members, sizes) if varies else x
            for x, (_, t, varies) in zip(padded, values, strict=True)
        ]
        of_group = vmap(lambda *xs, sizes=sizes: f(sizes, *xs), axes, axis_size=len(members))
        for column, y, t in zip(columns, of_group(*given), outs, strict=True):
            for a in r.axes(t):
                y = fit(y, a + 1, r.caps.longest(t.shape[a]))
            column.append(y)
        places += members
    back = np.argsort(np.asarray(places, np.int32)).astype(np.int32)
    return [_usual(r, _joined(c)[back], t) for c, t in zip(columns, outs, strict=True)]


def _of(x: Any, t: Aval, members: Sequence[int], sizes: dict[str, int]) -> Any:
    """Return the rows of some examples of equal sizes, taken from padded values."""
    shape = [d if d.__class__ is int else d.substitute(sizes) for d in t.shape]
    rows = x[np.asarray(members, np.int32)]
    return rows[(slice(None), *[slice(0, n) for n in shape])]


def _joined(parts: list) -> Any:
    return pnp.concatenate(parts) if len(parts) > 1 else parts[0]


def _usual(r: Ragged, y: Any, t: Aval) -> Any:
    if not r.axes(t):
        return y
    return r.cleaned(r.coerce(t, (y,), (PADDED, 0), r.usual(t))[0], t)
