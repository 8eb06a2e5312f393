"""Threefry-2x32 and Philox-4x32 in Python's integers.

J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011.

Invariant: words are Python's integers, truncated to 32 bits where the papers do so.
"""

from collections.abc import Iterator

import numpy as np

from plait.ext.ir import Primitive

from ..samples import Reference, Sample

__all__ = ["REFERENCES", "hashed"]

_LOW = 0xFFFFFFFF
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def hashed(k1: int, k2: int, x1: int, x2: int) -> tuple[int, int]:
    """Return Threefry-2x32 with 20 rounds, key (k1, k2), of the counter (x1, x2)."""
    keys = (k1, k2, k1 ^ k2 ^ 0x1BD11BDA)
    x1, x2 = (x1 + k1) & _LOW, (x2 + k2) & _LOW
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x1 = (x1 + x2) & _LOW
            x2 = ((x2 << r | x2 >> (32 - r)) & _LOW) ^ x1
        x1 = (x1 + keys[(i + 1) % 3]) & _LOW
        x2 = (x2 + keys[(i + 2) % 3] + i + 1) & _LOW
    return x1, x2


def _threefry(*xs: np.ndarray) -> list[np.ndarray]:
    rows = zip(*[x.ravel().tolist() for x in xs])
    words = np.array([hashed(*row) for row in rows], np.uint32).reshape(*xs[0].shape, 2)
    return [words[..., 0], words[..., 1]]


def _philox(key: list[int], counter: list[int]) -> list[int]:
    """Return Philox-4x32 with 10 rounds."""
    k1, k2 = key
    a, b, c, d = counter
    for _ in range(10):
        p, q = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (q >> 32) ^ b ^ k1, q & _LOW, (p >> 32) ^ d ^ k2, p & _LOW
        k1, k2 = (k1 + 0x9E3779B9) & _LOW, (k2 + 0xBB67AE85) & _LOW
    return [a, b, c, d]


def _words(n: int, count: int) -> list[int]:
    return [n >> (32 * k) & _LOW for k in range(count)]


def _generator(state: np.ndarray, shape: tuple, dtype: np.dtype, algorithm: str) -> list:
    """Draw bits.  The state is a key of 64 bits and a counter that advances.  Philox's counter
    has 128 bits: without an upper half in the state, that half is the key again."""
    whole = state.view(np.uint64) if state.dtype == np.uint32 else state
    key, low, *high = [int(v) for v in whole]
    wide = np.dtype(dtype).itemsize == 8
    need = int(np.prod(shape)) * (2 if wide else 1)
    if algorithm == "three_fry":
        width, start = 2, low
        draw = lambda n: hashed(*_words(key, 2), *_words(n % 2**64, 2))  # noqa: E731
    else:
        width, start = 4, low + ((high or [key])[0] << 64)
        draw = lambda n: _philox(_words(key, 2), _words(n % 2**128, 4))  # noqa: E731
    used = -(-need // width)
    words = [w for k in range(used) for w in draw(start + k)]
    out = np.array(words[:need], np.uint32)
    bits = out.view(np.uint64) if wide else out.astype(dtype)
    after = [key, *_halves(start + used)][: len(whole)]
    return [np.array(after, np.uint64).view(state.dtype), bits.reshape(shape)]


def _halves(n: int) -> list[int]:
    return [n % 2**64, n >> 64 & 2**64 - 1]


# ---- samples -------------------------------------------------------------------------------


def _counted(prim: Primitive) -> Iterator[Sample]:
    rng = np.random.default_rng(3)
    yield Sample(tuple(rng.integers(0, 2**32, (4, 2, 3), np.uint32)))
    edge = np.array([0, 1, 2**31, 2**32 - 1], np.uint32)
    yield Sample((edge, edge[::-1].copy(), edge, edge))
    yield Sample((np.zeros((0, 2), np.uint32),) * 4)


def _drawn(prim: Primitive) -> Iterator[Sample]:
    small = np.array([2**40 + 5, 7], np.uint64)
    high = np.array([1, 2**64 - 2], np.uint64)
    for algorithm in ("philox", "three_fry"):
        for name, shape in (("uint32", (6,)), ("uint64", (4,)), ("uint8", (4,)), ("uint16", (8,))):
            how = {"shape": shape, "dtype": np.dtype(name), "algorithm": algorithm}
            yield Sample((small,), how)
        yield Sample((small.view(np.uint32),), {**how, "dtype": np.dtype(np.uint32)})
        yield Sample((high,), {**how, "dtype": np.dtype(np.uint32)})
    yield Sample((np.array([3, 2**64 - 1, 9], np.uint64),), {**how, "algorithm": "philox"})


REFERENCES = {
    "core.threefry2x32": Reference(_threefry, _counted),
    "core.rng_bit_generator": Reference(_generator, _drawn),
}
"""The Reference of each primitive of the family."""
