"""Iterative solvers of linear equations: conjugate gradients, BiCGSTAB, GMRES.

Invariant: with plait-autodiff a solution is differentiated through the equation it satisfies, never
through the solver's steps; without it, the solver is an ordinary loop.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from plait.errors import ArgumentError, AxisError, MissingPlugin, ShapeError, TreeMismatch
from plait.ext import Aval, Value
from plait.ext.control import fori_loop, while_loop
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.indexing import At, getitem
from plait.ext.ops.reduction import sum_
from plait.ext.rules import resolve
from plait.ext.sizes import product
from plait.ext.surface import advise as _advise
from plait.ext.surface import fixed, value
from plait.tree import flatten
from plait.typing import Array, ArrayLike

from ...exact import dot, matmul
from ...exact import vdot as inner
from ...refusals import explain

__all__ = ["bicgstab", "cg", "gmres"]


def _straight(tree: object) -> tuple[Any, Callable]:
    """Return a tree of arrays as one vector, and the inverse function."""
    leaves, kind = flatten(tree)
    values = (
        list(el.floating(tuple(leaves)))
        if len(leaves) == 1
        else [el.floating((v,))[0] for v in leaves]
    )
    shapes = [v.aval.shape for v in values]
    same = sh.convert_together([sh.reshape(v, (-1,)) for v in values])
    flat = sh.concatenate(same) if len(same) > 1 else same[0]

    def back(vector: Value) -> Any:
        out, at = [], 0
        for shape, v in zip(shapes, values):
            n = product(shape)
            part = sh.reshape(sh.slice_in_dim(vector, at, at + n), shape)
            out.append(sh.convert(part, np.result_type(v.aval.dtype, vector.aval.dtype)))
            at = at + n
        return kind.unflatten(out)

    return flat, back


def _alike(what: str, tree: object, b: object) -> None:
    """Refuse a tree whose structure or shapes differ from those of the right-hand side.

    All leaves become one vector, so leaves that are swapped or wrapped would otherwise be mixed.
    """
    (leaves, kind), (others, like) = flatten(tree), flatten(b)
    if kind != like:
        raise TreeMismatch(
            f"{what} has the structure {kind} and b {like}",
            fix=f"build {what} with the structure of b: plait.tree.map(f, b) keeps it",
        )
    shapes, wanted = ([value(v).aval.shape for v in vs] for vs in (leaves, others))
    if shapes != wanted:
        raise ShapeError(f"{what} has the shapes {shapes} and b {wanted}",
                         fix="give arrays of the same shapes, reshaped if need be")  # fmt: skip


def _operator(A: object, b: Value, back: Callable, what: str) -> Callable:
    """Return a matrix, or a function of trees like `b`, as a function of vectors."""
    if A is None:
        return lambda v: v
    if callable(A):

        def applied(v: Value) -> Any:
            given = back(v)
            out = A(given)
            _alike(f"the result of {what}", out, given)
            return _straight(out)[0]

        return applied
    if hasattr(A, "__matmul__") and not isinstance(A, Value | np.ndarray):
        return _operator(lambda x: A @ x, b, back, what)
    matrix = value(A)
    if matrix.aval.ndim != 2 or matrix.aval.shape != (b.aval.size, b.aval.size):
        raise AxisError(f"{what} is {matrix.aval!r} and b {b.aval!r}",
                        fix="give a square matrix of as many rows, or a function")  # fmt: skip
    return lambda v: dot(matrix, v)


def _solved(
    find: Callable,
    A: object,
    b: object,
    x0: Any,
    tol: Any,
    atol: Any,
    maxiter: int | None,
    M: ArrayLike | None,
    symmetric: bool,
) -> tuple:
    flat, back = _straight(b)
    product_, better = _operator(A, flat, back, "A"), _operator(M, flat, back, "M")
    if x0 is not None:
        _alike("x0", x0, b)
    start = sh.fill(0, flat.aval.strong()) if x0 is None else _straight(x0)[0]
    flat, start = sh.convert_together([flat, start])
    steps = 10 * flat.aval.size if maxiter is None else maxiter
    real = el.real(flat).aval.dtype if flat.aval.dtype.kind == "c" else flat.aval.dtype

    def solve(matvec: Callable, y: Value) -> Any:
        size = el.sqrt(_square(y))
        goal = el.maximum(el.mul(sh.convert(size, real), tol), sh.convert(value(atol), real))
        return find(matvec, y, start, goal, steps, better)

    try:
        by_equation = resolve("custom_linear_solve", "plait.lax")
    except MissingPlugin:
        return back(solve(product_, flat)), None
    return back(by_equation(product_, flat, solve, solve, symmetric=symmetric)), None


def _square(x: Any) -> Any:
    """Return the sum of the squares of the absolute values, real."""
    if x.aval.dtype.kind == "c":
        return el.add(sum_(el.square(el.real(x))), sum_(el.square(el.imag(x))))
    return sum_(el.square(x))


def _quotient(a: ArrayLike, b: Array) -> Any:
    """Return a / b, and 0 where b is 0: the solver has converged there."""
    nothing = el.eq(b, 0)
    return el.select(nothing, 0, el.div(a, el.select(nothing, 1, b)))


def _cg(A: Callable, b: Value, x: Value, goal: Value, steps: int, M: Callable) -> Any:
    """Solve by conjugate gradients: M. R. Hestenes, E. Stiefel, "Methods of conjugate
    gradients", 1952."""

    def wanted(state: tuple) -> Any:
        r, k = state[1], state[4]
        return el.and_(el.gt(_square(r), el.square(goal)), el.lt(k, steps))

    def turn(state: tuple) -> tuple:
        x, r, p, rz, k = state
        ap = A(p)
        alpha = _quotient(rz, inner(p, ap))
        x, r = el.add(x, el.mul(alpha, p)), el.sub(r, el.mul(alpha, ap))
        z = M(r)
        new = inner(r, z)
        return x, r, el.add(z, el.mul(_quotient(new, rz), p)), new, el.add(k, 1)

    r = el.sub(b, A(x))
    z = M(r)
    return while_loop(wanted, turn, (x, r, z, inner(r, z), 0))[0]


def _bicgstab(A: Callable, b: Value, x: Value, goal: Value, steps: int, M: Callable) -> Any:
    """Solve by stabilised biconjugate gradients: H. A. van der Vorst, "Bi-CGSTAB", 1992."""

    def wanted(state: tuple) -> Any:
        r, k, stuck = state[1], state[6], state[7]
        going = el.and_(el.gt(_square(r), el.square(goal)), el.lt(k, steps))
        return el.and_(going, el.not_(stuck))

    def turn(state: tuple) -> tuple:
        x, r, p, v, rho, weights, k, _ = state
        alpha, omega = weights
        new = inner(shadow, r)
        beta = el.mul(_quotient(new, rho), _quotient(alpha, omega))
        p = el.add(r, el.mul(beta, el.sub(p, el.mul(omega, v))))
        toward = M(p)
        v = A(toward)
        alpha = _quotient(new, inner(shadow, v))
        s = el.sub(r, el.mul(alpha, v))
        onward = M(s)
        t = A(onward)
        omega = _quotient(inner(t, s), sh.convert(_square(t), b.aval.dtype))
        x = el.add(x, el.add(el.mul(alpha, toward), el.mul(omega, onward)))
        stuck = el.and_(el.eq(alpha, 0), el.eq(omega, 0))
        return (x, el.sub(s, el.mul(omega, t)), p, v, new, (alpha, omega), el.add(k, 1), stuck)

    shadow = el.sub(b, A(x))
    one = sh.fill(1, Aval((), b.aval.dtype))
    zero = el.mul(b, 0)
    start = (x, shadow, zero, zero, one, (one, one), 0, False)
    return while_loop(wanted, turn, start)[0]


def _gmres(restart: int) -> Callable:
    """Return a solver by Y. Saad, M. H. Schultz, "GMRES", 1986.  It minimises the residual in a
    space of `restart` vectors, each orthogonalised twice; rotations solve the small problem."""

    def find(A: Callable, b: Any, x: Any, goal: Any, steps: Any, M: Callable) -> Any:
        n, m = b.aval.size, min(restart, b.aval.size)

        def wanted(state: tuple) -> Any:
            _, r, k = state
            return el.and_(el.gt(_square(r), el.square(goal)), el.lt(k, steps))

        def turn(state: tuple) -> tuple:
            x, r, k = state
            basis, small = _space(lambda v: A(M(v)), r, n, m)
            size = sh.convert(el.sqrt(_square(r)), b.aval.dtype)
            y = _least(small, size, m)
            x = el.add(x, M(matmul(y, sh.slice_in_dim(basis, 0, m))))
            return x, el.sub(b, A(x)), el.add(k, 1)

        return while_loop(wanted, turn, (x, el.sub(b, A(x)), 0))[0]

    return find


def _space(A: Callable, r: Any, n: Any, m: int) -> tuple:
    """Return orthonormal rows that span r, A r, A A r, ...; and A in this basis, (m + 1, m)."""
    dtype = r.aval.dtype
    scaled = lambda v, size: el.mul(v, sh.convert(_quotient(1.0, size), dtype))  # noqa: E731
    rows = sh.fill(0, Aval((m + 1, n), dtype))
    rows = At(rows)[0].set(scaled(r, el.sqrt(_square(r))))

    def turn(k: Value, state: tuple) -> tuple:
        rows, small = state
        w = A(getitem(rows, k))
        first = matmul(el.conj(rows) if dtype.kind == "c" else rows, w)
        w = el.sub(w, matmul(first, rows))
        second = matmul(el.conj(rows) if dtype.kind == "c" else rows, w)
        w = el.sub(w, matmul(second, rows))
        size = el.sqrt(_square(w))
        along = el.add(first, second)
        column = el.select(el.eq(sh.iota(np.int32, (m + 1,)), el.add(k, 1)),
                           sh.convert(size, dtype), along)  # fmt: skip
        rows = At(rows)[el.add(k, 1)].set(scaled(w, size))
        return rows, At(small)[:, k].set(column)

    return fori_loop(0, m, turn, (rows, sh.fill(0, Aval((m + 1, m), dtype))))


def _least(small: Any, size: Any, m: int) -> Any:
    """Return y with the least |small y - size e0|: rotations make it triangular, from the top."""
    dtype = small.aval.dtype
    conj = el.conj if dtype.kind == "c" else lambda v: v
    right = At(sh.fill(0, Aval((m + 1,), dtype)))[0].set(size)

    def rotate(k: Value, state: tuple) -> tuple:
        h, g = state
        a, b = h[k, k], h[el.add(k, 1), k]
        length = sh.convert(el.sqrt(el.add(_square(a), _square(b))), dtype)
        still = el.eq(length, 0)
        c = el.select(still, 1, _quotient(a, length))
        s = _quotient(b, length)
        up, low = h[k], h[el.add(k, 1)]
        turned = el.add(el.mul(conj(c), up), el.mul(conj(s), low))
        rest = el.sub(el.mul(c, low), el.mul(s, up))
        h = At(At(h)[k].set(turned))[el.add(k, 1)].set(rest)
        u, v = g[k], g[el.add(k, 1)]
        g = At(g)[k].set(el.add(el.mul(conj(c), u), el.mul(conj(s), v)))
        return h, At(g)[el.add(k, 1)].set(el.sub(el.mul(c, v), el.mul(s, u)))

    h, g = fori_loop(0, m, rotate, (small, right))

    def substitute(j: Value, y: Value) -> Any:
        k = el.sub(m - 1, j)
        left = el.sub(g[k], dot(h[k], y))
        return At(y)[k].set(_quotient(left, h[k, k]))

    return fori_loop(0, m, substitute, sh.fill(0, Aval((m,), dtype)))


# ---- public functions ------------------------------------------------------------------------


def cg(
    A: ArrayLike, b: ArrayLike, x0: ArrayLike | None = None, *, tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0, maxiter: Any = None, M: ArrayLike | None = None,
) -> tuple:  # fmt: skip
    """Solve A x = b by conjugate gradients, for A that is positive definite and Hermitian.

    Args:
      A: a matrix, or a linear function of trees like `b`.
      b: the right-hand side, a tree of arrays.
      x0: the start; zeros if not given.
      tol, atol: the residual to reach is `max(tol |b|, atol)`.
      maxiter: the maximal number of steps; ten for each unknown if not given.
      M: a matrix or function that approximates the inverse of A.

    Returns (x, None).  Derivatives are those of the equation, if plait-autodiff is installed.
    Raises AxisError for shapes that disagree.  As scipy.sparse.linalg.cg.

    >>> import numpy as np, plait
    >>> A, b = np.float32([[4, 1], [1, 3]]), np.float32([1, 2])
    >>> [round(v, 4) for v in plait.scipy.sparse.linalg.cg(A, b)[0].tolist()]
    [0.0909, 0.6364]
    """
    return _solved(_cg, A, b, x0, tol, atol, maxiter, M, True)


def bicgstab(
    A: ArrayLike, b: ArrayLike, x0: ArrayLike | None = None, *, tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0, maxiter: Any = None, M: ArrayLike | None = None,
) -> tuple[Array, None]:  # fmt: skip
    """Solve A x = b by stabilised biconjugate gradients, for any A.

    Arguments and results are those of `cg`.  As scipy.sparse.linalg.bicgstab.

    >>> import numpy as np, plait
    >>> plait.scipy.sparse.linalg.bicgstab(np.eye(2), np.ones(2))[0].tolist()
    [1.0, 1.0]
    """
    return _solved(_bicgstab, A, b, x0, tol, atol, maxiter, M, False)


def gmres(
    A: ArrayLike, b: ArrayLike, x0: ArrayLike | None = None, *, tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0, restart: int = 20, maxiter: Any = None, M: ArrayLike | None = None,
    solve_method: str = "batched",
) -> tuple[Array, None]:  # fmt: skip
    """Solve A x = b by least residuals in growing spaces, for any A.

    Args:
      restart: the number of vectors of a space, held in memory, after which a new one begins.
      maxiter: the maximal number of spaces.
      solve_method: "batched" or "incremental", which are computed alike.

    Other arguments and results are those of `cg`.  As scipy.sparse.linalg.gmres.

    >>> import numpy as np, plait
    >>> plait.scipy.sparse.linalg.gmres(np.eye(2), np.ones(2))[0].round(5).tolist()
    [1.0, 1.0]
    """
    if solve_method not in ("batched", "incremental"):
        raise ArgumentError(
            f"there is no solve_method {solve_method!r}", fix='use "batched" or "incremental"'
        )
    return _solved(
        _gmres(fixed("gmres", "restart", restart)), A, b, x0, tol, atol, maxiter, M, False
    )


explain(globals())

_advise("plait.scipy.sparse.linalg", globals())
