"""Functions whose shapes depend on numbers take those that are known under a transformation.

Invariant: an integer that is made from a differentiated value is known where nothing is staged.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import ConcretizationError

X = np.arange(6.0, dtype=np.float32)
SIZED = {
    "split": (lambda x, n: pnp.split(X * x, n.reshape(1))[0].sum(), 0 + 1),
    "array_split": (lambda x, n: pnp.array_split(X * x, pnp.stack([n, n + 2]))[1].sum(), 2 + 3),
    "dsplit": (lambda x, n: pnp.dsplit(pnp.reshape(X * x, (1, 1, 6)), n[None])[0].sum(), 0 + 1),
    "arange": (lambda x, n: (x * pnp.arange(n + 2)).sum(), 0 + 1 + 2 + 3),
    "linspace": (lambda x, n: (x * pnp.linspace(0.0, 4.0, num=n + 3)).sum(), 0 + 1 + 2 + 3 + 4),
    "eye": (lambda x, n: (x * pnp.eye(n + 1)).sum(), 3),
    "nonzero": (lambda x, n: X[pnp.nonzero(n + X > 5)[0]].sum() * x, 4 + 5),
    "argwhere": (lambda x, n: X[pnp.argwhere(n + X > 5)].sum() * x, 4 + 5),
    "choose": (lambda x, n: pnp.choose(n[None], [X[:1], X[:1], x[None]]).sum(), 1),
    "trim_zeros": (lambda x, n: x * pnp.trim_zeros(X * n).shape[0], 5),
    "repeat": (lambda x, n: (x * pnp.repeat(X[:3], n)).sum(), 2 * (0 + 1 + 2)),
}


@pytest.mark.parametrize("name", SIZED)
def test_a_known_number_decides_a_shape(name):
    f, slope = SIZED[name]

    def of(x):
        return f(x, x.astype(int))

    assert plait.grad(of)(np.float32(2)) == slope
    assert plait.jvp(of, (np.float32(2),), (np.float32(3),))[1] == 3 * slope


@pytest.mark.parametrize("name", ["split", "array_split", "dsplit", "arange", "nonzero", "repeat"])
def test_a_number_that_is_not_known_is_refused(name):
    f, _ = SIZED[name]
    with pytest.raises(ConcretizationError):
        plait.jit(lambda x: f(x, x.astype(int)))(np.float32(2))
