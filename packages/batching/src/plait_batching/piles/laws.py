"""The conformance law of piles, for `plait.testing`.

    piles: a primitive mapped over a pile returns its results for each example

Invariant: the reference side applies the primitive to one example after the other.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from plait import jit
from plait.ext.errors import PlaitError
from plait.ext.ir import Primitive
from plait.ext.trace import as_list
from plait.ext.types import Aval
from plait.ext.values import from_numpy
from plait_testing.ext import Inapplicable, agree

from ..api import vmap
from .axis import pile_axis
from .carrier import pile_rules
from .pile import Pile

__all__ = ["piles_law"]


def piles_law(prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> int:
    """Check that a primitive mapped over a pile returns its results for each example.

    Examples are the first rows of the operands, along axis 0 or along all axes of one size; the
    lengths that the primitive takes alone are used.  They are traced, and known where it has no
    rule for traced ones.  Returns the number of comparisons.  Raises Inapplicable if
    it takes one number of rows only.
    """
    count = 0
    for n in sorted({x.shape[0] for x in args if x.ndim and x.shape[0] > 1}):
        for square in (False, True):
            axes = [_axes(x, n, square) for x in args]
            if not square or any(a not in ((), (0,)) for a in axes):
                count += _compare(prim, args, axes, n, params)
    if not count:
        raise Inapplicable("no operand may have other numbers of rows")
    return count


def _axes(x: np.ndarray, n: int, square: bool) -> tuple[int, ...]:
    """Return the axes of an operand that have the rows of an example."""
    return tuple([a for a in range(x.ndim) if x.shape[a] == n and (square or a == 0)])


def _compare(
    prim: Primitive, args: Sequence[np.ndarray], axes: Sequence[tuple], n: int, params: dict
) -> int:
    columns, want = [], []
    for rows in dict.fromkeys((n, n // 2, 0, 1, n - 1)):
        example = [_cut(x, a, rows) for x, a in zip(args, axes)]
        try:
            prim.infer(tuple([Aval(x.shape, x.dtype) for x in example]), params)
            want.append([np.asarray(y) for y in _of(prim, params)(*map(from_numpy, example))])
        except Exception:  # also refusals of the compiler, such as of a window without elements
            continue
        columns.append(example)
    if len(columns) < 2:
        return 0
    given = [
        Pile.from_list(list(xs), axis=a) if a else from_numpy(np.stack(xs))
        for xs, a in zip(zip(*columns), axes)
    ]
    where = tuple([pile_axis if a else 0 for a in axes])
    mapped = vmap(_of(prim, params), where, pile_axis)
    told = f"over a pile of {[len(x[_first(axes)]) for x in columns]} rows"
    try:
        got = jit(mapped)(*given)
    except PlaitError:  # such as MissingRule, or a question that named sizes leave open
        got = mapped(*given)
    found = [p.to_list() for p in got]
    return sum([
        agree([from_numpy(np.asarray(ys[i])) for ys in found], want[i], None, told)
        for i in range(len(want))
    ])  # fmt: skip


def _first(axes: Sequence[tuple]) -> int:
    return next(i for i, a in enumerate(axes) if a)


def _cut(x: np.ndarray, axes: tuple[int, ...], rows: int) -> np.ndarray:
    return x[tuple([slice(0, rows) if a in axes else slice(None) for a in range(x.ndim)])]


def _of(prim: Primitive, params: dict[str, Any]) -> Any:
    return lambda *vs: as_list(prim.bind(*vs, **params))


def _has_rule(prim: Primitive) -> bool:
    """Return whether the law applies: there is a rule, of this table or of its base."""
    return pile_rules.find(prim) is not None


piles_law.applies = _has_rule  # type: ignore[attr-defined]
