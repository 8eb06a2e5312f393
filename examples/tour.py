"""A short tour: each transformation of Plait at work, with what it gives.

    python examples/tour.py

Invariant: every printed number comes from the lines shown beside it.
"""

import math

import plait
import plait.numpy as pnp


def title(text: str) -> None:
    """The head of a part."""
    print(f"\n{text}\n{'-' * len(text)}")


def loss(weights, x, y):
    """How far a model of one neuron is from its targets."""
    return pnp.mean((pnp.tanh(x @ weights) - y) ** 2)


def train(weights, xs, ys, steps: int):
    """Gradient descent, as one compiled loop."""

    def step(_, weights):
        return weights - 0.5 * plait.grad(loss)(weights, xs, ys)

    return plait.lax.fori_loop(0, steps, step, weights)


def main() -> None:
    """The tour."""
    key = plait.random.key(0)
    truth = pnp.array([0.5, -1.0, 0.25])
    xs = plait.random.normal(key, (64, 3))
    ys = pnp.tanh(xs @ truth)
    weights = pnp.zeros(3)

    title("jit: a Python function becomes one program")
    print("loss:", plait.jit(loss)(weights, xs, ys))

    title("grad: derivatives of any order")
    print("gradient:", plait.grad(loss)(weights, xs, ys))
    third = plait.grad(plait.grad(plait.grad(pnp.sin)))
    print("third derivative of sin at 1:", third(1.0), " -cos(1):", -math.cos(1.0))

    title("vmap: a function of one becomes a function of many")
    each = plait.jit(plait.vmap(plait.grad(loss), in_axes=(None, 0, 0)))
    print("gradients, one per example:", each(weights, xs, ys).shape)

    title("all together: training in a compiled loop")
    found = plait.jit(train, static_argnums=3)(weights, xs, ys, 500)
    print("learned:", found, " truth:", truth)

    title("shard_map: the same function on many devices")
    mesh = plait.make_mesh((1,), ("data",))
    spread = plait.shard_map(
        lambda w, x, y: plait.lax.pmean(loss(w, x, y), "data"),
        mesh=mesh,
        in_specs=(plait.P(), plait.P("data"), plait.P("data")),
        out_specs=plait.P(),
    )
    print("loss over the mesh:", plait.jit(spread)(weights, xs, ys))

    title("export: programs as files")
    saved = plait.export.export(plait.jit(loss))(weights, xs, ys).serialize()
    again = plait.export.deserialize(saved).call(found, xs, ys)
    print(f"{len(saved)} bytes; the loss after training, from the file:", again)


if __name__ == "__main__":
    main()
