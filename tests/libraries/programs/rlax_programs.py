"""Programs of rlax.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import numpy as np
import rlax

rng = np.random.default_rng(0)
Q = jnp.asarray(rng.normal(size=(6, 3)).astype("float32"))
R = jnp.asarray(rng.normal(size=6).astype("float32"))
A = jnp.array([0, 2, 1, 1, 0, 2])
D = jnp.full(6, 0.9)


def readme():
    td = jax.vmap(rlax.q_learning)(Q[:-1], A[:-1], R[:-1], D[:-1], Q[1:])
    loss = lambda q: jnp.mean(jax.vmap(rlax.q_learning)(q[:-1], A[:-1], R[:-1], D[:-1], q[1:]) ** 2)
    return td, jax.grad(loss)(Q)


def returns():
    v = Q[:, 0]
    return (
        rlax.lambda_returns(R, D, v, 0.8), rlax.n_step_bootstrapped_returns(R, D, v, 2),
        rlax.vtrace(v, v + 0.1, R, D, jnp.exp(0.1 * R)), rlax.discounted_returns(R, D, v),
    )  # fmt: skip


def policy_gradients():
    adv, w = R, jnp.ones(6)
    f = lambda q: rlax.policy_gradient_loss(q, A, adv, w) + rlax.entropy_loss(q, w)
    return f(Q), jax.grad(f)(Q), rlax.clipped_surrogate_pg_loss(jnp.exp(0.3 * R), adv, 0.2)


def distributional():
    atoms = jnp.linspace(-1, 1, 5)
    p = rlax.categorical_l2_project(atoms * 0.9 + 0.1, jnp.ones(5) / 5, atoms)
    tau = (jnp.arange(3.0) + 0.5) / 3
    q = rlax.quantile_regression_loss(Q[0], tau, Q[1], 1.0)
    return p, q


def policies():
    key = jax.random.PRNGKey(0)
    e, s = rlax.epsilon_greedy(0.2), rlax.softmax(0.7)
    g = rlax.gaussian_diagonal(0.5)
    return e.probs(Q), e.sample(key, Q), s.logprob(A, Q), s.entropy(Q), g.sample(key, Q)


def transforms():
    x = jnp.linspace(-5, 5, 6)
    y = rlax.signed_hyperbolic(x)
    return y, rlax.signed_parabolic(y), rlax.transform_to_2hot(x, -5.0, 5.0, 5), rlax.huber_loss(x)
