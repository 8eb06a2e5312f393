"""Contractions as CPUs compute them fast: as products of matrices.

The compiler brings each contraction to one axis a role: one that is summed, one of the left
operand alone, one of the right one alone, one that both share.  Where several axes have a role, it
copies the operand into that order first, although axes that are neighbours in the right order are
one axis in memory.  A merged axis is a reshape, which is free.

Its library multiplies integers of 32 bits with a sign, and small ones into sums of that type.
Other integers, and booleans, would be multiplied one by one.  Sums of 32 bits end in the bits of
narrower sums, with a sign and without.

Of stacks of matrices, one form is three times as slow as the others: the first axis of the left
matrix against the last of the right one.  Another is slow where the left matrix has many more
columns than the right one: the first axes of both.  The operands are exchanged there, and the
result is transposed.

Invariant: a form sums the same products as the contraction, with the same precision; only
reshapes, conversions, one contraction and a transposition of its result occur.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .._core.interpreter import Value
from .._types.avals import BOOL, INT8, INT32, Aval
from .._xla.cpu_forms import cpu_limit
from .contraction import dot_general
from .conversion import bitcast
from .elementwise import reduce_precision
from .shape import convert, reshape, transpose

SMALLEST_STACKED = cpu_limit(
    "contraction.smallest_stacked",
    8,
    "The least size of the axes of stacked matrices that are worth a transposition.",
)
WIDER = cpu_limit(
    "contraction.wider",
    4,
    "Stacked matrices whose rows are summed are exchanged if the left ones have so many times the "
    "columns of the right ones.",
    least=1,
)
FEWEST_INTEGERS = cpu_limit(
    "contraction.fewest_integers",
    1 << 16,
    "The fewest products of integers that are worth sums of 32 bits.",
)

Places = list[tuple[int, ...]]


def form_of(avals: Sequence[Aval], /, **params: Any) -> Callable | None:
    """Return the form of a contraction; None if the compiler's own is as good."""
    x, y = avals
    if not all(n.__class__ is int and n > 0 for n in (*x.shape, *y.shape)):
        return None
    it = Merged(x, y, **params)
    if not it.contract[0]:
        return None
    if _has_slow_sums(it, x.dtype, params["out_dtype"]):
        return it.in_words
    if _is_slow_stack(it, x.dtype, params["out_dtype"]):
        return it.exchanged
    return it.straight if it.is_smaller else None


class Merged:
    """A contraction whose neighbouring axes of one role are one axis.

    Attributes:
      left, right: the shapes of the operands, without axes of size 1.
      contract, shared: the axes in these shapes that are summed, and that both operands share.
      shape: the shape of the contraction's result.
      how: the other parameters of the contraction.
      is_smaller: whether an operand has fewer axes than before.
    """

    def __init__(
        self,
        x: Aval,
        y: Aval,
        contract: tuple[tuple[Any, ...], ...],
        shared: tuple[tuple[Any, ...], ...],
        **how: object,
    ):
        self.how, self.shape = how, [x.shape[a] for a in shared[0]]
        # Where axes of size 1 are left out, the axes on both sides of them are neighbours.
        at = [
            {a: i for i, a in enumerate(np.flatnonzero(np.not_equal(v.shape, 1)))} for v in (x, y)
        ]
        met, common = (
            _runs([(at[0][a], at[1][b]) for a, b in pairs if a in at[0]])
            for pairs in (sorted(zip(*contract)), zip(*shared))
        )
        shapes, axes = [], []
        for side, v in enumerate((x, y)):
            taken = {*contract[side], *shared[side]}
            self.shape += [n for a, n in enumerate(v.shape) if a not in taken]
            own = _runs([(i,) for a, i in at[side].items() if a not in taken])
            roles = [[place[side] for place in run] for run in (*met, *common)]
            groups = sorted([*roles, *([i for (i,) in run] for run in own)])
            sizes = [n for n in v.shape if n != 1]
            shapes.append(tuple([math.prod([sizes[i] for i in group]) for group in groups]))
            axes.append(tuple([groups.index(role) for role in roles]))
        self.left, self.right = shapes
        k = len(met)
        self.contract = axes[0][:k], axes[1][:k]
        self.shared = axes[0][k:], axes[1][k:]
        self.is_smaller = len(self.left) < x.ndim or len(self.right) < y.ndim

    def straight(self, x: Value, y: Value) -> Any:
        """Return the contraction of the merged axes."""
        return self.summed(x, y, **self.how)

    def summed(self, x: Value, y: Value, **how: object) -> Any:
        """Return the contraction of the merged axes with these parameters."""
        x, y = reshape(x, self.left), reshape(y, self.right)
        out = dot_general.bind(x, y, contract=self.contract, shared=self.shared, **how)
        return reshape(out, tuple(self.shape))

    def in_words(self, x: Value, y: Value) -> Any:
        """Return the contraction of integers or booleans, summed as integers of 32 bits."""
        kind, how = x.aval.dtype, self.how | {"out_dtype": INT32}
        if kind.itemsize == INT32.itemsize:
            return bitcast(self.summed(bitcast(x, INT32), bitcast(y, INT32), **how), kind)
        if kind == BOOL:
            x, y = convert(x, INT8), convert(y, INT8)
        return convert(self.summed(x, y, **how), kind)

    def exchanged(self, x: Value, y: Value) -> Any:
        """Return the transpose of the product of exchanged stacks of matrices."""
        x, y = reshape(x, self.left), reshape(y, self.right)
        turned = self.contract[::-1]
        out = dot_general.bind(y, x, contract=turned, shared=self.shared, **self.how)
        # More bits than there are change nothing.  Without them, the compiler takes a transposed
        # product for the product of exchanged operands.
        out = reduce_precision.bind(out, exponent_bits=11, mantissa_bits=52)
        return reshape(transpose(out, (0, 2, 1)), tuple(self.shape))


def _has_slow_sums(it: Merged, dtype: np.dtype, out: np.dtype) -> bool:
    """Return whether there are many products of integers whose sums the library lacks."""
    lacking = dtype.itemsize < INT32.itemsize or dtype == np.uint32
    if dtype != out or dtype.kind not in "biu" or not lacking:  # those of 4 bits have no such kind
        return False
    depth = math.prod([it.left[a] for a in it.contract[0]])
    return depth * math.prod(it.shape) >= FEWEST_INTEGERS.value


def _is_slow_stack(it: Merged, dtype: np.dtype, out: np.dtype) -> bool:
    """Return whether the first axis of each left matrix meets the last one of the right matrix, or
    the first one of a much narrower matrix."""
    if not (dtype == out == np.float32 and it.shared == ((0,), (0,)) and it.contract[0] == (1,)):
        return False
    if len(it.left) != 3 or len(it.right) != 3:
        return False
    (met,) = it.contract[1]
    least, columns = min(*it.left[1:], *it.right[1:]), it.right[3 - met]
    wide = met == 2 or it.left[2] >= WIDER.value * columns
    return wide and least >= SMALLEST_STACKED.value


def _runs(places: Iterable[tuple[int, ...]]) -> list[Places]:
    """Divide places into runs in which each number is one more than that before it."""
    runs: list[Places] = []
    for place in places:
        if runs and all(a == b + 1 for a, b in zip(place, runs[-1][-1])):
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs
