"""Solvers that use derivatives, and derivatives of solvers: minima, linear equations.

Invariant: solutions are numpy's, derivatives those of the formula for the solution.
"""

import doctest

import numpy as np
import pytest

import plait
import plait.ops as ops
from plait.ext.errors import AxisError, TypeRule
from plait.scipy import interpolate, ndimage, optimize, signal
from plait.scipy.sparse import linalg
from plait_autodiff import check_grads, grad

RNG = np.random.default_rng(0)
A = RNG.normal(size=(6, 6))
S = A @ A.T + 6 * np.eye(6)
B = RNG.normal(size=6)
SOLVERS = {"cg": S, "bicgstab": A + 4 * np.eye(6), "gmres": A}


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def test_minima():
    bfgs = lambda x, **how: optimize.minimize(rosenbrock, x, method="BFGS", **how)  # noqa: E731
    found = plait.jit(bfgs)(np.full(3, -1.2))
    np.testing.assert_allclose(np.asarray(found.x), 1.0, rtol=1e-5)
    assert bool(found.success) and int(found.status) == 0 and 5 < int(found.nit) <= int(found.nfev)
    run = plait.jit(lambda x, a: optimize.minimize(lambda x, a: ((x - a) ** 2).sum(), x, (a,),
                                                method="bfgs", tol=1e-8).x)  # fmt: skip
    np.testing.assert_allclose(np.asarray(run(np.zeros(2), 3.0)), 3.0, rtol=1e-7)
    few = bfgs(np.full(3, -1.2), options={"maxiter": 2})
    assert not bool(few.success) and int(few.status) == 1 and int(few.nit) == 2
    flat = optimize.minimize(lambda x: 0 * x.sum(), np.ones(2), method="BFGS")
    assert bool(flat.success) and int(flat.nit) == 0
    for size in (1e-4, 1.0, 1e4):
        steep = lambda x: ((size * (x - np.float32([0.0, 0.5]))) ** 2).mean()  # noqa: B023, E731
        found = optimize.minimize(steep, np.ones(2, "f4"), method="BFGS", tol=1e-5 * size)
        np.testing.assert_allclose(np.asarray(found.x), [0.0, 0.5], atol=1e-6 if size > 1 else 0.1)
    for f, text in ((lambda: optimize.minimize(rosenbrock, np.ones(2), method="Powell"), "no meth"),
                    (lambda: optimize.minimize(rosenbrock, np.ones(2), method="BFGS",
                                               options={"disp": 1}), "no option")):  # fmt: skip
        with pytest.raises(TypeRule, match=text):
            f()
    with pytest.raises(AxisError):
        optimize.minimize(rosenbrock, 1.0, method="BFGS")


@pytest.mark.parametrize("name", SOLVERS)
def test_linear_equations(name):
    solve, m = getattr(linalg, name), SOLVERS[name]
    x, info = plait.jit(lambda m, b: solve(m, b, tol=1e-12))(m, B)
    np.testing.assert_allclose(np.asarray(x), np.linalg.solve(m, B), rtol=1e-7)
    assert info is None
    inverse = np.linalg.inv(m)
    square = lambda m, b: (solve(lambda v: m @ v, b, tol=1e-12)[0] ** 2).sum()  # noqa: E731
    by_m, by_b = plait.jit(grad(square, argnums=(0, 1)))(m, B)
    np.testing.assert_allclose(np.asarray(by_b), 2 * inverse.T @ inverse @ B, rtol=1e-6)
    x = inverse @ B
    np.testing.assert_allclose(np.asarray(by_m), -np.outer(inverse.T @ (2 * x), x), rtol=1e-6,
                               atol=1e-9)  # fmt: skip


def test_trees_starts_and_preconditioners():
    b = {"a": B[:2], "b": B[2:].reshape(2, 2)}
    scale = lambda t: {"a": 3 * t["a"], "b": 2 * t["b"]}  # noqa: E731
    x, _ = linalg.cg(scale, b, b, tol=1e-10)
    np.testing.assert_allclose(np.asarray(x["a"]), B[:2] / 3, rtol=1e-7)
    np.testing.assert_allclose(np.asarray(x["b"]), B[2:].reshape(2, 2) / 2, rtol=1e-7)
    near = np.linalg.inv(A + 0.1 * np.eye(6))
    x, _ = linalg.gmres(A, B, tol=1e-10, restart=3, maxiter=500, M=near)
    np.testing.assert_allclose(np.asarray(x), np.linalg.solve(A, B), rtol=1e-6)
    z = A + 1j * RNG.normal(size=(6, 6))
    x, _ = linalg.gmres(z, B + 1j, tol=1e-12)
    np.testing.assert_allclose(np.asarray(x), np.linalg.solve(z, B + 1j), rtol=1e-7)
    with pytest.raises(AxisError, match="square matrix"):
        linalg.cg(A[:, :3], B)


def test_derivatives_of_what_is_between_places():
    places = RNG.uniform(0.1, 2.9, size=(2, 4))
    image = RNG.normal(size=(4, 4))
    points = (np.array([0.0, 1, 3]), np.array([0.0, 2, 3]))

    @plait.jit
    def f(x, p):
        on_grid = interpolate.RegularGridInterpolator(points, x[:3, :3])
        return (
            ndimage.map_coordinates(x, [p[0], p[1]], 1, "mirror"), on_grid(p.T),
            signal.convolve(x, p, "same"), signal.fftconvolve(x, p),
            ops.segment_prod(x, np.array([1, 0, 1, 1]), 3),
        )  # fmt: skip

    check_grads(f, (image, places), order=1)


def test_examples():
    for module in (optimize, linalg):
        assert doctest.testmod(module).failed == 0


@pytest.mark.sampled(8)
@pytest.mark.parametrize("run", [lambda f: f, plait.jit, plait.checkpoint])
def test_a_solver_of_the_tangents_that_closes_over_what_is_differentiated(run):
    """Factors of the matrix, that both the root and its derivative are found with; a x = b."""
    pnp = plait.numpy

    def root(a, b):
        factors = plait.scipy.linalg.cho_factor(a)
        by_factors = lambda f, y: plait.scipy.linalg.cho_solve(factors, y)  # noqa: E731
        linear = lambda g, y: plait.lax.custom_linear_solve(g, y, by_factors, symmetric=True)  # noqa: E731
        return plait.lax.custom_root(lambda x: a @ x - b, b, by_factors, linear)

    a, b = pnp.asarray([[2.0, 0.5], [0.5, 3.0]]), pnp.asarray([1.0, 2.0])
    c = pnp.asarray([3.0, -1.0])
    loss = lambda solve: lambda a, b: (solve(a, b) * c).sum()  # noqa: E731
    ours, want = loss(root), loss(lambda a, b: pnp.linalg.inv(a) @ b)
    got = run(plait.grad(ours, (0, 1)))(a, b)
    for x, y in zip(got, plait.grad(want, (0, 1))(a, b), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-5, atol=1e-6)
    got = plait.jvp(lambda a: plait.grad(ours)(a, b), (a,), (a,))[1]
    want2 = plait.jvp(lambda a: plait.grad(want)(a, b), (a,), (a,))[1]
    np.testing.assert_allclose(np.asarray(got), np.asarray(want2), rtol=1e-4, atol=1e-5)
