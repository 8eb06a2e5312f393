# %% [markdown]
# # Variable-length text in ten minutes
#
# You will train a model that tells the code of a program from its comments, line by line. Lines
# have different lengths, and you will write the model for *one* line: without padding, masks or
# lengths. It takes under a minute on a laptop.
#
# The text ships with Python: the source of its standard library.

# %%
import ast
import inspect
import json.decoder
import textwrap
import typing

import matplotlib.pyplot as plt
import numpy as np

import plait
import plait.numpy as pnp
from plait import Capacities, Pile, nn, pile_axis, random, vmap

found = []
for module in (ast, inspect, json.decoder, textwrap, typing):
    source = inspect.getsource(module).splitlines()
    words = set()
    for node in ast.walk(ast.parse("\n".join(source))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            first = node.body[0]
            words.update(range(first.lineno - 1, first.end_lineno))
    found += [
        (line.strip()[:80], number in words)
        for number, line in enumerate(source)
        if len(line.strip()) > 3
    ]

r = np.random.default_rng(0)
lines = [found[i] for i in r.permutation(len(found))]
for text, is_words in lines[:4]:
    print("words" if is_words else "code ", text)

# %% [markdown]
# ## A pile of lines
#
# A **pile** is a batch of arrays of different sizes. Its rows are stored one after the other.

# %%
texts = [np.frombuffer(text.encode()[:80], np.uint8) for text, _ in lines]
p = Pile.from_list(texts[:3])
print(p.lengths, p.data.shape)

plt.figure(figsize=(5, 2))
plt.hist([len(t) for t in texts], bins=40)
plt.xlabel("characters in a line")
plt.ylabel("lines")
plt.show()

# %% [markdown]
# `vmap` maps a function of one line over all of them. `pile_axis` stands in `in_axes` where the
# argument is a pile, and in `out_axes` where the result is one.

# %%
print(vmap(lambda text: (text == ord(" ")).mean(), pile_axis)(p))  # the share of spaces
print(vmap(lambda text: text[::-1], pile_axis, pile_axis)(p).lengths)

# %% [markdown]
# ## The model
#
# Each character has a vector, each pair of neighbours goes through a layer, and the score of a line
# is a mean over its pairs. `mean` is the mean of this line: there is no mask to forget.


# %%
def init(key):
    a, b, c = random.split(key, 3)
    return {
        "characters": random.normal(a, (256, 16)) * 0.3,
        "pairs": random.normal(b, (32, 32)) * 0.2,
        "out": random.normal(c, (32,)) * 0.2,
    }


def score(params, text):
    x = params["characters"][text.astype("int32")]
    pairs = pnp.concatenate([x[:-1], x[1:]], axis=1)
    return pnp.tanh(pairs @ params["pairs"]).mean(axis=0) @ params["out"] * 4


params = init(random.key(0))
scores = vmap(score, in_axes=(None, pile_axis))
print(scores(params, p))
print([float(score(params, t)) for t in texts[:3]])

# %% [markdown]
# The two lines agree: that is the meaning of `vmap` over a pile, and all of it.
#
# ## One program for all batches
#
# Every batch has other lengths, and a program is compiled for sizes. `Capacities` gives all
# batches one size, and `Pile.pack` fills them in order. A batch of fewer lines gets empty elements
# at the end, whose labels are -1 here.

# %%
sizes = Capacities(rows=2048, longest=80, count=64)


def batches(part):
    at = 0
    chosen = (np.frombuffer(text.encode()[:80], np.uint8) for text, _ in part)
    for texts in Pile.pack(chosen, sizes):
        count = int((texts.lengths > 0).sum())
        labels = np.full(64, -1, "float32")
        labels[:count] = [is_words for _, is_words in part[at : at + count]]
        yield texts, labels
        at += count


def loss(params, texts, labels):
    there = labels >= 0
    sign = pnp.where(labels == 1, -1.0, 1.0)
    each = nn.softplus(sign * scores(params, texts))
    return pnp.where(there, each, 0).sum() / there.sum()


programs = []


@plait.jit
def step(params, speed, texts, labels):
    programs.append("made")  # Python runs when a program is made, and not for each batch
    value, g = plait.value_and_grad(loss)(params, texts, labels)
    speed = plait.tree.map(lambda v, d: 0.9 * v - 0.3 * d, speed, g)
    return value, plait.tree.map(pnp.add, params, speed), speed


test, train = lines[:500], lines[500:]
speed = plait.tree.map(pnp.zeros_like, params)
losses = []
for _ in range(3):
    for texts, labels in batches(train):
        value, params, speed = step(params, speed, texts, labels)
        losses.append(float(value))
print(f"{len(losses)} batches, {len(programs)} program")
assert len(programs) == 1

plt.figure(figsize=(5, 2))
plt.plot(losses)
plt.xlabel("batch")
plt.ylabel("loss")
plt.show()

# %%
right = total = 0
for texts, labels in batches(test):
    there = labels >= 0
    right += int(((np.asarray(scores(params, texts)) > 0) == (labels == 1))[there].sum())
    total += int(there.sum())
print(f"{right / total:.0%} of {total} lines are right")
assert right / total > 0.8

# %% [markdown]
# ## Which characters matter?
#
# A gradient with respect to a pile is a pile. Here it is the gradient of each line's score with
# respect to the vectors of its characters.


# %%
def importance(text):
    def from_vectors(x):
        pairs = pnp.concatenate([x[:-1], x[1:]], axis=1)
        return pnp.tanh(pairs @ params["pairs"]).mean(axis=0) @ params["out"] * 4

    x = params["characters"][text.astype("int32")]
    return pnp.linalg.norm(plait.grad(from_vectors)(x), axis=1)


few = [text for text, _ in test[:4]]
weights = vmap(importance, pile_axis, pile_axis)(
    Pile.from_list([np.frombuffer(t.encode()[:80], np.uint8) for t in few])
)
figure, axes = plt.subplots(4, 1, figsize=(7, 3))
for ax, text, w in zip(axes, few, weights.to_list()):
    ax.imshow(w[None], aspect="auto", cmap="Oranges", extent=(0, len(text), 0, 1))
    for i, character in enumerate(text):
        ax.text(i + 0.5, 0.5, character, ha="center", va="center", fontsize=7, family="monospace")
    ax.axis("off")
plt.show()

# %% [markdown]
# ## Where to go next
#
# [Piles](../piles.md) has the rest: gradients, piles of piles, several devices, and what is
# refused. [From padded arrays](../how-to/from-padded.md) translates a model that has masks.
