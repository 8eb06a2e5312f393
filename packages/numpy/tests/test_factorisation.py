"""Factorisations and solutions as primitives: what they multiply to, for every dtype; nothing, nan
and other platforms; lax.linalg.

Invariant: what is compared with is numpy or scipy, or the product of the factors.
"""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg as sl

import plait
from plait.errors import AxisError, PlaitError, TypeRule
from plait.ext import Aval, staged
from plait.ext.lower import mlir, module_of
from plait.ext.values import asarray
from plait.testing import conformance
from plait_numpy.ext.linalg import (
    cholesky_,
    det_,
    eig_,
    eigh_,
    geqrf,
    hessenberg_,
    lu_,
    qr_,
    schur_,
    solve_,
    svd_,
    triangular,
    triangular_solve_,
    tridiagonal_,
    tridiagonal_solve_,
)

la = plait.lax.linalg
DTYPES = ["float32", "float64", "complex64", "complex128"]
RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 4, 4))
Y = RNG.standard_normal((2, 4, 4))


def sample(name):
    x = X + 1j * Y if name[0] == "c" else X
    return x.astype(name)


def adj(x):
    return np.swapaxes(np.conj(x), -1, -2)


def near(name):
    tol = 2e-4 if name in ("float32", "complex64") else 1e-10
    return lambda got, want: np.testing.assert_allclose(np.asarray(got), want, rtol=tol, atol=tol)


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(name):
    x, close = sample(name), near(name)
    pos = x @ adj(x) + np.eye(4, dtype=name)
    eye = np.broadcast_to(np.eye(4), x.shape)
    low = np.asarray(la.cholesky(pos))
    close(low @ adj(low), pos)
    lu, pivots, order = map(np.asarray, la.lu(x))
    close((np.tril(lu, -1) + eye) @ np.triu(lu), [a[p] for a, p in zip(x, order)])
    close(pivots[0], sl.lu_factor(x[0])[1])
    q, r, order = map(np.asarray, la.qr(x, pivoting=True))
    close(q @ r, [a[:, p] for a, p in zip(x, order)])
    close(adj(q) @ q, eye)
    v, w = map(np.asarray, la.eigh(pos))
    close(pos @ v, v * w[:, None])
    w, u, v = map(np.asarray, la.eig(x))
    close(x @ v, v * w[:, None])
    close(adj(u) @ x, w[..., None] * adj(u))
    u, s, vh = map(np.asarray, la.svd(x))
    close(u * s[:, None] @ vh, x)
    t, z = map(np.asarray, la.schur(x))
    close(z @ t @ adj(z), x)
    for got in (low, lu, q, u, vh, t, z):
        assert got.dtype == name
    assert np.dtype(w.dtype).kind == "c" and s.dtype == np.real(x).dtype


@pytest.mark.parametrize("name", ["float32", "complex128"])
def test_forms_and_systems(name):
    x, close = sample(name), near(name)
    h, taus = map(np.asarray, la.hessenberg(x))
    close(np.triu(h[0], -1), sl.hessenberg(x[0]))
    assert taus.shape == (2, 3)
    pos = x @ adj(x)
    _, d, e, _ = map(np.asarray, la.tridiagonal(pos))
    t = [np.diag(a) + np.diag(b, 1) + np.diag(b, -1) for a, b in zip(d, e)]
    close(np.linalg.eigvalsh(t), np.linalg.eigvalsh(pos))
    dl, d, du, b = x[:, 0], x[:, 1] + 4, x[:, 2], x[:, :, :3]
    got = np.asarray(la.tridiagonal_solve(dl, d, du, b))
    full = [np.diag(d[i]) + np.diag(dl[i, 1:], -1) + np.diag(du[i, :-1], 1) for i in range(2)]
    close(np.asarray(full) @ got, b)
    a, taus = geqrf.bind(asarray(x))
    q, c = np.asarray(la.householder_product(a, taus)), np.ascontiguousarray(b)
    close(la.ormqr(a, taus, c), q @ c)
    close(la.ormqr(a, taus, adj(c), left=False, transpose=True), adj(c) @ adj(q))


@pytest.mark.parametrize("name", ["float64", "complex64"])
def test_triangular_solve(name):
    x, close = sample(name), near(name)
    b = x[:, :, :3]
    for flags in range(16):
        left, lower, turned, unit = ([False, True][flags >> i & 1] for i in range(4))
        conj = lower  # each with and without, as things go
        m = (np.tril if lower else np.triu)(x) + 3 * np.eye(4)
        exact = m - np.diag([0] * 4) if not unit else np.where(np.eye(4) == 1, 1, m)
        op = exact.swapaxes(1, 2) if turned else exact
        op = op.conj() if conj else op
        given = np.ascontiguousarray(b if left else b.swapaxes(1, 2))
        got = np.asarray(la.triangular_solve(
            m.astype(name), given, left_side=left, lower=lower, transpose_a=turned,
            conjugate_a=conj, unit_diagonal=unit,
        ))  # fmt: skip
        close(op @ got if left else got @ op, given)
    row = la.triangular_solve(x[0], b[0, :, 0])
    close(np.asarray(row) @ np.triu(x[0]), b[0, :, 0])


def test_small_tools():
    r, w = np.triu(X[0]) + 3 * np.eye(4), X[1, 0]
    new = np.asarray(la.cholesky_update(r, w))
    np.testing.assert_allclose(new.T @ new, r.T @ r + np.outer(w, w), rtol=1e-10)
    assert not np.tril(new, -1).any()
    c = X[0] + X[0].T
    got = la.symmetric_product(X[1], c, alpha=2.0, beta=0.5, symmetrize_output=True)
    np.testing.assert_allclose(np.asarray(got), 2 * X[1] @ X[1].T + c / 2, rtol=1e-10)
    pivots = np.int32([[2, 1, 3], [0, 3, 3]])
    got = np.asarray(la.lu_pivots_to_permutation(pivots, 4))
    for row, order in zip(pivots, got):
        want = list(range(4))
        for i, j in enumerate(row):
            want[i], want[j] = want[j], want[i]
        assert order.tolist() == want
    v, w = la.eigh(X[0] + X[0].T, subset_by_index=(1, 3))
    assert v.shape == (4, 2) and w.shape == (2,)
    np.testing.assert_allclose(np.asarray(w), np.linalg.eigvalsh(X[0] + X[0].T)[1:3])


def test_nothing_and_nan():
    for shape in ((0, 0), (2, 0, 0), (0, 2, 2), (1, 1)):
        x = asarray(np.ones(shape))
        for outs in (
            lu_.bind(x), qr_.bind(x, full_matrices=True, pivoting=True),
            svd_.bind(x, full_matrices=False, compute_uv=True),
            eigh_.bind(x, lower=True, vectors=True), eig_.bind(x, left=True, right=False),
            schur_.bind(x, vectors=True), hessenberg_.bind(x), tridiagonal_.bind(x, lower=True),
        ):  # fmt: skip
            assert all(np.isfinite(np.asarray(o)).all() for o in outs)
    for shape in ((3, 0), (0, 3)):
        q, r = qr_.bind(asarray(np.ones(shape)), full_matrices=True, pivoting=False)
        np.testing.assert_array_equal(np.asarray(q), np.eye(shape[0]))
    x = asarray(np.full((3, 3), np.nan))
    for outs in (
        svd_.bind(x, full_matrices=True, compute_uv=True),
        eigh_.bind(x, lower=True, vectors=True), eig_.bind(x, left=False, right=True),
        schur_.bind(x, vectors=True),
    ):  # fmt: skip
        assert all(np.isnan(np.asarray(o)).all() for o in outs)
    mixed = np.asarray(cholesky_.bind(asarray(np.stack([-np.eye(2), 4 * np.eye(2)]))))
    assert np.isnan(mixed[0]).all() and (mixed[1] == 2 * np.eye(2)).all()


# ---- what a primitive promises -------------------------------------------------------------

S = X @ X.swapaxes(1, 2) + np.eye(4)
TRI = dict(left_side=True, lower=True, transpose_a=False, conjugate_a=False, unit_diagonal=False)


def test_conformance():
    conformance(cholesky_, [S[0, :2, :2].copy()], np.linalg.cholesky)
    conformance(det_, [X[0, :2, :2].copy()], np.linalg.det)


def test_what_is_refused():
    half = Aval((3, 3), "float16")
    with pytest.raises(TypeRule, match="cholesky is for float32, .* not f16"):
        cholesky_.infer((half,), {})
    with pytest.raises(TypeRule, match="square matrices, not f32"):
        eigh_.infer((Aval((2, 3), "float32"),), dict(lower=True, vectors=True))
    with pytest.raises(AxisError, match="takes matrices, not f32"):
        lu_.infer((Aval((3,), "float32"),), {})
    a, b = Aval((3, 3), "float32"), Aval((2, 3), "float32")
    with pytest.raises(TypeRule, match="do not fit together.*"):
        triangular_solve_.infer((a, b), TRI)
    with pytest.raises(TypeRule, match="is no diagonal for"):
        tridiagonal_solve_.infer((b, b, b, b), {})
    with pytest.raises(TypeRule, match="1 factors of kind 'lu'"):
        solve_.infer((a, a, a), dict(kind="lu", transposed=False))
    with pytest.raises(TypeRule, match="exchanges more than 2 rows"):
        la.lu_pivots_to_permutation(np.zeros(3, np.int32), 2)
    with pytest.raises(TypeRule, match="not coefficients for the reflectors"):
        la.householder_product(X, X)


def lowered(f, platforms, shape=(2, 4, 4)):
    program = staged(f, [Aval(shape, "float32")])
    return mlir.text(module_of(program, platforms=platforms).code)


def test_other_platforms():
    """Where a library of the platform is called, its text; where none is, an error that says so."""
    said = lowered(
        lambda x: [*lu_.bind(x), *qr_.bind(x, full_matrices=False, pivoting=True),
                   *eigh_.bind(x, lower=True, vectors=True), *eig_.bind(x, left=True, right=True),
                   *svd_.bind(x, full_matrices=False, compute_uv=True), cholesky_.bind(x),
                   *tridiagonal_.bind(x, lower=True), triangular(x, x)], ("cuda",),
    )  # fmt: skip
    for name in (
        "cusolver_getrf", "cuhybrid_geqp3", "cusolver_orgqr", "cusolver_syevd",
        "cuhybrid_eig_real", "cusolver_gesvdj", "cusolver_potrf", "cusolver_sytrd",
    ):  # fmt: skip
        assert f"@{name}" in said
    assert "lapack" not in said and "stablehlo.triangular_solve" in said
    both = lowered(lambda x: [cholesky_.bind(x), triangular(x, x)], ("cpu", "cuda"))
    assert "stablehlo.cholesky" in both and "custom_call" not in both
    several = lambda x: [*lu_.bind(x), *qr_.bind(x, full_matrices=False, pivoting=False),  # noqa: E731
                         *eigh_.bind(x, lower=True, vectors=True), cholesky_.bind(x)]  # fmt: skip
    said = lowered(several, ("rocm",))
    for name in ("getrf", "geqrf", "orgqr", "syevd", "potrf"):
        assert f"@hipsolver_{name}_ffi" in said
    said = lowered(several, ("tpu",))
    for name in ("LuDecomposition", "Qr", "ProductOfElementaryHouseholderReflectors", "Eigh"):
        assert f"@{name}(" in said
    assert "stablehlo.cholesky" in said and "_ffi" not in said
    with pytest.raises(PlaitError, match="svd .* none is known for tpu"):
        lowered(lambda x: svd_.bind(x, full_matrices=False, compute_uv=True), ("tpu",))
    with pytest.raises(PlaitError, match="eigh .* none is known for cpu and cuda"):
        lowered(lambda x: eigh_.bind(x, lower=True, vectors=True), ("cpu", "cuda"))
    with pytest.raises(PlaitError, match="schur .* none is known for cuda"):
        lowered(lambda x: schur_.bind(x, vectors=True), ("cuda",))


def test_something_else_can_be_lowered_instead():
    """What is given for an equation is lowered, also inside of functions, but for others not."""
    inner = plait.jit(lambda x: lu_.bind(x)[0])
    asked = []

    def instead(e, platforms):
        asked.append((e.prim, platforms))
        return (lambda x: [-x, pivots(x)]) if e.prim is lu_ else None

    pivots = lambda x: plait.numpy.zeros((2, 4), "int32")  # noqa: E731
    body = lambda x: [cholesky_.bind(inner(x)), plait.lax.fori_loop(0, 2, lambda i, c: inner(c), x)]  # noqa: E731
    program = staged(body, [Aval((2, 4, 4), "float64")])
    said = mlir.text(module_of(program, instead=instead).code)
    assert "getrf" not in said and "lapack_dpotrf" in said and said.count("stablehlo.negate") == 1
    assert (lu_, ("cpu",)) in asked and (cholesky_, ("cpu",)) in asked
    assert "getrf" in mlir.text(module_of(program).code)


def test_scipy_is_loaded_by_the_first_program_that_needs_it():
    code = (
        "import sys, numpy as np, plait\n"
        "plait.numpy.linalg, plait.lax.linalg\n"
        "plait.numpy.ones((2, 2)) @ plait.numpy.ones((2, 2))\n"
        "assert 'scipy' not in sys.modules and 'jaxlib.cpu._lapack' not in sys.modules\n"
        "plait.numpy.linalg.inv(np.eye(2))\n"
        "assert 'jaxlib.cpu._lapack' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ), capture_output=True)
    assert not done.returncode, done.stderr.decode()


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("factor", ["lu", "cholesky", "argument"])
@pytest.mark.parametrize("columns", [1, 3])
def test_triangular_systems_of_factors(dtype, factor, columns):
    """Systems with the result of a kernel, in the same program, in all forms, beside scipy."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(4, 5, 5)).astype(dtype)
    x = x + 1j * x.swapaxes(-1, -2) if np.iscomplexobj(x) else x
    x = x @ x.conj().swapaxes(-1, -2) + 5 * np.eye(5, dtype=dtype)
    b = rng.normal(size=(4, 5, columns)).astype(dtype)
    factors = {"lu": lambda x: la.lu(x)[0], "cholesky": la.cholesky,
               "argument": lambda x: x}[factor]  # fmt: skip
    a = np.asarray(factors(x))
    for left, lower, turned, conjugated, unit in itertools.product([False, True], repeat=5):
        how = dict(left_side=left, lower=lower, transpose_a=turned, conjugate_a=conjugated,
                   unit_diagonal=unit)  # fmt: skip
        if factor == "cholesky" and not lower:
            continue  # nothing but a diagonal
        given = b if left else b.swapaxes(-1, -2)
        got = plait.jit(lambda x, b: la.triangular_solve(factors(x), b, **how))(x, given)
        half = np.tril(a) if lower else np.triu(a)
        if unit:
            half = half - half * np.eye(5, dtype=dtype) + np.eye(5, dtype=dtype)
        half = half.conj() if conjugated else half
        half = half.swapaxes(-1, -2) if turned else half
        back = half @ np.asarray(got) if left else np.asarray(got) @ half
        scale = np.abs(half).max() * np.abs(got).max()
        np.testing.assert_allclose(back, given, atol=scale * 20 * np.finfo(dtype).eps)
