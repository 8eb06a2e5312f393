"""Hessian-vector products: those of Hessians written out."""

import numpy as np

import plait
from plait import numpy as jnp

X, Y = np.float64([0.5, -1.0]), np.float64(2.0)
U, V = np.float64([1.0, 3.0]), np.float64(-1.0)


def f(x, y):
    return (jnp.sin(x) * x).sum() * y**2


def test_products_with_the_hessian():
    """f = y^2 g(x): blocks y^2 g'', 2 y g' and 2 g."""
    g, g1 = (np.sin(X) * X).sum(), np.cos(X) * X + np.sin(X)
    g2 = 2 * np.cos(X) - X * np.sin(X)
    want = Y**2 * g2 * U + 2 * Y * g1 * V, 2 * Y * (g1 @ U) + 2 * g * V
    for product in (
        plait.hvp,
        plait.vhp,
        lambda *a: plait.jit(lambda u: plait.hvp(f, a[1], u))(a[2]),
    ):
        got = product(f, (X, Y), (U, V))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_function_of_which_only_the_pullback_is_known():
    @plait.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * square(x) / x * ct,))
    (got,) = plait.vhp(lambda x: square(x), (Y,), (V,))
    np.testing.assert_allclose(got, 2 * V)


def test_no_hessian_is_made():
    n = 40
    program = plait.make_program(lambda x: plait.hvp(lambda y: (y**3).sum(), (x,), (x,)))(
        np.ones(n)
    )
    assert all(o.aval.size <= n for e in program.eqns for o in e.outputs)
