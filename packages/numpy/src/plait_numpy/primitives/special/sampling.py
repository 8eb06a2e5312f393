"""Gamma samples: by rejection, each element from a stream of random bits of its own.

A stream is a key of Threefry-2x32 in two words; its children are the keys that splitting it makes.

Invariant: an element depends on its stream and its shape parameter only, however many turns its
neighbours take.  A sample is therefore a function of the parameter, and has a derivative in it.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.errors import ShapeError
from plait.ext import Aval, Elementwise, Literal, Primitive, expand_rules
from plait.ext.ops import elementwise as el
from plait.ext.ops.random import threefry2x32
from plait.ext.ops.shape import broadcast_to, concatenate, convert, expand_dims, reshape, slice_
from plait.ext.trace import Value
from plait.ext.types import UINT32

from .functions import until_settled

Stream = tuple[Any, Any]

# ---- streams -------------------------------------------------------------------------------


def _along(xs: Sequence[Any]) -> Any:
    return concatenate([expand_dims(x, 0) for x in xs], 0)


def _row(x: Value, i: int) -> Any:
    shape = x.aval.shape
    rest = (0,) * (len(shape) - 1)
    cut = slice_.bind(x, starts=(i, *rest), limits=(i + 1, *shape[1:]), strides=(1,) * len(shape))
    return reshape(cut, shape[1:])


def _hashed(streams: Sequence[Stream], counts: Sequence[int]) -> list[Stream]:
    """Hash one count with each stream, all in one call, and return the words."""
    first, second = (_along([s[i] for s in streams]) for i in (0, 1))
    shape = first.aval.shape
    numbers = [Literal(c, Aval((1, *shape[1:]), UINT32)) for c in counts]
    at = broadcast_to(concatenate(numbers, 0), shape)
    a, b = threefry2x32.bind(first, second, Literal(0, Aval(shape, UINT32)), at)
    return [(_row(a, i), _row(b, i)) for i in range(len(counts))]


def children(stream: Stream, count: int) -> list[Stream]:
    """Return the streams that splitting makes."""
    return _hashed([stream] * count, range(count))


def units(streams: Sequence[Stream], dtype: np.dtype) -> list[Any]:
    """Return a float in [0, 1) from each stream, float32 or float64."""
    return [_unit(a, b, dtype) for a, b in _hashed(streams, [0] * len(streams))]


def _unit(a: Value, b: Value, dtype: np.dtype) -> Any:
    """Return numbers in [1, 2) with random mantissas, less 1."""
    if dtype == np.float32:
        bits, drop, one = el.xor.bind(a, b), 9, 0x3F800000
    else:
        high = convert(a, np.uint64)
        bits = el.or_.bind(el.shift_left.bind(high, Literal(32, high.aval)), convert(b, np.uint64))
        drop, one = 12, 0x3FF0000000000000
    bits = el.shift_right_logical.bind(bits, Literal(drop, bits.aval))
    x = el.bitcast_.bind(el.or_.bind(bits, Literal(one, bits.aval)), dtype=dtype)
    return el.sub.bind(x, Literal(1, x.aval))


def _normal(u: Value) -> Any:
    """Convert a number in [0, 1) to a normal number."""
    least = -1 + 2.0 ** -(24 if u.aval.dtype == np.float32 else 53)
    spread = el.maximum(el.add(u * (1.0 - least), least), least)
    return math.sqrt(2) * el.erf_inv(spread)


# ---- gamma ---------------------------------------------------------------------------------


def _random_gamma(k1: Aval, k2: Aval, a: Aval, *, log: bool) -> Aval:
    """Draw samples of the gamma distribution of shape `a`, or their logarithms, from streams."""
    for k in (k1, k2):
        if k.dtype != UINT32 or k.shape != a.shape:
            raise ShapeError(
                f"random_gamma: streams must be uint32 of the shape of {a!r}, not {k!r}",
                fix="broadcast them together, or use plait.random.gamma",
            )
    return el.agreed("random_gamma", el.FLOAT, a)


random_gamma = Primitive(
    "special.random_gamma", _random_gamma, (Elementwise,), formerly=("core.random_gamma",)
)


@expand_rules.rule(random_gamma)
def _(k1: Value, k2: Value, a: Value, *, log: bool):
    dtype, weak = a.aval.dtype, a.aval.weak_type
    wide = convert(a, np.float32) if dtype.itemsize < 4 else a
    return convert(_sample(k1, k2, wide, log), dtype, weak)


def _sample(k1: Value, k2: Value, a: Value, logarithm: bool) -> Any:
    """Use G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables, 2000.

    Samples of shapes below 1 are samples of shape a + 1 times U ** (1 / a).
    """
    rest, extra = children((k1, k2), 2)
    small = el.lt(a, 1.0)
    shape = el.select(small, a + 1.0, a)
    good = a >= 0.0
    d = el.select(good, shape, 1.0) - 1 / 3
    c = (1 / 3) * el.rsqrt(d)
    one = Literal(1.0, a.aval.strong())
    volume = until_settled(_attempt, good, one, d, c, *rest)[0]
    (u,) = units([extra], a.aval.dtype)
    logs = el.log1p(el.neg(u))
    # At shape 0 all samples are 0.  Without this, a uniform number of 0 would give 0 / 0.
    none = el.eq(a, 0.0)
    each = el.select(none, -math.inf, logs / el.select(el.and_(small, el.not_(none)), a, 1.0))
    if logarithm:
        out = el.log(d) + el.log(volume) + el.select(small, each, 0.0)
        return el.select(good, out, math.nan)
    boost = el.select(small, el.exp(each), 1.0)
    return el.select(good, d * volume * boost, math.nan)


def _attempt(
    k: Value, on: Value, volume: Value, d: Value, c: Value, k1: Value, k2: Value
) -> list[Any]:
    """Make one proposal for each element that has no accepted one."""
    dtype = volume.aval.dtype
    rest, source, judge = children((k1, k2), 3)
    one = Literal(1.0, volume.aval.strong())
    x, v = until_settled(_positive, on, Literal(0.0, one.aval), one, c, *source)[:2]
    (u,) = units([judge], dtype)
    cube, square = v * v * v, x * x
    quick = el.lt(u, 1.0 - 0.0331 * (square * square))
    slow = el.lt(el.log(u), 0.5 * square + d * (1.0 - cube + el.log(cube)))
    done = el.or_(quick, slow)
    volume = el.select(on, cube, volume)
    k1, k2 = (el.select(on, new, old) for new, old in zip(rest, (k1, k2)))
    return [el.and_(on, el.not_(done)), volume, d, c, k1, k2]


def _positive(k: Value, on: Value, x: Value, v: Value, c: Value, k1: Value, k2: Value) -> list[Any]:
    """Draw a normal number x with 1 + c x > 0."""
    rest, now = children((k1, k2), 2)
    (u,) = units([now], x.aval.dtype)
    drawn = _normal(u)
    x = el.select(on, drawn, x)
    v = el.select(on, 1.0 + c * drawn, v)
    return [el.and_(on, v <= 0.0), x, v, c, *rest]


__all__ = ["random_gamma"]
