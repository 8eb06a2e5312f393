"""Elements at given ranks as CPUs find them fast: by bisection, without a sort.

Floats have the order of integers.  Half of the integers between two bounds are left out by counting
the elements up to the middle one, which vector operations do.  After as many turns as an integer
has bits, both bounds are the element (Knuth, "The Art of Computer Programming", vol. 3, 5.3.3, has
selection by comparisons, which processors guess wrong).

Invariant: results are those of the sort, to the bit: nan comes last, and -0.0 before 0.0.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.jaxlib_api import limits
from .._core.array import Literal
from .._core.interpreter import Value
from .._core.staging import staged
from .._types.avals import FLOAT32, INT32, Aval
from .._xla.cpu_forms import cpu_limit
from .control_flow import scan
from .conversion import bitcast
from .elementwise import add, and_, clamp, ge, gt, le, ne, select, shift_right_arithmetic, xor
from .reduction import reduce_min, reduce_sum
from .shape import broadcast_in_dim, convert, reshape

FEWEST = cpu_limit("ranked.fewest", 1024, "The size of rows from which bisection pays.")
ADVANTAGE = cpu_limit(
    "ranked.advantage", 6, "The cost of one rank in 32 turns, in comparisons of a sort."
)


def form_of(avals: Sequence[Aval]) -> Callable | None:
    """Return the form of `ranked`; None where a sort costs less."""
    x, at = avals
    if not all(d.__class__ is int for d in (*x.shape, *at.shape)) or not at.size:
        return None
    n, ranks = x.shape[-1], at.shape[-1]
    words = 2 if x.dtype.itemsize == 8 else 1  # twice the turns, of twice the bytes
    if n < FEWEST.value or ADVANTAGE.value * ranks * words**2 > n.bit_length():
        return None
    return _bisected


def _bisected(x: Value, at: Value) -> list:
    narrow = x.aval.dtype
    x = convert(x, narrow if narrow.itemsize >= 4 else FLOAT32)
    bits = np.dtype(f"int{8 * x.aval.dtype.itemsize}")
    x = select.bind(ne.bind(x, x), Literal(np.nan, x.aval), x)
    *lead, n = x.aval.shape
    at = clamp.bind(Literal(0, at.aval), at, Literal(n - 1, at.aval))
    keys = reshape(_ordered(bitcast(x, bits)), (*lead, 1, n))
    least, most = (Literal(int(end), Aval(at.aval.shape, bits)) for end in limits(bits))

    def turn(keys: Value, at: Value, low: Value, high: Value) -> list:
        one = Literal(1, low.aval)
        # The sum of both could be too large.
        middle = add.bind(
            and_.bind(low, high), shift_right_arithmetic.bind(xor.bind(low, high), one)
        )
        above = gt.bind(_count(keys, middle), at)
        return [
            select.bind(above, low, add.bind(middle, one)),
            select.bind(above, middle, high),
        ]

    types = [keys.aval, at.aval, least.aval, least.aval]
    found, _ = scan.bind(
        keys, at, least, most,
        body=staged(turn, types, "bisect"),
        consts=2, carry=2, length=8 * bits.itemsize, reverse=False, unroll=1,
    )  # fmt: skip
    following = add.bind(at, Literal(1, at.aval))
    upto, each = _upto(keys, found), _spread(keys, (*at.aval.shape, n))
    greater = select.bind(upto, Literal(int(limits(bits)[1]), each.aval), each)
    after = reduce_min.bind(greater, axes=(len(lead) + 1,))
    last = ge.bind(following, Literal(n, at.aval))
    same = gt.bind(_count(keys, found), following)
    after = select.bind(last, found, select.bind(same, found, after))
    return [convert(bitcast(_ordered(k), x.aval.dtype), narrow) for k in (found, after)]


def _spread(x: Value, shape: tuple) -> Any:
    return broadcast_in_dim.bind(x, shape=shape, dims=tuple(range(len(shape))))


def _upto(keys: Value, bounds: Value) -> Any:
    """Return which keys [.., 1, n] are at most as large as the bounds [.., ranks]."""
    shape = (*bounds.aval.shape, keys.aval.shape[-1])
    bounds = reshape(bounds, (*bounds.aval.shape, 1))
    return le.bind(_spread(keys, shape), _spread(bounds, shape))


def _count(keys: Value, bounds: Value) -> Any:
    """Return how many keys are at most as large as each bound."""
    upto = _upto(keys, bounds)
    return reduce_sum.bind(convert(upto, INT32), axes=(upto.aval.ndim - 1,))


def _ordered(bits: Value) -> Any:
    """Invert all bits but the sign of negative numbers; it is its own inverse."""
    aval = bits.aval
    sign = shift_right_arithmetic.bind(bits, Literal(8 * aval.dtype.itemsize - 1, aval))
    return xor.bind(bits, and_.bind(sign, Literal(int(limits(aval.dtype)[1]), aval)))
