"""A short tour: each transformation of Weft at work, with what it gives.

    python examples/tour.py

Invariant: every printed number comes from the lines shown beside it.
"""

import math

import weft as wf
import weft.numpy as wnp


def title(text: str) -> None:
    """The head of a part."""
    print(f"\n{text}\n{'-' * len(text)}")


def loss(weights, x, y):
    """How far a model of one neuron is from its targets."""
    return wnp.mean((wnp.tanh(x @ weights) - y) ** 2)


def train(weights, xs, ys, steps: int):
    """Gradient descent, as one compiled loop."""

    def step(_, weights):
        return weights - 0.5 * wf.grad(loss)(weights, xs, ys)

    return wf.lax.fori_loop(0, steps, step, weights)


def main() -> None:
    """The tour."""
    key = wf.random.key(0)
    truth = wnp.array([0.5, -1.0, 0.25])
    xs = wf.random.normal(key, (64, 3))
    ys = wnp.tanh(xs @ truth)
    weights = wnp.zeros(3)

    title("jit: a Python function becomes one program")
    print("loss:", wf.jit(loss)(weights, xs, ys))

    title("grad: derivatives of any order")
    print("gradient:", wf.grad(loss)(weights, xs, ys))
    third = wf.grad(wf.grad(wf.grad(wnp.sin)))
    print("third derivative of sin at 1:", third(1.0), " -cos(1):", -math.cos(1.0))

    title("vmap: a function of one becomes a function of many")
    each = wf.jit(wf.vmap(wf.grad(loss), in_axes=(None, 0, 0)))
    print("gradients, one per example:", each(weights, xs, ys).shape)

    title("all together: training in a compiled loop")
    found = wf.jit(train, static_argnums=3)(weights, xs, ys, 500)
    print("learned:", found, " truth:", truth)

    title("shard_map: the same function on many devices")
    mesh = wf.make_mesh((1,), ("data",))
    spread = wf.shard_map(
        lambda w, x, y: wf.lax.pmean(loss(w, x, y), "data"),
        mesh=mesh,
        in_specs=(wf.P(), wf.P("data"), wf.P("data")),
        out_specs=wf.P(),
    )
    print("loss over the mesh:", wf.jit(spread)(weights, xs, ys))

    title("export: programs as files")
    saved = wf.export.export(wf.jit(loss))(weights, xs, ys).serialize()
    again = wf.export.deserialize(saved).call(found, xs, ys)
    print(f"{len(saved)} bytes; the loss after training, from the file:", again)


if __name__ == "__main__":
    main()
