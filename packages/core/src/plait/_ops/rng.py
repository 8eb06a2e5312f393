"""Random bits: Threefry-2x32, a function of a key and a counter; and the device's generator.

Invariant: bits of Threefry depend on the key and the counter only.  The element at a position of an
array is thus the same however the array is made: at once, in pieces, on one device or on many.
"""

from typing import Any

import numpy as np

from .._base.errors import ArgumentError, OperandTypeError, ShapeError
from .._base.jaxlib_api import IrValue
from .._core.array import Literal
from .._core.carrier import expand_rules
from .._core.interpreter import Value
from .._core.primitive import Primitive, Sizes
from .._plugins.traits import Discrete, Elementwise
from .._types.avals import Aval
from .._types.dims import Dim, is_symbolic, product
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import attr, string
from .elementwise import add, or_, shift_left, shift_right_logical, xor
from .shape import convert
from .sizes import numbered

__all__ = ["DYNAMIC_GENERATOR", "rng_bit_generator", "threefry2x32"]

UINT32, UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_INJECTIONS = 5


def _threefry2x32(k1: Aval, k2: Aval, x1: Aval, x2: Aval) -> list[Aval]:
    """Apply Threefry-2x32 with 20 rounds and key (k1, k2) to the counter (x1, x2)."""
    for x in (k1, k2, x1, x2):
        if x.dtype != UINT32 or x.shape != k1.shape:
            raise ShapeError(
                f"threefry2x32: keys and counters must be uint32 of one shape, not {x!r}",
                fix="convert with .astype and broadcast first",
            )
    return [x1.strong(), x2.strong()]


threefry2x32 = Primitive("core.threefry2x32", _threefry2x32, (Discrete, Elementwise), many=True)


@expand_rules.rule(threefry2x32)
def _(k1: Value, k2: Value, x1: Value, x2: Value):
    """Expand the rounds of J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel random numbers: as
    easy as 1, 2, 3; SC 2011, section 4.3.

    They are unrolled: a loop compiles no faster and runs several times as long, since nothing is
    fused across its turns.
    """
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


def _rotated(x: Value, r: int, aval: Aval) -> Any:
    """Rotate the bits of `x` left by `r`."""
    left = shift_left.bind(x, Literal(r, aval))
    return or_.bind(left, shift_right_logical.bind(x, Literal(32 - r, aval)))


def counters(shape: tuple) -> tuple[Any, Any]:
    """Return the number of each element of an array of this shape, as high and low uint32."""
    size = product(shape)
    if size.__class__ is not Dim and size <= 2**32:
        return Literal(0, Aval(shape, UINT32)), numbered(shape, UINT32)
    n = numbered(shape, UINT64)
    high = shift_right_logical.bind(n, Literal(32, n.aval))
    return convert(high, UINT32), convert(n, UINT32)


# ---- the generator of the device -----------------------------------------------------------

ALGORITHMS = ("default", "three_fry", "philox")

DYNAMIC_GENERATOR = "stablehlo.dynamic_rng_bit_generator"
"""The call that stands for the generator where sizes are symbolic.  Compilers of StableHLO replace
it by the operation itself once the sizes are known."""


def _rng_bit_generator(state: Aval, *, shape: Sizes, dtype: np.dtype, algorithm: str) -> list[Aval]:
    """Return the next state and random unsigned integers of a generator that the compiler chooses.

    The state is uint64, or uint32 in pairs: two words of 64 bits, or three for Philox.
    """
    good = state.ndim == 1 and state.dtype in (UINT32, UINT64)
    size = state.shape[0] * state.dtype.itemsize if good else 0
    if size != 16 and (size != 24 or algorithm == "three_fry"):
        raise ArgumentError(
            f"rng_bit_generator: {state!r} is not a state", fix="give a uint32[4] or a uint64[2]"
        )
    if dtype.kind != "u" or algorithm not in ALGORITHMS:
        raise OperandTypeError(
            f"rng_bit_generator: no {dtype} by {algorithm!r}",
            fix=f"draw unsigned integers, by one of {', '.join(ALGORITHMS)}",
        )
    return [state.strong(), Aval(shape, dtype)]


rng_bit_generator = Primitive("core.rng_bit_generator", _rng_bit_generator, many=True)


@lower_rules.rule(rng_bit_generator)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    shape,
    dtype: np.dtype,
    algorithm,
):
    x, (state, bits) = xs[0], outs
    wide = Aval((state.shape[0] * state.dtype.itemsize // 8,), UINT64)
    pairs = Aval((*wide.shape, 2), UINT32)
    if state.dtype == UINT32:
        x = e.op("stablehlo.reshape", [x], pairs)
        x = e.op("stablehlo.bitcast_convert", [x], wide)
    how = attr(f"#stablehlo<rng_algorithm {algorithm.upper()}>")
    if is_symbolic(shape):  # The compiler makes it static once sizes are substituted.
        new, out = e.op(
            "stablehlo.custom_call", [x, e.shape(shape)], wide, bits, rng_algorithm=how,
            call_target_name=string(DYNAMIC_GENERATOR), api_version=attr("2 : i32"),
        )  # fmt: skip
    else:
        new, out = e.op("stablehlo.rng_bit_generator", [x], wide, bits, rng_algorithm=how)
    if state.dtype == UINT32:
        new = e.op("stablehlo.bitcast_convert", [new], pairs)
        new = e.op("stablehlo.reshape", [new], state)
    return [new, out]
