"""Fourier transforms by numpy.

Invariant: transforms of single precision are taken in double, and rounded.
"""

from collections.abc import Iterator

import numpy as np

from plait.ext.ir import Primitive

from ..samples import Reference, Sample, ordinary

__all__ = ["REFERENCES"]


def _fft(x: np.ndarray, kind: str, lengths: tuple) -> np.ndarray:
    axes = tuple(range(-len(lengths), 0))
    f = getattr(np.fft, f"{kind}n")
    single = x.dtype in (np.float32, np.complex64)
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    out = f(wide, lengths, axes)
    return out.astype({"c": np.complex64, "f": np.float32}[out.dtype.kind]) if single else out


def _signals(prim: Primitive) -> Iterator[Sample]:
    yield Sample((ordinary("complex64", (2, 6)),), {"kind": "fft", "lengths": (6,)})
    for name in ("complex64", "complex128"):
        x = ordinary(name, (2, 3, 5))
        for kind in ("fft", "ifft"):
            yield Sample((x,), {"kind": kind, "lengths": (3, 5)})
        yield Sample((x,), {"kind": "irfft", "lengths": (3, 8)})
        real = np.ascontiguousarray(np.real(x))
        yield Sample((real,), {"kind": "rfft", "lengths": (5,)})
        yield Sample((real,), {"kind": "rfft", "lengths": (2, 3, 5)})
    yield Sample((ordinary("complex64", (3, 1)),), {"kind": "irfft", "lengths": (1,)})
    yield Sample((ordinary("complex64", (0, 4)),), {"kind": "fft", "lengths": (4,)})


REFERENCES = {"core.fft": Reference(_fft, _signals, 12, whole=True)}
"""The Reference of each primitive of the family."""
