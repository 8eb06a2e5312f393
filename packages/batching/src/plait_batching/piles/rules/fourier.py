"""Fourier transforms of ragged lengths by Bluestein's algorithm, which computes a transform of any
length as a convolution of one fixed length (L. Bluestein, A linear filtering approach to the
computation of the discrete Fourier transform, IEEE Transactions on Audio and Electroacoustics 18,
1970).

Invariant: angles are computed from integers modulo twice the length, so long transforms lose no
digits there.
"""

from typing import Any

import numpy as np

import plait.numpy as pnp
from plait.ext.ops.fourier import fft_
from plait.ext.trace import Value
from plait.ext.types import Aval
from plait.typing import Array

from ..carrier import Ragged, pile_rules
from ..layouts import fit
from ..operation import PADDED
from ..tables import I32


@pile_rules.rule(fft_)
def _(r: Ragged, args, out: Aval, *, kind, lengths):
    (x,) = args
    first = x.aval.ndim - len(lengths)
    ragged = [r.caps.mine(n) for n in lengths]
    if not any(ragged):
        y = fft_.bind(r.data(x, PADDED), kind=kind, lengths=lengths)
        return r.result(out, y, PADDED)
    y = r.masked(r.data(x, PADDED), x.aval, r.axes(x.aval), 0)
    if kind == "irfft":
        # The last axis holds half of a spectrum, and is transformed last.
        for a, n in reversed(list(enumerate(lengths[:-1]))):
            y = _along(r, y, first + a + 1, n, True)
        y = _along(r, _mirrored(r, y, lengths[-1]), y.ndim - 1, lengths[-1], True).real
    else:
        if kind == "rfft":
            y = y.astype(np.result_type(y.dtype, np.complex64))
        for a, n in reversed(list(enumerate(lengths))):
            y = _along(r, y, first + a + 1, n, kind == "ifft")
    for a in range(out.ndim):
        d = out.shape[a]
        y = fit(y, a + 1, r.caps.longest(d) if r.caps.mine(d) else d)
    return r.result(out, y.astype(out.dtype), PADDED)


def _sizes(r: Ragged, n: Any) -> Any:
    return pnp.maximum(r.lengths(n), 1)


def _mirrored(r: Ragged, y: Value, n: Any) -> Any:
    """Return the whole spectrum along the last axis, given its first half."""
    size = r.caps.longest(n) if r.caps.mine(n) else n
    full = _sizes(r, n)[:, None] if r.caps.mine(n) else n
    k = pnp.arange(size, dtype=I32)[None, :]
    second = k > full // 2
    at = pnp.clip(pnp.where(second, full - k, k), 0, y.shape[-1] - 1)
    shape = (at.shape[0], *(1,) * (y.ndim - 2), at.shape[1])
    got = pnp.take_along_axis(y, at.reshape(shape), axis=-1)
    second = pnp.broadcast_to(second, at.shape).reshape(shape)
    return pnp.where(second, pnp.conj(got), got)


def _along(r: Ragged, y: Array, axis: int, n: Any, inverse: bool) -> Any:
    """Transform [size, ...] along one axis, where it is zero beyond the length."""
    y = pnp.moveaxis(y, axis, -1)
    if not r.caps.mine(n):
        y = pnp.fft.ifft(y) if inverse else pnp.fft.fft(y)
        return pnp.moveaxis(y, -1, axis)
    size = y.shape[-1]
    full = _sizes(r, n)
    # A power of two that holds the linear convolution, which has 2 * size - 1 values.
    wide = 1 << (2 * size - 1).bit_length()
    chirp = _chirp(pnp.arange(size, dtype=I32), full, y.dtype, inverse)  # [examples, size]
    inside = pnp.arange(size, dtype=I32)[None] < full[:, None]
    chirp = pnp.where(inside, chirp, pnp.zeros((), y.dtype))
    lead = (r.size, *(1,) * (y.ndim - 2))
    a = _padded(y * chirp.reshape((*lead, size)), wide)
    back = pnp.conj(chirp)
    b = _padded(back, wide) + _padded(back[:, 1:], wide)[:, ::-1]
    spectrum = pnp.fft.fft(a) * pnp.fft.fft(b).reshape((*lead, wide))
    got = pnp.fft.ifft(spectrum)[..., :size] * chirp.reshape((*lead, size))
    if inverse:
        got = got / full.reshape((*lead, 1)).astype(got.real.dtype)
    return pnp.moveaxis(got, -1, axis)


def _chirp(k: Any, n: Any, dtype: Any, inverse: bool) -> Any:
    """Return exp(-i pi k^2 / n) for each example; the conjugate if `inverse`."""
    wide = k.astype("int64")[None]
    turns = (wide * wide) % (2 * n.astype("int64")[:, None])
    real = np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype
    angle = turns.astype(real) * (np.pi / n.astype(real)[:, None])
    return (pnp.cos(angle) + (1j if inverse else -1j) * pnp.sin(angle)).astype(dtype)


def _padded(x: Array, n: int) -> Any:
    return pnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])])
