"""Sizes that outlive the map or the mask in which they were read.

Names of sizes are the same in equal maps.  So a size that is kept would mean the size of that name
in the next map; wherever it is used there, that is an error which names the value it was read from.

Invariant: whatever a size of a map that is under way is used for gives what numpy does.
"""

import functools

import numpy as np
import pytest

import plait
from plait import Pile, lax, mask, pile_axis, vmap
from plait.errors import UnexpectedTracerError

pnp = plait.numpy
kept: list = []


def pile(*lengths):
    return Pile.from_list([np.arange(1, n + 1, dtype=np.float32) for n in lengths])


def each(f, p, out=0):
    return vmap(f, pile_axis, out)(p)


def keep(size):
    kept.append(size)  # the line is that of the value
    return 0.0


def of_pile(x):
    return keep(x.shape[0]) + x.sum()


def of_expression(x):
    return keep(2 * x.shape[0] + 1) + x.sum()


def of_count(x):
    return keep(x.size) + x.sum()


def of_inner(x):
    """A size read in a loop in the map."""
    return lax.fori_loop(0, 2, lambda i, c: keep(x.shape[0]) + c, x.sum())


def the_value(x):
    kept.append(x)
    return x.sum()


def of_number(n):
    return keep(n) + pnp.arange(n).sum()


SOURCES = {
    "pile": lambda: each(of_pile, pile(7, 9)),
    "expression": lambda: each(of_expression, pile(7, 9)),
    "count": lambda: each(of_count, pile(7, 9)),
    "loop": lambda: each(of_inner, pile(7, 9)),
    "jit": lambda: plait.jit(lambda p: each(of_pile, p))(pile(7, 9)),
    "mapped integers": lambda: vmap(of_number)(np.array([3, 4])),
    "mask": lambda: mask(of_pile, ["n"], "")([np.ones(4)], {"n": 2}),
    "read later": lambda: each(the_value, pile(7, 9)),
}
USES = {
    "product": lambda x, k: x * k,
    "quotient": lambda x, k: x.sum() / k * x,
    "float": lambda x, k: x * (k * 1.0),
    "asarray": lambda x, k: x + pnp.asarray(k),
    "where": lambda x, k: pnp.where(x > 0, x, k),
    "ones": lambda x, k: x + pnp.ones(k),
    "full": lambda x, k: pnp.full((k,), 2.0) * x,
    "arange": lambda x, k: x + pnp.arange(k),
    "linspace": lambda x, k: pnp.linspace(0, 1, k) * x,
    "normal": lambda x, k: x * plait.random.normal(plait.random.key(0), (k,)),
    "broadcast": lambda x, k: pnp.broadcast_to(1.0, (k,)) + x,
    "reshape": lambda x, k: x.reshape((k, 1))[:, 0],
    "slice": lambda x, k: x[:k],
    "index": lambda x, k: x[k - 1] * x,
    "set": lambda x, k: x.at[k - 1].set(0.0),
    "dynamic_slice": lambda x, k: lax.dynamic_slice_in_dim(x, 0, k),
    "pad": lambda x, k: pnp.pad(x, (0, k)),
    "repeat": lambda x, k: pnp.repeat(1.0, k) * x,
    "fori_loop": lambda x, k: lax.fori_loop(0, k, lambda i, c: c + 1, x),
    "scan": lambda x, k: lax.scan(lambda c, _: (c + 1, None), x, None, length=k)[0],
    "another size": lambda x, k: x * (x.shape[0] + k),
    "equal": lambda x, k: x * (1 if x.shape[0] == k else 0),
    "at most": lambda x, k: x * (1 if x.shape[0] <= k else 0),
    "largest": lambda x, k: x * plait.core.max_dim(k, x.shape[0]),
    "int": lambda x, k: x * int(k),
    "in jit": lambda x, k: plait.jit(lambda y: y * k)(x),
    "in vmap": lambda x, k: vmap(lambda y: y * k)(x),
    "in cond": lambda x, k: lax.cond(x.sum() > 0, lambda: x * k, lambda: x),
    "in grad": lambda x, k: plait.grad(lambda y: (y * k).sum())(x),
}
PLACES = {
    "map": lambda f: each(f, pile(1, 2), pile_axis),
    "map in jit": lambda f: plait.jit(lambda p: each(f, p, pile_axis))(pile(1, 2)),
    "mask": lambda f: mask(f, ["n"], "n")([np.ones(4, np.float32)], {"n": 3}),
    "nothing": lambda f: f(pnp.ones(3)),
}


@pytest.mark.parametrize("source", SOURCES)
def test_kept(source):
    """Whatever it was read from, wherever it is used, and for what."""
    kept.clear()
    SOURCES[source]()
    k = kept[-1].shape[0] if source == "read later" else kept[-1]
    for place, use in ((p, u) for p in PLACES for u in USES):
        with pytest.raises(UnexpectedTracerError, match="created on line") as caught:
            PLACES[place](lambda x, use=use: USES[use](x, k))
        assert __file__ in str(caught.value), (place, use)


def test_it_may_be_looked_at():
    kept.clear()
    each(of_pile, pile(7, 9))
    each(of_pile, pile(7, 9))
    a, b = kept
    assert repr(a) == repr(b) and len({a, b}) == 1 and a in [a]


# ---- sizes of maps that are under way --------------------------------------------------------


@pytest.mark.sampled(16)
@pytest.mark.parametrize("use", [use for use in USES if use != "int"])
def test_of_this_map(use):
    """The same uses of the size of the argument itself, twice with other lengths."""
    for lengths in ((1, 2), (4, 2, 3)):
        xs = [np.arange(1, n + 1, dtype=np.float32) for n in lengths]
        got = each(lambda x: USES[use](x, x.shape[0]), pile(*lengths), pile_axis)
        for y, x in zip(got, xs, strict=True):
            np.testing.assert_allclose(y, USES[use](pnp.asarray(x), len(x)), rtol=1e-6)


def rowwise(x, ys):
    n = x.shape[0]
    number = pnp.asarray(n)
    inner = each(lambda y: (y * number).sum() + y.shape[0] * pnp.ones(y.shape[0]).sum(), ys)
    return inner.sum() * n + pnp.ones(n).sum()


def test_of_a_map_around():
    """A size of an outer map is one while an inner map is under way, and after it."""
    want = [n * sum(n * m * (m + 1) / 2 + m * m for m in (3, 1)) + n for n in (2, 4)]
    f = lambda p: each(lambda x: rowwise(x, pile(3, 1)), p)  # noqa: E731
    for g in (f, plait.jit(f)):
        np.testing.assert_allclose(g(pile(2, 4)), want, rtol=1e-6)


def test_inner_size_outside():
    """A size of an inner map that has ended, in the map around it."""

    def f(x):
        found = []
        each(lambda y: found.append(y.shape[0]) or y.sum(), pile(3, 1))
        return x.sum() * found[0]

    with pytest.raises(UnexpectedTracerError, match="which has ended"):
        each(f, pile(2, 4))


def scaled_by_vjp(x):
    n = x.shape[0]
    g = plait.custom_vjp(lambda y: y * n)
    g.defvjp(lambda y: (y * n, ()), lambda r, ct: (ct * n * pnp.ones(n),))
    return g(x).sum()


def scaled_by_jvp(x):
    n = x.shape[0]
    g = plait.custom_jvp(lambda y: y * n)
    g.defjvp(lambda p, t: (g(*p), t[0] * n + pnp.zeros(n)))
    return g(x).sum()


@pytest.mark.parametrize("f", [scaled_by_vjp, scaled_by_jvp])
def test_rules_that_are_staged_later(f):
    """A rule closes over a size, and is made a program when the map has ended."""
    p = pile(2, 3)
    total = lambda p: each(f, p).sum()  # noqa: E731
    for g in (plait.grad(total), plait.jit(plait.grad(total)), plait.grad(plait.jit(total))):
        for got, n in zip(g(p), (2, 3), strict=True):
            np.testing.assert_allclose(got, np.full(n, n))


@functools.partial(plait.jit, static_argnums=1)
def times(x, n):
    return x * n + pnp.ones(n)


def test_static_sizes():
    """A jitted function that was traced for the size of one map is used in another."""
    for lengths in ((2, 3), (4, 1)):
        got = each(lambda x: times(x, x.shape[0]).sum(), pile(*lengths))
        np.testing.assert_allclose(got, [n * n * (n + 1) / 2 + n for n in lengths])


def test_equal_maps_are_one_program():
    """Owners are no part of what is recorded: nothing is compiled for another map."""
    f = lambda x: x * x.shape[0] + pnp.ones(x.shape[0])  # noqa: E731
    texts = [
        str(plait.make_program(lambda p: each(lambda x: f(x).sum(), p))(pile(2, 3)))
        for _ in range(2)
    ]
    assert texts[0] == texts[1]
