"""A training script of equinox and optax, which says how long its parts took.

    python tests/libraries/training.py                     # with jax
    python -m plait_jax tests/libraries/training.py        # with Plait

It prints a line: seconds from the start of the script to the end of the first step, milliseconds
per step after that (the best of ten rounds), seconds of the processor in all, the last loss.

Invariant: nothing here knows on what it runs.
"""

import time

START = time.perf_counter()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402

rng = np.random.default_rng(0)
x = jnp.asarray(rng.normal(size=(256, 16)).astype("float32"))
y = jnp.sin(x.sum(1))
model = eqx.nn.MLP(16, "scalar", 64, 3, key=jax.random.PRNGKey(0))
optimizer = optax.adamw(1e-3)
state = optimizer.init(eqx.filter(model, eqx.is_array))


@eqx.filter_jit
def step(model, state):
    loss = lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2)
    value, grads = eqx.filter_value_and_grad(loss)(model)
    updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, value


model, state, value = step(model, state)
value.block_until_ready()
first = time.perf_counter() - START
rounds = []
for _ in range(10):
    begun = time.perf_counter()
    for _ in range(30):
        model, state, value = step(model, state)
    value.block_until_ready()
    rounds.append((time.perf_counter() - begun) / 30)
print(f"{first:.2f} s  {min(rounds) * 1e3:.3f} ms  {time.process_time():.1f} s  {float(value):.6f}")
