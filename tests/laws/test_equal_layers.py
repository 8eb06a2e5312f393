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


def step_of(layer, depth):
    """Return a step of training of so many layers, and its arguments."""

    def loss(ps, x):
        for p in ps:
            x = layer(x, p)
        return (x**2).mean()

    def step(ps, x):
        value, slopes = plait.value_and_grad(loss)(ps, x)
        return value, plait.tree.map(lambda p, d: p - 0.01 * d, ps, slopes)

    return step, weights(depth), pn.ones((8, 32, D), "float32")


def compiled(f, *args):
    with plait.config(cache_dir=None):
        return plait.jit(f, tier="full").lower(*args).compile().as_text()


def loops(f, *args):
    """Return the different loops of a compiled function, and the most arrays that one reads."""
    bodies = re.findall(r"^%?(fused_computation\S*) \((.*?)^}", compiled(f, *args), re.M | re.S)
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
    few, most = loops(*step_of(layer, 4))
    many, most_of_many = loops(*step_of(layer, 8))
    assert len(many) <= len(few) + 1
    assert most_of_many <= most


ROWS = {
    "softmax": plait.nn.softmax,
    "masked": lambda x: plait.nn.softmax(pn.where(pn.tril(pn.ones(x.shape, bool)), x / 8, -1e9)),
    "log_softmax": lambda x: plait.nn.log_softmax(x)[:, 0],
    "gradient": plait.grad(lambda x: (plait.nn.softmax(x) ** 2).sum()),
    "normed": normed,
}


@pytest.mark.parametrize("name", ROWS)
def test_functions_with_several_calls_have_the_loops_of_their_code(name):
    f, rows = ROWS[name], [np.ones((64, 128), np.float32)] * 2
    shared = plait.jit(f)

    def steps(f):
        text = compiled(lambda x, y: (f(x), f(y)), *rows)
        return text[text.index("ENTRY") :].count(" fusion(")

    assert steps(f) == steps(shared)
