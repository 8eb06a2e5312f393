"""The safetensors format for named arrays: https://huggingface.co/docs/safetensors.

    8 bytes      the length of the header, little-endian
    header       JSON: {name: {"dtype": "F32", "shape": [3, 4], "data_offsets": [begin, end]}}
    data         the arrays, one right after the other, in C order

Here the header is padded with spaces to a multiple of 64 bytes, and arrays whose size is such a
multiple come first.  So these arrays are aligned when the file is mapped into memory, and devices
can use them without a copy.

Invariant: `read` returns views of the bytes that it was given, within bounds and not overlapping,
or raises an ArtifactError with the defect.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from plait.ext.types import EXTRA_DTYPES

from .errors import ArtifactError

ALIGNED = 64
EMPTY = memoryview((2).to_bytes(8, "little") + b"{}")
"""A file without arrays."""

_LONGEST = 100_000_000
"""The limit of the format for the bytes of a header."""

_NAMES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "F16": "float16",
    "BF16": "bfloat16", "I32": "int32", "U32": "uint32", "F32": "float32", "F64": "float64",
    "I64": "int64", "U64": "uint64", "C64": "complex64", "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn", "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip
_DTYPES = {
    code: EXTRA_DTYPES.get(name) or np.dtype(name)
    for code, name in _NAMES.items()
    if name in EXTRA_DTYPES or hasattr(np, name)
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}


def holds(dtype: np.dtype) -> bool:
    """Return whether the format has a name for this dtype."""
    return dtype in _CODES


def chunks(arrays: Mapping[str, np.ndarray]) -> list[memoryview]:
    """Return a file of arrays as uncopied pieces: the header, then each array."""
    # The sort is stable, so arrays keep their order among the aligned and among the others.
    order = sorted(arrays, key=lambda name: arrays[name].nbytes % ALIGNED != 0)
    header, end = {}, 0
    for name in order:
        x, begin = arrays[name], end
        end = begin + x.nbytes
        header[name] = {
            "dtype": _CODES[x.dtype], "shape": list(x.shape), "data_offsets": [begin, end]
        }  # fmt: skip
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNED)
    data = [np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data for name in order]
    return [memoryview(len(text).to_bytes(8, "little") + text), *data]


def read(data: memoryview) -> dict[str, np.ndarray]:
    """Return the arrays of a file by name, as views of its bytes.

    Raises ArtifactError for an invalid file: offsets that leave it, leave holes or overlap, sizes
    that differ from those of the shapes, and dtypes that Plait does not have.
    """
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(_LONGEST, len(data) - 8):
        raise _damaged("its header is longer than the file")
    try:
        header = json.loads(bytes(data[8 : 8 + length]))
    except (ValueError, RecursionError) as e:
        raise _damaged(f"its header: {e}") from None
    if not isinstance(header, dict):
        raise _damaged("its header is not an object")
    header.pop("__metadata__", None)
    held = data[8 + length :]
    placed = sorted([(*_range(name, said), name) for name, said in header.items()])
    at = 0
    for begin, end, name in placed:
        if begin != at:
            raise _damaged(f"{name!r} begins at byte {begin}, and what is before it ends at {at}")
        at = end
    if at != len(held):
        raise _damaged(f"its arrays end at byte {at} of {len(held)}")
    return {name: _array(name, header[name], held[begin:end]) for begin, end, name in placed}


def _range(name: str, said: dict[str, Any]) -> tuple[int, int]:
    """Return the offsets at which an array begins and ends."""
    offsets = said.get("data_offsets") if isinstance(said, dict) else None
    if not (isinstance(offsets, list) and len(offsets) == 2 and all(map(_is_size, offsets))):
        raise _damaged(f"where {name!r} is")
    begin, end = offsets
    if begin > end:
        raise _damaged(f"{name!r} ends at byte {end}, before it begins")
    return begin, end


def _is_size(n: int) -> bool:
    return n.__class__ is int and n >= 0


def _array(name: str, said: dict[str, Any], data: memoryview) -> np.ndarray:
    shape, code = said.get("shape"), said.get("dtype")
    dtype = _DTYPES.get(code) if isinstance(code, str) else None
    if dtype is None:
        raise _damaged(f"{name!r} has elements of type {code!r}, which nothing here has")
    if not (isinstance(shape, list) and all(map(_is_size, shape))):
        raise _damaged(f"the shape of {name!r}")
    if math.prod(shape) * dtype.itemsize != len(data):
        raise _damaged(f"{name!r} has {len(data)} bytes, and {code} of {shape} has others")
    return np.frombuffer(data, np.uint8).view(dtype).reshape(shape)


def _damaged(what: str) -> ArtifactError:
    return ArtifactError(f"the artifact is damaged: its weights: {what}")
