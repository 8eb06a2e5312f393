"""Polynomials as vectors of coefficients, the highest power first; windows of signals.

Invariant: lengths are those of the coefficients given: nothing is trimmed for being zero.
"""

from typing import Any

import numpy as np

from ..control import scan
from ..errors import TypeRule
from ..ops import elementwise as el
from ..ops.shape import broadcast_to, concatenate, convert, convert_together, pad, reshape
from ..surface import fused, value
from ..types import FLOATING, Aval, broadcast_shapes, default_dtype
from ..values import Literal, from_numpy
from .contraction import convolve


def _coefficients(p: Any) -> Any:
    p = value(p)
    if p.aval.ndim > 1:
        raise TypeRule(f"coefficients are a vector, not {p.aval!r}", fix="use .ravel()")
    return reshape(p, (1,)) if not p.aval.ndim else p


@fused
def _polyval(p: Any, x: Any, *, unroll: int) -> Any:
    p, x = convert_together([p, x])
    shape = broadcast_shapes([p.aval.shape[1:], x.aval.shape])
    start = Literal(0, Aval(shape, p.aval.dtype))
    step = lambda y, c: (el.add(el.mul(y, x), c), None)  # noqa: E731
    return scan(step, start, p, unroll=max(unroll, 1))[0]


def polyval(p: Any, x: Any, *, unroll: int = 16) -> Any:
    """The polynomial at `x`, by Horner's rule.

    Args:
      p: coefficients, the highest power first.
      x: where, any shape.
      unroll: how many steps are written out in one turn of the loop.

    As numpy.polyval.

    >>> import numpy as np, weft as wf
    >>> float(wf.numpy.polyval(np.array([1.0, 0.0, 2.0]), 3.0))
    11.0
    """
    p = value(p)
    if not p.aval.ndim:
        raise TypeRule(f"coefficients are a vector, not {p.aval!r}", fix="use atleast_1d")
    return _polyval(p, value(x), unroll=unroll)


def _aligned(a1: Any, a2: Any) -> tuple[Any, Any]:
    x, y = convert_together([_coefficients(a1), _coefficients(a2)])
    n = max(x.aval.size, y.aval.size)
    return tuple([pad(v, 0, [(n - v.aval.size, 0, 0)]) for v in (x, y)])  # type: ignore[return-value]


def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials.  As numpy.polyadd."""
    return el.add(*_aligned(a1, a2))


def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials.  As numpy.polysub."""
    return el.sub(*_aligned(a1, a2))


def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials.  As numpy.polymul, leading zeros included."""
    return convolve(*el.floating((_coefficients(a1),)), *el.floating((_coefficients(a2),)))


def polyder(p: Any, m: int = 1) -> Any:
    """The derivative of a polynomial, taken `m` times.  As numpy.polyder."""
    (x,) = el.floating((_coefficients(p),))
    if m < 0:
        raise TypeRule(f"polyder taken {m} times", fix="give a number that is not negative")
    for _ in range(m):
        n = x.aval.size
        x = el.mul(x[: n - 1], from_numpy(np.arange(n - 1, 0, -1).astype(np.float32)))
    return x


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The integral of a polynomial, taken `m` times.

    Args:
      p: coefficients.
      m: how often.
      k: constants of integration, the first one first: a number or a vector; zero by default.

    As numpy.polyint.
    """
    (x,) = el.floating((_coefficients(p),))
    if m < 0:
        raise TypeRule(f"polyint taken {m} times", fix="give a number that is not negative")
    constants = broadcast_to(_coefficients(0 if k is None else k), (m,))
    for i in range(m):
        n = x.aval.size
        x = el.div(x, from_numpy(np.arange(n, 0, -1).astype(np.float32)))
        x = concatenate([x, convert(constants[i : i + 1], x.aval.dtype)], 0)
    return x


def poly(seq_of_zeros: Any) -> Any:
    """The polynomial that has these zeros.  As numpy.poly, of vectors."""
    (zeros,) = el.floating((_coefficients(seq_of_zeros),))
    one = Literal(1, Aval((1,), zeros.aval.dtype))
    out: Any = one
    for i in range(zeros.aval.size):
        out = convolve(out, concatenate([one, el.neg(zeros[i : i + 1])], 0))
    return convert(out, zeros.aval.dtype)


# ---- windows -------------------------------------------------------------------------------


def _window(host: np.ndarray) -> Any:
    return from_numpy(host.astype(default_dtype(FLOATING)))


def bartlett(M: int) -> Any:
    """The triangular window with M points.  As numpy.bartlett."""
    return _window(np.bartlett(M))


def blackman(M: int) -> Any:
    """The Blackman window with M points.  As numpy.blackman."""
    return _window(np.blackman(M))


def hamming(M: int) -> Any:
    """The Hamming window with M points.  As numpy.hamming."""
    return _window(np.hamming(M))


def kaiser(M: int, beta: float) -> Any:
    """The Kaiser window with M points and shape `beta`.  As numpy.kaiser."""
    return _window(np.kaiser(M, beta))


def hanning(M: int) -> Any:
    """The Hann window with M points.  As numpy.hanning."""
    return _window(np.hanning(M))
