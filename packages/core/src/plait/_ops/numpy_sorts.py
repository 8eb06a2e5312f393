"""Rows of integers sorted by numpy, as CPUs do it fast.

The compiler sorts by comparisons that branch, and processors guess half of the branches wrong.
numpy compares many integers by one vector instruction, as Bramas ("A novel hybrid quicksort
algorithm vectorized using AVX-512", 2017) describes, which takes a tenth of the time.

Invariant: integers are compared whole, so equal ones are interchangeable and no order is lost.
"""

from typing import Any

import numpy as np

from .._base.jaxlib_api import IrValue
from .._types.avals import BOOLEAN, INT32, INTEGER, Aval
from .._xla.cpu_forms import cpu_limit
from .._xla.lower import Emitter
from .._xla.mlir import i64s
from .._xla.python_calls import HostFunction

__all__ = ["increasing", "order", "pays"]

FEWEST = cpu_limit(
    "sort.fewest",
    1 << 12,
    "The fewest elements that are worth a call of numpy: while a thread of Python computes, numpy "
    "waits up to 5 ms for its turn.",
)


def pays(aval: Aval) -> bool:
    """Return whether numpy sorts integers or booleans of this type faster than compiled code."""
    whole = aval.category in (INTEGER, BOOLEAN)
    return whole and all(d.__class__ is int for d in aval.shape) and aval.size >= FEWEST.value


def increasing(e: Emitter, x: IrValue, aval: Aval, axis: int) -> Any:
    """Emit the sort of integers along `axis`."""
    return _along(e, _SORT, x, aval, aval, axis)


def order(e: Emitter, x: IrValue, aval: Aval, axis: int) -> Any:
    """Emit the order that sorts integers along `axis`, in int32; of equal ones the first is first.

    There are at most 2**31 of them.
    """
    return _along(e, _ORDER, x, aval, aval.with_dtype(INT32), axis)


def _along(e: Emitter, f: HostFunction, x: IrValue, aval: Aval, out: Aval, axis: int) -> Any:
    """Emit a call of a function of rows, which numpy reads fastest where they lie in memory."""
    last = aval.ndim - 1
    if axis == last:
        return f.emit(e, [x], [aval], [out])[0]
    to = [*(i for i in range(aval.ndim) if i != axis), axis]
    back = [*range(axis), last, *range(axis, last)]
    rows, out_rows = (a.with_shape(tuple([a.shape[i] for i in to])) for a in (aval, out))
    x = e.op("stablehlo.transpose", [x], rows, permutation=i64s(*to))
    (found,) = f.emit(e, [x], [rows], [out_rows])
    return e.op("stablehlo.transpose", [found], out, permutation=i64s(*back))


def _sorted(x: np.ndarray) -> tuple[np.ndarray]:
    # Of single bytes numpy counts how often each occurs, if the sort is to be stable.
    return (np.sort(x, axis=-1, kind="stable" if x.dtype.itemsize == 1 else None),)


def _ordered(x: np.ndarray) -> tuple[np.ndarray]:
    """Return the order of rows.

    numpy's stable sort has no vector instructions.  So equal integers are put in order afterwards:
    runs of them are numbered, and sorted as one integer with their positions.
    """
    at = np.argsort(x, axis=-1)
    found = np.take_along_axis(x, at, -1)
    same = found[..., 1:] == found[..., :-1]
    if same.any():
        packed = np.zeros(x.shape, np.int64)
        np.cumsum(~same, axis=-1, out=packed[..., 1:])
        packed <<= 32
        packed |= at
        packed.sort(axis=-1)
        at = packed & (2**32 - 1)
    return (at.astype(np.int32),)


_SORT, _ORDER = HostFunction("numpy.sort", _sorted), HostFunction("numpy.argsort", _ordered)
