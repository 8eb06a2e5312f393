# %% [markdown]
# # Train a classifier
#
# You will train a network that reads handwritten digits, look at its mistakes, and find out which
# images it learns most from. It takes a few seconds on a laptop.
#
# The data are the 1,797 images of 8 x 8 pixels that come with scikit-learn.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import plait
import plait.numpy as pnp
from plait import nn, random

pixels, labels = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(labels))
xs = (pixels[order] / 16).astype("float32")
ys = labels[order].astype("int32")
train_x, train_y, test_x, test_y = xs[:1400], ys[:1400], xs[1400:], ys[1400:]

figure, axes = plt.subplots(1, 8, figsize=(8, 1.2))
for ax, image, label in zip(axes, xs, ys):
    ax.imshow(image.reshape(8, 8), cmap="gray_r")
    ax.set_title(int(label))
    ax.axis("off")

# %% [markdown]
# Note `astype("float32")`: a numpy array of 64 bits keeps its 64 bits here, and would make the
# whole network compute in `float64`. [Dtypes](../dtypes.md) has the rule.
#
# ## The network
#
# Two layers, and *dropout* while it is trained: random hidden units are set to zero. The loss is
# the cross entropy of the logits. There is no
# object that owns the parameters. `init` makes them, and `logits` takes them.


# %%
def init(key, sizes=(64, 128, 10)):
    layers = []
    for k, n, m in zip(random.split(key, 2), sizes[:-1], sizes[1:]):
        weights = random.normal(k, (n, m)) * (2 / n) ** 0.5
        layers.append({"w": weights, "b": pnp.zeros(m)})
    return layers


def dropout(key, x, rate):
    kept = random.bernoulli(key, 1 - rate, x.shape)
    return pnp.where(kept, x / (1 - rate), 0.0)


def logits(params, x, key=None):
    first, last = params
    h = nn.relu(x @ first["w"] + first["b"])
    if key is not None:  # training
        h = dropout(key, h, 0.2)
    return h @ last["w"] + last["b"]


def cross_entropy(params, x, y, key=None):
    scores = nn.log_softmax(logits(params, x, key))
    return -pnp.take_along_axis(scores, y[..., None], axis=-1).mean()


# %% [markdown]
# `if key is not None` is decided by Python while the function is traced. That works, because it
# does not depend on the *value* of an array. [How tracing works](../explanation/tracing.md) says
# more.
#
# ## The optimiser
#
# Stochastic gradient descent (SGD) with momentum: ten lines. For Adam and fifty others use
# [optax](../libraries.md); the [next tutorial](transformer.py) shows both.


# %%
@plait.jit
def step(state, x, y, key):
    params, velocity = state
    loss, grads = plait.value_and_grad(cross_entropy)(params, x, y, key)
    velocity = plait.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
    params = plait.tree.map(lambda p, v: p - 0.05 * v, params, velocity)
    return (params, velocity), loss


@plait.jit
def accuracy(params, x, y):
    return (logits(params, x).argmax(-1) == y).mean()


# %% [markdown]
# ## Training in minibatches
#
# The loop is plain Python, and numpy picks the rows of each minibatch.

# %%
EPOCHS, BATCH = 25, 50

params = init(random.key(0))
state = params, plait.tree.map(pnp.zeros_like, params)
rng, key = np.random.default_rng(1), random.key(1)
losses, tested = [], []
for _ in range(EPOCHS):
    for rows in rng.permutation(len(train_y)).reshape(-1, BATCH):
        key, used = random.split(key)
        state, loss = step(state, train_x[rows], train_y[rows], used)
        losses.append(loss)
    tested.append(accuracy(state[0], test_x, test_y))
params = state[0]
print(f"accuracy on images that it has not seen: {tested[-1]:.1%}")
assert tested[-1] > 0.95

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
left.semilogy(losses, linewidth=0.7)
left.set(xlabel="step", ylabel="loss")
right.plot(np.arange(1, EPOCHS + 1), tested)
right.set(xlabel="epoch", ylabel="accuracy, test set")
plt.show()

# %% [markdown]
# ## Where it errs
#
# A confusion matrix: row *i*, column *j* counts the images of *i* that were read as *j*.

# %%
found = np.asarray(logits(params, test_x).argmax(-1))
table = np.zeros((10, 10), int)
np.add.at(table, (test_y, found), 1)
plt.imshow(np.sqrt(table), cmap="Blues")
for i, j in zip(*np.nonzero(table)):
    plt.text(j, i, table[i, j], ha="center", va="center")
plt.xticks(range(10)), plt.yticks(range(10))
plt.xlabel("read as"), plt.ylabel("is")
plt.show()

# %% [markdown]
# ## Per-example gradients
#
# How much does each image pull at the weights? The norm of its gradient measures it. `grad` is
# for one loss; `vmap` over the examples gives all 1,400 gradients in one compiled program.


# %%
def pull(params, x, y):
    grads = plait.grad(cross_entropy)(params, x, y)
    return pnp.sqrt(sum((g**2).sum() for g in plait.tree.leaves(grads)))


pulls = plait.jit(plait.vmap(pull, in_axes=(None, 0, 0)))(params, train_x, train_y)
strongest = np.argsort(pulls)[::-1][:8]

figure, axes = plt.subplots(1, 8, figsize=(8, 1.4))
for ax, i in zip(axes, strongest):
    ax.imshow(train_x[i].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{train_y[i]}: {pulls[i]:.2f}", fontsize=9)
    ax.axis("off")

# %% [markdown]
# These are the images a person would hesitate over, too. The same two functions clip gradients
# for differential privacy: see [per-example gradients](../how-to/per-example-gradients.md).
#
# ## Next
#
# * [Train a small transformer on text](transformer.py), with Adam, sampling and saved state.
# * [Data parallel on eight devices](data-parallel.py).
# * `examples/digits.py` takes a convolutional classifier further: guaranteed bounds, and export.
