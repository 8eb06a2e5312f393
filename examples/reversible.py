"""A reversible residual network: its gradient takes the same memory at any depth.

    python examples/reversible.py [--steps N]

Trains one on scikit-learn's digits (1797 images of 8 x 8 pixels), and measures the memory of its
compiled gradient at depths 4, 16 and 64, against that of the same network without
`plait.invertible`.

Invariant: every figure is checked; the exit status is 1 if one is not what it must be.
"""

import argparse
import sys

import numpy as np
from sklearn.datasets import load_digits

import plait
import plait.numpy as pnp

WIDTH, CLASSES = 32, 10


def block(x1, x2, p):
    """One residual for each half, from the other: (y1, y2) can be undone half by half."""
    w1, b1, w2, b2 = p
    y1 = x1 + pnp.tanh(x2 @ w1 + b1)
    return y1, x2 + pnp.tanh(y1 @ w2 + b2)


def body(x1, x2, blocks):
    """As many blocks as there are rows of parameters."""
    return plait.lax.scan(lambda c, p: (block(*c, p), None), (x1, x2), blocks)[0]


def loss(params, images, labels, reverse=plait.invertible):
    """Mean cross-entropy; `reverse` is what is done with the body."""
    blocks, (w, b) = params
    y1, y2 = reverse(body)(images[:, :WIDTH], images[:, WIDTH:], blocks)
    scores = plait.nn.log_softmax(pnp.concatenate([y1, y2], 1) @ w + b)
    return -pnp.take_along_axis(scores, labels[:, None], 1).mean()


def parameters(depth, seed=0):
    """Of the blocks, stacked, and of the last layer."""
    r = np.random.default_rng(seed)
    draw = lambda *shape: r.normal(0, 0.05, shape).astype(np.float32)  # noqa: E731
    sizes = (depth, WIDTH, WIDTH), (depth, WIDTH)
    blocks = tuple(draw(*s) for s in (*sizes, *sizes))
    return blocks, (draw(2 * WIDTH, CLASSES), draw(CLASSES))


def plain(f):
    """As it is."""
    return f


def memory(depth, images, labels, reverse):
    """Bytes that the compiled gradient needs besides arguments and results."""
    gradient = plait.jit(plait.grad(lambda p: loss(p, images, labels, reverse)))
    return gradient.lower(parameters(depth)).compile().memory_analysis().temp_size_in_bytes


def apart(a, b):
    """The largest difference of two trees of arrays, relative to the largest element of each."""
    pairs = [
        (np.asarray(x), np.asarray(y)) for x, y in zip(plait.tree.leaves(a), plait.tree.leaves(b))
    ]
    return max(abs(x - y).max() / abs(y).max() for x, y in pairs)


def trained(images, labels, steps, depth=16, rate=0.02):
    """Parameters after gradient descent on batches of 128."""
    params = parameters(depth)

    @plait.jit
    def step(params, images, labels):
        value, g = plait.value_and_grad(loss)(params, images, labels)
        return value, plait.tree.map(lambda p, d: p - rate * d, params, g)

    order = np.random.default_rng(1)
    for i in range(steps):
        rows = order.integers(0, len(images), 128)
        value, params = step(params, images[rows], labels[rows])
        if i % 50 == 0:
            print(f"step {i:4d}: loss {float(np.asarray(value)):.4f}")
    return params


def main() -> int:
    """Memory, gradients, accuracy; 0 if all are good."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    steps = parser.parse_args().steps
    pixels, labels = load_digits(return_X_y=True)
    images, labels = (pixels / 16).astype(np.float32), labels.astype(np.int32)
    good = []
    many, of = np.tile(images[:1024], (4, 1)), np.tile(labels[:1024], 4)
    used = {d: memory(d, many, of, plait.invertible) for d in (4, 16, 64)}
    kept = {d: memory(d, many, of, plain) for d in (4, 16, 64)}
    for d in used:
        print(f"depth {d:2d}: {used[d] / 1e6:7.2f} MB, plain {kept[d] / 1e6:7.2f} MB")
    good.append(max(used.values()) <= 1.05 * min(used.values()))
    params = parameters(16)
    gradient = lambda how: plait.jit(plait.grad(lambda p: loss(p, images, labels, how)))(params)  # noqa: E731
    off = apart(gradient(plait.invertible), gradient(plain))
    print(f"gradients differ by {off:.1e}")
    good.append(off < 1e-5)
    params = trained(images[:1500], labels[:1500], steps)
    blocks, (w, b) = params
    y1, y2 = body(images[1500:, :WIDTH], images[1500:, WIDTH:], blocks)
    guess = np.asarray(pnp.concatenate([y1, y2], 1) @ w + b).argmax(1)
    accuracy = (guess == labels[1500:]).mean()
    print(f"accuracy on digits it has not seen: {accuracy:.3f}")
    good.append(accuracy > 0.85 or steps < 300)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
