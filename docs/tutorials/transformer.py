# %% [markdown]
# # Train a small transformer on text
#
# You will train a network that writes text character by character, first with an optimiser in 20
# lines, then with optax; you will sample from it, save it, and go on where it stopped. It takes
# less than a minute on two cores.
#
# The text ships with Python: the pages behind `help("for")`, the language reference.

# %%
import tempfile
from pathlib import Path
from pydoc_data import topics

import matplotlib.pyplot as plt
import numpy as np

import plait
import plait.numpy as pnp
from plait import nn, random

text = " ".join(" ".join(topics.topics.values()).split())
letters = sorted(set(text))
code = {c: i for i, c in enumerate(letters)}
data = np.array([code[c] for c in text], dtype="int32")
print(f"{len(text):,} characters, {len(letters)} different ones")
print(text[1000:1240])

# %% [markdown]
# ## The model
#
# Two blocks, each of attention and a dense layer, with 64 features at each of 64 positions.
# Causal attention lets a position read itself and those before it; each head of attention has a
# part of the features. `nn.dot_product_attention` takes arrays of (batch, position, head,
# feature).

# %%
WIDTH, HEADS, DEPTH, LENGTH, BATCH = 64, 4, 2, 64, 16


def init(key):
    keys = iter(random.split(key, 50))

    def dense(n, m):
        return random.normal(next(keys), (n, m)) / np.sqrt(n)

    def block():
        return {
            "norm1": pnp.ones(WIDTH),
            "qkv": dense(WIDTH, 3 * WIDTH),
            "mix": dense(WIDTH, WIDTH) / 4,
            "norm2": pnp.ones(WIDTH),
            "up": dense(WIDTH, 4 * WIDTH),
            "down": dense(4 * WIDTH, WIDTH) / 4,
        }

    return {
        "letters": 0.02 * random.normal(next(keys), (len(letters), WIDTH)),
        "places": 0.02 * random.normal(next(keys), (LENGTH, WIDTH)),
        "blocks": [block() for _ in range(DEPTH)],
        "norm": pnp.ones(WIDTH),
        "head": dense(WIDTH, len(letters)) / 4,
    }


def normed(x, scale):
    x = x - x.mean(-1, keepdims=True)
    return scale * x / pnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)


def forward(params, x):
    """Scores of the next letter, for each position of each row of `x`."""
    h = params["letters"][x] + params["places"][: x.shape[-1]]
    for b in params["blocks"]:
        qkv = normed(h, b["norm1"]) @ b["qkv"]
        split = (*x.shape, HEADS, WIDTH // HEADS)
        q, k, v = (t.reshape(split) for t in pnp.split(qkv, 3, axis=-1))
        seen = nn.dot_product_attention(q, k, v, is_causal=True)
        h = h + seen.reshape(h.shape) @ b["mix"]
        h = h + nn.gelu(normed(h, b["norm2"]) @ b["up"]) @ b["down"]
    return normed(h, params["norm"]) @ params["head"]


def loss(params, x, y):
    scores = nn.log_softmax(forward(params, x))
    return -pnp.take_along_axis(scores, y[..., None], axis=-1).mean()


params = init(random.key(0))
print(sum(p.size for p in plait.tree.leaves(params)), "parameters")

# %% [markdown]
# `/ np.sqrt(n)` divides by a numpy number of 64 bits, and the weights stay `float32`: numpy's
# *scalars* are weak, as Python's numbers are. A numpy *array* is not. See [dtypes](../dtypes.md).
#
# ## Adam in twenty lines


# %%
def adam_init(params):
    zeros = plait.tree.map(pnp.zeros_like, params)
    return {"mean": zeros, "square": zeros, "steps": pnp.array(0)}


def adam(params, state, grads, rate=3e-3, a=0.9, b=0.99):
    t = state["steps"] + 1
    mean = plait.tree.map(lambda m, g: a * m + (1 - a) * g, state["mean"], grads)
    square = plait.tree.map(lambda s, g: b * s + (1 - b) * g**2, state["square"], grads)

    def moved(p, m, s):
        return p - rate * (m / (1 - a**t)) / (pnp.sqrt(s / (1 - b**t)) + 1e-8)

    params = plait.tree.map(moved, params, mean, square)
    return params, {"mean": mean, "square": square, "steps": t}


@plait.jit
def step(params, state, x, y):
    value, grads = plait.value_and_grad(loss)(params, x, y)
    params, state = adam(params, state, grads)
    return params, state, value


# %% [markdown]
# ## Train

# %%
STEPS = 200
rng = np.random.default_rng(0)


def batch():
    starts = rng.integers(0, len(data) - LENGTH - 1, (BATCH, 1))
    rows = data[starts + np.arange(LENGTH + 1)]
    return rows[:, :-1], rows[:, 1:]


state, losses = adam_init(params), []
for _ in range(STEPS):
    params, state, value = step(params, state, *batch())
    losses.append(value)
print(f"loss: {losses[0]:.2f} at first, {np.mean(losses[-20:]):.2f} at the end")
assert np.mean(losses[-20:]) < 2.6

# %% [markdown]
# ## Save, and resume training
#
# The state of training is a tree of arrays: parameters, the optimiser's state. `numpy.savez`
# writes it; [checkpoints](../how-to/checkpoints.md) has more ways, and what a crash must not
# destroy.

# %%
folder = Path(tempfile.mkdtemp())
leaves, tree = plait.tree.flatten((params, state))
np.savez(folder / "training.npz", *leaves)

with np.load(folder / "training.npz") as saved:
    params, state = tree.unflatten([pnp.asarray(saved[k]) for k in saved.files])
print("resumed after step", int(state["steps"]))

for _ in range(STEPS):
    params, state, value = step(params, state, *batch())
    losses.append(value)
print(f"after step {int(state['steps'])}: {np.mean(losses[-20:]):.2f}")

# %% [markdown]
# ## Sampling
#
# One letter at a time: the scores of the last position are those of the next letter. The window
# has a fixed length, so this compiles once.


# %%
@plait.jit
def next_letter(params, window, key):
    scores = forward(params, window[None])[0, -1]
    return random.categorical(key, scores / 0.7)


def write(params, start, number, seed=0):
    window = np.array([code[c] for c in start.rjust(LENGTH)[-LENGTH:]], "int32")
    for key in random.split(random.key(seed), number):
        letter = next_letter(params, window, key)
        window = np.append(window[1:], np.int32(letter))
        start += letters[int(letter)]
    return start


print(write(params, "The statement ", 300))

# %% [markdown]
# Words, and no sense yet: that takes a few thousand steps, and a wider network.
#
# ## The same with optax
#
# `plait.optim` does not exist, on purpose: [optax](https://optax.readthedocs.io) has the
# optimisers, and runs on Plait unmodified. `plait_jax.install()` comes before `import optax`,
# since optax imports `jax`; see [libraries of JAX](../libraries.md).

# %%
import plait_jax

plait_jax.install()

import optax

optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-3, b2=0.99))


@plait.jit
def optax_step(params, state, x, y):
    value, grads = plait.value_and_grad(loss)(params, x, y)
    updates, state = optimiser.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


params = init(random.key(0))
state, beside = optimiser.init(params), []
for _ in range(2 * STEPS):
    params, state, value = optax_step(params, state, *batch())
    beside.append(value)


# %% [markdown]
# The loss curves of both, averaged over twenty steps:


# %%
def smooth(values):
    return np.convolve(values, np.ones(20) / 20, mode="valid")


plt.plot(smooth(losses), label="Adam, by hand")
plt.plot(smooth(beside), label="optax.adamw, clipped")
plt.axvline(STEPS, color="gray", linestyle=":", label="saved and resumed")
plt.xlabel("step"), plt.ylabel("loss per character")
plt.legend()
plt.show()

# %% [markdown]
# ## Next
#
# * [Checkpoints](../how-to/checkpoints.md), [mixed precision](../how-to/mixed-precision.md).
# * [Where memory goes in a gradient](../explanation/memory.md).
# * [Data parallel on eight devices](data-parallel.py).
# * `examples/parallel_transformer.py` divides a transformer over devices by its matrices.
