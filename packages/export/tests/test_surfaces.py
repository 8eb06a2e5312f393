"""What users call, weft.numpy, weft.nn and weft.lax, exported once for every batch size.

Invariant: the exported function is compared with the same function on arrays, at several sizes.
"""

import numpy as np
import pytest

import weft as wf
from weft_export import export, symbolic_args_specs

wnp, nn, lax = wf.numpy, wf.nn, wf.lax

# functions of an array and of the size of its first axis
CASES = {
    "sum": lambda x, b: wnp.sum(x, 0),
    "mean": lambda x, b: wnp.mean(x),
    "var": lambda x, b: wnp.var(x, axis=0, ddof=1),
    "median": lambda x, b: wnp.median(x, 0),
    "quantile": lambda x, b: wnp.quantile(x, 0.3),
    "average": lambda x, b: wnp.average(x, 0),
    "nanmean": lambda x, b: wnp.nanmean(x, 0),
    "cov": lambda x, b: wnp.cov(x.T),
    "cumsum": lambda x, b: wnp.cumsum(x, 0),
    "argmax": lambda x, b: wnp.argmax(x, 0),
    "sort": lambda x, b: wnp.sort(x, 0),
    "argsort": lambda x, b: wnp.argsort(x, 0),
    "softmax": lambda x, b: nn.softmax(x, axis=0),
    "logsumexp": lambda x, b: nn.logsumexp(x),
    "standardize": lambda x, b: nn.standardize(x, 0),
    "one_hot": lambda x, b: nn.one_hot(wnp.argmax(x, 1), 4),
    "attention": lambda x, b: nn.dot_product_attention(*(x.reshape(1, b, 2, 2),) * 3),
    "reshape": lambda x, b: wnp.reshape(x, (-1, 2)),
    "concatenate": lambda x, b: wnp.concatenate([x, x]),
    "stack": lambda x, b: wnp.stack([x, x], 1),
    "pad": lambda x, b: wnp.pad(x, ((1, 2), (0, 0))),
    "flip and roll": lambda x, b: wnp.roll(wnp.flip(x, 0), 1, 0),
    "roll": lambda x, b: wnp.roll(x, 3),
    "tile and repeat": lambda x, b: wnp.repeat(wnp.tile(x, (2, 1)), 2, axis=0),
    "diff": lambda x, b: wnp.diff(x, axis=0),
    "take_along_axis": lambda x, b: wnp.take_along_axis(x, wnp.argsort(x, axis=0), 0),
    "arange": lambda x, b: wnp.arange(b) + x[:, 0],
    "zeros": lambda x, b: wnp.zeros((b, 2)) + wnp.full((b, 1), 2.0),
    "eye": lambda x, b: wnp.eye(b),
    "tril": lambda x, b: wnp.tril(x @ x.T) + wnp.triu(x @ x.T, 1),
    "diag": lambda x, b: wnp.diag(x[:, 0]),
    "diagonal": lambda x, b: wnp.diagonal(x @ x.T) + wnp.trace(x @ x.T),
    "einsum": lambda x, b: wnp.einsum("ij,ik,il->jkl", x, x, x),
    "outer": lambda x, b: wnp.outer(x[:, 0], x[:, 1]),
    "searchsorted": lambda x, b: wnp.searchsorted(wnp.sort(x[:, 0]), x[:, 1]),
    "nonzero": lambda x, b: wnp.nonzero(x > 0, size=3)[0],
    "unique": lambda x, b: wnp.unique(x, size=3),
    "bincount": lambda x, b: wnp.bincount(wnp.argmax(x, 1), length=4),
    "histogram": lambda x, b: wnp.histogram(x, np.array([-1.0, 0.0, 1.0]))[0],
    "reduce_window": lambda x, b: lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 2)),
    "scan": lambda x, b: lax.scan(lambda c, r: (c + r.sum(), c), 0.0, x)[1],
}


@pytest.mark.parametrize("name", CASES)
def test_for_every_batch(name):
    f = CASES[name]
    types = symbolic_args_specs((np.zeros((2, 4), np.float32),), ("b, 4",))
    exported = export(wf.jit(lambda x: f(x, x.shape[0])))(*types)
    for n in (2, 5):
        x = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        got, want = np.asarray(exported.call(x)), np.asarray(f(wnp.asarray(x), n))
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
