"""Programs of pymc, compiled by pytensor's jax backend.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.sampling.jax import get_jaxified_graph, get_jaxified_logp

rng = np.random.default_rng(0)
DATA = rng.normal(1.0, 2.0, size=20)
X = rng.normal(size=(20, 3))


def _model():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 5)
        sigma = pm.HalfNormal("sigma", 3)
        pm.Normal("y", mu, sigma, observed=DATA)
    return model


def readme():
    """The posterior's mean and deviation, which two samplers agree on by jax' keys."""
    with _model():
        trace = pm.sample(
            30, tune=30, chains=1, nuts_sampler="numpyro", random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    post = trace.posterior
    return [bool(0 < float(post["mu"].mean()) < 2.5), bool(0.5 < float(post["sigma"].mean()) < 5)]


def log_density():
    f = get_jaxified_logp(_model())
    x = [np.array(0.5), np.array(0.2)]
    return f(x), jax.grad(f)(x)


def linear_regression():
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 1, shape=3)
        pm.StudentT("y", nu=4, mu=pt.dot(X, beta), sigma=1.0, observed=DATA)
    f = get_jaxified_logp(model)
    x = [np.array([0.1, -0.2, 0.3])]
    return f(x), jax.grad(f)(x), jax.hessian(f)(x)


def distributions():
    with pm.Model() as model:
        pm.Beta("a", 2, 3)
        pm.Gamma("b", 2, 1)
        pm.Dirichlet("c", np.ones(3))
        pm.MvNormal("d", np.zeros(2), np.eye(2))
        pm.LogNormal("e", 0, 1)
    f = get_jaxified_logp(model)
    x = [np.array(0.1), np.array(0.2), np.array([0.3, 0.4]), np.array([0.5, 0.6]), np.array(0.7)]
    return f(x), jax.grad(f)(x)


def graphs():
    x = pt.dmatrix("x")
    y = pt.linalg.cholesky(x @ x.T + 3 * pt.eye(3)).sum() + pt.erf(x).sum() + pt.sort(x, 1)[0, 0]
    (f,) = [get_jaxified_graph(inputs=[x], outputs=[y])]
    return f(X[:3])


def functions():
    x = pt.dvector("x")
    outs, _ = pytensor.scan(
        lambda v, s: s * 0.5 + v, sequences=x, outputs_info=pt.constant(np.float64(0))
    )
    f = pytensor.function([x], [outs, pt.cumsum(x), pt.switch(x > 0, x, -x)], mode="JAX")
    return f(X[:, 0])
