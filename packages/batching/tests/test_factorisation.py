"""Mapping factorisations: equal to one after the other, wherever the mapped axis is.

Invariant: what is compared with is a Python loop.
"""

import numpy as np

import plait

RNG = np.random.default_rng(2)
X = RNG.standard_normal((3, 4, 4))


def test_whole_functions():
    """Everything at once, behind one shape; the mapped axis last, and none for one operand."""
    la, sp = plait.numpy.linalg, plait.scipy.linalg

    def f(x, b):
        s = x @ x.T + plait.numpy.eye(4)
        return (
            la.cholesky(s), *la.qr(x), *la.slogdet(x), la.det(x), la.inv(x), la.svdvals(x[:, :2]),
            la.solve(x, b), la.lstsq(x[:, :2], b)[0], la.pinv(x[:2]), la.eigvalsh(s),
            *plait.lax.linalg.lu(x), sp.solve(s, b, assume_a="pos"), sp.expm(x), sp.sqrtm(s),
            plait.lax.linalg.tridiagonal_solve(x[0], x[1] + 4, x[2], x),
            *plait.lax.linalg.qr(x, pivoting=True), sp.hessenberg(x), *sp.schur(s),
        )  # fmt: skip

    b = X[0, 0]
    got = plait.vmap(f, in_axes=(2, None))(np.moveaxis(X, 0, 2), b)
    each = plait.jit(f)
    rows = [each(x, b) for x in X]
    for g, *want in zip(got, *rows):
        np.testing.assert_allclose(np.asarray(g), np.stack([np.asarray(w) for w in want]),
                                   rtol=1e-9, atol=1e-9)  # fmt: skip


def test_a_stack_of_stacks():
    inverse = plait.vmap(plait.vmap(plait.numpy.linalg.inv), in_axes=1)
    x = np.stack([X, X + np.eye(4)])
    want = np.linalg.inv(x).swapaxes(0, 1)
    np.testing.assert_allclose(np.asarray(inverse(x)), want, rtol=1e-9)


def test_right_hand_sides_alone():
    solve = plait.vmap(plait.numpy.linalg.solve, in_axes=(None, 0))
    np.testing.assert_allclose(np.asarray(solve(X[0], X[:, 0])), np.linalg.solve(X[0], X[:, 0].T).T)
