"""One network, trained on four devices in four ways, and what the devices send each other.

    python examples/parallel_ways.py

A network of equal layers has a batch of examples, and weights.  What is divided makes the way:

    data parallel     examples; every device has all weights, and gradients are summed.
    fully sharded     examples, and each weight: a layer's weights are gathered where it runs.
    tensor parallel   the hidden units of each layer; partial sums of its results are added.
    pipeline          layers; microbatches go from stage to stage, and cotangents come back.

Each way is the loss of one device, written with the collectives that it needs.  Gradients are
`value_and_grad` of it inside `shard_map`: the collectives of the backward pass follow.

Invariant: every way has the loss and the gradient of one device, up to rounding; the exit status is
1 if not.
"""

import sys
from collections import Counter

import numpy as np

import plait
import plait.numpy as pnp
from plait import P, lax

plait.config.cpu_devices = 4  # virtual devices; on a machine with four others, leave it out

DEVICES, LAYERS, BATCH, WIDTH, HIDDEN, PARTS = 4, 8, 32, 16, 32, 8
"""PARTS is the number of microbatches."""

# ---- the network on one device ------------------------------------------------------------------


def layer(x, w):
    """Return a residual layer of `x[batch, width]`."""
    return x + pnp.tanh(x @ w["up"]) @ w["down"]


def layers(x, weights):
    """Return all layers of `x`, whose weights are rows."""
    return lax.scan(lambda x, w: (layer(x, w), None), x, weights)[0]


def loss(weights, x, y):
    """Return the mean squared error."""
    return ((layers(x, weights) - y) ** 2).mean()


# ---- four ways ---------------------------------------------------------------------------------


def data_parallel(weights, x, y):
    """Each device has a part of the examples."""
    return lax.pmean(loss(weights, x, y), "d")


def fully_sharded(weights, x, y):
    """Each device has a part of the examples, and rows of each weight.

    `checkpoint` gathers weights again in the backward pass instead of keeping them.
    """

    @plait.checkpoint
    def gathered(x, w):
        w = {name: lax.all_gather(part, "d", tiled=True) for name, part in w.items()}
        return layer(x, w)

    out, _ = lax.scan(lambda x, w: (gathered(x, w), None), x, weights)
    return lax.pmean(((out - y) ** 2).mean(), "d")


def tensor_parallel(weights, x, y):
    """Each device has a part of the hidden units of every layer."""

    def part(x, w):
        return x + lax.psum(pnp.tanh(x @ w["up"]) @ w["down"], "d")

    out, _ = lax.scan(lambda x, w: (part(x, w), None), x, weights)
    return ((out - y) ** 2).mean()


def pipeline(weights, x, y):
    """Each device is a stage: it has consecutive layers, and all examples pass it in microbatches.

    At tick t, stage s works on microbatch t - s.  Stages without one work on zeros, whose results
    nothing reads (GPipe, Huang et al. 2019).
    """
    stage, last = lax.axis_index("d"), DEVICES - 1
    parts, wanted = (a.reshape(PARTS, -1, WIDTH) for a in (x, y))
    onwards = [(s, s + 1) for s in range(last)]

    def tick(arrived, t):
        first = parts[pnp.minimum(t, PARTS - 1)]
        out = layers(pnp.where(stage == 0, first, arrived), weights)
        done = t - last
        error = ((out - wanted[pnp.maximum(done, 0)]) ** 2).mean()
        counts = (stage == last) & (done >= 0)
        return lax.ppermute(out, "d", onwards), pnp.where(counts, error, 0.0)

    _, errors = lax.scan(tick, pnp.zeros_like(parts[0]), pnp.arange(PARTS + last))
    return lax.psum(errors.sum(), "d") / PARTS


ROWS = P("d")
WAYS = {  # the loss, and the specifications of weights and of examples
    "data parallel": (data_parallel, {"up": P(), "down": P()}, ROWS),
    "fully sharded": (fully_sharded, {"up": P(None, "d"), "down": P(None, "d")}, ROWS),
    "tensor parallel": (tensor_parallel, {"up": P(None, None, "d"), "down": P(None, "d")}, P()),
    "pipeline": (pipeline, {"up": ROWS, "down": ROWS}, P()),
}


# ---- comparing them ------------------------------------------------------------------------------


def start():
    """Return weights, examples and targets."""
    r = np.random.default_rng(0)
    draw = lambda *shape: (r.normal(size=shape) / np.sqrt(shape[-2])).astype("float32")  # noqa: E731
    weights = {"up": draw(LAYERS, WIDTH, HIDDEN), "down": draw(LAYERS, HIDDEN, WIDTH) / LAYERS}
    return weights, draw(BATCH, WIDTH), draw(BATCH, WIDTH)


def sent(compiled):
    """Return operation -> bytes that a device gives to it; within a loop, in one turn."""
    found = Counter()
    for c in compiled.collectives():
        found[c.op] += c.bytes
    return dict(sorted(found.items()))


def main() -> int:
    """Compare the loss and the gradient of each way with those of one device."""
    weights, x, y = start()
    value, slopes = plait.jit(plait.value_and_grad(loss))(weights, x, y)
    mesh = plait.make_mesh((DEVICES,), ("d",))
    worst = 0.0
    for name, (way, of_weights, of_examples) in WAYS.items():
        step = plait.shard_map(
            plait.value_and_grad(way),
            mesh=mesh,
            in_specs=(of_weights, of_examples, of_examples),
            out_specs=(P(), of_weights),
        )
        compiled = plait.jit(step).lower(weights, x, y).compile()
        got, found = compiled(weights, x, y)
        off = max(float(abs(found[k] - slopes[k]).max()) for k in slopes)
        worst = max(worst, off, abs(float(got - value)))
        print(f"{name}: gradient off by {off:.0e}; {sent(compiled)}")
    return int(worst > 1e-5)


if __name__ == "__main__":
    sys.exit(main())
