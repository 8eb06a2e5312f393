"""Random keys in Python: words, and Threefry hashes of the index of each element.

Invariant: keys are given, and returned, as their words along the last axis.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.ops.opaque import unwrap_
from plait.ext.ops.random import FRY
from plait.ext.trace import Value, as_list
from plait.ext.types import Opaque

from ..samples import Reference, Sample
from .opaque import in_memory
from .rng import hashed

__all__ = ["REFERENCES"]


def _seeds(seeds: np.ndarray, dtype: object) -> np.ndarray:
    """Return the high and low words; a seed that fits in 32 bits, signed or not, has no high
    one."""
    out = []
    for n in map(int, seeds.ravel()):
        high = 0 if -(2**31) <= n < 2**32 else n >> 32 & 0xFFFFFFFF
        out.append((high, n & 0xFFFFFFFF))
    return np.array(out, np.uint32).reshape(*seeds.shape, 2)


def _hashes(words: np.ndarray, shape: tuple) -> np.ndarray:
    """Return two words for each element of an array of this shape, under each key."""
    size = int(np.prod(shape))
    rows = [[hashed(int(w[0]), int(w[1]), 0, n) for n in range(size)] for w in words.reshape(-1, 2)]
    return np.array(rows, np.uint32).reshape(*words.shape[:-1], *shape, 2)


def _fold_in(words: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    rows = zip(words.reshape(-1, 2), numbers.ravel())
    out = [hashed(int(w[0]), int(w[1]), 0, int(n)) for w, n in rows]
    return np.array(out, np.uint32).reshape(words.shape)


def _bits(words: np.ndarray, shape: tuple, dtype: np.dtype) -> np.ndarray:
    pair = _hashes(words, shape).astype(np.uint64)
    if dtype.itemsize == 8:
        return pair[..., 0] << np.uint64(32) | pair[..., 1]
    return (pair[..., 0] ^ pair[..., 1]).astype(dtype)


# ---- samples -------------------------------------------------------------------------------


def _seeded(prim: Primitive, seeds: Value, dtype: Opaque) -> list:
    return [unwrap_.bind(y) for y in as_list(prim.bind(seeds, dtype=dtype))]


def _integers(prim: Primitive) -> Iterator[Sample]:
    for name in ("int32", "uint8", "uint32", "int64", "uint64"):
        info = np.iinfo(name)
        some = [info.min, 0, 1, 42, info.max, 2**31, -1, 2**32, -(2**31), -(2**31) - 1]
        held = [n for n in some if info.min <= n <= info.max]
        yield Sample((np.array(held, name),), {"dtype": FRY})


def _keys(*all_params: dict) -> Any:
    def samples(prim: Primitive) -> Iterator[Sample]:
        words = np.random.default_rng(2).integers(0, 2**32, (2, 3, 2), np.uint32)
        more = [np.array([[0, 1, 2], [7, 2**31, 2**32 - 1]], np.uint32)]
        folds = prim.name == "core.random_fold_in"
        for params in all_params:
            yield Sample((words, *more[: int(folds)]), params)
        yield Sample((words[0, 0], *[m[1, 1] for m in more[: int(folds)]]), all_params[-1])

    return samples


_DRAWN = [{"shape": (2, 2), "dtype": np.dtype(f"uint{n}")} for n in (32, 8, 16, 64)]
REFERENCES = {
    "core.random_seed": Reference(_seeds, _integers, through=_seeded),
    "core.random_split": Reference(
        lambda words, shape: _hashes(words, shape), _keys({"shape": (3,)}, {"shape": (2, 2)}),
        through=in_memory,
    ),
    "core.random_fold_in": Reference(_fold_in, _keys({}), through=in_memory),
    "core.random_bits": Reference(_bits, _keys(*_DRAWN), through=in_memory),
    "core.random_clone": Reference(lambda words: words, _keys({}), through=in_memory),
}  # fmt: skip
"""The Reference of each primitive of the family."""
