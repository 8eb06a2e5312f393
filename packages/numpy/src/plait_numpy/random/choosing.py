"""Random choice: categories, permutations, samples of given elements.

Invariant: indices are drawn first, and elements are taken by these indices.
"""

import bisect
import math
from typing import Any, SupportsIndex

import numpy as np

from plait.errors import ArgumentError, OperandTypeError, ShapeError
from plait.ext import Aval, Literal, as_value
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.cumulative import cumsum
from plait.ext.ops.indexing import getitem
from plait.ext.ops.reduction import argmax
from plait.ext.ops.sorting import sort_, top_k
from plait.ext.ops.taking import take
from plait.ext.sizes import Dim, decide_ge
from plait.ext.surface import fused, size_given
from plait.ext.trace import Value
from plait.ext.types import FLOATING, INTEGER, UINT32, default_dtype
from plait.typing import Array, ArrayLike, Shape

from .distributions import gumbel_noise, is_high
from .keys import one_key, parameter
from .numbers import between, halves, randint, raw_bits, row


def categorical(
    key: ArrayLike, logits: ArrayLike, axis: int = -1, shape: SupportsIndex | Shape | None = None,
    replace: bool = True, mode: str | None = None,
) -> Array:  # fmt: skip
    """Draw indices of categories by their unnormalised log-probabilities.

    The greatest of logits with Gumbel noise is a sample (E. Gumbel); the greatest k are one
    without replacement (W. Kool, H. van Hoof, M. Welling: Stochastic beams and where to find
    them, ICML 2019).

    Args:
      key: a key.
      logits: an array.
      axis: the axis of the categories.
      shape: shape of the result: that of the logits without the axis, with further axes in front.
      replace: whether the samples along the axes in front may repeat a category.
      mode: "low", or "high" for probabilities below 1e-7 (in float32), at twice the cost.

    Raises TypeRule if the shape does not fit, or asks for more than there are categories.

    >>> import numpy as np, plait
    >>> key = plait.random.key(0)
    >>> plait.random.categorical(key, np.zeros((4, 3)), axis=-1).shape
    (4,)
    """
    x = parameter(logits, "logits")
    x = x if x.aval.category == FLOATING else sh.convert(x, default_dtype(FLOATING))
    at = sh.normal_axis(axis, x.aval.ndim)
    rest = tuple([n for i, n in enumerate(x.aval.shape) if i != at])
    full = rest if shape is None else sh.normal_shape(shape)
    lead = len(full) - len(rest)
    if lead < 0 or any(a not in (1, b) for a, b in zip(rest, full[lead:])):
        raise ShapeError(
            f"categorical: samples of shape {full} of logits {x.aval!r}",
            fix=f"the shape must end in one that {rest} broadcasts to",
        )
    many = math.prod(full[:lead])
    if not replace and (many > x.aval.shape[at] or full[lead:] != rest):
        raise ArgumentError(
            f"categorical: {many} samples without replacement of {x.aval.shape[at]} categories",
            fix="ask for fewer, or set replace=True",
        )
    high = is_high(mode, "categorical")
    run = _categorical if replace else _categorical_distinct
    return run(one_key(key, "categorical"), x, axis=at, shape=full, lead=lead, high=high)


@fused
def _categorical(
    data: Array, logits: Value, *, axis: int, shape: tuple, lead: int, high: bool
) -> Any:
    rest = list(shape[lead:])
    rest.insert(axis, logits.aval.shape[axis])
    full = (*shape[:lead], *rest)
    noise = gumbel_noise(data, full, logits.aval.dtype, high)
    return argmax(el.add(noise, sh.broadcast_to(logits, full)), axis=lead + axis)


@fused
def _categorical_distinct(
    data: Any, logits: Value, *, axis: int, shape: tuple, lead: int, high: bool
) -> Any:
    noise = gumbel_noise(data, logits.aval.shape, logits.aval.dtype, high)
    x = sh.moveaxis(el.add(logits, noise), axis, -1)
    _, index = top_k(x, math.prod(shape[:lead]))
    n = index.aval.ndim - 1
    return sh.reshape(sh.transpose(index, (n, *range(n))), shape)


def permutation(key: ArrayLike, x: ArrayLike, axis: int = 0, independent: bool = False) -> Array:
    """Shuffle the elements of an array along an axis, or 0, 1, 2, ... below an integer.

    Elements are sorted by random 32-bit keys, in enough rounds to make ties all but impossible.

    Args:
      key: a key.
      x: an array, or the number of integers.
      axis: the axis.
      independent: whether each vector along the axis is shuffled independently.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> sorted(plait.random.permutation(key, 4).tolist())
    [0, 1, 2, 3]
    """
    data = one_key(key, "permutation")
    if hasattr(x, "__index__") and not getattr(x, "ndim", 0):
        at = sh.normal_axis(axis, 1)
        size = size_given(x)
        return _shuffled_range(data, size=size, dtype=default_dtype(INTEGER))
    v = as_value(x)
    if not v.aval.ndim:
        raise OperandTypeError(
            f"permutation of {v.aval!r}", fix="give an array with axes, or an integer"
        )
    at = sh.normal_axis(axis, v.aval.ndim)
    return _permutation(data, v, axis=at, independent=independent or v.aval.ndim == 1)


@fused
def _shuffled_range(data: Array, *, size: int, dtype: np.dtype) -> Any:
    return _shuffled(data, sh.iota_.bind(shape=(size,), axis=0, dtype=dtype), 0)


@fused
def _permutation(data: Array, x: Value, *, axis: int, independent: bool) -> Any:
    if independent:
        return _shuffled(data, x, axis)
    n = x.aval.shape[axis]
    order = _shuffled(data, sh.iota_.bind(shape=(n,), axis=0, dtype=np.dtype(np.int32)), 0)
    return take(x, order, axis, mode="promise_in_bounds", unique_indices=True)


_MOST_SHUFFLED = 2**31 - 1
"""Largest bound of a symbolic size for which an axis is shuffled."""


def _shuffled(data: Any, x: Any, axis: int) -> Any:
    """Sort by fresh random keys, in several rounds.

    Their number makes the probability that two of n elements tie in every round at most n ** -3.
    """
    size = x.aval.size
    known = size if size.__class__ is int else _MOST_SHUFFLED
    for i in range(math.ceil(_rounds(known))):
        data, used = halves(data)
        order = raw_bits(used, x.aval.shape, UINT32)
        _, new = sort_.bind(order, x, axis=axis, num_keys=1, stable=True)
        if size.__class__ is Dim and i:
            # Only sizes that need another round take it, so that the results equal those of static
            # sizes.
            last = bisect.bisect_right(range(_MOST_SHUFFLED), i, key=_rounds) - 1
            new = el.select(el.gt(sh.size_value(size, np.dtype(np.int32)), last), new, x)
        x = new
    return x


def _rounds(size: int) -> float:
    """Return the number of rounds that shuffle so many elements, before rounding up."""
    return 3 * math.log(max(1, size)) / math.log(2**32 - 1)


def choice(
    key: ArrayLike, a: ArrayLike, shape: SupportsIndex | Shape = (), replace: bool = True,
    p: ArrayLike | None = None, axis: int = 0, mode: str | None = None,
) -> Array:  # fmt: skip
    """Choose elements of an array, or integers below a number, at random.

    Args:
      key: a key.
      a: an array, or the number of integers.
      shape: shape of the sample.
      replace: whether an element may be chosen repeatedly.
      p: probabilities, one for each element; None: uniform.
      axis: the axis that elements lie along.
      mode: as in `gumbel`; for samples with probabilities and without replacement.

    Raises TypeRule if there are fewer elements than draws without replacement.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.choice(key, 5, (3,), replace=False).shape
    (3,)
    """
    shape = sh.normal_shape(shape)
    number = hasattr(a, "__index__") and not getattr(a, "ndim", 0)
    x = None if number else as_value(a)
    at = sh.normal_axis(axis, 1 if x is None else x.aval.ndim)
    n = size_given(a) if x is None else x.aval.shape[at]
    draws = math.prod(shape)
    none = n <= 0 if n.__class__ is int else decide_ge(0, n)
    if draws != 0 and none or not replace and draws > n:
        raise ArgumentError(
            f"choice of {draws} out of {n}", fix="choose fewer, or with replace=True"
        )
    if x is not None and draws == 0:
        return sh.fill(0, Aval((*x.aval.shape[:at], *shape, *x.aval.shape[at + 1 :]), x.aval.dtype))
    if p is not None:
        index = _chosen(key, n, draws, shape, replace, parameter(p, "p"), mode)
    elif replace:
        index = randint(key, shape, 0, n)
    elif x is None:
        index = sh.reshape(getitem(permutation(key, n), slice(0, draws)), shape)
    else:
        got = getitem(permutation(key, x, at), (*(slice(None),) * at, slice(0, draws)))
        return sh.reshape(got, (*x.aval.shape[:at], *shape, *x.aval.shape[at + 1 :]))
    return index if x is None else take(x, index, at, mode="promise_in_bounds")


def _chosen(key: Any, n: int, draws: int, shape: tuple, replace: bool, p: Value, mode: Any) -> Any:
    """Draw indices of elements by their probabilities."""
    if p.aval.shape != (n,):
        raise ShapeError(
            f"choice: probabilities {p.aval!r} for {n} elements", fix=f"give {n} of them"
        )
    p = p if p.aval.category == FLOATING else sh.convert(p, default_dtype(FLOATING))
    data = one_key(key, "choice")
    if replace:
        return _by_cumulative(data, p, shape=shape, dtype=default_dtype(INTEGER))
    high = is_high(mode, "choice")
    return _distinct(data, p, shape=shape, draws=draws, high=high, dtype=default_dtype(INTEGER))


@fused
def _by_cumulative(data: Array, p: Value, *, shape: tuple, dtype: np.dtype) -> Any:
    ends = cumsum(p, 0)
    total = row(ends, ends.aval.shape[0] - 1)
    u = between(data, 0.0, 1.0, shape, p.aval.dtype)
    r = el.mul(total, el.sub(1.0, u))
    return sh.convert(_first_not_less(ends, r), dtype)


def _first_not_less(ends: Value, r: Value) -> Any:
    """Count, for each of `r`, the elements of the increasing `ends` below it, by bisection."""
    low = Literal(0, Aval(r.aval.shape, np.int32))
    n = ends.aval.shape[0]
    step = 1 << (max(0, n.bit_length() - 1) if n.__class__ is int else 30)
    while step:
        probe = el.add(low, step)
        value = take(ends, el.minimum(el.sub(probe, 1), n - 1), 0, mode="promise_in_bounds")
        below = el.and_(el.le(probe, n), el.lt(value, r))
        low = el.select(below, probe, low)
        step >>= 1
    return low


@fused
def _distinct(data: Array, p: Any, *, shape: tuple, draws: int, high: bool, dtype: np.dtype) -> Any:
    noise = gumbel_noise(data, p.aval.shape, p.aval.dtype, high)
    _, index = top_k(el.add(noise, el.log(p)), draws)
    return sh.convert(sh.reshape(index, shape), dtype)
