"""Transformations of strangers in nestings of two operations: right, or refused in words.

`python -m tests.carriers.nestings` compares all of them.

Invariant: each case of a sample is fixed by its name, and every operation is in the samples.
"""

import zlib

import numpy as np
import pytest

import plait.numpy as pnp

from .nestings import WAYS, X, compare, nestings
from .strangers import TRANSFORMATIONS, affine, body, flops, inverted, moments, scaled

COUNT = 7


def sample(name):
    """Some of the nestings of a transformation."""
    cases = [*nestings(*TRANSFORMATIONS[name])]
    cases.sort(key=lambda case: zlib.crc32(f"{name} {case.name}".encode()))
    return cases[:COUNT]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_nested_in_two_operations(name):
    right = [compare(name, case) for case in sample(name)]
    assert sum(right) >= 3


def test_samples_have_every_operation():
    words = {w for name in TRANSFORMATIONS for case in sample(name) for w in case.name.split()}
    assert words >= {*WAYS, "over", "around", "under"}


def test_what_a_transformation_gives():
    """By numpy, for the function that is nested."""
    slope = 2 / np.cosh(X) ** 2 + 1
    np.testing.assert_allclose(scaled(body)(X), 2 * np.tanh(X) + X, rtol=1e-6)
    assert flops(body)(X)[1] == 3 * len(X)
    mean, variance = moments(lambda x: pnp.tanh(x) * 2.0)(X)
    np.testing.assert_allclose(mean, 2 * np.tanh(X), rtol=1e-6)
    np.testing.assert_allclose(variance, 0.01 * (slope - 1) ** 2, rtol=1e-5)
    x, total = inverted(lambda x: pnp.sinh(x) * 2.0 + 1.0)(X)
    np.testing.assert_allclose(x, np.arcsinh((X * 0.3 - 1) / 2), rtol=1e-5)
    np.testing.assert_allclose(total, -np.log(2 * np.cosh(x)).sum(), rtol=1e-5)


def test_affine_bounds_hold():
    s, a, t, b, low, high = map(np.asarray, affine(body)(X))
    rng = np.random.default_rng(0)
    for x in rng.uniform(X - 0.1, X + 0.1, (50, len(X))).astype(np.float32):
        y = 2 * np.tanh(x) + x
        assert (s @ x + a <= y + 1e-5).all() and (y <= t @ x + b + 1e-5).all()
        assert (low <= y + 1e-5).all() and (y <= high + 1e-5).all()
    assert np.abs(high - low).max() < 1
