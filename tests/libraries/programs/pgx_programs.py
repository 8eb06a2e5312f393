"""Programs of pgx.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import pgx

KEY = jax.random.PRNGKey(0)


def _played(name, steps, **options):
    env = pgx.make(name, **options)
    step = jax.jit(env.step)
    state = jax.jit(env.init)(KEY)
    for _ in range(steps):
        legal = jnp.flatnonzero(state.legal_action_mask, size=1)[0]
        state = step(state, legal)
    return (
        state.observation.astype("float32"),
        state.rewards,
        state.legal_action_mask,
        state.terminated,
    )


def readme():
    env = pgx.make("tic_tac_toe")
    init, step = jax.jit(jax.vmap(env.init)), jax.jit(jax.vmap(env.step))
    state = init(jax.random.split(KEY, 3))
    for a in (4, 0, 2, 1):
        state = step(state, jnp.full(3, a))
    return state.observation.astype("float32"), state.rewards, state.current_player


def connect_four():
    return _played("connect_four", 5)


def kuhn_poker():
    return _played("kuhn_poker", 2)


def sliding_numbers():
    env = pgx.make("2048")
    state = env.init(KEY)
    state = jax.jit(env.step)(state, jnp.argmax(state.legal_action_mask), KEY)
    return state.observation.astype("float32"), state.rewards


def othello():
    return _played("othello", 3)
