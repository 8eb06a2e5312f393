"""Discrete Fourier transforms over the last axes.

One primitive covers all four kinds; the inverse divides by the number of elements.  The functions
of `plait.numpy.fft` add norms, other axes, cutting and padding.

Invariant: `lengths` are known ints, one for each axis transformed, and the operand has exactly the
sizes that they require.  Nothing is cut or padded here.
"""

import enum
from typing import Any

import numpy as np

from .._base.errors import ArgumentError, AxisError, OperandTypeError, ShapeError
from .._base.jaxlib_api import IrValue
from .._core.array import as_value
from .._core.interpreter import Value
from .._core.primitive import Sizes, primitive
from .._plugins.traits import Linear
from .._types.avals import COMPLEX, FLOATING, Aval, default_dtype
from .._types.dims import Dim, decide_ge, is_symbolic
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import attr, i64s
from ..typing import Array, ArrayLike, Shape
from .shape import convert, normal_shape

__all__ = ["fft_", "spectral"]

KINDS = ("fft", "ifft", "rfft", "irfft")
_COMPLEX = {"float32": np.complex64, "float64": np.complex128}
_REAL = {"complex64": np.float32, "complex128": np.float64}


class FftType(enum.IntEnum):
    """The kinds of transforms: complex and its inverse, real to half a spectrum and its inverse."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


@primitive("core.fft", traits=(Linear,))
def fft_(x: Aval, *, kind: str, lengths: Sizes) -> Aval:
    """Apply the Fourier transform over the last `len(lengths)` axes.

    "fft" and "ifft" take complex arrays.  "rfft" maps real arrays to the first half of the
    spectrum along the last axis; "irfft" inverts it.
    """
    if kind not in KINDS:
        raise ArgumentError(f"fft: there is no kind {kind!r}", fix=f"use one of {', '.join(KINDS)}")
    names = _COMPLEX if kind == "rfft" else _REAL
    if x.dtype.name not in names:
        raise OperandTypeError(
            f"{kind} is for {' or '.join(names)} arrays, not {x!r}", fix="convert with .astype"
        )
    count = len(lengths)
    if not 1 <= count <= 3 or x.ndim < count:
        raise AxisError(
            f"{kind} over {count} axes of {x!r}",
            fix="transform one to three axes at once, and no more than the array has",
        )
    for n in lengths:
        if n.__class__ not in (int, Dim) or decide_ge(n, 1) is False:
            raise ShapeError(
                f"{kind}: the length {n!r} is not one that a transform can have",
                fix="transform axes of size 1 at least",
            )
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    taken, given = (half if kind == "irfft" else lengths), (half if kind == "rfft" else lengths)
    batch = x.shape[: x.ndim - count]
    if x.shape[x.ndim - count :] != taken:
        raise ShapeError(
            f"{kind} of lengths {lengths} takes the sizes {taken} at the end, not {x!r}",
            fix="cut or pad the operand, as plait.numpy.fft does",
        )
    dtype = {"rfft": _COMPLEX, "irfft": _REAL}.get(kind, {}).get(x.dtype.name, x.dtype)
    return Aval((*batch, *given), dtype)


@lower_rules.rule(fft_)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    kind: str,
    lengths: tuple[int, ...],
):
    if not is_symbolic(outs[0].shape) and outs[0].size == 0:
        return e.constant(0, outs[0])
    for n in lengths:
        if n.__class__ is Dim:
            raise ShapeError(
                f"{kind} over {n} elements cannot be compiled for all sizes at once: the "
                f"compiler's transform takes a length that is a number",
                fix="give the length as a number, n=...; axes that are not transformed may be of "
                "sizes known by name",
            )
    how = attr(f"#stablehlo<fft_type {kind.upper()}>")
    out = e.op("stablehlo.fft", [_gathered(e, xs[0], ins[0])], outs[0], fft_type=how,
               fft_length=i64s(*lengths))  # fmt: skip
    return _gathered(e, out, outs[0])


def _gathered(e: Emitter, x: IrValue, aval: Aval) -> Any:
    """Return an operand or result whole on each device, in memory in the order of its axes.

    Every device transforms the whole array anyway, and XLA's partitioner fails if it divides one.
    An exchange may leave another order in memory, but XLA's transform for CPUs takes only this
    one.  Reshaping to a vector, behind a barrier, enforces it.
    """
    place = e.unit.place
    if place is None or len(place.devices) == 1 or is_symbolic(aval.shape):
        return e.whole_along(x, aval, range(aval.ndim))
    x = e.whole_along(x, aval, range(aval.ndim))
    flat = Aval((aval.size,), aval.dtype)
    x = e.op("stablehlo.optimization_barrier", [e.op("stablehlo.reshape", [x], flat)], flat)
    return e.op("stablehlo.reshape", [x], aval)


# ---- functions for users -------------------------------------------------------------------


def spectral(x: Any, real: bool = False) -> Value:
    """Convert `x` for a transform: to complex, or to real if `real`.

    Half precision becomes float32 first, and integers the default float.
    """
    x = as_value(x)
    if x.aval.category not in (FLOATING, COMPLEX):
        x = convert(x, default_dtype(FLOATING))
    if x.aval.category == FLOATING:
        dtype = x.aval.dtype if x.aval.dtype.itemsize > 4 else np.dtype(np.float32)
        return convert(x, dtype if real else _COMPLEX[dtype.name])
    if real:
        raise ArgumentError(
            f"a transform of real arrays got {x.aval!r}",
            fix="use fft, or take .real first",
        )
    return convert(x, x.aval.dtype)


def fft(x: ArrayLike, fft_type: object, fft_lengths: Shape) -> Array:
    """Return the discrete Fourier transform over the last axes.

    Args:
      x: complex64 or complex128 (for RFFT: float32 or float64); the last axes have the sizes
        `fft_lengths` (for IRFFT the last has half of it, plus one).
      fft_type: an `FftType`, or its name: "FFT", "IFFT", "RFFT" or "IRFFT".
      fft_lengths: one to three ints.

    Raises TypeRule for other dtypes and sizes, AxisError for axes that `x` lacks.

    >>> import numpy as np
    >>> fft(np.ones(4, np.complex64), "FFT", (4,)).real.tolist()
    [4.0, 0.0, 0.0, 0.0]
    """
    named = fft_type.__class__ is int and fft_type in list(FftType)
    kind = str(FftType(fft_type).name if named else getattr(fft_type, "name", fft_type))
    lengths = normal_shape(fft_lengths)
    x = spectral(x, kind.lower() == "rfft")
    n = x.aval.ndim - len(lengths)
    whole = kind in ("FFT", "IFFT") and n >= 0 and x.aval.shape[n:] == lengths
    if whole and (not lengths or 0 in lengths):  # nothing to add up
        return x
    return fft_.bind(x, kind=kind.lower(), lengths=lengths)
