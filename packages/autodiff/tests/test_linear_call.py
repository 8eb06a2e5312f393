"""`linear_call`: a linear function whose transpose is the user's.

Invariant: transposes are told apart from true ones by a factor that only the user's rule has, and
values are those of numpy.
"""

import numpy as np
import pytest

import plait
from plait.errors import MissingRule, TreeMismatch, TypeRule
from plait_autodiff import check_grads, grad, jvp, linear_call, linear_transpose

R, X = np.array([2.0, 4.0, 5.0]), np.array([3.0, -1.0, 0.5])


def divided(factor):
    """x / r, with a transpose that is false by `factor`."""
    return lambda r, x: linear_call(lambda r, x: x / r, lambda r, t: t * factor / r, r, x)


def transposed(f, like):
    return lambda y: linear_transpose(f, like)(y)[0]


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), b, rtol=1e-12)


@pytest.mark.parametrize("stage", [lambda f: f, plait.jit])
def test_reverse_mode_applies_the_users_transpose(stage):
    f = divided(7.0)
    close(stage(f)(R, X), X / R)
    close(stage(grad(lambda x: f(R, x).sum()))(X), 7 / R)
    close(stage(grad(lambda x: (f(R, x) ** 2).sum()))(X), 2 * (X / R) * 7 / R)


def test_the_transpose_of_the_transpose_is_the_function():
    f = lambda x: x + divided(7.0)(R, x)  # noqa: E731
    once = transposed(f, X)
    twice = transposed(once, X)
    close(once(X), X + 7 * X / R)
    close(twice(X), X + X / R)
    close(transposed(twice, X)(X), X + 7 * X / R)


def test_forward_mode_applies_the_function():
    y, dot = jvp(lambda x: divided(7.0)(R, x), (X,), (R * R,))
    close(y, X / R)
    close(dot, R)


def test_a_second_derivative_keeps_both_functions():
    """The Hessian of sum((x / r)^2) through a transpose that is false by 7: 2 * 7 / r^2."""
    f = lambda x: (divided(7.0)(R, x) ** 2).sum()  # noqa: E731
    close(jvp(grad(f), (X,), (np.ones(3),))[1], 14 / R**2)


@pytest.mark.parametrize("order", [1, 2])
def test_residuals_are_differentiated(order):
    check_grads(divided(1.0), (R, X), order, modes=("fwd", "rev"))
    close(grad(lambda r: divided(7.0)(r, X).sum())(R), -X / R**2)


def test_trees_and_captured_values():
    def f(a, x):
        fun = lambda r, v: {"s": v[0] * a + v[1] * r, "d": v[0] - v[1]}  # noqa: E731
        back = lambda r, t: (t["s"] * a + t["d"], t["s"] * r - t["d"])  # noqa: E731
        return linear_call(fun, back, R, (x, 2 * x))

    out = f(3.0, X)
    close(out["s"], 3 * X + 2 * X * R)
    close(out["d"], -X)
    total = lambda a, x: f(a, x)["s"].sum() + 10 * f(a, x)["d"].sum()  # noqa: E731
    close(grad(total, 1)(3.0, X), 3 + 2 * R - 10)
    close(plait.jit(grad(total, 1))(3.0, X), 3 + 2 * R - 10)
    close(grad(total)(3.0, X), X.sum())


def test_a_transpose_may_call_the_function():
    """A map that is its own transpose: the rule is traced only when it is needed."""

    def mirrored(x):
        return linear_call(lambda _, x: 3 * x[::-1], lambda _, t: mirrored(t), None, x)

    for stage in (lambda f: f, plait.jit):
        close(stage(mirrored)(X), 3 * X[::-1])
        close(stage(grad(lambda x: (mirrored(x) * R).sum()))(X), 3 * R[::-1])
        close(stage(transposed(transposed(mirrored, X), X))(X), 3 * X[::-1])


def test_a_transpose_that_returns_none_for_a_part_is_another_structure():
    f = lambda x: linear_call(lambda _, x: x, lambda _, t: None, (), x)  # noqa: E731
    close(f(X), X)
    with pytest.raises(TreeMismatch, match="another structure than linear_args"):
        grad(lambda x: f(x).sum())(X)


def test_integers_are_refused():
    same = lambda _, x: x  # noqa: E731
    with pytest.raises(TypeRule, match="linear argument"):
        linear_call(same, same, (), np.arange(3))
    with pytest.raises(TypeRule, match="linear result"):
        linear_call(lambda _, x: x > 0, same, (), X)


def test_the_residuals_are_not_transposed():
    with pytest.raises(MissingRule, match="residual arguments"):
        linear_transpose(lambda r: divided(1.0)(r, X), R)(X)
