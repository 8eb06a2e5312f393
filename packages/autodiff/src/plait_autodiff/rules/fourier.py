"""Derivatives of Fourier transforms: they are linear, so only transposition needs rules.

With w = exp(-2 pi i / n), the matrix of a transform has the elements w**(j k) and is symmetric.  So
transforms of complex arrays are their own transposes.  No conjugate appears, because the pairing
of cotangents with values is bilinear.

A real transform keeps the rows up to n // 2, as a linear function of real numbers.  Its transpose
gives the real part of w**(-j k) applied to conjugates, which is the inverse real transform.  In
that, each row stands for itself and for its mirror image, and is weighted by a half; the first row
and, if n is even, the middle one stand for themselves.  The converse holds as well.

Invariant: the cotangent of an element that a transform ignores is zero; the imaginary parts of the
first and middle rows are such elements.
"""

from typing import Any

from plait.ext.ops import elementwise as el
from plait.ext.ops.fourier import fft_
from plait.ext.ops.shape import broadcast_in_dim, convert, iota, size_value
from plait.ext.sizes import is_symbolic
from plait.ext.trace import Value
from plait.ext.types import INT32, Aval
from plait.ext.values import Literal

from ..transpose import transpose_rules


def _weighed(x: Value, n: int, other: float, total: int, down: bool) -> Any:
    """Return rows of half a spectrum (the last axis) times `total`, or over it if `down`.

    Rows that stand for two are also multiplied by `other`.
    """
    rows = x.aval.shape[-1]
    k = iota(INT32, (rows,))
    cell = Aval((rows,), INT32)
    alone = el.eq.bind(k, Literal(0, cell))
    if is_symbolic((n,)):  # the middle row exists if the number is even
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


def _spread(x: Value, aval: Aval) -> Any:
    return broadcast_in_dim.bind(x, shape=aval.shape, dims=())


@transpose_rules.rule(fft_)
def _(ct: Value, x: object, *, kind, lengths):
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
