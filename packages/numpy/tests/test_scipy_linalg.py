"""The names of scipy.linalg against SciPy.

Invariant: factors are compared up to what they are determined up to, by what they multiply to.
"""

import math

import numpy as np
import pytest
import scipy.linalg as sl

import plait
from plait.errors import TypeRule

ours = plait.scipy.linalg
RNG = np.random.default_rng(7)
A = RNG.standard_normal((4, 4))
Z = A + 1j * RNG.standard_normal((4, 4))
POS, POSC = A @ A.T + np.eye(4), Z @ Z.conj().T + np.eye(4)
B = RNG.standard_normal((4, 3))
V = RNG.standard_normal(4)
TALL = A[:, :2].copy()


def close(got, want, tol=1e-10):
    np.testing.assert_allclose(np.asarray(got), want, rtol=tol, atol=tol)


# ---- systems -------------------------------------------------------------------------------


def test_solve():
    for a, kind, lower, b in (
        (POS, "gen", False, V), (POS, "sym", True, B), (POS, "pos", False, V),
        (POSC, "her", False, B), (POSC, "positive definite", True, B),
    ):  # fmt: skip
        half = np.tril(a) if lower else np.triu(a)
        given = a if kind == "gen" else half
        close(ours.solve(given, b, lower=lower, assume_a=kind), np.linalg.solve(a, b))
    close(ours.solve(Z, B, transposed=True), np.linalg.solve(Z.T, B))
    with pytest.raises(TypeRule, match="cannot assume"):
        ours.solve(A, V, assume_a="diagonal-ish")


@pytest.mark.parametrize("trans", [0, 1, "C"])
def test_triangular_and_factorised(trans):
    for lower in (False, True):
        want = sl.solve_triangular(Z, B, trans=trans, lower=lower)
        close(ours.solve_triangular(Z, B, trans=trans, lower=lower), want)
    unit = sl.solve_triangular(A, V, trans=trans, unit_diagonal=True)
    close(ours.solve_triangular(A, V, trans=trans, unit_diagonal=True), unit)
    by_lu = 2 if trans == "C" else trans
    close(ours.lu_solve(ours.lu_factor(Z), B, by_lu), sl.lu_solve(sl.lu_factor(Z), B, by_lu))
    with pytest.raises(TypeRule, match="no transposition"):
        ours.solve_triangular(A, V, trans=3)


def test_cholesky_det_inv():
    for lower in (False, True):
        close(ours.cholesky(POSC, lower), sl.cholesky(POSC, lower))
        close(ours.cho_solve(ours.cho_factor(POSC, lower), B), np.linalg.solve(POSC, B))
    close(ours.det(Z), sl.det(Z))
    close(ours.inv(Z), sl.inv(Z))
    got, want = ours.lu_factor(A), sl.lu_factor(A)
    close(got[0], want[0])
    close(got[1], want[1])


def test_sylvester():
    for a, b, c in ((A, POS[:3, :3], B), (Z, POSC[:3, :3], B)):
        close(ours.solve_sylvester(a, b, c), sl.solve_sylvester(a, b, c))


# ---- factors -------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [Z[:, :2].copy(), TALL.T.copy()])
def test_lu_qr_svd_polar(x):
    p, low, up = map(np.asarray, ours.lu(x))
    close(p @ low @ up, x)
    for got, want in zip(ours.lu(x), sl.lu(x)):
        close(got, want)
    close(np.matmul(*map(np.asarray, ours.lu(x, permute_l=True))), x)
    at, low, up = map(np.asarray, ours.lu(x, p_indices=True))
    close(low[at] @ up, x)
    for mode in ("full", "economic"):
        q, r, order = map(np.asarray, ours.qr(x, mode=mode, pivoting=True))
        close(q @ r, x[:, order])
        want = sl.qr(x, mode=mode, pivoting=True)
        assert q.shape == want[0].shape and (order == want[2]).all()
        close(np.abs(np.diag(r)), np.abs(np.diag(want[1])))
    (r,) = ours.qr(x, mode="r")
    close(np.abs(np.asarray(r)), np.abs(sl.qr(x, mode="r")[0]))
    for side in ("right", "left"):
        for got, want in zip(ours.polar(x, side), sl.polar(x, side)):
            close(got, want)
    close(ours.svd(x, compute_uv=False), sl.svd(x, compute_uv=False))
    u, s, vh = map(np.asarray, ours.svd(x, full_matrices=False))
    close(u * s @ vh, x)


def test_qr_multiply():
    cases = (A, B, "left"), (A, B.T, "right"), (TALL, V, "right"), (TALL, V[:2], "left")
    for x, c, mode in cases:
        got = [np.asarray(v) for v in ours.qr_multiply(x, c, mode)]
        want = sl.qr_multiply(x, c, mode)
        assert got[0].shape == want[0].shape
        close(np.abs(got[0]), np.abs(want[0]))
        close(np.abs(got[1]), np.abs(want[1]))


def test_eigh():
    both = POS, POSC
    for a in both:
        for lower in (False, True):
            half = np.tril(a) if lower else np.triu(a)
            w, v = map(np.asarray, ours.eigh(half, lower=lower))
            close(a @ v, v * w)
            metric = both[1] if a is POSC else POS + np.diag(V**2)
            w, v = map(np.asarray, ours.eigh(half, metric, lower=lower))
            close(a @ v, metric @ v * w, 1e-8)
            close(v.conj().T @ metric @ v, np.eye(4), 1e-8)
    close(ours.eigh(POS, eigvals_only=True, subset_by_index=(1, 2)), sl.eigvalsh(POS)[1:3])
    w, v = map(np.asarray, ours.eigh_tridiagonal(V, B[:3, 0]))
    t = np.diag(V) + np.diag(B[:3, 0], 1) + np.diag(B[:3, 0], -1)
    close(t @ v, v * w)
    some = ours.eigh_tridiagonal(V, B[:3, 0], eigvals_only=True, select="i", select_range=(0, 1))
    close(some, sl.eigvalsh(t)[:2])
    with pytest.raises(TypeRule, match="no problem of type 2"):
        ours.eigh(POS, POS, type=2)


def test_schur_and_hessenberg():
    for x in (A, Z):
        t, z = map(np.asarray, ours.schur(x))
        close(z @ t @ z.conj().T, x)
        close(t, sl.schur(x)[0])
        h, q = map(np.asarray, ours.hessenberg(x, calc_q=True))
        close(q @ h @ q.conj().T, x)
        close(q.conj().T @ q, np.eye(4))
        close(h, sl.hessenberg(x))
    for t, z in (ours.schur(A, output="complex"), ours.rsf2csf(*ours.schur(A))):
        t, z = np.asarray(t), np.asarray(z)
        close(z @ t @ z.conj().T, A)
        close(np.tril(t, -1), 0)
    for n in (0, 1):
        h, q = ours.hessenberg(np.ones((n, n)), calc_q=True)
        close(h, np.ones((n, n)))
        close(q, np.eye(n))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("kind", ["schur", "hessenberg", "triangular", "any", "tiny"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_complex_forms_are_scipys(kind, dtype):
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5):
        a = rng.standard_normal((n, n))
        form, z = sl.schur(a)
        if kind == "hessenberg":
            form, z = np.triu(a, -1), rng.standard_normal((n, n))
        elif kind == "triangular":
            form = np.triu(a)
        elif kind == "any":
            form, z = a, rng.standard_normal((n, n))
        elif kind == "tiny":
            form = form + 1e-18 * np.eye(n, k=-1)
        form, z = form.astype(dtype), z.astype(dtype)
        want = sl.rsf2csf(form, z)
        for got in (ours.rsf2csf(form, z), plait.jit(ours.rsf2csf)(form, z)):
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(
                    np.asarray(g), w, atol=1e-4 if dtype != np.float64 else 1e-9
                )
        other = form[::-1, ::-1].T  # it is as triangular as the first
        stacked = ours.rsf2csf(np.stack([form, other]), np.stack([z, z]))
        np.testing.assert_allclose(np.asarray(stacked[0][0]), want[0], atol=1e-4)
        np.testing.assert_allclose(np.asarray(stacked[1][1]), sl.rsf2csf(other, z)[1], atol=1e-4)


# ---- functions -----------------------------------------------------------------------------


def test_expm():
    stack = np.stack([A, 20 * A, np.zeros((4, 4)), 1e-3 * A])
    want = np.stack([sl.expm(x) for x in stack])
    got = np.asarray(ours.expm(stack))
    for g, w in zip(got, want):
        close(g / abs(w).max(), w / abs(w).max(), 1e-9)
    close(ours.expm(Z), sl.expm(Z), 1e-9)
    upper = np.triu(A)
    close(ours.expm(upper, upper_triangular=True), sl.expm(upper))
    np.testing.assert_allclose(ours.expm(A.astype("f4")), sl.expm(A), rtol=1e-4, atol=1e-5)
    for bad in (1e9, np.nan):
        assert np.isnan(np.asarray(ours.expm(A * bad))).all()
    assert ours.expm(np.zeros((0, 0))).shape == (0, 0)
    for got, want in zip(ours.expm_frechet(A, B @ B.T), sl.expm_frechet(A, B @ B.T)):
        close(got, want, 1e-9)


@pytest.mark.parametrize("dtype, size", [("f8", 1e6), ("f8", 1e12), ("f4", 1e6)])
def test_expm_of_nilpotent_matrices_is_a_finite_sum(dtype, size):
    rtol = 1e-13 if dtype == "f8" else 2e-5
    shift = np.triu(np.ones((4, 4)), 1) * [[1.0], [-2.0], [0.5], [0.0]]
    mixed = (shift * (size if dtype == "f8" else 1.0))[[2, 0, 3, 1]][:, [2, 0, 3, 1]]
    cases = shift * size, shift.T * size**0.25, mixed, np.diag([size, 1.0, 0.0], -1), 0 * shift
    stack = np.stack(cases).astype(dtype)
    for x, *both in zip(stack, map(ours.expm, stack), ours.expm(stack)):
        want = sum(np.linalg.matrix_power(x.astype("f8"), k) / math.factorial(k) for k in range(4))
        for got in both:
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * abs(want).max())


def test_sqrtm():
    for x in (POS, POSC, Z, np.triu(A) + 5 * np.eye(4)):
        root = np.asarray(ours.sqrtm(x))
        close(root, sl.sqrtm(x), 1e-9)
    pair = np.asarray(ours.sqrtm(np.stack([POS, 4 * POS])))
    close(pair[1], 2 * pair[0], 1e-9)


# ---- patterns ------------------------------------------------------------------------------

C, R = np.array([1.0, 2.0, 3.0]), np.array([7.0, 8.0, 9.0, 10.0])
PATTERNS = {
    "toeplitz": [(C,), (C, R), (Z[0],)],
    "hankel": [(C,), (C, R)],
    "circulant": [(C,)],
    "companion": [(R,), (C,), (C[:2],)],
    "block_diag": [(A, TALL, V), (A,), (2.0, C)],
    "convolution_matrix": [(C, 5), (C, 2, "same"), (C, 5, "same"), (R, 2, "valid"),
                           (C, 5, "valid")],
    "leslie": [(R, C)],
    "fiedler": [(R,)],
    "fiedler_companion": [(R,), (C,), (np.arange(1.0, 8),)],
    "hilbert": [(4,)],
    "invhilbert": [(4,)],
    "pascal": [(4,), (4, "lower"), (4, "upper")],
    "invpascal": [(4,), (4, "lower"), (4, "upper")],
    "hadamard": [(1,), (8,)],
    "helmert": [(1,), (4,), (4, True)],
    "dft": [(5,), (4, "sqrtn"), (4, "n")],
}  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name):
    for args in PATTERNS[name]:
        got, want = np.asarray(getattr(ours, name)(*args)), getattr(sl, name)(*args)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["toeplitz", "hankel"])
@pytest.mark.parametrize(
    "c, r", [((3, 4), (5,)), ((4,), (3, 5)), ((2, 1, 4), (3, 5)), ((), (2, 5)), ((3, 4), ())]
)
def test_patterns_of_stacks_broadcast_them(name, c, r):
    rng = np.random.default_rng(0)
    c, r = rng.normal(size=c), rng.normal(size=r)
    columns, rows = np.atleast_1d(c), np.atleast_1d(r)
    lead = np.broadcast_shapes(columns.shape[:-1], rows.shape[:-1])
    columns = np.broadcast_to(columns, (*lead, columns.shape[-1]))
    rows = np.broadcast_to(rows, (*lead, rows.shape[-1]))
    got = np.asarray(getattr(ours, name)(c, r))
    assert got.shape == (*lead, columns.shape[-1], rows.shape[-1])
    for at in np.ndindex(*lead):
        want = getattr(sl, name)(columns[at], rows[at])
        np.testing.assert_allclose(got[at], want, rtol=1e-6)


def test_patterns_of_no_size():
    assert ours.block_diag().shape == sl.block_diag().shape
    with pytest.raises(TypeRule, match="power of two"):
        ours.hadamard(3)
    with pytest.raises(TypeRule, match="kind 'diagonal'"):
        ours.pascal(3, "diagonal")


# ---- routines that may be asked for --------------------------------------------------------------


def test_polar_by_iteration():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    for a in (rng.normal(size=(5, 3)), z, np.diag([1, 1e-12, 3])):
        u, h, turns, enough = plait.lax.linalg.qdwh(a)
        for got, want in zip((u, h), sl.polar(a)):
            np.testing.assert_allclose(np.asarray(got), want, 0, 1e-13)
        assert bool(enough) and int(turns) <= 7
    assert not bool(plait.lax.linalg.qdwh(z, max_iterations=2)[3])


def test_functions_of_matrices():
    a = np.random.default_rng(4).normal(size=(4, 4))
    for x in (a, a + 1j * a.T):
        got, doubt = ours.funm(x, plait.numpy.sin, disp=False)
        np.testing.assert_allclose(np.asarray(got), sl.sinm(x), 0, 1e-12)
        assert float(doubt) < 1e-12
    assert float(ours.funm(np.eye(3), plait.numpy.sin, disp=False)[1]) == 1


def test_parameters_for_compatibility():
    a = np.random.default_rng(5).normal(size=(3, 3))
    a, e = a @ a.T, np.ones(2)
    w = ours.eigh(a, None, True, True, False, False, True, (1, 2))
    np.testing.assert_allclose(np.asarray(w), sl.eigvalsh(a)[1:], 1e-12)
    assert ours.eigh_tridiagonal(a[0], e, eigvals_only=True, tol=1e-3).shape == (3,)
    assert ours.dft(3, dtype="complex128").dtype == np.complex128
    for got in (ours.polar(a, method="svd", eps=1e-8)[1], ours.sqrtm(a @ a, blocksize=4)):
        np.testing.assert_allclose(np.asarray(got), a, 0, 1e-10)
    lx = plait.lax.linalg
    assert lx.eig(a, implementation=lx.EigImplementation.LAPACK, enable_eigvec_derivs=True)
    assert lx.svd(a, compute_uv=False, algorithm=lx.SvdAlgorithm.DEFAULT).shape == (3,)
    refused = [
        lambda: lx.eig(a, implementation=lx.EigImplementation.MAGMA),
        lambda: lx.eigh(a, implementation=lx.EighImplementation.JACOBI),
        lambda: lx.svd(a, algorithm=lx.SvdAlgorithm.POLAR),
        lambda: lx.schur(a, sort_eig_vals=True),
        lambda: lx.qr(a, use_magma=True),
        lambda: lx.tridiagonal_solve(e, e, e, e[:, None], perturb_singular=True),
        lambda: lx.eigh(a, subset_by_index=(1, 9)),
        lambda: lx.qdwh(a[:2]),
        lambda: ours.dft(3, dtype="float32"),
        lambda: ours.polar(a, method="lu"),
        lambda: ours.solve_sylvester(a, a, a, method="lu"),
        lambda: ours.eigh(a, eigvals=(0, 1), subset_by_index=(0, 1)),
        lambda: ours.funm(a[None], plait.numpy.sin),
        lambda: ours.funm(a, lambda w: w.sum()),
    ]
    for f in refused:
        with pytest.raises(TypeRule) as caught:
            f()
        assert "test_scipy_linalg.py" in str(caught.value)


def _of_two_stacks():
    """Return name -> (function of two stacks, one matrix for each)."""
    r = np.random.default_rng(6)
    a, b = r.normal(size=(3, 3)) + 4 * np.eye(3), r.normal(size=(3, 2))
    s, t = a @ a.T, np.tril(a)
    small = np.diag([1.0, 2.0])
    return {
        "solve": (ours.solve, a, b),
        "solve_triangular": (lambda a, b: ours.solve_triangular(a, b, lower=True), t, b),
        "cho_solve": (lambda a, b: ours.cho_solve((a, True), b), np.linalg.cholesky(s), b),
        "lu_solve": (lambda a, b: ours.lu_solve(ours.lu_factor(a), b), a, b),
        "lu_solve transposed": (lambda a, b: ours.lu_solve(ours.lu_factor(a), b, 1), a, b),
        "solve_sylvester": (lambda a, c: ours.solve_sylvester(a, small, c), a, b),
        "eigh": (lambda a, b: ours.eigh(a, b, eigvals_only=True), s, s + np.eye(3)),
    }


@pytest.mark.parametrize("leading", [((2,), ()), ((), (2,)), ((1,), (2,)), ((2, 1), (3,))], ids=str)
@pytest.mark.parametrize("name", _of_two_stacks())
def test_leading_axes_of_two_stacks_broadcast(name, leading):
    f, *matrices = _of_two_stacks()[name]
    scales = [1 + np.arange(np.prod(n), dtype=float).reshape(n) for n in leading]
    stacks = [k[..., None, None] * m for k, m in zip(scales, matrices)]
    got = np.asarray(f(*stacks))
    lead = np.broadcast_shapes(*leading)
    over = [np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in stacks]
    for i in np.ndindex(lead):
        np.testing.assert_allclose(got[i], f(*(x[i] for x in over)), rtol=1e-10)
