"""A small transformer, trained on eight devices: a piece of every weight on each of them.

    python examples/parallel_transformer.py

The mesh has three axes.  Along "data" devices have parts of the batch, and parts of the weights,
which are completed where they are used (FSDP); along "model" they have heads of the attention and
parts of the hidden layer (tensor parallelism); along "ring" they have parts of every sequence, and
keys and values go round (ring attention).  The model is written once: what is done with several
devices is three functions that it is given.

Invariant: the trained weights are those of one device, up to rounding; the exit status is 1 if not.
"""

import math
import sys

import numpy as np

import plait
import plait.numpy as pnp
from plait import P, lax

plait.config.cpu_devices = 8  # virtual devices; on a machine with eight others, leave it out

LAYERS, BATCH, LENGTH, WIDTH, HEADS, SIZE, HIDDEN, WORDS = 4, 8, 32, 32, 4, 8, 64, 16
STEPS, RATE = 40, 0.3

# ---- the model ---------------------------------------------------------------------------------


def normed(x):
    """Every row at the same length."""
    return x / pnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def scores(q, k, at, of):
    """What queries at some positions think of keys at others; they do not see what is to come."""
    seen = at[:, None] >= of
    return pnp.where(seen, pnp.einsum("bqhk,bshk->bhqs", q, k) / math.sqrt(SIZE), -1e30)


def attention(q, k, v):
    """Softmax attention on one device."""
    at = pnp.arange(q.shape[1])
    return pnp.einsum("bhqs,bshk->bqhk", plait.nn.softmax(scores(q, k, at, at)), v)


def itself(x, *_):
    """On one device nothing is missing."""
    return x


def loss(weights, tokens, targets, attend=attention, complete=itself, add=itself):
    """The mean cross-entropy of the next words.

    `attend` is attention, `complete(w, axis)` makes a weight whole of which there is a part of an
    axis, and `add` sums what devices computed with parts of the hidden layer, or of the heads.
    """

    @plait.checkpoint
    def layer(x, w):
        w = {k: complete(v, AXES[k]) for k, v in w.items()}
        q, k, v = pnp.einsum("bsd,dchk->cbshk", normed(x), w["qkv"])
        x = x + add(pnp.einsum("bshk,hkd->bsd", attend(q, k, v), w["out"]))
        return x + add(pnp.tanh(normed(x) @ w["up"]) @ w["down"])

    words = complete(weights["words"], 1)
    x, _ = lax.scan(lambda x, w: (layer(x, w), None), words[tokens], weights["layers"])
    p = plait.nn.log_softmax(normed(x) @ words.T)
    return -(plait.nn.one_hot(targets, WORDS) * p).sum(-1).mean()


# ---- on several devices ------------------------------------------------------------------------

# the axis of a layer's weight that is in parts along "data", and where all of its axes are
AXES = {"qkv": 0, "out": 2, "up": 0, "down": 1}
PLACES = {
    "words": P(None, "data"),
    "layers": {
        "qkv": P(None, "data", None, "model"),
        "out": P(None, "model", None, "data"),
        "up": P(None, "data", "model"),
        "down": P(None, "model", "data"),
    },
}


def gathered(w, axis):
    """A weight, whole along "data"; its gradient is scattered again."""
    return lax.all_gather(w, "data", axis=axis, tiled=True)


def summed(x):
    """What all devices along "model" have computed together."""
    return lax.psum(x, "model")


def ring_attention(q, k, v):
    """Attention to a sequence that is in parts along "ring".

    Keys and values go round, and nobody has scores of more than a part.  Of what was seen there are
    the maximum, and the sums of the exponentials below it, plain and with the values: two such
    triples make one.
    """
    n, here, size = lax.axis_size("ring"), lax.axis_index("ring"), q.shape[1]
    own = pnp.arange(size)

    def seen(k, v, of):
        s = scores(q, k, here * size + own, of * size + own)
        top = s.max(-1, keepdims=True)
        e = pnp.exp(s - top)
        return top, e.sum(-1, keepdims=True), pnp.einsum("bhqs,bshk->bhqk", e, v)

    def turn(carry, t):
        k, v, (top, total, out) = carry
        k, v = lax.ppermute((k, v), "ring", [(i, (i + 1) % n) for i in range(n)])
        other, *sums = seen(k, v, (here - t) % n)
        new = pnp.maximum(top, other)
        a, b = pnp.exp(top - new), pnp.exp(other - new)
        return (k, v, (new, a * total + b * sums[0], a * out + b * sums[1])), None

    start = k, v, seen(k, v, here)
    (_, _, (_, total, out)), _ = lax.scan(turn, start, pnp.arange(1, n))
    return (out / total).transpose(0, 2, 1, 3)


def over_devices(mesh):
    """The loss and its gradient, whose weights and data are in pieces."""

    def f(weights, tokens, targets):
        part = loss(weights, tokens, targets, ring_attention, gathered, summed)
        return lax.pmean(part, ("data", "ring"))

    data = P("data", "ring")
    return plait.shard_map(
        plait.value_and_grad(f), mesh=mesh, in_specs=(PLACES, data, data), out_specs=(P(), PLACES)
    )


# ---- training ----------------------------------------------------------------------------------


def start():
    """Weights, and sentences that count on in steps of their own."""
    r = np.random.default_rng(0)
    draw = lambda inner, *shape: (r.normal(size=shape) / math.sqrt(inner)).astype("float32")  # noqa: E731
    weights = {
        "words": draw(WIDTH, WORDS, WIDTH),
        "layers": {
            "qkv": draw(WIDTH, LAYERS, WIDTH, 3, HEADS, SIZE),
            "out": draw(WIDTH, LAYERS, HEADS, SIZE, WIDTH),
            "up": draw(WIDTH, LAYERS, WIDTH, HIDDEN),
            "down": draw(HIDDEN, LAYERS, HIDDEN, WIDTH),
        },
    }
    steps, first = r.integers(1, 4, (BATCH, 1)), r.integers(0, WORDS, (BATCH, 1))
    text = ((first + steps * np.arange(LENGTH + 1)) % WORDS).astype("int32")
    return weights, text[:, :-1], text[:, 1:]


def train(value_and_grad, weights, tokens, targets):
    """The weights after some steps of gradient descent, and the losses."""

    @plait.jit
    def step(weights):
        value, slope = value_and_grad(weights, tokens, targets)
        return value, plait.tree.map(lambda w, s: w - RATE * s, weights, slope)

    losses = []
    for _ in range(STEPS):
        value, weights = step(weights)
        losses.append(float(value))
    return weights, losses


def main() -> int:
    """Train twice, and compare."""
    weights, tokens, targets = start()
    mesh = plait.make_mesh((2, 2, 2), ("data", "model", "ring"))
    lies = plait.tree.map(
        lambda spec: plait.NamedSharding(mesh, spec), PLACES, is_leaf=lambda s: isinstance(s, P)
    )
    pieces = plait.device_put(weights, lies)
    step = over_devices(mesh)
    print("a device has", pieces["layers"]["up"].addressable_shards[0].data.shape, "of the weights",
          weights["layers"]["up"].shape)  # fmt: skip
    sent = plait.jit(step).lower(pieces, tokens, targets).compile().collectives()
    for op in sorted({c.op for c in sent}):
        print(f"{op}: {sum(c.op == op for c in sent)} in a step")

    found, losses = train(step, pieces, tokens, targets)
    alone, _ = train(plait.value_and_grad(loss), weights, tokens, targets)
    pairs = zip(plait.tree.leaves(found), plait.tree.leaves(alone))
    off = max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)
    print(f"loss: {losses[0]:.3f} at first, {losses[-1]:.3f} after {STEPS} steps")
    print(f"weights differ from those of one device by {off:.1e} at most")
    return int(off > 1e-4 or losses[-1] > 0.2 * losses[0])


if __name__ == "__main__":
    sys.exit(main())
