"""Solutions of linear systems, of Sylvester's equation, inverses and determinants.

Invariant: a singular matrix gives infinities and nan, never an error.
"""

from typing import Any

import numpy as np

from plait.errors import ArgumentError, ShapeError
from plait.ext.ops import elementwise as el
from plait.ext.ops.shape import broadcast_to, convert, expand_dims, squeeze
from plait.ext.surface import flag, fused, value
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike

from ...numpy import linalg as numpy_linalg
from ...numpy.linalg.equations import agreeing, stacked_alike
from ...numpy.linalg.factors import matrices
from ...primitives.linalg import solving
from ...primitives.linalg.batched_matrices import transposed as transpose
from ...primitives.linalg.factorisation import pivots_to_permutation
from ...primitives.linalg.matrix_equations import sylvester
from .factors import mirrored

_KINDS = {
    "gen": "gen", "general": "gen", "sym": "sym", "symmetric": "sym", "her": "her",
    "hermitian": "her", "pos": "pos", "positive definite": "pos",
}  # fmt: skip


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return determinants; see `plait.numpy.linalg.det`.  As scipy.linalg.det.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.det(np.diag([2.0, 3.0])).item()
    6.0
    """
    return numpy_linalg.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return inverses; see `plait.numpy.linalg.inv`.  As scipy.linalg.inv.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.inv(np.diag([2.0, 4.0])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return numpy_linalg.inv(a)


def _both(name: str, a: object, b: object) -> tuple:
    """Return a square matrix and a right-hand side, integers as floats."""
    x, (y,) = matrices(name, a, square=True), el.floating((value(b),))
    if not y.aval.ndim:
        raise ShapeError(f"{name}: {y.aval!r} is no right-hand side", fix="give it an axis")
    return x, y


@fused
def _solve(a: Value, b: Value, *, kind: str, lower: bool, trans: bool) -> Any:
    vector = b.aval.ndim == 1
    a, b = agreeing("solve", a, expand_dims(b, 1) if vector else b, square=True)
    if kind != "gen":
        a = mirrored(a, lower=lower, conjugated=kind != "sym")
    a = transpose(a) if trans else a
    x = solving.positive(a, b) if kind == "pos" else solving.general(a, b)
    return squeeze(x, -1) if vector else x


def solve(
    a: ArrayLike, b: ArrayLike, lower: bool = False, overwrite_a: bool = False,
    overwrite_b: bool = False, debug: bool = False, check_finite: bool = True,
    assume_a: str = "gen", transposed: bool = False,
) -> Array:  # fmt: skip
    """Solve a @ x = b for x.

    Args:
      a: (..., n, n).
      b: (n,) or (..., n, k).
      lower: whether the lower triangle of a symmetric matrix is read; else the upper.
      assume_a: "gen"; or "sym", "her" or "pos" (positive definite, solved by Cholesky's factor),
        for which one triangle is read.
      transposed: whether to solve a^T @ x = b.
      debug: accepted for compatibility, as are the arguments about overwriting and checking.

    Raises TypeRule for shapes that do not fit and for an unknown `assume_a`.
    Returns x of the shape of b.  As scipy.linalg.solve.

    >>> import numpy as np, plait
    >>> x = plait.scipy.linalg.solve(np.diag([2.0, 4.0]), np.ones(2), assume_a="pos")
    >>> [round(v, 5) for v in x.tolist()]
    [0.5, 0.25]
    """
    if assume_a not in _KINDS:
        raise ArgumentError(f"solve cannot assume {assume_a!r}", fix='"gen", "sym", "her" or "pos"')
    x, y = _both("solve", a, b)
    kind = _KINDS[assume_a]
    return _solve(x, y, kind=kind, lower=bool(lower), trans=bool(transposed))


# ---- by factors ----------------------------------------------------------------------------


@fused
def _by_triangle(a: Value, b: Value, *, trans: int, lower: bool, unit: bool) -> Any:
    vector = b.aval.ndim == 1
    a, b = agreeing("solve_triangular", a, expand_dims(b, 1) if vector else b, square=True)
    x = solving.triangular(
        a, b, lower=lower, transpose_a=trans > 0, conjugate_a=trans == 2, unit_diagonal=unit
    )
    return squeeze(x, -1) if vector else x


def solve_triangular(
    a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False,
    unit_diagonal: bool = False, overwrite_b: bool = False, debug: object = None,
    check_finite: bool = True,
) -> Array:  # fmt: skip
    """Solve systems with triangular matrices; the other triangle is not read.

    Args:
      a: (..., n, n).
      b: (n,) or (..., n, k).
      trans: 0 or "N", a @ x = b; 1 or "T", a^T @ x = b; 2 or "C", a^H @ x = b.
      lower: whether a is lower triangular; else upper.
      unit_diagonal: whether the diagonal counts as one and is not read.
      debug: accepted for compatibility.

    Raises TypeRule for shapes that do not fit and for an unknown `trans`.
    Returns x of the shape of b.  As scipy.linalg.solve_triangular.

    >>> import numpy as np, plait
    >>> a = np.array([[2.0, 1.0], [0.0, 1.0]])
    >>> plait.scipy.linalg.solve_triangular(a, np.array([3.0, 1.0])).tolist()
    [1.0, 1.0]
    """
    x, y = _both("solve_triangular", a, b)
    how = dict(lower=bool(lower), unit=bool(unit_diagonal))
    return _by_triangle(x, y, trans=_transposition(trans), **how)


def _transposition(trans: int | str) -> int:
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ArgumentError(
            f"there is no transposition {trans!r}", fix='use 0, 1, 2, or "N", "T", "C"'
        )
    return "NTC".index(trans) if isinstance(trans, str) else int(trans)


def _pair(name: str, factors: object) -> tuple:
    if not isinstance(factors, tuple | list) or len(factors) != 2:
        raise ArgumentError(
            f"{name}: {type(factors).__name__} is not a pair",
            fix="give what cho_factor or lu_factor returned",
        )
    return tuple(factors)


def cho_solve(
    c_and_lower: tuple, b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """Solve a @ x = b, given the factor of a by `cho_factor`.

    Args:
      c_and_lower: (the factor (..., n, n), whether it is lower).
      b: (n,) or (..., n, k).

    As scipy.linalg.cho_solve.

    Raises ArgumentError unless the factors are a pair.

    >>> import numpy as np, plait
    >>> factor = plait.scipy.linalg.cho_factor(np.diag([4.0, 1.0]))
    >>> plait.scipy.linalg.cho_solve(factor, np.ones(2)).tolist()
    [0.25, 1.0]
    """
    c, lower = _pair("cho_solve", c_and_lower)
    lower = flag("cho_solve", "lower", lower)
    first, second = (0, 2) if lower else (2, 0)
    y = solve_triangular(c, b, trans=first, lower=lower)
    return solve_triangular(c, y, trans=second, lower=lower)


@fused
def _by_lu(lu: Value, pivots: Value, b: Value, *, trans: int) -> Any:
    vector = b.aval.ndim == 1
    lu, b = agreeing("lu_solve", lu, expand_dims(b, 1) if vector else b, square=True)
    pivots = broadcast_to(pivots, lu.aval.shape[:-1])
    order = pivots_to_permutation.bind(pivots, size=lu.aval.shape[-1])
    if trans:
        how = dict(transpose_a=True, conjugate_a=trans == 2)
        y = solving.triangular(lu, b, lower=False, **how)
        y = solving.triangular(lu, y, unit_diagonal=True, **how)
        x = solving.rows_in_order(y, solving.order_back(order))
    else:
        y = solving.triangular(lu, solving.rows_in_order(b, order), unit_diagonal=True)
        x = solving.triangular(lu, y, lower=False)
    return squeeze(x, -1) if vector else x


def lu_solve(
    lu_and_piv: tuple, b: ArrayLike, trans: int = 0, overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:  # fmt: skip
    """Solve a @ x = b, given the factors of a by `lu_factor`.

    Args:
      lu_and_piv: (L and U in one (..., n, n), pivots int32 (..., n)).
      b: (n,) or (..., n, k); leading axes broadcast.
      trans: 0, a @ x = b; 1, a^T @ x = b; 2, a^H @ x = b.

    As scipy.linalg.lu_solve.

    Raises ArgumentError unless the factors are a pair.

    >>> import numpy as np, plait
    >>> factors = plait.scipy.linalg.lu_factor(np.diag([4.0, 2.0]))
    >>> plait.scipy.linalg.lu_solve(factors, np.ones(2)).tolist()
    [0.25, 0.5]
    """
    lu, pivots = _pair("lu_solve", lu_and_piv)
    x, y = _both("lu_solve", lu, b)
    return _by_lu(x, convert(value(pivots), np.int32), y, trans=_transposition(trans))


# ---- Sylvester's equation ------------------------------------------------------------------


@fused
def _sylvester(a: Value, b: Value, c: Value) -> Any:
    return sylvester.bind(*stacked_alike(a, b, c))


def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """Solve A @ X + X @ B = C for X.

    Args:
      A: (..., m, m).
      B: (..., n, n).
      C: (..., m, n); leading axes broadcast.
      method: "schur" or "eigen"; both use Schur's forms.
      tol: accepted for compatibility; a system without a solution gives values that are not finite.

    Raises TypeRule for shapes that do not fit and other methods.
    Returns X (..., m, n); not finite if an eigenvalue of A is the negative of one of B.  On the CPU
    only.  As scipy.linalg.solve_sylvester.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.solve_sylvester(np.eye(2), np.eye(1), np.ones((2, 1))).round(3).tolist()
    [[0.5], [0.5]]
    """
    if method not in ("schur", "eigen"):
        raise ArgumentError(f"solve_sylvester has no method {method!r}", fix='use "schur"')
    a, b = (matrices("solve_sylvester", v, square=True) for v in (A, B))
    c = matrices("solve_sylvester", C)
    dtype = np.result_type(*(v.aval.dtype for v in (a, b, c)))
    return _sylvester(*(convert(v, dtype) for v in (a, b, c)))
