"""Sizes that are written in two ways, whose capacities differ, and operations along other axes.

Invariant: results are those of each example alone.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Capacities, Pile, lax, nn, pile_axis, vmap


def longer(x):
    return pnp.concatenate([x, x[:2]])


def rows(x):
    """Rows whose number is a sum of extremes of sizes, which arithmetic writes in other ways."""
    return longer(longer(x)[1:-1])


OPERATIONS = {
    "column": lambda x: x[:, 0],
    "columns": lambda x: x[:, 1:3],
    "columns backwards": lambda x: x[:, ::-1],
    "more columns": lambda x: pnp.pad(x, ((0, 0), (1, 2))),
    "columns with a gap": lambda x: lax.pad(x, 0.0, ((0, 0, 0), (0, 0, 1))),
    "columns beside": lambda x: pnp.concatenate([x, x[:, :1]], 1),
    "stacked": lambda x: pnp.stack([x[:, 0], x[:, 1]], 1),
    "an axis more": lambda x: x[:, None, :] * x[:, :2, None],
    "reshaped": lambda x: x.reshape(-1, 2, 2).sum(1),
    "turned": lambda x: x.T[1:],
    "taken": lambda x: x[:, pnp.array([3, 0])],
    "a window": lambda x: lax.dynamic_slice_in_dim(x, 1, 2, axis=1),
    "written": lambda x: x.at[:, 1].set(x[:, 0]),
    "sorted": lambda x: pnp.sort(x[:, ::-1], 1),
    "running": lambda x: pnp.cumsum(x[:, 1:], 1),
    "shares": lambda x: nn.softmax(x[:, :3], 0),
    "product": lambda x: x[:, 1:] @ np.arange(6.0).reshape(3, 2),
    "repeated": lambda x: pnp.repeat(x, 2, axis=1)[:, 1:],
    "greatest": lambda x: x[:, 1:].max(1),
    "split": lambda x: pnp.split(x, 2, axis=1)[1],
    "beside themselves": lambda x: x[:, :2] + x[:, 2:],
    "joined": lambda x: pnp.concatenate([x[:, 0], x[:, 1]]),
    "pairs": lambda x: x[:, 0][:, None] * x[:, 1][None, :],
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_along_other_axes(name):
    def f(x):
        return OPERATIONS[name](rows(x))

    r = np.random.default_rng(5)
    xs = [r.standard_normal((n, 4)) for n in (3, 2, 9)]
    want = [f(pnp.asarray(x)) for x in xs]
    p = Pile.from_list(xs, capacity=Capacities(96, 32, 4))
    out = plait.jit(vmap(f, pile_axis, pile_axis))(p)
    for got, w in zip(out.to_list(), want):
        np.testing.assert_allclose(got, w, rtol=1e-12)
    total = lambda p: vmap(lambda x: (f(x) ** 2).sum(), pile_axis)(p).sum()
    slopes = plait.jit(plait.grad(total))(p).to_list()
    for got, x in zip(slopes, xs):
        one = plait.jit(plait.grad(lambda v: (f(v) ** 2).sum()))(x)
        np.testing.assert_allclose(got, one, rtol=1e-10, atol=1e-12)
