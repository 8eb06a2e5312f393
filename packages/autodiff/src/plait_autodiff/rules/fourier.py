"""Derivatives of Fourier transforms: they are linear, so the work is in transposing.

With w = exp(-2 pi i / n) the matrix of a transform has the elements w**(j k), which is symmetric:
transforms of complex arrays are their own transposes (there is no conjugate: the pairing of
cotangents with values is bilinear).  A real transform keeps the rows up to n // 2 and reads them as
a linear function of reals, whose transpose gives the real part of w**(-j k) applied to conjugates:
that is the inverse real transform, in which each row but the first, and the middle one of an even
number, stands for itself and for its mirror image, so is weighed by a half; and conversely.

Invariant: what comes back to an element that a transform does not look at, as imaginary parts of
the first and middle rows, is zero.
"""

from typing import Any

from plait.ext.ops import elementwise as el
from plait.ext.ops.fourier import fft_
from plait.ext.ops.shape import broadcast_in_dim, convert, iota, size_value
from plait.ext.sizes import is_symbolic
from plait.ext.types import INT32, Aval
from plait.ext.values import Literal

from ..transpose import transpose_rules


def _weighed(x: Any, n: Any, other: float, total: Any, down: bool) -> Any:
    """Rows of half a spectrum (the last axis) times `total`, or over it if `down`; those standing
    for two rows also times `other`."""
    rows = x.aval.shape[-1]
    k = iota(INT32, (rows,))
    cell = Aval((rows,), INT32)
    alone = el.eq.bind(k, Literal(0, cell))
    if is_symbolic((n,)):  # in the middle of an even number
        twice = el.mul.bind(k, Literal(2, cell))
        alone = el.or_.bind(alone, el.eq.bind(twice, _spread(size_value(n, INT32), cell)))
    elif n % 2 == 0:
        alone = el.or_.bind(alone, el.eq.bind(k, Literal(n // 2, cell)))
    flat = Aval((rows,), x.aval.dtype)
    if is_symbolic((total,)):
        weight = el.select.bind(alone, Literal(1.0, flat), Literal(other, flat))
        scale = _spread(convert(size_value(total, INT32), flat.dtype), flat)
        weight = (el.div if down else el.mul).bind(weight, scale)
    else:
        scale = 1.0 / total if down else float(total)
        weight = el.select.bind(alone, Literal(scale, flat), Literal(other * scale, flat))
    dims = (x.aval.ndim - 1,)
    return el.mul.bind(x, broadcast_in_dim.bind(weight, shape=x.aval.shape, dims=dims))


def _spread(x: Any, aval: Aval) -> Any:
    return broadcast_in_dim.bind(x, shape=aval.shape, dims=())


@transpose_rules.rule(fft_)
def _(ct, x, *, kind, lengths):
    total = 1
    for n in lengths:
        total *= n
    if kind == "rfft":
        rows = _weighed(el.conj.bind(ct), lengths[-1], 0.5, total, down=False)
        return (fft_.bind(rows, kind="irfft", lengths=lengths),)
    if kind == "irfft":
        rows = el.conj.bind(fft_.bind(ct, kind="rfft", lengths=lengths))
        return (_weighed(rows, lengths[-1], 2.0, total, down=True),)
    return (fft_.bind(ct, kind=kind, lengths=lengths),)
