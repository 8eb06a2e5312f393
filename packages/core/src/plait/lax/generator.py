"""The compiler's generator of random bits for each device.

Invariant: state and bits are those of the compiler's operation; only the choice of dtypes is added.
"""

import enum
from typing import Any

import numpy as np

from plait.typing import ArrayLike, DTypeLike, Shape

from .._api.surfaces import value
from .._base.errors import ArgumentError
from .._ops import rng
from .._ops.shape import normal_shape
from .._types.avals import asked_dtype


class RandomAlgorithm(enum.IntEnum):
    """Algorithms of `rng_bit_generator`: the device's own, Threefry-2x32, or Philox-4x32."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def _algorithm(algorithm: object) -> str:
    try:
        return rng.ALGORITHMS[RandomAlgorithm(algorithm)]
    except ValueError:
        raise ArgumentError(
            f"there is no random algorithm {algorithm!r}",
            fix="use a plait.lax.RandomAlgorithm, such as RandomAlgorithm.RNG_PHILOX",
        ) from None


def rng_bit_generator(
    key: ArrayLike, shape: Shape, dtype: DTypeLike = np.uint32,
    algorithm: object = RandomAlgorithm.RNG_DEFAULT,
) -> tuple[Any, Any]:  # fmt: skip
    """Return random bits of a state, and the next state; most programs should use `plait.random`.

    Args:
      key: the state: uint32 (4,) or uint64 (2,); for Philox also uint32 (6,) or uint64 (3,).
      shape: shape of the bits.
      dtype: dtype of the bits: uint8, uint16, uint32 or uint64.
      algorithm: a RandomAlgorithm.  Bits of RNG_DEFAULT may differ from device to device.

    Returns (the next state, of the shape and dtype of `key`; the bits).  Each state of a mapped
    axis gives the bits that it gives alone.
    Raises TypeRule for other states, dtypes and algorithms.

    >>> import numpy as np, plait
    >>> state, bits = plait.lax.rng_bit_generator(np.arange(4, dtype=np.uint32), (2, 3))
    >>> bits.shape, bits.dtype
    ((2, 3), dtype('uint32'))
    """
    d, how = asked_dtype(dtype), _algorithm(algorithm)
    out = rng.rng_bit_generator(value(key), shape=normal_shape(shape), dtype=d, algorithm=how)
    return out[0], out[1]


__all__ = ["RandomAlgorithm", "rng_bit_generator"]
