# %% [markdown]
# # A reversible network
#
# You will train a residual network on handwritten digits whose gradient needs the same memory at
# any depth: reverse mode recomputes the input of each block from its output instead of keeping it.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import plait
import plait.numpy as pnp
from plait import nn

pixels, labels = load_digits(return_X_y=True)
images, labels = (pixels / 16).astype(np.float32), labels.astype(np.int32)
print(images.shape, labels.shape)

# %% [markdown]
# ## A block that can be undone
#
# The features are split into two halves. Each half gets a residual that depends on the other half
# alone, so `x2 = y2 - tanh(y1 @ w2 + b2)`, then `x1 = y1 - tanh(x2 @ w1 + b1)`.


# %%
def block(x1, x2, p):
    w1, b1, w2, b2 = p
    y1 = x1 + pnp.tanh(x2 @ w1 + b1)
    return y1, x2 + pnp.tanh(y1 @ w2 + b2)


def body(x1, x2, blocks):
    return plait.lax.scan(lambda c, p: (block(*c, p), None), (x1, x2), blocks)[0]


# %% [markdown]
# `plait.invertible(f)` finds the inverse of a function from its operations, here additions in a
# `scan`. You write no inverse.


# %%
def scores(params, images, body=plait.invertible(body)):
    blocks, (w, b) = params
    y1, y2 = body(images[:, :32], images[:, 32:], blocks)
    return pnp.concatenate([y1, y2], 1) @ w + b


def loss(params, images, labels, body=plait.invertible(body)):
    logs = nn.log_softmax(scores(params, images, body))
    return -pnp.take_along_axis(logs, labels[:, None], 1).mean()


def parameters(depth):
    r = np.random.default_rng(0)
    draw = lambda *shape: pnp.asarray(r.normal(0, 0.05, shape), "float32")
    sizes = (depth, 32, 32), (depth, 32)
    return tuple(draw(*s) for s in (*sizes, *sizes)), (draw(64, 10), draw(10))


# %% [markdown]
# ## The same gradient, in less memory
#
# A compiled function says how many bytes it needs besides arguments and results.


# %%
def megabytes(depth, body):
    many, of = np.tile(images[:1024], (4, 1)), np.tile(labels[:1024], 4)
    gradient = plait.jit(plait.grad(lambda p: loss(p, many, of, body)))
    compiled = gradient.lower(parameters(depth)).compile()
    return compiled.memory_analysis().temp_size_in_bytes / 1e6


depths = [4, 8, 16, 32, 64]
kept = [megabytes(d, body) for d in depths]
recomputed = [megabytes(d, plait.invertible(body)) for d in depths]
print("plain:     ", *[f"{m:6.1f}" for m in kept])
print("invertible:", *[f"{m:6.1f}" for m in recomputed])

plt.figure(figsize=(6, 3.5))
plt.plot(depths, kept, "o-", label="plain")
plt.plot(depths, recomputed, "o-", label="plait.invertible")
plt.xlabel("blocks")
plt.ylabel("memory of the gradient in MB")
plt.legend()
plt.show()

assert max(recomputed) < 1.1 * min(recomputed)
assert kept[-1] > 4 * recomputed[-1]

# %%
params = parameters(16)
one = plait.grad(lambda p: loss(p, images, labels))(params)
other = plait.grad(lambda p: loss(p, images, labels, body))(params)
pairs = zip(plait.tree.leaves(one), plait.tree.leaves(other))
difference = max(float(abs(a - b).max() / abs(b).max()) for a, b in pairs)
print(f"largest relative difference of the gradients: {difference:.0e}")
assert difference < 1e-5

# %% [markdown]
# ## Train it


# %%
@plait.jit
def step(params, images, labels):
    value, g = plait.value_and_grad(loss)(params, images, labels)
    return plait.tree.map(lambda p, d: p - 0.02 * d, params, g), value


order, losses = np.random.default_rng(1), []
for _ in range(400):
    rows = order.integers(0, 1500, 128)
    params, value = step(params, images[rows], labels[rows])
    losses.append(float(value))

guess = scores(params, images[1500:]).argmax(1)
accuracy = float((guess == labels[1500:]).mean())
print(f"accuracy on digits it has not seen: {accuracy:.3f}")
assert accuracy > 0.85

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3), width_ratios=[3, 2])
left.plot(losses)
left.set_xlabel("step")
left.set_ylabel("loss")
right.imshow(np.hstack(images[1500:1504].reshape(4, 8, 8)), cmap="gray_r")
right.set_title("read as " + ", ".join(str(g) for g in guess[:4]))
right.axis("off")
plt.show()

# %% [markdown]
# Recomputing costs time: the backward pass runs each block once more. To choose values to keep
# instead, see [where memory goes in a gradient](../explanation/memory.md); for blocks whose inverse
# cannot be found, `plait.custom_ivjp` takes yours.
