"""Samples mapped over keys and parameters, against a loop.

Invariant: what is drawn for an example is what its key draws alone.
"""

import numpy as np
import pytest

import plait
from plait import random
from plait.ext.values import asarray

KEYS = random.split(random.key(5), 4)
LOGITS = np.log(np.random.default_rng(0).dirichlet(np.ones(3), 4)).astype(np.float32)


def host(x):
    is_key = plait.dtypes.issubdtype(x.dtype, plait.dtypes.prng_key)
    return np.asarray(random.key_data(x) if is_key else x)


SAMPLERS = {
    "bits": lambda k: random.bits(k, (3,)),
    "bits8": lambda k: random.bits(k, (3,), "uint8"),
    "uniform": lambda k: random.uniform(k, (2, 2)),
    "normal": lambda k: random.normal(k, (5,)),
    "split": lambda k: random.split(k, 3),
    "fold": lambda k: random.fold_in(k, 7),
    "bernoulli": lambda k: random.bernoulli(k, 0.4, (6,)),
    "randint": lambda k: random.randint(k, (5,), 0, 100),
    "permutation": lambda k: random.permutation(k, 9),
    "choice": lambda k: random.choice(k, np.arange(6.0), (3,), False),
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", SAMPLERS)
def test_over_keys(name):
    f = SAMPLERS[name]
    want = np.stack([host(f(k)) for k in KEYS])
    for mapped in (
        plait.vmap(f),
        plait.jit(plait.vmap(f)),
    ):  # bits are equal, functions of them nearly
        np.testing.assert_allclose(host(mapped(KEYS)), want, rtol=2e-6)


def test_over_parameters():
    draw = lambda k, x: random.categorical(k, x, shape=(6,))  # noqa: E731
    for axes in ((0, 0), (0, None), (None, 0)):
        k = KEYS if axes[0] == 0 else KEYS[1]
        x = LOGITS if axes[1] == 0 else LOGITS[1]
        got = host(plait.vmap(draw, in_axes=axes)(k, asarray(x)))
        want = [
            host(draw(KEYS[i] if axes[0] == 0 else k, asarray(LOGITS[i] if axes[1] == 0 else x)))
            for i in range(4)
        ]
        np.testing.assert_array_equal(got, want)
    low = np.arange(4.0, dtype=np.float32)
    got = host(plait.vmap(lambda v: random.uniform(KEYS[0], (3,), minval=v, maxval=v + 1))(low))
    want = [
        host(random.uniform(KEYS[0], (3,), minval=asarray(v), maxval=asarray(v + 1))) for v in low
    ]
    np.testing.assert_array_equal(got, want)


def test_over_seeds_and_numbers():
    seeds = np.arange(5)
    got = host(plait.vmap(random.key)(seeds))
    np.testing.assert_array_equal(got, [host(random.key(int(s))) for s in seeds])
    got = host(plait.vmap(random.fold_in, in_axes=(None, 0))(KEYS[0], seeds))
    np.testing.assert_array_equal(got, [host(random.fold_in(KEYS[0], int(s))) for s in seeds])


def test_nested():
    grid = KEYS.reshape(2, 2)
    got = host(plait.vmap(plait.vmap(lambda k: random.normal(k, (2,))))(grid))
    want = [[host(random.normal(grid[a, b], (2,))) for b in range(2)] for a in range(2)]
    np.testing.assert_array_equal(got, want)
