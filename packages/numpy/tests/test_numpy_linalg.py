"""The names of numpy.linalg against numpy, and polynomials that are fitted and solved with them.

Invariant: factors are compared up to what they are determined up to, by what they multiply to.
"""

import inspect

import numpy as np
import pytest

import plait
from plait.errors import AxisError, TypeRule

la = plait.numpy.linalg
RNG = np.random.default_rng(3)
A = RNG.standard_normal((2, 4, 4))
Z = A + 1j * RNG.standard_normal((2, 4, 4))
B = RNG.standard_normal((2, 4, 3))
TALL, WIDE = A[:, :, :2].copy(), A[:, :2].copy()
LOW = A[0, :, :2] @ A[1, :2]  # of rank 2


def adj(x):
    return np.swapaxes(np.conj(x), -1, -2)


POS = Z @ adj(Z) + np.eye(4)


def close(got, want, tol=1e-10):
    got = np.asarray(got)
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


# ---- factors -------------------------------------------------------------------------------


def test_cholesky():
    close(la.cholesky(POS), np.linalg.cholesky(POS))
    close(la.cholesky(POS, upper=True), adj(np.linalg.cholesky(POS)))
    half = np.tril(POS)
    close(la.cholesky(half, symmetrize_input=False), np.linalg.cholesky(POS))
    assert np.isnan(np.asarray(la.cholesky(-np.eye(2)))).all()


@pytest.mark.parametrize("x", [WIDE, Z[:, :, :2].copy()])
def test_qr_and_svd(x):
    for mode in ("reduced", "complete"):
        want = np.linalg.qr(x, mode)
        q, r = map(np.asarray, la.qr(x, mode))
        assert (q.shape, r.shape) == (want[0].shape, want[1].shape)
        close(q @ r, x)
        close(np.tril(r, -1), np.zeros_like(r))
    close(abs(np.asarray(la.qr(x, "r"))), abs(np.linalg.qr(x, "r")))
    h, taus = map(np.asarray, la.qr(x, "raw"))
    close(h[0], np.linalg.qr(x[0], "raw")[0])
    close(taus[0], np.linalg.qr(x[0], "raw")[1])
    for full in (True, False):
        u, s, vh = map(np.asarray, la.svd(x, full))
        want = np.linalg.svd(x, full)
        assert (u.shape, vh.shape) == (want[0].shape, want[2].shape)
        k = s.shape[-1]
        close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x)
        close(s, want[1])
    close(la.svdvals(x), np.linalg.svd(x, compute_uv=False))
    some = la.svd(x, False, subset_by_index=(0, 1))
    assert [v.shape[-1] for v in some] == [1, 1, x.shape[-1]]


def test_eigenvalues():
    w, v = map(np.asarray, la.eig(A))
    close(A @ v, v * w[:, None])
    close(np.sort_complex(np.asarray(la.eigvals(Z))), np.sort_complex(np.linalg.eigvals(Z)))
    w, v = map(np.asarray, la.eigh(POS))
    close(POS @ v, v * w[:, None])
    for side in ("L", "U"):
        close(la.eigh(A, side).eigenvalues, np.linalg.eigvalsh(A, side))
        close(la.eigvalsh(A, side, symmetrize_input=False), np.linalg.eigvalsh(A, side))
    close(la.eigvalsh(A), np.linalg.eigvalsh((A + adj(A)) / 2))
    with pytest.raises(TypeRule, match="no triangle 'X'"):
        la.eigh(A, "X")


def test_results_have_numpys_names():
    for ours, theirs in (
        (la.eig(A), np.linalg.eig(A)), (la.eigh(POS), np.linalg.eigh(POS)),
        (la.qr(A), np.linalg.qr(A)), (la.svd(A), np.linalg.svd(A)),
        (la.slogdet(A), np.linalg.slogdet(A)),
    ):  # fmt: skip
        assert ours._fields == theirs._fields and type(ours).__name__ == type(theirs).__name__
    made = plait.jit(la.slogdet)(A)
    assert type(made).__name__ == "SlogdetResult"


# ---- equations -----------------------------------------------------------------------------


def test_solve_and_inverses():
    close(la.solve(Z, B), np.linalg.solve(Z, B))
    close(la.solve(A[0], B), np.linalg.solve(A[0], B))
    close(la.solve(A, B[0, :, 0]), np.linalg.solve(A, B[0, :, 0]))
    close(la.inv(Z), np.linalg.inv(Z))
    for x in (Z, WIDE, LOW):
        close(la.pinv(x), np.linalg.pinv(x, 1e-13))
    close(la.pinv(LOW, rtol=0.5), np.linalg.pinv(LOW, 0.5))
    close(la.pinv(LOW, rcond=0.5), np.linalg.pinv(LOW, 0.5))
    t = RNG.standard_normal((2, 3, 6))
    close(la.tensorsolve(t, B[0, :2]), np.linalg.tensorsolve(t, B[0, :2]))
    t = RNG.standard_normal((6, 2, 3))
    close(la.tensorinv(t, 1), np.linalg.tensorinv(t, 1))
    t = RNG.standard_normal((2, 6, 3))
    want = np.linalg.tensorsolve(t, B[0, :2], axes=(1,))
    close(la.tensorsolve(t, B[0, :2], axes=(1,)), want)


def test_singular_and_nan():
    for x in (np.zeros((2, 2)), np.full((2, 2), np.nan)):
        assert not np.isfinite(np.asarray(la.inv(x))).any()
        assert not np.isfinite(np.asarray(la.solve(x, np.ones(2)))).any()
    x = np.full((3, 3), np.nan)
    for f in (la.det, la.svdvals, la.eigvals, la.eigvalsh, la.pinv, la.norm, la.cond):
        assert np.isnan(np.asarray(f(x))).all(), f
    assert np.isnan(np.asarray(la.lstsq(x, np.ones(3))[0])).all()


@pytest.mark.parametrize("m", [2, 4])
def test_lstsq(m):
    a, b = RNG.standard_normal((4, m)), B[0]
    for y in (b, b[:, 0]):
        for got, want in zip(la.lstsq(a, y, numpy_resid=True), np.linalg.lstsq(a, y, rcond=None)):
            close(got, want)
    x, _, rank, s = la.lstsq(LOW, b)
    want = np.linalg.lstsq(LOW, b, rcond=None)
    close(x, want[0])
    close(rank, want[2])
    close(s, want[3])
    np.testing.assert_allclose(
        la.lstsq(a, b)[1], np.sum((b - a @ np.linalg.pinv(a) @ b) ** 2, 0), atol=1e-10
    )


def test_powers_determinants_rank():
    whole = np.array([[1, 1], [1, 0]])
    for n in (0, 1, 5):
        close(la.matrix_power(whole, n), np.linalg.matrix_power(whole, n))
    close(la.matrix_power(A, -3), np.linalg.matrix_power(A, -3), 1e-7)
    close(la.det(Z), np.linalg.det(Z))
    for got, want in zip(la.slogdet(Z), np.linalg.slogdet(Z)):
        close(got, want)
    phase, size = la.slogdet(np.ones((2, 2)))
    assert float(phase) == 0 and float(size) == -np.inf
    assert int(la.matrix_rank(LOW)) == 2
    close(la.matrix_rank(A, rtol=0.9), np.linalg.matrix_rank(A, rtol=0.9))
    close(la.matrix_rank(A, tol=1.5), np.linalg.matrix_rank(A, tol=1.5))
    for v in (np.zeros(3), np.ones(3), 2.0):
        assert int(la.matrix_rank(v)) == np.linalg.matrix_rank(v)


# ---- norms, products -----------------------------------------------------------------------

ORDERS = [None, "fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2]


def test_norms_of_matrices():
    for order in ORDERS:
        close(la.norm(Z, order, (2, 0), keepdims=True), np.linalg.norm(Z, order, (2, 0), True))
    for order in ("nuc", 1):
        close(la.matrix_norm(A, ord=order), np.linalg.matrix_norm(A, ord=order))
    for order in (None, "fro", -1, -2):
        close(la.cond(A, order), np.linalg.cond(A, order), 1e-8)
    close(la.norm(A, 1, (0, 1)), np.linalg.norm(A, 1, (0, 1)))
    close(la.norm(Z), np.linalg.norm(Z))
    close(la.cond(TALL), np.linalg.cond(TALL))
    assert float(la.cond(np.zeros((2, 2)))) == np.inf


def test_norms_of_vectors():
    for order in (0, 1, -1, 2, 2.5, np.inf, -np.inf):
        close(la.norm(Z, order, 1), np.linalg.norm(Z, order, 1))
    for order in (1, 3):
        want = np.linalg.vector_norm(A, axis=(0, 2), ord=order)
        close(la.vector_norm(A, axis=(0, 2), ord=order), want)
    close(la.vector_norm(A, keepdims=True), np.linalg.vector_norm(A, keepdims=True))


def test_products():
    x, y = A[0], B[0]
    close(la.multi_dot([x, x, y]), np.linalg.multi_dot([x, x, y]))
    close(la.multi_dot([y[:, 0], x, x, y[:, 1]]), np.linalg.multi_dot([y[:, 0], x, x, y[:, 1]]))
    close(la.matmul(A, B), A @ B)
    close(la.outer(x[0], y[0]), np.outer(x[0], y[0]))
    close(la.cross(y, y[::-1]), np.cross(y, y[::-1]))
    close(la.vecdot(Z, A), np.linalg.vecdot(Z, A))
    close(la.tensordot(x, y, axes=1), x @ y)
    close(la.trace(A, offset=1), np.linalg.trace(A, offset=1))
    close(la.diagonal(A, offset=-1), np.linalg.diagonal(A, offset=-1))
    close(la.matrix_transpose(B), np.linalg.matrix_transpose(B))


# ---- what is taken, what is refused --------------------------------------------------------


def test_every_name_of_numpy_is_there():
    theirs = {n for n in np.linalg.__all__ if n != "LinAlgError"}
    assert theirs <= {*la.__all__}


@pytest.mark.parametrize("name", ["solve", "inv", "det", "norm", "matrix_norm", "trace"])
def test_signatures_are_numpys(name):
    mine, theirs = (inspect.signature(getattr(m, name)).parameters for m in (la, np.linalg))
    assert [(p.name, p.kind) for p in mine.values()] == [(p.name, p.kind) for p in theirs.values()]


def test_dtypes():
    assert la.inv(np.eye(2, dtype=int)).dtype == np.float32
    assert la.eigvals(np.eye(2, dtype="f4")).dtype == np.complex64
    assert la.svdvals(np.eye(2, dtype="c8")).dtype == np.float32
    assert la.norm(np.array([3, 4])).dtype == np.float32
    with pytest.raises(TypeRule, match="inv is for float32, .*not f16"):
        la.inv(np.eye(2, dtype="f2"))
    with pytest.raises(TypeRule, match="square matrices, not f64"):
        la.det(TALL)
    with pytest.raises(AxisError, match="takes matrices"):
        la.inv(np.ones(3))
    with pytest.raises(TypeRule, match="no norm 3"):
        la.norm(A[0], 3, (0, 1))
    with pytest.raises(AxisError, match="norm over 3 axes"):
        la.norm(A, 1)
    with pytest.raises(TypeRule):
        la.solve(A[0], np.ones(3))


def test_nothing():
    zero, rows = np.zeros((0, 0)), np.zeros((3, 0))
    assert float(la.det(zero)) == 1 and la.inv(zero).shape == (0, 0)
    assert la.solve(zero, np.zeros((0, 2))).shape == (0, 2)
    assert la.solve(np.eye(2), np.zeros((2, 0))).shape == (2, 0)
    assert la.pinv(rows).shape == (0, 3) and int(la.matrix_rank(rows)) == 0
    assert [v.shape for v in la.svd(rows)] == [(3, 3), (0,), (0, 0)]
    assert la.lstsq(rows, np.ones(3))[0].shape == (0,)
    assert la.eig(np.zeros((2, 0, 0)))[0].shape == (2, 0)
    assert float(la.norm(np.zeros(0))) == 0


# ---- polynomials ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", [{}, {"full": True}, {"cov": True, "w": np.linspace(1, 2, 9)}, {"cov": "unscaled"}]
)
def test_polyfit(how):
    x = np.linspace(0, 3, 9)
    for y in [np.sin(x), np.stack([np.sin(x), x**4], 1)][("cov" in how) :]:
        got, want = plait.numpy.polyfit(x, y, 3, **how), np.polyfit(x, y, 3, **how)
        for g, w in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want))):
            close(g, w, 1e-8)


def test_roots_and_poly():
    for p in ([1.0, -3, 2], [0, 0, 1.0, 2, 3, 0, 0], [0.0, 0], [2.0]):
        got = np.sort_complex(np.asarray(plait.numpy.roots(np.array(p))))
        close(got, np.sort_complex(np.roots(p)))
    close(plait.numpy.poly(A[0]), np.poly(A[0]))
    close(plait.numpy.poly(np.array([1.0, 2, 3])), np.poly([1.0, 2, 3]))
    traced = plait.jit(lambda p: plait.numpy.roots(p, strip_zeros=False))
    close(np.sort(np.asarray(traced(np.array([1.0, -3, 2]))).real), [1, 2])
    with pytest.raises(TypeError, match="while tracing"):
        plait.jit(plait.numpy.roots)(np.array([1.0, -3, 2]))
