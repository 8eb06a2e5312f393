"""Programs of brax.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
from brax import envs, math
from brax.base import Motion, Transform
from brax.training import distribution, networks
from brax.training.acme import running_statistics, specs

KEY = jax.random.PRNGKey(0)


def readme():
    env = envs.create("inverted_pendulum", backend="spring")
    state = jax.jit(env.reset)(KEY)
    step = jax.jit(env.step)
    out = []
    for _ in range(5):
        state = step(state, jnp.ones(env.action_size))
        out.append((state.obs, state.reward, state.done))
    return out


def mapped_environments():
    env = envs.create("fast", batch_size=3, episode_length=4)
    state = jax.jit(env.reset)(KEY)
    for _ in range(5):
        state = env.step(state, jnp.ones((3, env.action_size)))
    return state.obs, state.done, state.reward


def transforms():
    t = Transform.create(jnp.array([1.0, 2, 3]), math.euler_to_quat(jnp.array([10.0, 20, 30])))
    m = Motion(ang=jnp.array([0.1, 0.2, 0.3]), vel=jnp.array([1.0, 0, 1]))
    moved = t.do(m)
    return moved.ang, moved.vel, math.rotate(t.pos, t.rot), math.quat_to_euler(t.rot)


def policies():
    net = networks.make_policy_network(4, 3, hidden_layer_sizes=(8, 8))
    params = net.init(KEY)
    normal = distribution.NormalTanhDistribution(event_size=2)
    logits = net.apply(None, params, jnp.arange(3.0))
    a = normal.sample_no_postprocessing(logits, KEY)
    return logits, normal.log_prob(logits, a), normal.entropy(logits, KEY), normal.postprocess(a)


def running_averages():
    state = running_statistics.init_state(specs.Array((3,), jnp.dtype("float32")))
    for i in range(3):
        state = running_statistics.update(state, jnp.arange(12.0).reshape(4, 3) ** (1 + i / 2))
    return state.mean, state.std, running_statistics.normalize(jnp.ones((2, 3)), state)
