"""Equal layers take their compiler's time once: it compiles a loop again only if it differs.

Invariant: how many different loops a program has, and how many arrays each of them reads, do not
grow with the number of equal layers.
"""

import re

import numpy as np
import pytest

import plait
from plait import numpy as pn

D, HEADS = 64, 4


def normed(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / pn.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def normed_as_written(x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / pn.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)


def by_hand(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / 4
    seen = pn.tril(pn.ones(scores.shape[-2:], bool))
    return plait.nn.softmax(pn.where(seen, scores, -1e9)) @ v


def whole(q, k, v):
    return plait.nn.dot_product_attention(
        *(x.transpose(0, 2, 1, 3) for x in (q, k, v)), is_causal=True
    ).transpose(0, 2, 1, 3)


def transformer(attend, normed):
    def block(x, p):
        b, t, _ = x.shape
        q, k, v = (x @ p["qkv"]).reshape(b, t, 3, HEADS, D // HEADS).transpose(2, 0, 3, 1, 4)
        h = attend(q, k, v).transpose(0, 2, 1, 3).reshape(b, t, D)
        x = x + h @ p["out"]
        return x + plait.nn.gelu(normed(x) @ p["up"]) @ p["down"]

    return block


def recurrent(x, p):
    return pn.tanh(x @ p["out"]) * plait.nn.sigmoid(x @ p["out"]) + x / (1 + abs(x))


LAYERS = {
    "attention by hand": transformer(by_hand, normed_as_written),
    "attention": transformer(whole, normed),
    "recurrent": recurrent,
}


def weights(depth):
    rng = np.random.default_rng(0)
    shapes = {"qkv": (D, 3 * D), "out": (D, D), "up": (D, 4 * D), "down": (4 * D, D)}
    return [{k: rng.normal(0, 0.1, s).astype(np.float32) for k, s in shapes.items()}
            for _ in range(depth)]  # fmt: skip


def loops(layer, depth):
    """Return the different loops of a step of training, and the most arrays that one reads."""

    def loss(ps, x):
        for p in ps:
            x = layer(x, p)
        return (x**2).mean()

    def step(ps, x):
        value, slopes = plait.value_and_grad(loss)(ps, x)
        return value, plait.tree.map(lambda p, d: p - 0.01 * d, ps, slopes)

    with plait.config(cache_dir=None):
        x = pn.ones((8, 32, D), "float32")
        text = plait.jit(step, tier="full").lower(weights(depth), x).compile().as_text()
    bodies = re.findall(r"^%?(fused_computation\S*) \((.*?)^}", text, re.M | re.S)
    read = [body.partition(") -> ")[0].count(": ") for _, body in bodies]
    return {_nameless(body) for _, body in bodies}, max(read)


def _nameless(body):
    """Return the text of a loop with its values numbered in the order of their places."""
    names: dict[str, str] = {}
    body = re.sub(r", metadata=\{[^}]*\}", "", body)
    return re.sub(
        r"%?[a-z_][\w-]*\.\d+\b", lambda m: names.setdefault(m[0], f"v{len(names)}"), body
    )


@pytest.mark.parametrize("jitted", [False, True], ids=["", "in functions"])
@pytest.mark.parametrize("name", LAYERS)
def test_equal_layers_have_equal_loops(name, jitted):
    layer = plait.jit(LAYERS[name]) if jitted else LAYERS[name]
    few, most = loops(layer, 4)
    many, most_of_many = loops(layer, 8)
    assert len(many) <= len(few) + 1
    assert most_of_many <= most
