"""The generator of random bits that the compiler brings for each device.

Invariant: state and bits are what the compiler's operation says; nothing is added to it but the
choice of dtypes.
"""

import enum
from typing import Any

import numpy as np

from .._api.surfaces import value
from .._base.errors import ArgumentError
from .._core.array import canonical
from .._ops import rng
from .._ops.shape import normal_shape
from .._types.avals import dtype_of


class RandomAlgorithm(enum.IntEnum):
    """How `rng_bit_generator` makes bits: the device's own way, Threefry-2x32, or Philox-4x32."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def _algorithm(algorithm: Any) -> str:
    try:
        return rng.ALGORITHMS[RandomAlgorithm(algorithm)]
    except ValueError:
        raise ArgumentError(
            f"there is no random algorithm {algorithm!r}",
            fix="use a plait.lax.RandomAlgorithm, such as RandomAlgorithm.RNG_PHILOX",
        ) from None


def rng_bit_generator(
    key: Any,
    shape: Any,
    dtype: Any = np.uint32,
    algorithm: Any = RandomAlgorithm.RNG_DEFAULT,
) -> tuple[Any, Any]:
    """Random bits of a state, and the next state; `plait.random` is what most programs want.

    Args:
      key: the state: uint32 (4,) or uint64 (2,); of Philox also uint32 (6,) or uint64 (3,).
      shape: of the bits.
      dtype: of the bits: uint8, uint16, uint32 or uint64.
      algorithm: a RandomAlgorithm.  Bits of RNG_DEFAULT may differ from device to device.

    Returns (the next state, of the shape and dtype of `key`; the bits).  States that are mapped
    over give what each gives alone.
    Raises TypeRule for other states, dtypes and algorithms.

    >>> import numpy as np, plait
    >>> state, bits = plait.lax.rng_bit_generator(np.arange(4, dtype=np.uint32), (2, 3))
    >>> bits.shape, bits.dtype
    ((2, 3), dtype('uint32'))
    """
    d, how = canonical(dtype_of(dtype)), _algorithm(algorithm)
    out = rng.rng_bit_generator(value(key), shape=normal_shape(shape), dtype=d, algorithm=how)
    return out[0], out[1]


__all__ = ["RandomAlgorithm", "rng_bit_generator"]
