"""Programs of flashbax.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import flashbax as fbx
import jax
import jax.numpy as jnp

KEY = jax.random.PRNGKey(0)
STEP = {"obs": jnp.zeros(2), "reward": jnp.array(0.0)}


def _step(i):
    return {"obs": jnp.full(2, 1.0 * i), "reward": jnp.array(0.5 * i)}


def readme():
    buffer = fbx.make_flat_buffer(max_length=16, min_length=2, sample_batch_size=3)
    state = buffer.init(STEP)
    for i in range(6):
        state = buffer.add(state, _step(i))
    batch = buffer.sample(state, KEY)
    return batch.experience.first, batch.experience.second, buffer.can_sample(state)


def prioritised():
    buffer = fbx.make_prioritised_flat_buffer(max_length=16, min_length=2, sample_batch_size=3)
    state = buffer.init(STEP)
    for i in range(6):
        state = buffer.add(state, _step(i))
    batch = buffer.sample(state, KEY)
    state = buffer.set_priorities(state, batch.indices, jnp.arange(1.0, 4))
    return batch.indices, batch.probabilities, buffer.sample(state, KEY).experience.first


def items():
    buffer = fbx.make_item_buffer(8, 1, 2, False, False)
    state = buffer.init(STEP)
    state = jax.jit(buffer.add)(state, _step(1))
    return buffer.sample(state, KEY).experience


def trajectories():
    buffer = fbx.make_trajectory_buffer(
        add_batch_size=2,
        sample_batch_size=2,
        sample_sequence_length=2,
        period=1,
        min_length_time_axis=2,
        max_length_time_axis=8,
    )
    state = buffer.init(STEP)
    for i in range(4):
        rows = jax.tree.map(lambda x: jnp.stack([x, x + 10])[:, None], _step(i))
        state = buffer.add(state, rows)
    return buffer.sample(state, KEY).experience
