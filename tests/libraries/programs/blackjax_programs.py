"""Programs of blackjax: samplers of every kind on small targets.

Invariant: each returns numbers; keys are written here.
"""

import blackjax
import jax
import jax.numpy as jnp
import jax.scipy.stats as stats
import numpy as np

_K = jax.random.PRNGKey(0)
_DATA = np.random.default_rng(0).normal(10, 2, size=50).astype("float32")


def _density(x):
    return -0.5 * jnp.sum((x["a"] - 1.0) ** 2) - 0.5 * jnp.sum(x["b"] ** 2 / 4)


_START = {"a": jnp.zeros(2), "b": jnp.ones(())}
_MASS = jnp.ones(3)


def _chain(kernel, state, steps=8):
    def one(state, key):
        state, info = kernel(key, state)
        return state, state.position

    return jax.jit(lambda s, k: jax.lax.scan(one, s, k))(state, jax.random.split(_K, steps))[1]


def readme():
    def logdensity_fn(x):
        logpdf = stats.norm.logpdf(_DATA, x["loc"], x["scale"])
        return jnp.sum(logpdf)

    nuts = blackjax.nuts(logdensity_fn, 1e-2, jnp.array([0.5, 0.01]))
    state = nuts.init({"loc": 1.0, "scale": 2.0})
    key = jax.random.key(0)
    for i in range(4):
        state, _ = jax.jit(nuts.step)(jax.random.fold_in(key, i), state)
    return state.position


def hmc():
    sampler = blackjax.hmc(_density, 0.3, _MASS, 5)
    return _chain(sampler.step, sampler.init(_START))


def nuts():
    sampler = blackjax.nuts(_density, 0.3, _MASS)
    return _chain(sampler.step, sampler.init(_START))


def langevin():
    sampler = blackjax.mala(_density, 0.2)
    return _chain(sampler.step, sampler.init(_START))


def walks():
    sampler = blackjax.additive_step_random_walk(
        _density, blackjax.mcmc.random_walk.normal(0.5 * jnp.eye(3))
    )
    return _chain(sampler.step, sampler.init(_START))


def slices():
    sampler = blackjax.elliptical_slice(
        lambda x: -0.5 * jnp.sum((x - 1) ** 2), mean=jnp.zeros(3), cov=jnp.eye(3)
    )
    return _chain(sampler.step, sampler.init(jnp.ones(3)))


def chains():
    sampler = blackjax.hmc(_density, 0.3, _MASS, 5)
    starts = jax.vmap(lambda k: {"a": jax.random.normal(k, (2,)), "b": 1.0})(
        jax.random.split(_K, 3)
    )
    states = jax.vmap(sampler.init)(starts)
    new, info = jax.vmap(sampler.step)(jax.random.split(_K, 3), states)
    return new.position, info.acceptance_rate


def adaptation():
    warmup = blackjax.window_adaptation(blackjax.hmc, _density, num_integration_steps=3)
    (state, parameters), _ = warmup.run(_K, _START, num_steps=25)
    return state.position, parameters["step_size"]


def tempered():
    smc = blackjax.adaptive_tempered_smc(
        lambda x: -0.5 * jnp.sum(x**2),
        lambda x: -0.5 * jnp.sum((x - 1) ** 2 * 4),
        blackjax.hmc.build_kernel(),
        blackjax.hmc.init,
        blackjax.smc.extend_params(
            dict(step_size=0.2, inverse_mass_matrix=jnp.eye(2), num_integration_steps=3)
        ),
        blackjax.smc.resampling.systematic,
        0.5,
        num_mcmc_steps=2,
    )
    state = smc.init(jax.random.normal(_K, (20, 2)))
    state, info = jax.jit(smc.step)(_K, state)
    return state.tempering_param, state.particles


def variational():
    import optax

    vi = blackjax.meanfield_vi(lambda x: -0.5 * jnp.sum((x - 2) ** 2), optax.adam(0.1), 20)
    state = vi.init(jnp.zeros(2))
    for key in jax.random.split(_K, 5):
        state, info = jax.jit(vi.step)(key, state)
    return state.mu, state.rho, info.elbo


def stochastic():
    grad = lambda x, batch: jax.grad(lambda x: -0.5 * jnp.sum((x - batch.mean()) ** 2))(x)
    sgld = blackjax.sgld(grad)
    x = jnp.zeros(2)
    for key in jax.random.split(_K, 5):
        x = jax.jit(sgld.step)(key, x, jnp.asarray(_DATA[:10]), 0.05)
    return x


def diagnostics():
    samples = jax.random.normal(_K, (3, 40))
    return (
        blackjax.diagnostics.effective_sample_size(samples),
        blackjax.diagnostics.potential_scale_reduction(samples),
    )
