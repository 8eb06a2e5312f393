"""Equations and roots: derivatives are those of the closed form, whatever the solver did."""

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as jnp
from plait.ext.ir import evaluate
from plait_autodiff.ext import dense_solve

A = np.float64([[4.0, 1.0], [2.0, 3.0]])
B = np.float64([1.0, 2.0])
INVERSE = np.linalg.inv(A)
close = np.testing.assert_allclose


def richardson(matvec, b):
    """An iteration; to be differentiated it would have to keep every turn."""
    step = lambda s: (s[0] + 1, s[1] + (b - matvec(s[1])) / 5)  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 120, step, (0, b * 0))[1]


def solution(a, b, **options):
    options = options or {"transpose_solve": richardson}
    return lax.custom_linear_solve(lambda x: a @ x, b, richardson, **options)


def squared(a, b):
    return (solution(a, b) ** 2).sum()


X = INVERSE @ B
ADJOINT = INVERSE.T @ (2 * X)


def test_linear_solve_forward_and_reverse():
    close(solution(A, B), X, rtol=1e-9)
    close(plait.jvp(solution, (A, B), (A, B * 3))[1], INVERSE @ (3 * B - A @ X), rtol=1e-8)
    for g in (plait.grad, lambda f, n: plait.jit(plait.grad(f, n))):
        da, db = g(squared, (0, 1))(A, B)
        close(da, -np.outer(ADJOINT, X), rtol=1e-8)
        close(db, ADJOINT, rtol=1e-8)
    close(plait.hessian(squared, 1)(A, B), 2 * INVERSE.T @ INVERSE, rtol=1e-8)
    close(plait.jacrev(plait.grad(squared, 1), 1)(A, B), 2 * INVERSE.T @ INVERSE, rtol=1e-8)


def test_linear_solve_under_vmap_jet_and_scan():
    stacks = np.stack([A, A.T]), np.stack([B, 3 * B])
    want = np.stack([np.linalg.solve(a, b) for a, b in zip(*stacks)])
    close(plait.vmap(solution)(*stacks), want, rtol=1e-8)
    close(plait.vmap(solution, (0, None))(stacks[0], B)[1], np.linalg.solve(A.T, B), rtol=1e-8)
    close(plait.vmap(plait.grad(squared, 1), (None, 0))(A, stacks[1])[1], 3 * ADJOINT, rtol=1e-8)
    along = plait.jet(solution, (A, B), ([A, 0 * A], [0 * B, 0 * B]))[1]
    close(along, [-X, 2 * X], rtol=1e-8)
    total = lambda b: lax.scan(lambda c, b: (c + squared(A, b), None), 0.0, b)[0]  # noqa: E731
    close(plait.grad(total)(stacks[1])[1], 3 * ADJOINT, rtol=1e-8)


def test_trees_symmetry_and_what_a_solver_tells():
    s = A + A.T

    def f(b):
        matvec = lambda d: {"x": s @ d["x"]}  # noqa: E731
        solve = lambda m, b: ({"x": jnp.asarray(np.linalg.inv(s)) @ b["x"]}, 7)  # noqa: E731
        return lax.custom_linear_solve(matvec, {"x": b}, solve, symmetric=True, has_aux=True)

    x, aux = f(B)
    assert int(aux) == 7
    close(x["x"], np.linalg.solve(s, B), atol=1e-12)
    close(plait.grad(lambda b: f(b)[0]["x"].sum())(B), np.linalg.inv(s).sum(0), atol=1e-12)


def test_the_operation_is_printed_and_read():
    program = plait.make_program(lambda a, b: solution(a, b))(A, B)
    again = plait.text.parse(str(program))
    assert "autodiff.linear_solve" in str(program) and str(again) == str(program)
    close(evaluate(again, [jnp.asarray(A), jnp.asarray(B)])[0], X, rtol=1e-9)


def test_messages_of_linear_solve():
    forward_only = lambda b: solution(A, b, symmetric=False).sum()  # noqa: E731
    with pytest.raises(TypeError, match="no transpose_solve"):
        plait.grad(forward_only)(B)
    with pytest.raises(TypeError, match=r"matvec returns f64\[3\] where b is f64\[2\]"):
        lax.custom_linear_solve(lambda x: jnp.ones(3, np.float64), B, richardson)
    with pytest.raises(ValueError, match="another structure"):
        lax.custom_linear_solve(lambda x: (x,), B, richardson)


def newton(f, x):
    step = lambda x: x - f(x) / plait.jvp(f, (x,), (jnp.ones_like(x),))[1]  # noqa: E731
    return lax.while_loop(lambda x: (abs(f(x)) > 1e-12).any(), step, x)


def cube_root(a):
    scalar = lambda g, y: y / g(jnp.ones_like(y))  # noqa: E731
    return lax.custom_root(lambda x: x**3 - a, jnp.ones_like(a), newton, scalar)


def test_roots_to_the_third_order():
    a = np.float64(8.0)
    derivatives = [2, 8 ** (-2 / 3) / 3, -2 / 9 * 8 ** (-5 / 3), 10 / 27 * 8 ** (-8 / 3)]
    f = g = cube_root
    for want in derivatives:
        close([float(f(a)), float(plait.jit(g)(a))], [want] * 2, rtol=1e-9)
        f, g = plait.grad(f), plait.jacfwd(g)
    xs = np.float64([1.0, 8.0])
    close(plait.vmap(plait.grad(cube_root))(xs), xs ** (-2 / 3) / 3)


def test_a_root_that_closes_over_parameters_and_tells_something():
    def f(p, c):
        solve = lambda g, x: (newton(g, x), c)  # noqa: E731
        return lax.custom_root(
            lambda x: x**3 - p["a"] * c, jnp.ones_like(c), solve, lambda g, y: y / g(1.0),
            has_aux=True,
        )  # fmt: skip

    p, c = {"a": np.float64(4.0)}, np.float64(2.0)
    (root, aux), (dp, dc) = plait.value_and_grad(
        lambda p, c: (lambda r, a: (r, a))(*f(p, c)), (0, 1), has_aux=True
    )(p, c)
    close([root, aux, dp["a"], dc], [2, 2, 2 / 12, 4 / 12])


RIDGE = np.float64([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])
TARGET = np.float64([1.0, 0.0, 2.0])


def ridge_loss(w, weight):
    r = RIDGE @ w["w"] - TARGET
    return (r * r).sum() / 2 + weight * (w["w"] ** 2).sum() / 2


@plait.implicit_diff(plait.grad(ridge_loss))
def ridge(start, weight):
    step = lambda _, w: {"w": w["w"] - 0.08 * plait.grad(ridge_loss)(w, weight)["w"]}  # noqa: E731
    return lax.fori_loop(0, jnp.asarray(800), step, start)


def test_implicit_derivatives_of_a_minimiser():
    start, weight = {"w": np.zeros(2)}, np.float64(0.5)
    normal = RIDGE.T @ RIDGE + weight * np.eye(2)
    w = np.linalg.solve(normal, RIDGE.T @ TARGET)
    slope = -np.linalg.solve(normal, w)
    curve = 2 * np.linalg.solve(normal, np.linalg.solve(normal, w))
    of = lambda weight: ridge(start, weight)["w"]  # noqa: E731
    close(of(weight), w, rtol=1e-8)
    close(plait.jacfwd(of)(weight), slope, rtol=1e-7)
    close(plait.jacrev(of)(weight), slope, rtol=1e-7)
    close(plait.jit(plait.jacrev(plait.jacrev(of)))(weight), curve, rtol=1e-6)
    assert not np.asarray(plait.grad(lambda s: ridge(s, weight)["w"].sum())(start)["w"]).any()


def test_dense_solve_of_trees():
    g = lambda d: {"p": d["p"] * 2 + d["q"].sum(), "q": d["q"] - d["p"]}  # noqa: E731
    y = {"p": np.float64(1.0), "q": np.float64([2.0, 3.0])}
    x = dense_solve(g, y)
    back = g(x)
    close(back["p"], y["p"])
    close(back["q"], y["q"])


def test_messages_of_custom_root():
    with pytest.raises(ValueError, match="custom_root: f returns another structure"):
        lax.custom_root(lambda x: (x,), 1.0, newton, None)
    with pytest.raises(TypeError, match="custom_root: solve returns"):
        lax.custom_root(lambda x: x, 1.0, lambda f, x: jnp.ones(2), None)
    with pytest.raises(TypeError, match="pair"):
        lax.custom_root(lambda x: x, 1.0, lambda f, x: x, None, has_aux=True)
