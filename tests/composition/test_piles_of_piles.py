"""Piles whose elements are piles: texts of sentences of words, of which each level differs.

Invariant: the other side is a loop over lists of lists of arrays.
"""

import copy
import pickle

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Pile, lax, pile_axis, vmap
from plait.errors import ShapeError

RNG = np.random.default_rng(0)
COUNTS = ([2, 1], [], [1, 0, 35], [0])
TEXTS = [[RNG.standard_normal((n, 2)) for n in counts] for counts in COUNTS]
WAYS = pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["eager", "jit"])


def sentences(text, columns=(2,)):
    rows = np.concatenate([np.zeros((0, *columns)), *text])
    return Pile(rows, np.array([len(x) for x in text], np.int32))


def texts():
    return Pile.from_list([sentences(t) for t in TEXTS])


def inside(f, out_axes=pile_axis):
    """f of each sentence of each text."""
    return lambda p: vmap(lambda text: vmap(f, pile_axis, out_axes)(text), pile_axis, pile_axis)(p)


def same(p, want):
    assert isinstance(p, Pile) and len(p) == len(want)
    for got, text in zip(p.to_list(), want, strict=True):
        assert len(got) == len(text)
        for x, y in zip(got.to_list() if isinstance(got, Pile) else got, text, strict=True):
            assert np.shape(x) == np.shape(y)
            np.testing.assert_allclose(x, y, 1e-9, 1e-12)


def test_made_and_taken_apart():
    p = texts()
    same(p, TEXTS)
    assert [len(p[b]) for b in range(4)] == list(map(len, COUNTS))
    np.testing.assert_array_equal(p[2].lengths, COUNTS[2])
    np.testing.assert_array_equal(p[-1].data, np.zeros((0, 2)))
    assert "Pile([Pile([" in repr(p)


@pytest.mark.parametrize("through", [
    plait.jit(lambda p: p), plait.device_put, copy.deepcopy,
    lambda p: pickle.loads(pickle.dumps(p)),
    lambda p: vmap(lambda text: text, pile_axis, pile_axis)(p),
    lambda p: plait.tree.unflatten(plait.tree.structure(p), plait.tree.leaves(p)),
], ids=["jit", "device_put", "copy", "pickle", "vmap", "tree"])  # fmt: skip
def test_goes_through(through):
    same(through(texts()), TEXTS)


@WAYS
def test_mapped_twice(wrap):
    p = texts()
    same(wrap(inside(lambda x: (x**2).sum(0), 0))(p), [[(x**2).sum(0) for x in t] for t in TEXTS])
    same(wrap(inside(lambda x: pnp.cumsum(x, 0)))(p), [[np.cumsum(x, 0) for x in t] for t in TEXTS])
    centred = lambda x: x - x.sum(0) / pnp.maximum(pnp.asarray(x.shape[0]), 1)
    want = [[x - x.sum(0) / max(len(x), 1) for x in t] for t in TEXTS]
    same(wrap(inside(centred))(p), want)
    same(
        wrap(inside(lambda x: 2 * x))(wrap(inside(centred))(p)), [[2 * x for x in t] for t in want]
    )


@WAYS
def test_what_a_text_gives(wrap):
    total = lambda text: vmap(lambda x: x.sum(), pile_axis)(text).sum()
    got = wrap(vmap(total, pile_axis))(texts())
    np.testing.assert_allclose(got, [sum(x.sum() for x in t) for t in TEXTS], 1e-9)


@WAYS
def test_gradients(wrap):
    def loss(p, w):
        each = inside(lambda x: (pnp.sin(x) @ w).sum(), 0)(p)
        return vmap(lambda v: v.sum(), pile_axis)(each).sum()

    w = pnp.asarray([2.0, -1.0])
    got = wrap(plait.grad(loss, (0, 1)))(texts(), w)
    same(got[0], [[np.cos(x) * np.asarray(w) for x in t] for t in TEXTS])
    np.testing.assert_allclose(got[1], sum(np.sin(x).sum(0) for t in TEXTS for x in t), 1e-6)
    each = vmap(lambda t: plait.grad(lambda t: vmap(lambda x: (x**2).sum(), pile_axis)(t).sum())(t),
                pile_axis, pile_axis)  # fmt: skip
    same(wrap(each)(texts()), [[2 * x for x in t] for t in TEXTS])


def test_carried_by_a_loop():
    got = lax.scan(lambda p, _: (inside(lambda x: 2 * x)(p), None), texts(), None, length=3)[0]
    same(got, [[8 * x for x in t] for t in TEXTS])


@WAYS
def test_a_pile_that_an_example_makes(wrap):
    """Of rows and lengths that it has; and of examples of one size, which it counts."""
    rows = Pile.from_list([np.concatenate([np.zeros((0, 2)), *t]) for t in TEXTS])
    lengths = Pile.from_list([np.array([len(x) for x in t], np.int32) for t in TEXTS])
    same(wrap(vmap(Pile, pile_axis, pile_axis))(rows, lengths), TEXTS)
    made = vmap(lambda x: vmap(lambda r: 3 * r, out_axes=pile_axis)(x), pile_axis, pile_axis)
    same(wrap(made)(rows), [[3 * r for r in x] for x in rows.to_list()])


def test_beside_arrays():
    """A tree of a pile and an array, whose sizes have nothing to do with each other."""
    ys = [np.arange(n) * 1.0 for n in (2, 0, 1, 3)]
    p = Pile.from_list([{"x": sentences(t), "y": y} for t, y in zip(TEXTS, ys)])

    def f(d):
        total = d["y"].sum()
        return vmap(lambda x: x.sum() + total, pile_axis)(d["x"])

    got = vmap(f, pile_axis, pile_axis)(p).to_list()
    for g, t, y in zip(got, TEXTS, ys, strict=True):
        np.testing.assert_allclose(g, [x.sum() + y.sum() for x in t], 1e-9)


REFUSED = {
    "data": ("are piles, and .data is asked for", lambda: texts().data),
    "to_padded": ("are piles, and .to_padded is", lambda: texts().to_padded()),
    "a pile and an array": (
        "trees of one structure, and element 1", lambda: Pile.from_list([texts()[0], np.ones(3)])
    ),
    "other types": (
        "trees of one structure, and element 1",
        lambda: Pile.from_list([texts()[0], Pile.from_list([np.ones((2, 3))])]),
    ),
    "two sizes": (
        "elements of a pile in a pile are arrays",
        lambda: Pile.from_list([Pile.from_list([np.ones((1, 2)), np.ones((3, 1))], axis=(0, 1))]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    message, ask = REFUSED[name]
    with pytest.raises(ShapeError, match=message) as e:
        ask()
    assert e.value.fix
