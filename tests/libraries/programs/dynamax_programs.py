"""Programs of dynamax.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import jax.random as jr
from dynamax.hidden_markov_model import (
    GaussianHMM,
    hmm_filter,
    hmm_posterior_mode,
    hmm_smoother,
    parallel_hmm_filter,
)
from dynamax.linear_gaussian_ssm import LinearGaussianSSM

KEY = jr.PRNGKey(0)
P0, A = jnp.array([0.6, 0.4]), jnp.array([[0.9, 0.1], [0.2, 0.8]])
LL = jnp.log(jnp.array([[0.5, 0.1], [0.4, 0.3], [0.1, 0.7], [0.2, 0.6]]))


def readme():
    hmm = GaussianHMM(2, 1)
    params, _ = hmm.initialize(KEY, emission_means=jnp.array([[-1.0], [1.0]]))
    states, emissions = hmm.sample(params, KEY, 10)
    post = hmm.smoother(params, emissions)
    return emissions, post.smoothed_probs, hmm.marginal_log_prob(params, emissions)


def inference():
    f = hmm_filter(P0, A, LL)
    s = hmm_smoother(P0, A, LL)
    return (
        f.marginal_loglik,
        f.filtered_probs,
        s.smoothed_probs,
        hmm_posterior_mode(P0, A, LL),
        parallel_hmm_filter(P0, A, LL).filtered_probs,
    )


def gradients():
    return jax.grad(lambda a: hmm_filter(P0, a, LL).marginal_loglik)(A)


def expectation_maximisation():
    hmm = GaussianHMM(2, 1)
    params, props = hmm.initialize(KEY, emission_means=jnp.array([[-1.0], [1.0]]))
    _, emissions = hmm.sample(params, KEY, 30)
    params, lls = hmm.fit_em(params, props, emissions, num_iters=3, verbose=False)
    return lls, params.emissions.means


def kalman_filter():
    ssm = LinearGaussianSSM(state_dim=2, emission_dim=1)
    params, _ = ssm.initialize(KEY, dynamics_weights=jnp.array([[0.9, 0.1], [0.0, 0.8]]))
    _, emissions = ssm.sample(params, KEY, 8)
    post = ssm.smoother(params, emissions)
    return (
        emissions,
        post.marginal_loglik,
        post.smoothed_means,
        ssm.filter(params, emissions).filtered_covariances,
    )
