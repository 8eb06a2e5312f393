"""Sequences of very different lengths, trained on over four devices that have equally many rows.

    python examples/parallel_piles.py

A few sequences are as long as all the others together.  Dealt in order, one device has most of the
rows, and the others wait for it; `Pile.divided` deals them so that each has about as many.  The
model is written for one sequence.  `shard_map` gives each device its part, and one sum over devices
completes the gradient.

Invariant: loss and gradient over devices are those of one device, up to rounding, and all batches
have one program; the exit status is 1 if not.
"""

import sys

import numpy as np

import plait
import plait.numpy as pnp
from plait import P, Pile, lax, pile_axis, vmap

plait.config.cpu_devices = 4  # virtual devices; on a machine with four others, leave it out

DEVICES, COUNT, WIDTH, STEPS = 4, 64, 8, 20
LONGEST = 256
EACH = plait.Capacities(rows=1024, longest=LONGEST)
"""The rows and sequences for which each device has room."""

# ---- the model of one sequence -------------------------------------------------------------------


def answer(w, x):
    """Return a number for `x[rows, width]`: attention to all its rows, then their mean."""
    weights = plait.nn.softmax((x @ w["query"]) @ (x @ w["key"]).T / WIDTH**0.5, axis=-1)
    return pnp.tanh(weights @ (x @ w["value"])).mean(axis=0) @ w["out"]


def errors(w, xs, wanted):
    """Return the sum of squared errors of a pile; sequences that are missing have none."""
    return vmap(lambda w, x, y: (answer(w, x) - y) ** 2, (None, pile_axis, 0))(w, xs, wanted).sum()


def loss(w, xs, wanted):
    """Return the mean squared error on one device."""
    return errors(w, xs, wanted) / COUNT


# ---- over devices --------------------------------------------------------------------------------


def part(w, xs, wanted):
    """Return the mean squared error of all devices; each has its part of the sequences."""
    return lax.psum(errors(w, xs[0], wanted[0]), "d") / COUNT


def over_devices(mesh):
    """Return a function: weights, parts, what is wanted of them -> loss and gradient."""
    return plait.shard_map(
        plait.value_and_grad(part),
        mesh=mesh,
        in_specs=(P(), P("d"), P("d")),
        out_specs=(P(), P()),
    )


def dealt(xs, wanted):
    """Return the parts of a batch for devices, and what is wanted of each sequence there."""
    with EACH:  # so that all batches have one type
        parts, numbers = xs.divided(DEVICES)
    return parts, np.where(numbers >= 0, wanted[numbers], 0).astype("float32")


# ---- data, and the comparison --------------------------------------------------------------------


def batch(k):
    """Return a batch of sequences, and the mean of the first column of each."""
    r = np.random.default_rng(k)
    lengths = np.minimum(1 + r.pareto(1.0, COUNT) * 8, LONGEST).astype(int)
    each = [r.normal(size=(n, WIDTH)).astype("float32") for n in lengths]
    wanted = np.array([np.tanh(x[:, 0]).mean() for x in each], "float32")
    return Pile.from_list(each), wanted


def weights():
    """Return the weights to begin with."""
    r = np.random.default_rng(0)
    w = {name: r.normal(size=(WIDTH, WIDTH)) / WIDTH for name in ("query", "key", "value")}
    return {name: x.astype("float32") for name, x in {**w, "out": r.normal(size=WIDTH)}.items()}


def main() -> int:
    """Compare one batch with one device, then train; print what each device has and sends."""
    w = weights()
    xs, wanted = batch(0)
    parts, their_wanted = dealt(xs, wanted)
    in_order = np.asarray(xs.lengths).reshape(DEVICES, -1).sum(axis=1)
    print(f"rows of each device, in order: {in_order.tolist()}")
    print(f"rows of each device, dealt: {np.asarray(parts.lengths).sum(axis=1).tolist()}")

    step = plait.jit(over_devices(plait.make_mesh((DEVICES,), ("d",))))
    value, slopes = plait.value_and_grad(loss)(w, xs, wanted)
    got, found = step(w, parts, their_wanted)
    off = max(float(abs(found[k] - slopes[k]).max()) for k in w)
    off = max(off, abs(float(got - value)))
    sent = [(c.op, c.bytes) for c in step.lower(w, parts, their_wanted).compile().collectives()]
    print(f"loss and gradient off by {off:.0e}; sent: {sent}")

    with plait.events.counting() as counts:
        for k in range(STEPS):
            now, slopes = step(w, *dealt(*batch(k)))
            w = {name: w[name] - 0.3 * slopes[name] for name in w}
    print(f"loss: {float(got):.3f}, then {float(now):.3f}; programs made meanwhile: ", end="")
    print(counts["trace"])
    return int(off > 1e-5 or counts["trace"] > 0)


if __name__ == "__main__":
    sys.exit(main())
