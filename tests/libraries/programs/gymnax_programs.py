"""Programs of gymnax.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import gymnax
import jax

KEY = jax.random.PRNGKey(0)


def _rollout(name):
    env, params = gymnax.make(name)
    obs, state = env.reset(KEY, params)

    def step(carry, key):
        obs, state = carry
        obs, state, reward, done, *_ = env.step(
            key, state, env.action_space(params).sample(key), params
        )
        return (obs, state), (reward, done)

    (obs, _), rest = jax.jit(lambda c, k: jax.lax.scan(step, c, k))(
        (obs, state), jax.random.split(KEY, 6)
    )
    return obs.astype("float32"), rest


def readme():
    env, params = gymnax.make("CartPole-v1")
    obs, state = env.reset(KEY, params)
    return obs, env.step(KEY, state, 1, params)[0]


def pendulum():
    return _rollout("Pendulum-v1")


def mountain_car():
    return _rollout("MountainCar-v0")


def acrobot():
    return _rollout("Acrobot-v1")


def grid_worlds():
    return _rollout("FourRooms-misc"), _rollout("Catch-bsuite")


def many_at_once():
    env, params = gymnax.make("CartPole-v1")
    obs, _ = jax.vmap(env.reset, (0, None))(jax.random.split(KEY, 3), params)
    return obs
