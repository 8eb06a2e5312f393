"""Reinterpretation of bits as elements of another dtype, in numpy.

Invariant: the lowest bits come first.
"""

from collections.abc import Iterator

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.ops import elementwise as cv
from plait.ext.types import dtype_of

from ..operands import edges
from ..samples import Reference, Sample, ordinary

__all__ = ["REFERENCES"]


def _bits(x: np.ndarray) -> np.ndarray:
    """Return each element as a row of bits, the lowest first."""
    width = cv.bits_of(x.dtype)
    raw = np.ascontiguousarray(x).reshape(*x.shape, 1).view(np.uint8)
    return np.unpackbits(raw, axis=-1, bitorder="little")[..., :width]


def _bitcast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    have, want = cv.bits_of(x.dtype), cv.bits_of(dtype)
    bits = _bits(x)
    shape: tuple = x.shape
    if have > want:
        shape = (*x.shape, have // want)
    elif have < want:
        shape = x.shape[:-1]
    bits = bits.reshape(*shape, want)
    whole = np.packbits(bits, axis=-1, bitorder="little")
    if "int4" in dtype.name:
        signed = (whole.astype(np.int8) << 4) >> 4 if dtype.name == "int4" else whole
        return signed[..., 0].astype(dtype)
    return np.ascontiguousarray(whole).view(dtype)[..., 0]


_CASTS = (
    "float32 int32, float32 uint32, bfloat16 int16, float16 uint16, float64 int64, int64 float64, "
    "float32 uint8, float64 float32, int32 int4, uint8 uint4, float8_e5m2 uint8, "
    "bfloat16 float16, float64 bfloat16"
)


def _casts(prim: Primitive) -> Iterator[Sample]:
    yield Sample((ordinary("float32"),), {"dtype": np.dtype(np.int32)})
    for cast in _CASTS.split(", "):
        source, target = cast.split()
        yield Sample((edges(source),), {"dtype": dtype_of(target)})
    for source, target in (("uint8", "float32"), ("float32", "float64"), ("uint4", "int8")):
        count = cv.bits_of(dtype_of(target)) // cv.bits_of(dtype_of(source))
        x = np.resize(edges(source), (3, count))
        yield Sample((x,), {"dtype": dtype_of(target)})
    yield Sample((ordinary("float32", (0,)),), {"dtype": np.dtype(np.uint8)})


REFERENCES = {"core.bitcast": Reference(_bitcast, _casts)}
"""The Reference of each primitive of the family."""
