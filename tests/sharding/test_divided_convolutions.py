"""Convolutions whose operands are divided over devices, in ways that the compiler does not master.

Invariant: what is right is what numpy says, or a loop over examples; `python -m
tests.fuzz.random_divisions` goes on with others.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait_sharding import NamedSharding, P, make_mesh

from ..fuzz import random_convolutions as convolutions

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def quickly():
    """Most of the time is the compiler's."""
    with plait.config(tier="fast"):
        yield


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(24))
def test_convolutions(seed):
    convolutions.check_convolution(seed)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("way", convolutions.WAYS)
@pytest.mark.parametrize("kind", convolutions.KINDS)
def test_convolutions_of_examples(kind, way):
    seed = 5 * convolutions.KINDS.index(kind) + convolutions.WAYS.index(way)
    got = convolutions.check_examples(seed, kind, way)
    if kind != "of the mean" and way != "operand by operand":
        # nothing is gathered, where there is anything
        assert all(x.sharding.spec == P("a") or not np.any(x) for x in plait.tree.leaves(got))


def test_a_place_that_is_found_after_the_convolution():
    """The module gets its devices from the last line of the program."""
    x, y = RNG.standard_normal((4, 2, 8)), RNG.standard_normal((2, 1, 3))
    lies = NamedSharding(make_mesh((4,), "a"), P(None, None, "a"))

    def f(x, y):
        out = lax.conv_general_dilated(x, y, (1,), "SAME", feature_group_count=2)
        return plait.with_sharding_constraint(out, lies)

    padded = np.pad(x, ((0, 0), (0, 0), (1, 1)))
    want = sum(padded[:, :, k : k + 8] * y[None, :, 0, k, None] for k in range(3))
    np.testing.assert_allclose(plait.jit(f)(x, y), want, rtol=1e-4, atol=1e-4)
