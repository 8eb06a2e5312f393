"""vmap of convolutions against a Python loop.

Invariant: as in conftest: every axis, none, size 1, nested; with groups of either kind.
"""

import numpy as np
import pytest

from plait.lax import conv_general_dilated, conv_transpose
from plait_batching import vmap


@pytest.mark.sampled(10)
@pytest.mark.parametrize("groups", [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("numbers", [("NHC", "HIO", "NHC"), ("CNH", "OHI", "HCN")])
def test_every_axis(mapped, groups, numbers):
    features, batches = groups
    sizes = dict(N=2, C=4, H=5), dict(O=4, I=4 // features, H=2)
    shapes = [tuple(s[c] for c in t) for s, t in zip(sizes, numbers)]

    def f(x, y):
        return conv_general_dilated(x, y, (2,), ((1, 2),), (1,), (2,), numbers, features, batches)

    mapped(f, *shapes)


def test_two_spatial_axes(mapped):
    mapped.nested(
        lambda x, y: conv_general_dilated(x, y, (1, 2), "SAME", (2, 1)),
        (2, 2, 3, 4), (3, 2, 2, 1),
    )  # fmt: skip


def test_transposed(mapped):
    mapped.nested(lambda x, y: conv_transpose(x, y, (2,), "SAME"), (1, 4, 2), (3, 2, 2))


def test_of_nothing():
    x, y = np.zeros((0, 1, 2, 5)), np.zeros((0, 3, 2, 2))
    f = lambda a, b: conv_general_dilated(a, b, (1,), "VALID")  # noqa: E731
    assert vmap(f)(x, y).shape == (0, 1, 3, 4)
    assert vmap(f, in_axes=(None, 0))(np.zeros((1, 2, 5)), y).shape == (0, 1, 3, 4)
