"""Programs of numpyro: distributions, sampling, variational inference, effects.

Invariant: each returns numbers; keys are written here.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoDelta, AutoNormal

_K = jax.random.PRNGKey(0)
_Y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12], "float32")
_SIGMA = np.array([15.0, 10, 16, 11, 9, 11, 10, 18], "float32")


def _schools(sigma, y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("J", len(sigma)):
        with numpyro.handlers.reparam(config={"theta": numpyro.infer.reparam.LocScaleReparam(0)}):
            theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)


def readme():
    mcmc = MCMC(NUTS(_schools, max_tree_depth=4), num_warmup=5, num_samples=4, progress_bar=False)
    mcmc.run(_K, _SIGMA, y=_Y)
    return mcmc.get_samples()["mu"]


def densities():
    x = jnp.array([0.3, 0.7])
    found = {
        "normal": dist.Normal(0.1, 2.0).log_prob(x),
        "gamma": dist.Gamma(2.0, 3.0).log_prob(x),
        "beta": dist.Beta(2.0, 3.0).log_prob(x),
        "student": dist.StudentT(3.0, 0.1, 2.0).log_prob(x),
        "dirichlet": dist.Dirichlet(jnp.array([1.0, 2.0])).log_prob(x),
        "cauchy": dist.Cauchy(0.0, 1.0).log_prob(x),
        "poisson": dist.Poisson(3.0).log_prob(jnp.array([1, 4])),
        "binomial": dist.Binomial(5, 0.3).log_prob(jnp.array([1, 4])),
        "categorical": dist.Categorical(logits=x).log_prob(jnp.array([0, 1])),
        "multivariate": dist.MultivariateNormal(x, jnp.eye(2) * 2).log_prob(x + 1),
        "lkj": dist.LKJCholesky(3, 2.0).log_prob(jnp.eye(3)),
        "von mises": dist.VonMises(0.3, 2.0).log_prob(x),
        "truncated": dist.TruncatedNormal(0.0, 1.0, low=0.0).log_prob(x),
        "mixture": dist.MixtureSameFamily(
            dist.Categorical(jnp.array([0.3, 0.7])), dist.Normal(jnp.array([0.0, 1.0]), 1.0)
        ).log_prob(x),
        "transformed": dist.LogNormal(0.0, 1.0).log_prob(x),
    }
    return found


def draws():
    kinds = {
        "normal": dist.Normal(0.1, 2.0),
        "gamma": dist.Gamma(2.0, 3.0),
        "beta": dist.Beta(2.0, 3.0),
        "dirichlet": dist.Dirichlet(jnp.array([1.0, 2.0, 0.5])),
        "poisson": dist.Poisson(3.0),
        "bernoulli": dist.Bernoulli(0.3),
        "categorical": dist.Categorical(jnp.array([0.2, 0.5, 0.3])),
        "exponential": dist.Exponential(2.0),
        "multinomial": dist.Multinomial(10, jnp.array([0.2, 0.5, 0.3])),
        "laplace": dist.Laplace(0.0, 1.0),
        "lkj": dist.LKJCholesky(3, 2.0),
    }
    return {k: d.sample(_K, (4,)) for k, d in kinds.items()}


def traces():
    traced = numpyro.handlers.trace(numpyro.handlers.seed(_schools, 0)).get_trace(_SIGMA, _Y)
    density = numpyro.infer.util.log_density(_schools, (_SIGMA, _Y), {}, {
        "mu": 1.0, "tau": 2.0, "theta_decentered": jnp.zeros(8)
    })[0]  # fmt: skip
    return {k: v["value"] for k, v in traced.items() if v["type"] == "sample"}, density


def handlers():
    model = numpyro.handlers.condition(_schools, {"mu": 2.0})
    seeded = numpyro.handlers.seed(model, 1)
    traced = numpyro.handlers.trace(numpyro.handlers.block(seeded, hide=["obs"])).get_trace(_SIGMA)
    return [traced[k]["value"] for k in ("mu", "tau", "theta")]


def variational():
    guide = AutoNormal(_schools)
    svi = SVI(_schools, guide, numpyro.optim.Adam(0.05), Trace_ELBO())
    out = svi.run(_K, 30, _SIGMA, _Y, progress_bar=False)
    return out.losses, out.params


def delta():
    import optax

    guide = AutoDelta(_schools)
    optimizer = numpyro.optim.optax_to_numpyro(optax.adam(0.05))
    svi = SVI(_schools, guide, optimizer, Trace_ELBO())
    state = svi.init(_K, _SIGMA, _Y)
    losses = []
    for _ in range(10):
        state, loss = jax.jit(svi.update)(state, _SIGMA, y=_Y)
        losses.append(loss)
    return losses, svi.get_params(state)


def predictions():
    samples = {"mu": jnp.arange(3.0), "tau": jnp.ones(3), "theta_decentered": jnp.zeros((3, 8))}
    return Predictive(_schools, samples)(_K, _SIGMA)["obs"]


def chains():
    kernel = NUTS(_schools, max_tree_depth=3)
    mcmc = MCMC(kernel, num_warmup=4, num_samples=3, num_chains=2, chain_method="vectorized",
                progress_bar=False)  # fmt: skip
    mcmc.run(_K, _SIGMA, y=_Y)
    return mcmc.get_samples(group_by_chain=True)["tau"]


def discrete():
    from numpyro.infer import HMC, DiscreteHMCGibbs

    def model(y):
        p = numpyro.sample("p", dist.Beta(1.0, 1.0))
        c = numpyro.sample("c", dist.Bernoulli(p))
        numpyro.sample("y", dist.Normal(c * 2.0, 1.0), obs=y)

    kernel = DiscreteHMCGibbs(HMC(model, num_steps=3))
    mcmc = MCMC(kernel, num_warmup=3, num_samples=3, progress_bar=False)
    mcmc.run(_K, jnp.array(1.2))
    return mcmc.get_samples()


def scans():
    from numpyro.contrib.control_flow import scan

    def model(y):
        def step(x, obs):
            x = numpyro.sample("x", dist.Normal(0.8 * x, 1.0))
            numpyro.sample("y", dist.Normal(x, 0.5), obs=obs)
            return x, x

        scan(step, 0.0, y)

    xs = {"x": jnp.linspace(-1, 1, 5)}
    f = lambda xs: numpyro.infer.util.log_density(model, (jnp.arange(5.0),), {}, xs)[0]
    return f(xs), jax.grad(f)(xs)["x"]


def constraints():
    c = dist.constraints
    found = []
    for constraint, shape in ((c.positive, 3), (c.unit_interval, 3), (c.simplex, 3),
                              (c.ordered_vector, 3), (c.corr_cholesky, 3)):  # fmt: skip
        t = dist.transforms.biject_to(constraint)
        x = jnp.linspace(-0.5, 0.5, shape)
        y = t(x)
        found.append([y, t.inv(y), t.log_abs_det_jacobian(x, y)])
    return found


def dependencies():
    found = numpyro.infer.inspect.get_dependencies(_schools, (_SIGMA, _Y))
    rows = found["prior_dependencies"]
    return sorted(f"{a} {b}" for a, below in rows.items() for b in below)
