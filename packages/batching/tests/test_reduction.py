"""vmap of reductions against a Python loop.

Invariant: as in conftest: every axis, none, size 1, nested.
"""

import numpy as np
import pytest

from plait.ext.ops.reduction import reduce_xor
from plait.numpy import all, any, argmax, argmin, max, mean, min, prod, sum
from plait_batching import vmap


@pytest.mark.parametrize("f", [
    lambda x: sum(x, 1),
    lambda x: [sum(x), sum(x, (0, 2), keepdims=True), mean(x, 0)],
    lambda x: [prod(x, 2), max(x, 0), min(x, (1, 2))],
    lambda x: [any(x, 0), all(x, 1)],
    lambda x: [argmax(x, 0), argmin(x, 2), argmax(x), argmin(x, 1, keepdims=True)],
])  # fmt: skip
def test_every_axis(mapped, f):
    mapped(f, (2, 3, 4))


def test_integers(mapped):
    mapped(lambda x: [reduce_xor.bind(x, axes=(1,)), sum(x, 0)], (3, 2), dtypes=np.int32)


def test_where_and_initial(mapped):
    mapped(lambda x, w: sum(x, 0, where=w > 2, initial=1.0), (3, 2), (2,))


def test_of_nothing():
    x = np.zeros((0, 3), np.float32)
    assert vmap(lambda v: sum(v))(x).shape == (0,)
    assert vmap(lambda v: argmax(v))(x).shape == (0,)
    assert vmap(lambda v: sum(v), in_axes=1)(x).shape == (3,)
