"""Keys mapped over: every operation that moves them or makes something of them, against a loop.

Invariant: an example has the keys that it would have alone, whichever axis is mapped.
"""

import numpy as np
import pytest

import plait
from plait import lax, random
from plait import numpy as pnp
from plait.ext.ops.random import rng_bit_generator
from plait.ext.values import asarray
from plait.lax import scan

KEYS = random.split(random.key(5), (4, 3, 2))
I = np.array([2, 0, 1, 1])  # noqa: E741


def host(x):
    is_key = plait.dtypes.issubdtype(x.dtype, plait.dtypes.prng_key)
    return np.asarray(random.key_data(x) if is_key else x)


CASES = {
    "reshape": lambda k, i: k.reshape(6),
    "transpose": lambda k, i: k.T,
    "reverse": lambda k, i: k[::-1, None],
    "stack": lambda k, i: pnp.stack([k[0], KEYS[0, 0]], -1),
    "concatenate": lambda k, i: pnp.concatenate([k, KEYS[1]]),
    "where": lambda k, i: pnp.where(i > 0, k, KEYS[2]),
    "compare": lambda k, i: k == KEYS[1],
    "at a place": lambda k, i: k[i],
    "gather": lambda k, i: k[pnp.stack([i, i + 1]), 0],
    "set": lambda k, i: k.at[i].set(k[0]),
    "pad": lambda k, i: lax.pad(k, k[i, 0], [(1, 0, 0), (0, 1, 1)]),
    "scan": lambda k, i: scan(lambda c, r: (random.fold_in(r[0], i), c), k[0, 1], k),
    "loop": lambda k, i: lax.fori_loop(0, i, lambda _, c: random.fold_in(c, 1), k[0, 0]),
    "cond": lambda k, i: lax.cond(i > 0, lambda a: a[1], lambda a: random.split(a[0, 0]), k),
    "words": lambda k, i: random.wrap_key_data(random.key_data(k)[0]),
    "of the device": lambda k, i: random.bits(
        random.wrap_key_data(random.key_data(k)[:2].reshape(2, 4)[0], impl="rbg"), (2,)),
    "unsafe": lambda k, i: (lambda u: (random.split(u), random.fold_in(u, i)))(
        random.wrap_key_data(random.key_data(k)[0].ravel(), impl="unsafe_rbg")),
    "nested": lambda k, i: plait.vmap(lambda a: random.bits(a, (2,)), in_axes=-1)(k[i]),
    "clone": lambda k, i: random.clone(k),
}  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", CASES)
def test_one_by_one(name):
    f = CASES[name]
    alone = [plait.tree.leaves(f(k, i)) for k, i in zip(KEYS, I)]
    want = [np.stack([host(x) for x in xs]) for xs in zip(*alone)]
    moved = pnp.moveaxis(KEYS, 0, -1)
    for g, keys in ((plait.vmap(f), KEYS), (plait.jit(plait.vmap(f, in_axes=(-1, 0))), moved)):
        got = [host(x) for x in plait.tree.leaves(g(keys, I))]
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_states_of_the_generator():
    states = asarray(np.arange(8, dtype=np.uint32).reshape(2, 4))
    draw = lambda s: rng_bit_generator.bind(  # noqa: E731
        s, shape=(3,), dtype=np.dtype(np.uint16), algorithm="philox"
    )
    got = plait.vmap(draw)(states)
    for i in range(2):
        for a, b in zip(got, draw(states[i]), strict=True):
            np.testing.assert_array_equal(np.asarray(a)[i], np.asarray(b))


def test_out_axes():
    got = plait.vmap(lambda k: random.split(k[0, 0], 5), in_axes=0, out_axes=-1)(KEYS)
    assert got.shape == (5, 4)
    np.testing.assert_array_equal(host(got)[:, 2], host(random.split(KEYS[2, 0, 0], 5)))
