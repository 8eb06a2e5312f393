"""Mapping systems that have one matrix for all examples, and a right-hand side for each.

Invariant: solutions are numpy's, one example after the other; what is not allowed is seen in the
program, in which no stack of matrices occurs, and no factorisation of one.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.ir import programs_in
from plait_numpy.ext.linalg import geqrf, ormqr_

N, SIZE = 4, 7
RNG = np.random.default_rng(3)
A = RNG.standard_normal((N, N)) + N * np.eye(N)
SPD = A @ A.T
TALL = RNG.standard_normal((N, 3))
B = RNG.standard_normal((SIZE, N))
sp, la = plait.scipy.linalg, plait.numpy.linalg


def triangular(**how):
    return lambda a, b: lax.linalg.triangular_solve(a, b[:, None], **how)[:, 0]


def reflected(left):
    """Q @ b or b @ Q, for Q of the QR factorisation of a."""

    def f(a, b):
        reflectors, taus = geqrf(a)
        return ormqr_(reflectors, taus, b[:, None] if left else b[None], left=left, adjoint=False)

    return f


def tridiagonal(a):
    return np.diag(np.diag(a)) + np.diag(np.diag(a, 1), 1) + np.diag(np.diag(a, -1), -1)


def along_diagonals(a, b):
    pad = plait.numpy.zeros(1)
    below = plait.numpy.concatenate([pad, plait.numpy.diag(a, -1)])
    above = plait.numpy.concatenate([plait.numpy.diag(a, 1), pad])
    return lax.linalg.tridiagonal_solve(below, plait.numpy.diag(a), above, b[:, None])[:, 0]


def solved(matrix):
    return lambda a, b: np.linalg.solve(matrix(a), b)


SYSTEMS = {
    "solve": (la.solve, A, solved(lambda a: a)),
    "solve positive": (lambda a, b: sp.solve(a, b, assume_a="pos"), SPD, solved(lambda a: a)),
    "solve_triangular": (sp.solve_triangular, A, solved(np.triu)),
    "from the left": (triangular(left_side=True, lower=True), A, solved(np.tril)),
    "transposed": (
        triangular(left_side=True, lower=True, transpose_a=True), A, solved(lambda a: np.tril(a).T)
    ),
    "from the right": (
        lambda a, b: lax.linalg.triangular_solve(a, b[None], left_side=False)[0],
        A,
        solved(lambda a: np.triu(a).T),
    ),
    "lu_solve": (lambda a, b: sp.lu_solve(sp.lu_factor(a), b), A, solved(lambda a: a)),
    "cho_solve": (lambda a, b: sp.cho_solve(sp.cho_factor(a), b), SPD, solved(lambda a: a)),
    "lstsq": (lambda a, b: la.lstsq(a, b)[0], TALL, lambda a, b: np.linalg.lstsq(a, b)[0]),
    "tridiagonal": (along_diagonals, A, solved(tridiagonal)),
    "reflectors": (
        lambda a, b: a.T @ reflected(True)(a, b)[:, 0], A, lambda a, b: a.T @ np.linalg.qr(a)[0] @ b
    ),
    "reflectors, from the right": (
        lambda a, b: reflected(False)(a, b)[0], A, lambda a, b: b @ np.linalg.qr(a)[0]
    ),
    "sylvester": (
        lambda a, b: sp.solve_sylvester(a, a, b[:, None] * b),
        A,
        lambda a, b: np.linalg.solve(
            np.kron(a, np.eye(N)) + np.kron(np.eye(N), a.T), np.outer(b, b).ravel()
        ).reshape(N, N),
    ),
}  # fmt: skip
FACTORISATIONS = {
    "linalg.lu",
    "linalg.cholesky",
    "linalg.svd",
    "linalg.geqrf",
    "linalg.schur",
    "linalg.lstsq",
}


def stacks_of_matrices(program, shape):
    """Operations that make, or factorise, an array of more than one such matrix."""
    found = []
    for e in program.eqns:
        outs = [o.aval.shape for o in e.outputs]
        ins = [x.aval.shape for x in e.inputs]
        many = [s for s in (ins if e.prim.name in FACTORISATIONS else outs) if s[-2:] == shape]
        found += [e.prim.name for s in many if np.prod(s[:-2], dtype=int) > 1]
        for p in programs_in(e.params):
            found += stacks_of_matrices(p, shape)
    return found


@pytest.mark.feature("B05")
@pytest.mark.parametrize("name", SYSTEMS)
def test_one_matrix_for_all(name):
    f, a, reference = SYSTEMS[name]
    for axis in (0, 1):
        mapped = plait.vmap(f, in_axes=(None, axis), out_axes=-1)
        right = np.moveaxis(B, 0, axis)
        want = np.stack([reference(a, b) for b in B], -1)
        np.testing.assert_allclose(np.asarray(mapped(a, right)), want, rtol=1e-9, atol=1e-9)
        if name != "sylvester":  # whose results are matrices of that shape
            program = plait.make_program(mapped)(a, right)
            assert stacks_of_matrices(program, a.shape) == []


@pytest.mark.parametrize("size", [0, 1])
def test_few_examples(size):
    for name in ("solve", "from the right", "tridiagonal"):
        f, a, reference = SYSTEMS[name]
        got = np.asarray(plait.vmap(f, (None, 0))(a, B[:size]))
        want = np.reshape([reference(a, b) for b in B[:size]], (size, N))
        np.testing.assert_allclose(got, want, rtol=1e-9)


def test_a_matrix_for_each_of_some_and_shared_by_others():
    """The outer map has a matrix for each element, the inner one shares it."""
    matrices = np.stack([A, SPD])
    f = plait.vmap(plait.vmap(la.solve, (None, 0)), (0, None))
    want = [[np.linalg.solve(a, b) for b in B] for a in matrices]
    np.testing.assert_allclose(np.asarray(f(matrices, B)), want, rtol=1e-9)


def test_stacks_of_systems():
    """Each example has several right-hand sides for each of several matrices."""
    matrices, right = np.stack([A, SPD]), RNG.standard_normal((SIZE, 2, N, 3))
    got = plait.vmap(la.solve, (None, 0))(matrices, right)
    want = np.stack([np.linalg.solve(matrices, r) for r in right])
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9)
    turned = lambda a, r: lax.linalg.triangular_solve(a, r, left_side=False, lower=True)  # noqa: E731
    got = plait.vmap(turned, (None, -1), 1)(matrices, np.moveaxis(right, 0, -1).swapaxes(1, 2))
    want = np.stack(
        [np.linalg.solve(np.tril(matrices).swapaxes(1, 2), r).swapaxes(1, 2) for r in right], 1
    )
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9)
