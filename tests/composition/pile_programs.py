"""Programs of one example whose sizes are its own, for the tests of piles.

Each is a function, and what its arguments are: "n d" an array with n rows, "m d" one with m, "k"
one that every example has its own of, "s" one that all share.

Invariant: nothing here knows of piles; a program is an ordinary function of arrays.
"""

import plait
import plait.numpy as pnp
from plait import lax, nn


def with_one(x):
    """So that there is a row."""
    return pnp.concatenate([x, pnp.ones((1, 4), x.dtype)])


def softmax_attention(x, w):
    q = x @ w
    return nn.softmax(q @ x.T / 2, -1) @ x


def causal(x):
    n = x.shape[0]
    scores = x @ x.T
    mask = pnp.arange(n)[:, None] >= pnp.arange(n)
    return nn.softmax(pnp.where(mask, scores, -1e9), -1) @ x


def rnn(x, w):
    def step(h, r):
        h = pnp.tanh(h @ w + r)
        return h, h * 2

    return lax.scan(step, pnp.zeros(4, x.dtype), x)


def counted(x):
    """A step that speaks of n."""
    n = x.shape[0]

    def step(c, r):
        return c + r / (1 + n), c * n

    return lax.scan(step, pnp.zeros(4, x.dtype), x)


def doubled_until(x):
    """A loop that ends elsewhere for each example."""
    turns, ends = lax.while_loop(
        lambda s: ((s[1] * s[1]).sum() < 50.0) & (s[0] < 9),
        lambda s: (s[0] + 1, s[1] * 1.5 + 0.1),
        (0, x),
    )
    return ends * turns


def branch(x):
    return lax.cond(x.sum() > 0, lambda v: pnp.sin(v) * 2, lambda v: v / (1 + pnp.abs(v)), x)


PROGRAMS = {
    # ---- each element alone
    "elementwise": (lambda x: pnp.sin(x) * 2 + x * x, "n d"),
    "where": (lambda x: pnp.where(x > 0, x, pnp.exp(x)), "n d"),
    "cast": (lambda x: (x * 3).astype("int32").astype("float64") * x, "n d"),
    "clip": (lambda x: pnp.clip(x, -0.5, 0.5) * x, "n d"),
    "with each": (lambda x, k: x * k[:4] + k[0], "n d", "k"),
    "with shared": (lambda x, s: x * s[0, :4] + s[1, 0], "n d", "s"),
    "safe log": (lambda x: pnp.log(pnp.abs(x) + 0.1) / pnp.sqrt(pnp.abs(x) + 0.1), "n d"),
    # ---- sizes as numbers
    "n": (lambda x: x * x.shape[0], "n d"),
    "n alone": (lambda x: x.sum() * 0 + x.shape[0], "n d"),
    "arange": (lambda x: x * pnp.arange(x.shape[0])[:, None], "n d"),
    "ones": (lambda x: pnp.ones((x.shape[0], 3)) * x.sum(), "n d"),
    # ---- reductions
    "sum": (lambda x: x.sum(0), "n d"),
    "sum all": (lambda x: x.sum(), "n d"),
    "sum other": (lambda x: x.sum(1), "n d"),
    "mean": (lambda x: x.sum(0) / (x.shape[0] + 1), "n d"),
    "prod": (lambda x: (1 + x / 50).prod(0), "n d"),
    "max": (lambda x: pnp.max(x, 0, initial=-5.0), "n d"),
    "min": (lambda x: pnp.min(x, 0, initial=5.0), "n d"),
    "max all": (lambda x: pnp.max(x, initial=-5.0), "n d"),
    "any": (lambda x: (x > 1).any(0), "n d"),
    "all": (lambda x: (x > -1).all(), "n d"),
    "logsumexp": (lambda x: nn.logsumexp(pnp.concatenate([x, pnp.zeros((1, 4))]), 0), "n d"),
    "softmax": (lambda x: nn.softmax(x, 0), "n d"),
    "softmax other": (lambda x: nn.softmax(x, 1), "n d"),
    "norm": (lambda x: x / pnp.sqrt((x * x).sum(1, keepdims=True) + 1), "n d"),
    "centre": (lambda x: x - x.sum(0) / (1 + x.shape[0]), "n d"),
    # ---- cumulative
    "cumsum": (lambda x: pnp.cumsum(x, 0), "n d"),
    "cumsum other": (lambda x: pnp.cumsum(x, 1), "n d"),
    "cumsum reversed": (lambda x: lax.cumsum(x, 0, reverse=True), "n d"),
    "cumprod": (lambda x: pnp.cumprod(1 + x / 50, 0), "n d"),
    "cummax": (lambda x: lax.cummax(x, 0), "n d"),
    "cummin reversed": (lambda x: lax.cummin(x, 0, reverse=True), "n d"),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 0), "n d"),
    # ---- order
    "sort": (lambda x: pnp.sort(x, 0), "n d"),
    "sort other": (lambda x: pnp.sort(x, 1), "n d"),
    "argsort": (lambda x: pnp.argsort(x, 0), "n d"),
    "argmax other": (lambda x: pnp.argmax(x, 1), "n d"),
    # ---- contractions
    "times shared": (lambda x, s: pnp.tanh(x @ s), "n d", "s"),
    "times each": (lambda x, k: x @ k.reshape(4, 3), "n d", "k"),
    "pooled": (lambda x, s: pnp.maximum(x @ s, 0).sum(0), "n d", "s"),
    "contracted": (lambda x: x.T @ pnp.sin(x), "n d"),
    "gram": (lambda x: (x @ x.T).sum(), "n d"),
    "gram rows": (lambda x: pnp.sin(x @ x.T).sum(1), "n d"),
    "gram columns": (lambda x: pnp.sin(x @ x.T).sum(0), "n d"),
    "gram whole": (lambda x: pnp.sin(x @ x.T), "n d"),
    "outer": (lambda x: x[:, 0][:, None] * x[:, 1], "n d"),
    "einsum": (lambda x, s: pnp.einsum("nd,de->en", x, s), "n d", "s"),
    "einsum pairs": (lambda x: pnp.einsum("nd,md->nm", x, pnp.cos(x)).sum(1), "n d"),
    "attention": (softmax_attention, "n d", "w"),
    "causal": (causal, "n d"),
    "cross": (lambda x, y: nn.softmax(x @ y.T, -1) @ y, "n d", "m d"),
    "cross sum": (lambda x, y: pnp.sin(x @ y.T).sum(0), "n d", "m d"),
    "cross transposed": (lambda x, y: pnp.sin(x @ y.T).T, "n d", "m d"),
    "chain": (lambda x: ((x @ x.T) @ pnp.sin(x @ x.T)).sum(), "n d"),
    # ---- shape
    "transpose": (lambda x: pnp.sin(x.T).sum(1), "n d"),
    "transposed": (lambda x: pnp.sin(x.T), "n d"),
    "merge": (lambda x: pnp.sin(x.reshape(-1)), "n d"),
    "merge minor": (lambda x: pnp.sin(x.T.reshape(-1)), "n d"),
    "split": (lambda x: pnp.sin(x).reshape(x.shape[0], 2, 2), "n d"),
    "expand": (lambda x: x[:, None, :] * x[None, :, :2].sum(2, keepdims=True), "n d"),
    "broadcast": (lambda x, k: pnp.broadcast_to(k, (x.shape[0], 12)), "n d", "k"),
    # ---- rows that move
    "flip": (lambda x: pnp.flip(x, 0), "n d"),
    "flip other": (lambda x: x[:, ::-1], "n d"),
    "tail": (lambda x: x[1:], "n d"),
    "head": (lambda x: x[:-1], "n d"),
    "stride": (lambda x: x[::2], "n d"),
    "half": (lambda x: x[: x.shape[0] // 2], "n d"),
    "columns": (lambda x: x[:, 1:3], "n d"),
    "roll": (lambda x: pnp.roll(x, 1, 0), "n d"),
    "pad": (lambda x: pnp.pad(x, ((2, 1), (0, 0)), constant_values=3.0), "n d"),
    "pad other": (lambda x: pnp.pad(x, ((0, 0), (1, 0))), "n d"),
    "joined": (lambda x, y: pnp.concatenate([x, y]), "n d", "m d"),
    "joined to itself": (lambda x: pnp.concatenate([x, 2 * x, x[1:]]), "n d"),
    "joined other": (lambda x: pnp.concatenate([x, x * x], 1), "n d"),
    "with first": (lambda x, k: pnp.concatenate([k[None, :4], x]), "n d", "k"),
    "differences": (lambda x: pnp.diff(pnp.concatenate([pnp.zeros((1, 4)), x]), axis=0), "n d"),
    "repeat": (lambda x: pnp.repeat(x, 2, 0), "n d"),
    "tile": (lambda x: pnp.tile(x, (2, 1)), "n d"),
    # ---- positions that are values
    "take": (lambda x: with_one(x)[pnp.array([0, -1])], "n d"),
    "take clipped": (lambda x: pnp.take(x, pnp.arange(x.shape[0]) * 2, axis=0, mode="clip"), "n d"),
    "take filled": (
        lambda x: with_one(pnp.flip(x, 0))
        .at[pnp.arange(5) - 1]
        .get(mode="fill", fill_value=7.0, wrap_negative_indices=False),
        "n d",
    ),
    "set": (lambda x: with_one(x).at[pnp.arange(3)].set(2.0, mode="drop"), "n d"),
    "scatter": (
        lambda x: pnp.zeros((3, 4)).at[pnp.arange(x.shape[0]) % 3].add(x), "n d"
    ),
    "dynamic slice": (
        lambda x: lax.dynamic_slice_in_dim(with_one(with_one(with_one(x))), x.shape[0] // 2, 3),
        "n d",
    ),
    "dynamic update": (
        lambda x: lax.dynamic_update_slice_in_dim(
            pnp.concatenate([x, pnp.ones((3, 4))]), pnp.zeros((2, 4), x.dtype), x.shape[0] // 2, 0
        ),
        "n d",
    ),
    # ---- control flow
    "jit": (lambda x: plait.jit(lambda v: pnp.sin(v).sum(0))(x), "n d"),
    "checkpoint": (lambda x: plait.checkpoint(lambda v: pnp.sin(pnp.sin(v)).sum(0))(x), "n d"),
    "scan around": (
        lambda x: lax.scan(lambda c, _: (pnp.sin(c) * x, c.sum()), x, None, length=3)[0], "n d"
    ),
    "loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * 0.5 + x, x), "n d"),
    "cond known": (lambda x: lax.cond(True, lambda v: v * 2, lambda v: v, x), "n d"),
    "cond": (branch, "n d"),
    "rnn end": (lambda x, w: rnn(x, w)[0], "n d", "w"),
    "rnn steps": (lambda x, w: rnn(x, w)[1], "n d", "w"),
    "scan reversed": (
        lambda x, w: lax.scan(
            lambda h, r: (pnp.tanh(h @ w + r), h), pnp.zeros(4, x.dtype), x, reverse=True
        )[1],
        "n d", "w",
    ),
    "scan of n": (lambda x: counted(x)[0], "n d"),
    "scan of n, steps": (lambda x: counted(x)[1], "n d"),
    "vmap inside": (lambda x: plait.vmap(lambda r: pnp.sin(r).sum())(x), "n d"),
    "vmap of columns": (
        lambda x: plait.vmap(lambda c: nn.softmax(c[:, None] * c, -1) @ c, in_axes=1)(x), "n d"
    ),
    # ---- convolution
    "conv": (lambda x, s: lax.conv_general_dilated(
        x.T[None], s[:, :, None].transpose(1, 0, 2) * pnp.ones(3), (1,), [(1, 1)])[0], "n d", "s"),
}  # fmt: skip

LOOPS = {  # no derivative backwards
    "while": (doubled_until, "n d"),
}
