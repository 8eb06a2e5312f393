"""Random bits: Threefry-2x32, a function of a key and a counter.

Invariant: bits depend on the key and the counter only, so the element at a place of an array is
the same however the array is made: at once, in pieces, on one device or on many.
"""

from typing import Any

import numpy as np

from ..carrier import expand_rules
from ..dims import Dim, product
from ..errors import TypeRule
from ..primitive import Primitive
from ..traits import Discrete, Elementwise
from ..types import Aval
from ..values import Literal
from .elementwise import add, or_, shift_left, shift_right_logical, xor
from .indexing import numbered
from .shape import broadcast_to, convert, reshape, slice_

UINT32, UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_INJECTIONS = 5


def _threefry2x32(k1: Aval, k2: Aval, x1: Aval, x2: Aval) -> list[Aval]:
    """Threefry-2x32 with 20 rounds, key (k1, k2), of the counter (x1, x2)."""
    for x in (k1, k2, x1, x2):
        if x.dtype != UINT32 or x.shape != k1.shape:
            raise TypeRule(
                f"threefry2x32: keys and counters must be uint32 of one shape, not {x!r}",
                fix="convert with .astype and broadcast first",
            )
    return [x1.strong(), x2.strong()]


threefry2x32 = Primitive("core.threefry2x32", _threefry2x32, (Discrete, Elementwise), many=True)


@expand_rules.rule(threefry2x32)
def _(k1, k2, x1, x2):
    """J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011,
    section 4.3.  Unrolled: a loop compiles no faster and runs several times as long, since nothing
    is fused across its turns."""
    aval = Aval(k1.aval.shape, UINT32)
    keys = k1, k2, xor.bind(xor.bind(k1, k2), Literal(_PARITY, aval))
    x1, x2 = add.bind(x1, keys[0]), add.bind(x2, keys[1])
    for i in range(_INJECTIONS):
        for r in _ROTATIONS[i % 2]:
            x1 = add.bind(x1, x2)
            x2 = xor.bind(_rotated(x2, r, aval), x1)
        x1 = add.bind(x1, keys[(i + 1) % 3])
        x2 = add.bind(add.bind(x2, keys[(i + 2) % 3]), Literal(i + 1, aval))
    return [x1, x2]


def _rotated(x: Any, r: int, aval: Aval) -> Any:
    """The bits of `x` moved left by `r`, those falling out coming in again."""
    left = shift_left.bind(x, Literal(r, aval))
    return or_.bind(left, shift_right_logical.bind(x, Literal(32 - r, aval)))


def counters(shape: tuple) -> tuple[Any, Any]:
    """The number of each element of an array of this shape, as high and low uint32."""
    size = product(shape)
    if size.__class__ is not Dim and size <= 2**32:
        return Literal(0, Aval(shape, UINT32)), numbered(shape, UINT32)
    n = numbered(shape, UINT64)
    high = shift_right_logical.bind(n, Literal(32, n.aval))
    return convert(high, UINT32), convert(n, UINT32)


def hashed(data: Any, x1: Any, x2: Any) -> tuple[Any, Any]:
    """Threefry of counters under the key in a uint32[2]."""
    k1, k2 = words(data, x1.aval.shape)
    a, b = threefry2x32.bind(k1, k2, x1, x2)
    return a, b


def words(data: Any, shape: tuple) -> tuple[Any, Any]:
    """The two words of a key, a uint32[2], broadcast to a shape."""
    return broadcast_to(_word(data, 0), shape), broadcast_to(_word(data, 1), shape)


def _word(data: Any, i: int) -> Any:
    return reshape(slice_.bind(data, starts=(i,), limits=(i + 1,), strides=(1,)), ())
