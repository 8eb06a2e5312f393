"""Derivatives of special functions against finite differences, and at the edges.

Invariant: derivatives in shape parameters are judged like any other; what has none says so.
"""

import numpy as np
import pytest
import scipy.special as ss

import plait
from plait.ext.errors import TypeRule
from plait_autodiff import check_grads, grad, jvp
from plait_autodiff.taylor.laws import jet_law, laplacian_law
from plait_numpy.ext import special as inc
from plait_numpy.ext import special as ints
from plait_numpy.ext import special as sp

A, B = np.array([0.7, 12.0]), np.array([1.3, 9.0])
X, Z = np.array([0.4, 14.0]), np.array([0.3, 0.6])
scipy = plait.scipy.special

CASES = {
    "igamma": (inc.igamma, (A, X)),
    "regularized_incomplete_beta": (inc.regularized_incomplete_beta, (A, B, Z)),
    "lbeta": (sp.lbeta, (A, B)),
    "bessel_i0e": (sp.bessel_i0e, (X,)),
    "bessel_i1e": (sp.bessel_i1e, (X,)),
    "log_ndtr": (sp.log_ndtr, (np.array([-30.0, 2.0]),)),
    "ndtri": (sp.ndtri, (Z,)),
    "expi": (ints.expi, (X,)),
    "spence": (ints.spence, (X,)),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_differences(name):
    prim, xs = CASES[name]
    assert jet_law(prim, xs, {}) >= 4
    assert laplacian_law(prim, xs, {}) >= 1


@pytest.mark.wide
def test_derivatives_of_derivatives():
    """In the shape there is no closed form: the algorithm is differentiated."""
    check_grads(inc.igamma_grad_a, (A, X), order=1, modes="rev")
    check_grads(inc.random_gamma_grad, (A, X), order=1, modes="rev")


def test_orders_are_whole():
    f = lambda v: (  # noqa: E731
        sp.polygamma(1.0, v) + ints.expn(2.0, v) + ints.expn(0.0, v) + sp.zeta(2.5, v)
    )
    check_grads(plait.jit(f), (np.array([0.5, 3.0]),), order=1, modes="rev")
    for f in (sp.polygamma, ints.expn, sp.zeta):
        with pytest.raises(TypeRule, match="no derivative in operand 0"):
            plait.eval_shape(grad(f), 2.0, 1.5)


@pytest.mark.parametrize(
    ("f", "x", "want"),
    [
        (lambda x: scipy.xlogy(x, 2.0), 0.0, np.log(2.0)),
        (lambda x: scipy.xlogy(x, x), 0.0, -np.inf),
        (lambda y: scipy.xlogy(0.0, y), 0.0, 0.0),
        (lambda x: scipy.xlog1py(x, 2.0), 0.0, np.log(3.0)),
        (lambda p: scipy.boxcox(2.0, p), 0.0, np.log(2.0) ** 2 / 2),
        (lambda x: scipy.factorial(x), 3.0, 6 * ss.digamma(4)),
        (lambda x: scipy.gamma(x), 3.0, 2 * ss.digamma(3)),
        (sp.bessel_i1e, 0.0, 0.5),
        (ints.spence, 1.0, -1.0),
        (scipy.log_ndtr, -100.0, 100.009998),
    ],
)
def test_edges(f, x, want):
    assert float(grad(f)(x)) == pytest.approx(want, rel=1e-5)


def test_densities_at_the_ends():
    a, x = np.float32([0.5, 1, 2]), np.float32([0, 0, 0])
    assert np.asarray(inc.gamma_density(a, x)).tolist() == [np.inf, 1, 0]
    a, b, x = np.float32([1, 3, 2]), np.float32([2, 1, 2]), np.float32([0, 1, 0])
    assert np.asarray(inc.beta_density(a, b, x)).tolist() == [2, 3, 0]


def test_compositions():
    xs = np.array([0.3, 0.8])
    fs = (scipy.entr, scipy.logit, scipy.i1, scipy.gamma, lambda v: scipy.beta(v, v + 1),
          lambda v: scipy.kl_div(v, 1 - v), lambda v: scipy.boxcox1p(v, v))  # fmt: skip
    check_grads(plait.jit(lambda v: sum(f(v) for f in fs)), (xs,), order=1)


# ---- samples -----------------------------------------------------------------------------------


def test_samples_vary_as_quantiles():
    """The probability of a gamma sample does not depend on the shape."""
    key, h, a = plait.random.key(3), 1e-5, np.array([0.02, 3.0])

    def samples(v):
        return [f(key, v, dtype=np.float64) for f in (plait.random.gamma, plait.random.loggamma)]

    (x, logs), (slope, relative) = plait.jit(lambda v, t: jvp(samples, (v,), (t,)))(a, np.ones(2))
    x = np.asarray(x)
    p = ss.gammainc(a, x)
    want = (ss.gammaincinv(a * (1 + h), p) - ss.gammaincinv(a * (1 - h), p)) / (2 * a * h)
    np.testing.assert_allclose(np.asarray(slope), want, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(logs), np.log(x), rtol=1e-10)
    np.testing.assert_allclose(np.asarray(relative) * x, want, rtol=1e-5)


def test_logarithms_of_samples_that_underflow():
    key, a = plait.random.key(0), np.full(8, 1e-3, np.float32)
    f = lambda v: plait.random.loggamma(key, v)  # noqa: E731
    logs, g = plait.jit(lambda v: jvp(f, (v,), (np.ones(8, np.float32),)))(a)
    logs = np.asarray(logs, np.float64)
    assert logs.min() < -200
    np.testing.assert_allclose(np.asarray(g), (ss.digamma(1 + 1e-3) - logs) / 1e-3, rtol=1e-4)


def test_families_made_of_gamma_vary():
    key = plait.random.key(1)
    g = plait.jit(grad(lambda a: plait.random.dirichlet(key, a)[0]))(np.float32([1, 2, 3]))
    assert np.isfinite(np.asarray(g)).all() and float(g[0]) > 0 > float(g[1])
    scale = grad(lambda s: plait.random.rayleigh(key, s, (4,)).sum())(2.0)
    np.testing.assert_allclose(
        float(scale), float(plait.random.rayleigh(key, 1.0, (4,)).sum()), 1e-6
    )
