"""The check of keys that are used twice: it finds every reuse here, and nothing else.

Invariant: whether a case reuses a key can be read off it; the check is on for this module only.
"""

import numpy as np
import pytest

import plait
from plait import lax, random
from plait import numpy as pnp
from plait.errors import KeyReuseError
from plait.ext.errors import PlaitError

split, uniform, normal = random.split, random.uniform, random.normal


@pytest.fixture(autouse=True)
def checked():
    with plait.config(debug_key_reuse=True):
        yield


def key():
    return random.key(0)


def twice(k):
    first = uniform(k)
    return first + uniform(k)


def turn(k, _):
    k, used = split(k)
    return k, uniform(used)


def rows_and_row(k):
    ks = split(k, 4)
    return lax.map(uniform, ks), uniform(ks[3])


def of_pair(f):
    """A case of the two keys that `split` makes."""
    return lambda k: f(*split(k))


def places(f):
    """A case of three keys and a place that is not known."""
    return lambda k: (lambda a, b: f(split(a, 3), random.randint(b, (), 0, 2)))(*split(k))


def swept(ks, i):
    """Keys are taken from a table, and new ones put there."""

    def body(j, state):
        ks, total = state
        new, used = split(ks[j + i])
        return ks.at[j + i].set(new), total + uniform(used)

    return lax.fori_loop(0, 20, body, (ks, 0.0))


REUSED = {
    "twice": twice,
    "split and drawn": lambda k: (split(k), uniform(k)),
    "one of several": lambda k: [uniform(split(k, 3)[i]) for i in (1,)] + [
        uniform(x[i]) for x in [split(key(), 3)] for i in (1, -2)],
    "overlapping slices": lambda k: (lambda ks: (plait.vmap(uniform)(ks[:2]), uniform(ks[1])))(
        split(k, 3)),
    "calls": lambda k: (plait.jit(uniform)(k), plait.jit(normal)(k)),
    "through a call": lambda k: uniform(plait.jit(lambda k: k)(k)) + uniform(k),
    "a constant of a scan": lambda k: lax.scan(lambda c, _: (c + uniform(k), None), 0.0, None, 3),
    "a carry": lambda k: lax.scan(lambda c, _: (c, uniform(c)), k, None, 3),
    "rows and a row": rows_and_row,
    "a branch": lambda k: (lax.cond(uniform(random.key(9)) < 2, uniform, lambda k: 0.0, k),
                           uniform(k)),
    "in a branch": lambda k: lax.cond(uniform(random.key(9)) < 2, twice, normal, k),
    "a constant of a loop": lambda k: lax.while_loop(
        lambda s: s < 3.0, lambda s: s + 1 + uniform(k), 0.0),
    "for": lambda k: lax.fori_loop(0, 3, lambda i, s: s + uniform(k), 0.0),
    "mapped": lambda k: plait.vmap(twice)(split(k, 3)),
    "broadcast": lambda k: plait.vmap(uniform)(pnp.broadcast_to(k, (3,))),
    "chosen": of_pair(lambda a, b: (uniform(pnp.where(uniform(random.key(9)) < 2, a, b)),
                                    uniform(a))),
    "stacked": of_pair(lambda a, b: plait.vmap(uniform)(pnp.stack([a, b, a]))),
    "moved": lambda k: (uniform(k[None].reshape(1, 1)[0, 0]), uniform(k)),
    "words": lambda k: twice(random.key_data(k)),
    "a computed place": places(lambda ks, i: uniform(ks[i]) + uniform(ks[i])),
    "a place and the same": places(lambda ks, i: uniform(ks[i + 1]) + normal(ks[i + 1])),
    "a place in a loop": places(lambda ks, i: lax.fori_loop(
        0, 20, lambda _, s: s + uniform(ks[i]), 0.0)),
    "a place, and all": places(lambda ks, i: (uniform(ks[i]), plait.vmap(uniform)(ks))),
    "all, and a place": places(lambda ks, i: (plait.vmap(uniform)(ks), uniform(ks[i]))),
    "in and out of a call": places(lambda ks, i: (plait.jit(lambda a, j: uniform(a[j]))(ks, i),
                                                  uniform(ks[i]))),
    "mapped places": places(lambda ks, i: plait.vmap(lambda j: uniform(ks[j]))(pnp.stack([i, i]))
                            + plait.vmap(lambda j: uniform(ks[j]))(pnp.stack([i, i]))),
    "put back": places(lambda ks, i: (plait.vmap(uniform)(ks), uniform(ks.at[i].set(ks[0])[1]))),
    "counted places": lambda k: (lambda ks: lax.fori_loop(
        0, 4, lambda i, s: s + uniform(ks[i % 3]), 0.0))(split(k, 3)),
    "places of rows": lambda k: (lambda ks: lax.scan(
        lambda s, i: (s + uniform(ks[i]), None), 0.0, pnp.array([0, 2, 0])))(split(k, 3)),
    "a place, after a loop": lambda k: (lambda ks: lax.fori_loop(
        0, 3, lambda i, s: s + uniform(ks[i]), 0.0) + uniform(ks[1]))(split(k, 3)),
    "two slices of words": lambda k: plait.jit(lambda w: uniform(w[1]) + uniform(w[1]))(
        random.key_data(split(k))),
    "the generator of the device": lambda k: twice(random.key(0, impl="rbg")),
}  # fmt: skip
FINE = {
    "split": of_pair(lambda a, b: uniform(a) + normal(b)),
    "folded": lambda k: [uniform(random.fold_in(k, i)) for i in range(3)],
    "slices": lambda k: (lambda ks: (plait.vmap(uniform)(ks[:2]), uniform(ks[2])))(split(k, 3)),
    "loop": lambda k: uniform(lax.scan(turn, k, None, 3)[0]),
    "one turn": lambda k: lax.scan(lambda c, _: (c + uniform(k), None), 0.0, None, 1),
    "rows": lambda k: lax.map(uniform, split(k, 4)),
    "branches": lambda k: lax.cond(uniform(random.key(9)) < 2, uniform, normal, k),
    "while": lambda k: lax.while_loop(
        lambda s: s[0] < 3.0, lambda s: (s[0] + 1, split(s[1])[0]), (0.0, k))[0],
    "computed places": lambda k: (lambda ks: lax.fori_loop(
        0, 3, lambda i, s: s + uniform(ks[i]), 0.0))(split(k, 3)),
    "two places": places(lambda ks, i: uniform(ks[i]) + uniform(ks[i + 1])),
    "places, and others": places(lambda ks, i: (uniform(ks[i]), uniform(ks[2]))),
    "a table": places(swept),
    "places of a loop": places(lambda ks, i: lax.fori_loop(
        0, 20, lambda j, s: s + uniform(ks[i + j]), 0.0)),
    "places of rows": places(lambda ks, i: lax.scan(
        lambda s, j: (s + uniform(ks[j]), None), 0.0, pnp.arange(3))),
    "permuted": lambda k: (lambda a, b: plait.vmap(uniform)(split(a, 4)[random.permutation(b, 4)]))(
        *split(k)),
    "one of a batch": places(lambda ks, i: plait.vmap(lambda j: uniform(ks[j]))(pnp.arange(3))),
    "words": lambda k: (lambda w: uniform(w[0]) + uniform(w[1]))(random.key_data(split(k))),
    "cloned": lambda k: uniform(random.clone(k)) + uniform(k),
    "looked at": lambda k: (random.key_data(k), k == k, uniform(k)),
    "mapped": lambda k: plait.vmap(lambda k: normal(k, (2,)))(split(k, 3)),
    "grad": lambda k: plait.grad(lambda x: (x * normal(k, (3,))).sum())(2.0),
    "hessian": lambda k: plait.hessian(lambda x: (normal(k, (2,)) * x**3).sum())(pnp.ones(2)),
    "checkpoint": lambda k: plait.grad(plait.checkpoint(lambda x: pnp.sin(x * normal(k))))(2.0),
    "stacked": of_pair(lambda a, b: plait.vmap(uniform)(pnp.stack([b, a]))),
    "samplers": lambda k: (lambda ks: (random.permutation(ks[0], 5), random.randint(
        ks[1], (2,), 0, 9), normal(ks[2], (2,), "complex64")))(split(k, 3)),
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.feature("C14")
@pytest.mark.parametrize("name", REUSED)
def test_reuse_is_found(name):
    for f in (REUSED[name], plait.jit(REUSED[name])):
        with pytest.raises(KeyReuseError, match="a random key is used twice") as e:
            f(key())
        assert str(e.value).count("test_reuse.py") >= 2 and "split(key)" in str(e.value)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", FINE)
def test_nothing_else_is(name):
    FINE[name](key())
    f = plait.jit(FINE[name])
    f(key())
    f(random.key(1))  # compiled already


@pytest.mark.feature("C14")
def test_both_lines_are_named():
    for f in (twice, plait.jit(twice), plait.jit(plait.vmap(twice))):
        with pytest.raises(KeyReuseError) as e:
            f(split(key(), 2) if f is not twice and f.__wrapped__ is not twice else key())
        first = twice.__code__.co_firstlineno + 1
        assert f"test_reuse.py:{first}," in e.value.what
        assert e.value.what.endswith(f"test_reuse.py:{first + 1}")


@pytest.mark.feature("C14")
def test_spent_by_what_has_run():
    k, f = key(), plait.jit(uniform)
    f(k)
    with pytest.raises(KeyReuseError):
        f(k)
    with pytest.raises(KeyReuseError):
        split(k)
    held = key()
    g = plait.jit(lambda: normal(held))
    g()
    with pytest.raises(KeyReuseError):
        g()
    loose = random.clone(k)
    uniform(loose)
    with pytest.raises(KeyReuseError):
        uniform(loose)
    with plait.config(debug_key_reuse=False):
        assert np.asarray(twice(k)) == np.asarray(plait.jit(twice)(k))


def test_what_fails_spends_nothing():
    k = key()
    with pytest.raises(PlaitError):
        plait.jit(lambda k: (uniform(k), k + 1))(k)
    uniform(k)
