"""The polar decomposition, by an iteration of products and factorisations.

Invariant: the iteration stops at convergence, or at the maximal number of steps.
"""

from typing import Any

import numpy as np

from plait.errors import ArgumentError
from plait.ext import Aval, Literal
from plait.ext.control import while_loop
from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import max_, sum_
from plait.ext.ops.shape import concatenate, convert, slice_in_dim
from plait.ext.surface import fixed, fused, value
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike

from ..primitives.linalg.batched_matrices import adjoint, identity, real_dtype, stack_of, times
from ..primitives.linalg.factorisation import qr_
from .routines import absent

_TURNS = 10


def qdwh(
    x: ArrayLike, *, is_hermitian: bool = False, max_iterations: int | None = None,
    eps: float | None = None, dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Return the polar decomposition x = u @ h, by Halley's iteration with dynamic weights.

    Args:
      x: (m, n), m >= n.
      is_hermitian: whether x is; it has no effect.
      max_iterations: 10 by default.
      eps: rounding error assumed; by default that of the dtype.
      dynamic_shape: must be None.

    Returns (u (m, n) with orthonormal columns, h (n, n) Hermitian and positive semidefinite, the
    number of steps int32, whether it converged).  Forward mode only.
    Source: Y. Nakatsukasa, Z. Bai, F. Gygi, SIAM J. Matrix Anal. Appl. 31 (2010).
    Raises TypeRule for wide matrices, stacks and other dtypes.

    >>> import numpy as np, plait
    >>> u, h, turns, enough = plait.lax.linalg.qdwh(np.diag([2.0, -3.0]))
    >>> (u.round(5) + 0.0).tolist(), bool(enough)
    ([[1.0, 0.0], [0.0, -1.0]], True)
    """
    absent("qdwh", dynamic_shape=dynamic_shape)
    x = value(x)
    lead, m, n = stack_of("qdwh", x.aval)
    if lead or m < n or not n:
        raise ArgumentError(
            f"qdwh of {x.aval!r}", fix="give one matrix, with as many rows as columns"
        )
    least = float(np.finfo(real_dtype(x.aval.dtype)).eps) if eps is None else float(eps)
    most = _TURNS if max_iterations is None else fixed("qdwh", "max_iterations", max_iterations)
    return _qdwh(x, eps=least, most=most)


@fused
def _qdwh(x: Value, *, eps: float, most: int) -> tuple:
    part = real_dtype(x.aval.dtype)
    m, n = x.aval.shape
    size = el.abs_(x)
    # The 1-norm times the inf-norm bounds the square of the greatest singular value, so all
    # singular values of `start` are at most 1, as the iteration requires.
    bound = el.sqrt(max_(sum_(size, 0)) * max_(sum_(size, 1)))
    bound = el.select(el.gt(bound, 0.0), bound, 1.0)
    start = el.div(x, convert(bound, x.aval.dtype))
    one = identity(Aval((n, n), x.aval.dtype))

    def turn(state: tuple) -> tuple:
        u, low, _, k = state
        square = low * low
        d = el.cbrt(4.0 * (1.0 - square) / (square * square))
        root = el.sqrt(1.0 + d)
        a = root + 0.5 * el.sqrt(8.0 - 4.0 * d + 8.0 * (2.0 - square) / (square * root))
        b = (a - 1.0) * (a - 1.0) * 0.25
        c = a + b - 1.0
        wide = lambda v: convert(v, x.aval.dtype)  # noqa: E731
        q, _ = qr_.bind(
            concatenate([u * wide(el.sqrt(c)), one], 0), full_matrices=False, pivoting=False
        )
        top, bottom = slice_in_dim(q, 0, m), slice_in_dim(q, m, m + n)
        new = u * wide(b / c) + times(top, adjoint(bottom)) * wide((a - b / c) / el.sqrt(c))
        low = el.minimum(low * (a + b * square) / (1.0 + c * square), 1.0)
        gap = el.abs_(new - u)
        return new, low, el.sqrt(sum_(gap * gap)), k + 1

    def going(state: tuple) -> Any:
        _, low, gap, k = state
        rough = el.or_(el.gt(gap, (4 * eps) ** (1 / 3)), el.gt(1.0 - low, 10 * eps))
        return el.and_(rough, el.lt(k, most))

    first = start, Literal(eps, Aval((), part)), Literal(np.inf, Aval((), part)), np.int32(0)
    u, low, gap, turns = while_loop(going, turn, first)
    enough = el.and_(el.le(gap, (4 * eps) ** (1 / 3)), el.le(1.0 - low, 10 * eps))
    h = times(adjoint(u), x)
    return u, 0.5 * (h + adjoint(h)), turns, enough


__all__ = ["qdwh"]
