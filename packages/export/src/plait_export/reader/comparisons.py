"""Recognition of orders in the comparators of sorts and selections.

A comparator is classified by its results.  If it only compares its arguments with each other and
combines booleans, its result depends only on how they compare: below, equal, above, which of them
is nan, and the sign of zeros.  So evaluating it on every such combination determines it.

Invariant: a comparator that is recognised as an order agrees with it on every combination; one with
other operations is not recognised.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .module import Block, Op
from .table import enum

_MOST_KEYS = 4


def _samples(dtype: np.dtype) -> np.ndarray | None:
    """Return elements that cover every relation of two; None for an unsupported dtype."""
    if dtype == np.bool_:
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, 1, info.max], dtype)
    if dtype.kind == "c":
        parts = [-1.0, -0.0, 0.0, 1.0, np.nan]
        return np.array([complex(a, b) for a in parts for b in parts], dtype)
    if dtype.kind in "fV":
        return np.array([-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan], np.float32).astype(dtype)
    return None


def _total(x: np.ndarray) -> np.ndarray:
    """Map floats to integers in their total order."""
    if x.dtype.kind in "iub":
        return x
    bits = x.view(f"i{x.dtype.itemsize}")
    return bits ^ ((bits >> (8 * x.dtype.itemsize - 1)) & np.iinfo(bits.dtype).max)


def _compare(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if enum(op.attributes.get("compare_type", "NOTYPE")) == "TOTALORDER":
        a, b = _total(a), _total(b)
    elif a.dtype.kind == "V" or a.dtype.name.startswith(("bfloat", "float8")):
        a, b = a.astype(np.float32), b.astype(np.float32)
    return _RELATIONS[enum(op.attributes["comparison_direction"])](a, b)


_RELATIONS: dict[str, Callable] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
    "GE": np.greater_equal,
}  # fmt: skip
_LOGIC: dict[str, Callable] = {
    "stablehlo.and": np.logical_and,
    "stablehlo.or": np.logical_or,
    "stablehlo.not": np.logical_not,
    "stablehlo.xor": np.logical_xor,
}


Outside = Callable[[int], Any]
"""Maps the number of a value outside of a function to its constant, or None."""


def answers(block: Block, columns: Sequence[np.ndarray], outside: Outside) -> np.ndarray | None:
    """Evaluate a function of booleans and comparisons; None if it has other operations."""
    env: dict[int, Any] = dict(zip(block.arguments, columns))
    for op in block.ops:
        xs = [env[n] if n in env else _plain(outside(n)) for n in op.operands]
        if any(x is None for x in xs) or len(op.results) != 1:
            return None
        y = _one(op, xs)
        if y is None:
            return None
        env[op.results[0]] = y
    return env.get(block.returned[0])


def _one(op: Op, xs: list) -> Any:
    if op.name == "stablehlo.constant":
        return _plain(op.attributes["value"])
    if op.name in _LOGIC and xs[0].dtype == np.bool_:
        return _LOGIC[op.name](*xs)
    if op.name == "stablehlo.compare":
        return _compare(op, *xs)
    if op.name == "stablehlo.select":
        return np.where(*np.broadcast_arrays(*xs)).astype(xs[1].dtype)
    if op.name in ("stablehlo.real", "stablehlo.imag") and xs[0].dtype.kind == "c":
        return getattr(np, op.name[10:])(xs[0]).copy()
    return None


def _plain(value: np.ndarray) -> np.ndarray | None:
    """Return a constant that compares with arguments only as they do with each other, or None."""
    if value is None:
        return None
    return (
        value
        if value.dtype == np.bool_ or value.dtype.kind in "fcV" and not _marked(value)
        else None
    )


def _marked(value: np.ndarray) -> bool:
    """Return whether a constant is neither 0 nor nan.

    The samples do not cover every relation of two arguments to such a constant.
    """
    x = value.astype(np.complex128)
    return bool(np.any(~np.isnan(x) & (x != 0)))


# ---- orders --------------------------------------------------------------------------------


def _pairs(kinds: Sequence[np.dtype]) -> list[np.ndarray] | None:
    """Return columns a0, b0, a1, b1, ... of every combination of samples; None if too many."""
    each = [_samples(d) for d in kinds]
    if len(each) > _MOST_KEYS or any(s is None for s in each):
        return None
    sides = [s for s in each for _ in range(2) if s is not None]
    if np.prod([len(s) for s in sides]) > 2**18:
        return None
    grids = np.meshgrid(*[np.arange(len(s)) for s in sides], indexing="ij")
    return [s[g.reshape(-1)] for s, g in zip(sides, grids)]


def keys_of(block: Block) -> tuple[int, ...]:
    """Return the indices of the operands that a comparator uses."""
    seen = {n for op in block.ops for n in op.operands}
    arguments = block.arguments
    return tuple([i for i in range(len(arguments) // 2)
                  if seen & {arguments[2 * i], arguments[2 * i + 1]}])  # fmt: skip


def order_of(block: Block, outside: Outside) -> tuple[str, int] | None:
    """Return (order, number of keys) of a comparator; None for an unknown order.

    "ascending" is numpy's order, with nan last; "total" and "total down" are the total order of
    floats.  For numpy, zeros of both signs are equal.  A comparator of a single operand may
    distinguish them and still counts as "ascending": only the order among zeros would show it.
    """
    kinds = [t.dtype for t in block.types[::2]]
    looked = keys_of(block)
    if looked != tuple(range(len(looked))) or not looked:
        return None
    columns = _pairs(kinds[: len(looked)])
    if columns is None:
        return None
    rest = [c for k in kinds[len(looked) :] for c in (np.zeros(1, k), np.zeros(1, k))]
    said = answers(block, [*columns, *rest], outside)
    if said is None:
        return None
    said = np.broadcast_to(said, columns[0].shape)
    alone = len(kinds) == 1
    clear = _clear(columns) if alone else np.ones(len(said), bool)
    if np.array_equal(said[clear], _ascending(columns)[clear]):
        return "ascending", len(looked)
    if len(looked) == 1 and columns[0].dtype.kind != "c":
        a, b = map(_total, columns)
        for name, want in (("total", a < b), ("total down", a > b)):
            if np.array_equal(said, want):
                return name, 1
    numbers = _numbers(columns)
    plain = np.array_equal(said[numbers], _ascending(columns)[numbers])
    if plain and not _orders_nan(said, columns):
        return "ascending", len(looked)
    return None


def contradicts_itself(block: Block, outside: Outside) -> bool:
    """Return whether a comparator is known to put two elements each before the other."""
    columns = _pairs([t.dtype for t in block.types[::2]])
    if columns is None:
        return False
    swapped = [columns[i ^ 1] for i in range(len(columns))]
    said, otherwise = (answers(block, c, outside) for c in (columns, swapped))
    return said is not None and otherwise is not None and bool(np.any(said & otherwise))


def _orders_nan(said: np.ndarray, columns: Sequence[np.ndarray]) -> bool:
    """Return whether a comparator puts a nan before or after some element.

    If nans compare with nothing, they may go anywhere.
    """
    return bool(said[~_numbers(columns)].any())


def _numbers(columns: Sequence[np.ndarray]) -> np.ndarray:
    found = np.ones(len(columns[0]), bool)
    for c in columns:
        if c.dtype.kind in "fcV":
            found &= ~np.isnan(c.astype(np.complex128))
    return found


def _clear(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return a mask of the pairs that are not both zero."""
    a, b = columns
    return ~((a == 0) & (b == 0)) if a.dtype.kind in "fV" else np.ones(len(a), bool)


def _ascending(columns: Sequence[np.ndarray]) -> np.ndarray:
    before = np.zeros(len(columns[0]), bool)
    open_ = np.ones(len(columns[0]), bool)
    for a, b in zip(columns[::2], columns[1::2]):
        for u, v in _parts(a, b):
            before |= open_ & (u < v)
            open_ &= u == v
    return before


def _parts(a: Any, b: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Split a pair of columns into keys that compare plainly: nan flags, then numbers.

    For complex numbers the flags of both parts come before both numbers.
    """
    if a.dtype.kind not in "fcV":
        return [(a, b)]
    both = [a, b]
    halves = [[v] for v in both] if a.dtype.kind != "c" else [[v.real, v.imag] for v in both]
    flags = [(np.isnan(u.astype(float)), np.isnan(v.astype(float))) for u, v in zip(*halves)]
    values = [(np.nan_to_num(u.astype(float), posinf=9, neginf=-9),
               np.nan_to_num(v.astype(float), posinf=9, neginf=-9))
              for u, v in zip(*halves)]  # fmt: skip
    return [*flags, *values]


# ---- other functions -----------------------------------------------------------------------


def extreme_of(block: Block, outside: Outside) -> str | None:
    """Return which of two elements a function selects, "max" or "min"; None for neither.

    Its treatment of nan is ignored.
    """
    columns = _pairs([block.types[0].dtype]) if len(block.arguments) == 2 else None
    said = None if columns is None else answers(block, columns, outside)
    if columns is None or said is None:
        return None
    a, b = columns
    numbers = _numbers(columns)
    for name, relations in (("max", (np.greater_equal, np.greater)),
                            ("min", (np.less_equal, np.less))):  # fmt: skip
        if any(np.array_equal(said[numbers], r(a, b)[numbers]) for r in relations):
            return name
    return None


def body_of(block: Block) -> str | None:
    """Return the name of the single operation that a function applies to both arguments.

    Returns "second" for a function that returns its second argument, None for any other.
    """
    if not block.ops and block.returned == block.arguments[1:] and len(block.arguments) == 2:
        return "second"
    if len(block.ops) != 1 or block.ops[0].results != block.returned:
        return None
    (op,) = block.ops
    both = len(op.operands) == 2 and sorted(op.operands) == sorted(block.arguments)
    return op.name if both else None


def is_sum(block: Block) -> bool:
    """Return whether a function adds its two arguments."""
    return body_of(block) == "stablehlo.add"
