"""Scans of a sequence with an associative function.

Invariant: the function is applied to stacks of neighbours, and the number of its calls is
logarithmic.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from .._base.errors import AxisError, TreeMismatch
from .._base.tracebacks import border
from .._core.array import as_value
from .._core.handles import handle_among
from .._core.interpreter import Value
from .._ops import shape as sh
from .._types.dims import Dim
from ..tree import flatten
from .loops import expect_function, scan

X = TypeVar("X")


@border
def associative_scan(fn: Callable[[X, X], X], elems: X, reverse: bool = False, axis: int = 0) -> X:
    """Compute prefix "sums" with an associative `fn`, in logarithmic depth and linear work.

    Neighbours are combined in pairs, the sequence of pairs is scanned, and the elements between
    are filled in (Blelloch, "Prefix sums and their applications", 1990).  A sequence of symbolic
    length is scanned one element after the other.

    Args:
      fn: (a, b) -> a combined with b, for trees of arrays; associative, applied along stacks.
      elems: a tree of arrays with one size along `axis`.
      reverse: scan from the end: the last element comes first, and `a` is the part behind `b`.

    Raises ArgumentError if `fn` is not a function, and AxisError for arrays whose sizes along the
    axis differ.

    >>> import plait
    >>> plait.lax.associative_scan(plait.numpy.add, plait.numpy.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
    """
    expect_function(fn, "associative_scan")
    leaves, tree = flatten(elems)
    xs = [as_value(x) for x in leaves]
    if not xs:
        return elems
    handle = handle_among(xs)
    if handle is not None:
        raise handle.refused("what associative_scan goes along")
    at = [sh.normal_axis(axis, x.aval.ndim) for x in xs]
    sizes = {x.aval.shape[a] for x, a in zip(xs, at)}
    if len(sizes) > 1:
        raise AxisError(f"associative_scan: sizes along the axis differ: {sorted(sizes)}")
    xs = [sh.moveaxis(x, a, 0) for x, a in zip(xs, at)]
    if reverse:
        xs = [x[::-1] for x in xs]

    def combine(a: list, b: list) -> list:
        found, shape = flatten(fn(tree.unflatten(a), tree.unflatten(b)))
        if shape != tree:
            raise TreeMismatch(
                f"associative_scan: the function returns {shape}, for elements that are {tree}",
                fix="return a tree like its arguments",
            )
        return [as_value(v) for v in found]

    ys = _prefixes(combine, xs, sizes.pop())
    if reverse:
        ys = [y[::-1] for y in ys]
    ys = [sh.materialise_at_ground(sh.moveaxis(y, 0, a)) for y, a in zip(ys, at)]
    return tree.unflatten(ys)


def _prefixes(combine: Callable, xs: list, n: int) -> list:
    if n.__class__ is Dim:
        return _one_by_one(combine, xs)
    if n < 2:
        return xs
    every = lambda vs, start, stop: [sh.slice_in_dim(v, start, stop, 2) for v in vs]  # noqa: E731
    pairs = combine(every(xs, 0, n - 1), every(xs, 1, n))
    odd = _prefixes(combine, pairs, n // 2)
    if n == 2:
        even: list = []
    else:
        before = [sh.slice_in_dim(v, 0, (n - 1) // 2) for v in odd]
        even = combine(before, every(xs, 2, n))
    first = [sh.slice_in_dim(x, 0, 1) for x in xs]
    even = [sh.concatenate([f, e]) for f, e in zip(first, even)] if even else first
    return [_interleave(e, o, n) for e, o in zip(even, odd)]


def _one_by_one(combine: Callable, xs: list) -> list:
    """Scan a sequence of symbolic length, for which the number of rounds of pairs is unknown."""

    def step(before: list, x: list) -> tuple[list, list]:
        stacks = combine(*([sh.expand_dims(v, 0) for v in vs] for vs in (before, x)))
        now = [sh.squeeze(v, 0) for v in stacks]
        return now, now

    _, later = scan(step, [x[0] for x in xs], [x[1:] for x in xs])
    return [sh.concatenate([x[:1], y]) for x, y in zip(xs, later)]


def _interleave(even: Value, odd: Value, n: int) -> Any:
    """Return elements 0, 2, 4, ... and 1, 3, 5, ... as one sequence of length n."""
    m = n // 2
    head = sh.stack([sh.slice_in_dim(even, 0, m), odd], 1).reshape((2 * m, *odd.aval.shape[1:]))
    return head if n == 2 * m else sh.concatenate([head, sh.slice_in_dim(even, m, m + 1)])
