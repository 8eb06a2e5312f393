"""Derivatives of factorisations and of what is computed by them.

Invariant: compared with finite differences, or with a formula; factors that are determined up to
a phase only are judged by functions that do not depend on it.
"""

import numpy as np
import pytest

import plait
from plait.ext.values import asarray
from plait_autodiff.taylor.laws import numerically
from plait_numpy.ext.linalg import (
    cholesky_,
    eig_,
    eigh_,
    geqrf,
    lstsq_,
    lu_,
    ormqr_,
    pinv_,
    qr_,
    sqrtm_,
    svd_,
    sylvester,
    triangular_solve_,
    tridiagonal_solve_,
)

la, sp = plait.numpy.linalg, plait.scipy.linalg
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 3))
Z = X + 1j * RNG.standard_normal((2, 3, 3))
S, H = X @ X.swapaxes(1, 2) + np.eye(3), Z @ Z.conj().swapaxes(1, 2) + np.eye(3)
B = RNG.standard_normal((2, 3, 2))
TRI = dict(left_side=True, lower=False, transpose_a=True, conjugate_a=True, unit_diagonal=False)
UNIT = dict(left_side=False, lower=True, transpose_a=False, conjugate_a=True, unit_diagonal=True)
REDUCED = dict(full_matrices=False, pivoting=False)
BOTH = dict(full_matrices=False, compute_uv=True)

CASES = {
    "cholesky": (cholesky_, (H,), {}),
    "lu": (lu_, (Z,), {}),
    "lu of a tall one": (lu_, (Z[:, :, :2],), {}),
    "lu of a wide one": (lu_, (Z[:, :2],), {}),
    "qr": (qr_, (X,), REDUCED),
    "qr, pivoting": (qr_, (Z,), dict(full_matrices=True, pivoting=True)),
    "qr of a tall one": (qr_, (Z[:, :, :2],), REDUCED),
    "qr of a wide one": (qr_, (X[:, :2],), REDUCED),
    "triangular": (triangular_solve_, (Z, B + 1j), TRI),
    "triangular, unit": (triangular_solve_, (Z, B.swapaxes(1, 2) + 1j), UNIT),
    "tridiagonal": (tridiagonal_solve_, (X[:, 0], X[:, 1] + 4, X[:, 2], B), {}),
    "eigh": (eigh_, (S,), dict(lower=False, vectors=True)),
    "eigh, values": (eigh_, (H,), dict(lower=True, vectors=False)),
    "svd": (svd_, (X,), BOTH),
    "svd of a tall one": (svd_, (X[:, :, :2],), BOTH),
    "svd of a wide one": (svd_, (X[:, :2],), BOTH),
    "svd, values": (svd_, (Z[:, :2],), dict(full_matrices=False, compute_uv=False)),
    "eig": (eig_, (Z,), dict(left=True, right=True)),
    "pinv": (pinv_, (Z[:, :, :2], np.full(2, 1e-12)), {}),
    "lstsq": (lstsq_, (X[:, :, :2], B, np.full(2, 1e-12)), {}),
    "lstsq, least": (lstsq_, (Z[0, :2], B[0, :2] + 1j, np.array(1e-12)), {}),
    "sqrtm": (sqrtm_, (H,), {}),
    "sylvester": (sylvester, (Z, Z[:, :2, :2], B + 1j), {}),
}


def check(f, *args, order=1):
    """Both modes against fourth-order central differences of one number: the real part of a
    random combination of all that is inexact of `f(*args)`.  All of it is evaluated by numpy."""
    rng = np.random.default_rng(1)
    like = plait.eval_shape(f, *args)
    outs = list(like) if isinstance(like, tuple | list) else [like]
    c = [rng.standard_normal(o.shape) + 1j * rng.standard_normal(o.shape) for o in outs]

    def number(*xs):
        ys = f(*xs)
        ys = ys if isinstance(ys, tuple | list) else [ys]
        parts = [(w * y).real.sum() for w, y in zip(c, ys) if y.dtype.kind in "fc"]
        return sum(parts[1:], parts[0])

    ts = [rng.standard_normal(a.shape).astype(a.dtype) for a in args]
    ts = [t * (1 + 0.5j) if t.dtype.kind == "c" else t for t in ts]
    slopes = plait.grad(number, argnums=tuple(range(len(args))))
    both = lambda xs, ts: (plait.jvp(number, xs, ts)[1], slopes(*xs))  # noqa: E731
    at = lambda h: float(numerically(number, *[x + h * t for x, t in zip(args, ts)]))  # noqa: E731
    want = (8 * (at(1e-3) - at(-1e-3)) - (at(2e-3) - at(-2e-3))) / 12e-3
    forward, reverse = numerically(both, tuple(args), tuple(ts))
    back = sum((np.asarray(g) * t).real.sum() for g, t in zip(reverse, ts))
    np.testing.assert_allclose([float(forward), back], want, rtol=1e-6, atol=1e-7)
    if order > 1:
        check(slopes, *args, order=order - 1)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_differences(name):
    prim, args, params = CASES[name]
    check(lambda *xs: prim.bind(*xs, **params), *[x.copy(order="C") for x in args])


def test_solutions():
    check(la.solve, Z[0], B[0] + 0j, order=2)
    half = lambda a: (a + a.swapaxes(-1, -2).conj()) / 2  # noqa: E731
    check(lambda a, b: sp.solve(half(a), b, assume_a="pos"), H, B + 0j)
    check(lambda a, b: sp.solve(a, b, transposed=True), X[0], B[0])
    check(lambda a, b: sp.lu_solve(sp.lu_factor(a), b, 2), Z[0], B[0] + 0j)


def test_functions_of_matrices():
    check(la.det, X[0], order=2)
    check(lambda x: tuple(la.slogdet(x)), Z[0])
    check(sp.expm, X[0])
    check(lambda x: (sp.sqrtm(x), la.pinv(x)), S[0])
    # exp(N + t E) = 1 + N + t E + (N E + E N) t / 2 + N E N t / 6 + ... for N**2 = 0.
    n, e = np.diag([1e7], 1), np.array([[0.0, 3e-3], [2e-9, 0.0]])
    want = e + (n @ e + e @ n) / 2 + n @ e @ n / 6
    np.testing.assert_allclose(plait.jvp(sp.expm, (n,), (e,))[1], want, rtol=1e-9)
    back = plait.vjp(sp.expm, n)[1](np.eye(2)[::-1])[0]
    np.testing.assert_allclose((np.asarray(back) * e).sum(), want[0, 1] + want[1, 0], rtol=1e-9)


def test_what_does_not_depend_on_phases():
    """Projectors, made of complex and of full factors."""

    def f(x):
        v = plait.lax.linalg.eigh(x @ x.conj().T)[0][:, :1]
        u = la.svd(x)[0][:, 2:]
        q = la.qr(x, "complete")[0][:, 2:]
        return tuple(p @ p.conj().T for p in (v, u, q))

    check(f, Z[0, :, :2].copy())
    check(lambda x: plait.numpy.roots(x, strip_zeros=False), np.array([1.0, 2, 3, 7]))


def cofactors(m):
    minor = lambda i, j: np.linalg.det(np.delete(np.delete(m, i, 0), j, 1))  # noqa: E731
    n = len(m)
    return np.array([[(-1) ** (i + j) * minor(i, j) for j in range(n)] for i in range(n)])


SINGULAR = [
    np.diag([1.0, 0, 2]), np.ones((3, 3)), np.zeros((3, 3)), np.arange(9.0).reshape(3, 3),
    np.array([[0, 1.0, 0], [0, 0, 1], [0, 0, 0]]),
]  # fmt: skip


def test_determinants_of_singular_matrices():
    slope = plait.jit(plait.grad(la.det))
    for m in [*SINGULAR, X[0]]:
        np.testing.assert_allclose(np.asarray(slope(m)), cofactors(m), atol=1e-12)
    hess = plait.hessian(la.det)(np.eye(2))
    want = np.zeros((2, 2, 2, 2))
    want[0, 0, 1, 1] = want[1, 1, 0, 0] = 1
    want[0, 1, 1, 0] = want[1, 0, 0, 1] = -1
    np.testing.assert_allclose(np.asarray(hess), want, atol=1e-12)


def test_singular_values_that_coincide():
    """Of the pseudo-inverse and of least squares all derivatives exist there."""
    check(lambda x: (la.pinv(x), la.lstsq(x, np.arange(3.0))[0]), 2 * np.eye(3))


def test_a_matrix_is_factorised_once():
    """In a solution and its reverse together."""
    loss = lambda a, b: la.solve(a, b).sum()  # noqa: E731
    program = plait.make_program(plait.grad(loss, argnums=(0, 1)))(X[0], B[0])
    assert [e.prim for e in program.eqns].count(lu_) == 1


def test_of_matrices_without_elements():
    empty = np.zeros((0, 0))
    for f in (la.det, lambda x: la.inv(x).sum(), lambda x: la.slogdet(x).logabsdet):
        assert plait.grad(f)(empty).shape == (0, 0)


def test_reflectors():
    """Q @ c is linear in c, and has no derivative in the reflectors."""
    a, taus = (np.asarray(v) for v in geqrf.bind(asarray(Z)))
    how = dict(left=True, adjoint=True)
    f = lambda c: ormqr_.bind(asarray(a), asarray(taus), c, **how)  # noqa: E731
    check(f, Z[:, :, :2].copy())
    with pytest.raises(TypeError, match="no derivative in the reflectors"):
        plait.grad(lambda x: plait.lax.linalg.ormqr(x, taus, Z).real.sum())(a)
    with pytest.raises(TypeError, match=r"linalg\.schur has no derivative"):
        plait.jacfwd(lambda x: sp.schur(x)[0])(X[0])
