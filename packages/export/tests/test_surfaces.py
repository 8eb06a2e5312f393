"""What users call, plait.numpy, plait.nn and plait.lax, exported once for every batch size.

Invariant: the exported function is compared with the same function on arrays, at several sizes.
"""

import numpy as np
import pytest

import plait
from plait_export import export, symbolic_args_specs

pnp, nn, lax = plait.numpy, plait.nn, plait.lax

# functions of an array and of the size of its first axis
CASES = {
    "sum": lambda x, b: pnp.sum(x, 0),
    "mean": lambda x, b: pnp.mean(x),
    "var": lambda x, b: pnp.var(x, axis=0, ddof=1),
    "median": lambda x, b: pnp.median(x, 0),
    "quantile": lambda x, b: pnp.quantile(x, 0.3),
    "average": lambda x, b: pnp.average(x, 0),
    "nanmean": lambda x, b: pnp.nanmean(x, 0),
    "cov": lambda x, b: pnp.cov(x.T),
    "cumsum": lambda x, b: pnp.cumsum(x, 0),
    "argmax": lambda x, b: pnp.argmax(x, 0),
    "sort": lambda x, b: pnp.sort(x, 0),
    "argsort": lambda x, b: pnp.argsort(x, 0),
    "softmax": lambda x, b: nn.softmax(x, axis=0),
    "logsumexp": lambda x, b: nn.logsumexp(x),
    "standardize": lambda x, b: nn.standardize(x, 0),
    "one_hot": lambda x, b: nn.one_hot(pnp.argmax(x, 1), 4),
    "attention": lambda x, b: nn.dot_product_attention(*(x.reshape(1, b, 2, 2),) * 3),
    "reshape": lambda x, b: pnp.reshape(x, (-1, 2)),
    "concatenate": lambda x, b: pnp.concatenate([x, x]),
    "stack": lambda x, b: pnp.stack([x, x], 1),
    "pad": lambda x, b: pnp.pad(x, ((1, 2), (0, 0))),
    "flip and roll": lambda x, b: pnp.roll(pnp.flip(x, 0), 1, 0),
    "roll": lambda x, b: pnp.roll(x, 3),
    "tile and repeat": lambda x, b: pnp.repeat(pnp.tile(x, (2, 1)), 2, axis=0),
    "diff": lambda x, b: pnp.diff(x, axis=0),
    "take_along_axis": lambda x, b: pnp.take_along_axis(x, pnp.argsort(x, axis=0), 0),
    "arange": lambda x, b: pnp.arange(b) + x[:, 0],
    "zeros": lambda x, b: pnp.zeros((b, 2)) + pnp.full((b, 1), 2.0),
    "eye": lambda x, b: pnp.eye(b),
    "tril": lambda x, b: pnp.tril(x @ x.T) + pnp.triu(x @ x.T, 1),
    "diag": lambda x, b: pnp.diag(x[:, 0]),
    "diagonal": lambda x, b: pnp.diagonal(x @ x.T) + pnp.trace(x @ x.T),
    "einsum": lambda x, b: pnp.einsum("ij,ik,il->jkl", x, x, x),
    "outer": lambda x, b: pnp.outer(x[:, 0], x[:, 1]),
    "searchsorted": lambda x, b: pnp.searchsorted(pnp.sort(x[:, 0]), x[:, 1]),
    "nonzero": lambda x, b: pnp.nonzero(x > 0, size=3)[0],
    "unique": lambda x, b: pnp.unique(x, size=3),
    "bincount": lambda x, b: pnp.bincount(pnp.argmax(x, 1), length=4),
    "histogram": lambda x, b: pnp.histogram(x, np.array([-1.0, 0.0, 1.0]))[0],
    "reduce_window": lambda x, b: lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 2)),
    "scan": lambda x, b: lax.scan(lambda c, r: (c + r.sum(), c), 0.0, x)[1],
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", CASES)
def test_for_every_batch(name):
    f = CASES[name]
    types = symbolic_args_specs((np.zeros((2, 4), np.float32),), ("b, 4",))
    exported = export(plait.jit(lambda x: f(x, x.shape[0])))(*types)
    for n in (2, 5):
        x = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        got, want = np.asarray(exported.call(x)), np.asarray(f(pnp.asarray(x), n))
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
