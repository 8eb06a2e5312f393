"""Derivatives of the user's own, checked against finite differences; narrow and infinite values.

Invariant: every check that passes has a neighbour that fails for one wrong factor.
"""

import ml_dtypes
import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import TypeRule
from plait_autodiff import check_grads, check_jvp, check_vjp, custom_jvp, jvp, vjp

X, Y = np.array([0.3, -1.2, 2.0], "float32"), np.array([1.5, 0.5, -0.7], "float32")


def f(t, y):
    return {"s": pnp.sin(t["x"]) * y, "p": t["x"] * y * y}


ARGS = ({"x": X}, Y)


def scaled(by, what):
    """The true derivative, with a tangent, a cotangent or a value that is false by a factor."""

    def forward(xs, ts):
        out, dots = jvp(f, xs, ts)
        dots = plait.tree.map(lambda d: d * by, dots) if what == "tangent" else dots
        return plait.tree.map(lambda o: o * by, out) if what == "value" else out, dots

    def reverse(*xs):
        out, pull = vjp(f, *xs)
        back = lambda ct: plait.tree.map(lambda c: c * by, pull(ct))  # noqa: E731
        back = back if what == "tangent" else pull
        return plait.tree.map(lambda o: o * by, out) if what == "value" else out, back

    return forward, reverse


@pytest.mark.parametrize("what", ["tangent", "value"])
def test_rules_of_the_users_own(what):
    right, wrong = scaled(1.0, what), scaled(1.1, what)
    for check, good, bad in zip((check_jvp, check_vjp), right, wrong, strict=True):
        check(f, good, ARGS)
        check(f, bad, ARGS, atol=1.0, rtol=1.0)
        with pytest.raises(AssertionError, match="; of mine"):
            check(f, bad, ARGS, err_msg="of mine")


def test_what_cannot_be_checked():
    for check, own in ((check_jvp, scaled(1.0, "")[0]), (check_vjp, scaled(1.0, "")[1])):
        with pytest.raises(TypeRule, match="takes a tuple"):
            check(f, own, X)
        with pytest.raises(TypeRule, match="real and complex"):
            check(f, own, ({"x": np.arange(3)}, Y))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_every_dtype_with_derivatives(dtype):
    x = X.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    check_grads(lambda x: pnp.sin(x) * x, (x,), order=1)

    wrong = custom_jvp(lambda x: pnp.sin(x) * x)
    wrong.defjvp(lambda p, t: (wrong(p[0]), 2 * t[0]))
    with pytest.raises(AssertionError):
        check_grads(wrong, (x,), order=1)


def test_results_that_stay_infinite_are_constant():
    far = pnp.array([0.0, -np.inf, np.inf])
    check_grads(lambda x: x * pnp.array([2.0, 0.0, 0.0]) + far, (X,), order=2)
    jump = lambda x: pnp.where(x > 0.3, np.inf, x)  # noqa: E731
    with pytest.raises(AssertionError):
        check_grads(jump, (X,), order=1)
