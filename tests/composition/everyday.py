"""Everyday functions of rows: what a newcomer writes for one array, and maps over a pile.

Invariant: nothing here knows of piles; each function takes an array of n rows of 4 numbers.
"""

import numpy as np

import plait
import plait.numpy as pnp
from plait import lax, nn

POSITIVE = lambda x: x @ x.T + 9.0 * pnp.eye(x.shape[0])  # noqa: E731


def counted(x):
    total = 0.0
    for i in range(len(x)):
        total = total + x[i].sum() * i
    return total


def halved(x):
    while x.shape[0] > 3:
        x = x[: x.shape[0] // 2]
    return x.sum()


EVERYDAY = {
    # ---- reading
    "first": lambda x: x[0],
    "second": lambda x: x[1],
    "unrolled": lambda x: x[0] + x[1] + x[2],
    "last": lambda x: x[-1],
    "last but one": lambda x: x[-2],
    "middle": lambda x: x[x.shape[0] // 2],
    "one number": lambda x: x[1, 2],
    "out of some": lambda x: x[5],
    "out of all": lambda x: x[20],
    "head": lambda x: x[:2],
    "head of many": lambda x: x[:7],
    "tail": lambda x: x[-3:],
    "without ends": lambda x: x[1:-1],
    "every other": lambda x: x[::2],
    "backwards": lambda x: x[::-1],
    "column": lambda x: x[:, 1],
    "rows of a list": lambda x: x[pnp.array([0, 2, 1])],
    "take": lambda x: pnp.take(x, pnp.array([1, 3]), axis=0, mode="clip"),
    "mask": lambda x: pnp.where(x > 9, x, 0),
    "iterate": lambda x: sum(r.sum() for r in x),
    "unpack": lambda x: (lambda a, b, *_: a - b)(*x),
    "zip": lambda x: sum((a * b).sum() for a, b in zip(x[:-1], x[1:])),
    # ---- writing
    "write": lambda x: x.at[1].set(0.0),
    "write last": lambda x: x.at[-1].add(1.0),
    "write some": lambda x: x.at[1:3].multiply(2.0),
    "write every other": lambda x: x.at[::2].set(0.0),
    "write beyond": lambda x: x.at[9].set(0.0, mode="drop"),
    "delete": lambda x: pnp.delete(x, 1, axis=0),
    "insert": lambda x: pnp.insert(x, 1, 5.0, axis=0),
    "append": lambda x: pnp.append(x, x[:1], axis=0),
    # ---- sizes as numbers
    "length": lambda x: x / len(x),
    "counted": counted,
    "shape": lambda x: x.sum() / x.shape[0],
    "size": lambda x: x.sum() / x.size,
    "range": lambda x: x[:, 0] * pnp.asarray(list(range(x.shape[0]))),
    "arange": lambda x: x[:, 0] * pnp.arange(x.shape[0]),
    "numpy arange": lambda x: x[:, 0] * np.arange(x.shape[0]),
    "window": lambda x: x[:, 0] * np.hanning(x.shape[0]),
    "linspace": lambda x: pnp.linspace(0, 1, x.shape[0]) @ x,
    "numpy ones": lambda x: x + np.ones((len(x), 4)),
    "if": lambda x: x.sum() if x.shape[0] > 6 else x.mean(),
    "if even": lambda x: x[::2] if x.shape[0] % 4 == 0 else x[1::2],
    "while": halved,
    "power of two": lambda x: pnp.pad(x[:, 0], (0, 2 ** int(np.ceil(np.log2(len(x)))) - len(x))),
    "assert": lambda x: (x if x.shape[0] >= 4 else None).sum(),
    "format": lambda x: {f"{x.shape[1]} columns": x.sum()},
    # ---- shapes
    "pairs": lambda x: x[0::2] + x[1::2],
    "halves": lambda x: x.reshape(-1, 8),
    "blocks": lambda x: x.reshape(x.shape[0] // 2, 2, 4).sum(1),
    "thirds": lambda x: x.reshape(-1, 12),
    "flat": lambda x: x.reshape(-1),
    "split": lambda x: pnp.split(x, 2)[0],
    "array split": lambda x: pnp.array_split(x, 3)[1],
    "stack": lambda x: pnp.stack([x[:-1], x[1:]], 1),
    "concatenate": lambda x: pnp.concatenate([x, x[:2]]),
    "tile": lambda x: pnp.tile(x, (2, 1)),
    "repeat": lambda x: pnp.repeat(x, 2, axis=0),
    "roll": lambda x: pnp.roll(x, 1, axis=0),
    "pad to 12": lambda x: pnp.pad(x, ((0, 12 - x.shape[0]), (0, 0))),
    "pad": lambda x: pnp.pad(x, ((1, 2), (0, 0))),
    "squeeze": lambda x: x[:1].squeeze(0),
    "transpose": lambda x: x.T,
    "resize image": lambda x: plait.image.resize(x, (5, 4), "linear"),
    # ---- sums
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(0),
    "deviation": lambda x: x.std(0, ddof=1),
    "greatest": lambda x: x.max(0),
    "place": lambda x: x.argmax(0),
    "median": lambda x: pnp.median(x, 0),
    "quantile": lambda x: pnp.quantile(x, 0.3, axis=0),
    "range of values": lambda x: pnp.ptp(x, 0),
    "norm": lambda x: pnp.linalg.norm(x),
    "covariance": lambda x: pnp.cov(x.T),
    "weighted": lambda x: pnp.average(x, axis=0, weights=pnp.arange(1.0, x.shape[0] + 1)),
    # ---- along rows
    "cumsum": lambda x: pnp.cumsum(x, 0),
    "differences": lambda x: pnp.diff(x, axis=0),
    "second differences": lambda x: pnp.diff(x, n=2, axis=0),
    "slopes": lambda x: pnp.gradient(x, axis=0),
    "sort": lambda x: pnp.sort(x, 0),
    "top": lambda x: lax.top_k(x[:, 0], 3)[0],
    "top of too many": lambda x: lax.top_k(x[:, 0], 7)[0],
    "scan": lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c), pnp.zeros(4, x.dtype), x)[1],
    "convolve": lambda x: pnp.convolve(x[:, 0], pnp.ones(3) / 3, mode="valid"),
    "interpolate": lambda x: pnp.interp(pnp.linspace(0, 3, 5), pnp.arange(x.shape[0]), x[:, 0]),
    "fourier": lambda x: pnp.abs(pnp.fft.rfft(x, axis=0)),
    "softmax": lambda x: nn.softmax(x, axis=0),
    # ---- matrices
    "gram": lambda x: x @ x.T,
    "solve": lambda x: pnp.linalg.solve(POSITIVE(x), x),
    "determinant": lambda x: pnp.linalg.slogdet(POSITIVE(x))[1],
    "least squares": lambda x: pnp.linalg.lstsq(x[:, :2], x[:, 3])[0],
    "block": lambda x: (x @ x.T)[:2, :2],
    "wrong": lambda x: x + pnp.ones(3),
    "wrong size": lambda x: x[:, 0] + pnp.ones(5),
}  # fmt: skip
"""Functions of an array of n rows of 4 numbers."""

NUMBERS = {
    "out of some", "iterate", "unpack", "zip", "delete", "insert", "length", "counted", "range",
    "numpy arange", "window", "numpy ones", "if", "if even", "while", "power of two", "assert",
    "thirds", "array split", "pad to 12", "interpolate", "out of all", "top of too many", "wrong",
    "wrong size",
}  # fmt: skip
"""Functions that need sizes as numbers, or that some example of 4, 8, 12 and 6 rows refuses."""
