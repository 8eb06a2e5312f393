"""Piles of piles of piles, and deeper: books of texts of sentences.

Invariant: the other side is a loop over nested lists of arrays.
"""

import copy
import pickle

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Pile, pile_axis, vmap

RNG = np.random.default_rng(0)
COUNTS = [[[2, 1], [3]], [], [[1, 0, 5], [0], []], [[1]], [[1, 1], [2]]]
BOOKS = [[[RNG.standard_normal((n, 2)) for n in text] for text in book] for book in COUNTS]


def sentences(text):
    rows = np.concatenate([np.zeros((0, 2)), *text])
    return Pile(rows, np.array(list(map(len, text)), np.int32))


def texts(book):
    """A pile of no elements has no type, so a book of no texts is a piece of another."""
    return Pile.from_list([sentences(t) for t in book or BOOKS[0]])[: len(book)]


def books():
    return Pile.from_list([texts(b) for b in BOOKS])


def deep(f, levels, out_axes=pile_axis):
    """Map f over the elements of the innermost of so many levels."""
    if not levels:
        return f
    inner, each = deep(f, levels - 1, out_axes), pile_axis if levels > 1 else out_axes
    return lambda p: vmap(inner, pile_axis, each)(p)


def nested(p):
    return [nested(e) for e in p.to_list()] if isinstance(p, Pile) else np.asarray(p)


def same(got, want):
    assert len(got) == len(want)
    for x, y in zip(got, want, strict=True):
        if isinstance(y, list):
            same(x, y)
        else:
            assert np.shape(x) == np.shape(y)
            np.testing.assert_allclose(x, y, 1e-9, 1e-12)


@pytest.mark.parametrize("through", [
    lambda p: p, plait.jit(lambda p: p), copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p)),
    lambda p: p[::-1][::-1], deep(lambda x: x, 3), plait.jit(deep(lambda x: x, 3)),
], ids=["made", "jit", "copy", "pickle", "chosen", "vmap", "vmap, jit"])  # fmt: skip
def test_values_stay(through):
    same(nested(through(books())), BOOKS)


@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_maps_at_each_level(wrap):
    each = [[[pnp.tanh(x).sum() for x in text] for text in book] for book in BOOKS]
    got = wrap(deep(lambda x: pnp.tanh(x).sum(), 3, 0))(books())
    for row, book in zip(got.to_list(), each, strict=True):
        for y, text in zip(row, book, strict=True):
            np.testing.assert_allclose(y, text, 1e-9, 1e-12)

    def total(book):
        of_text = lambda text: vmap(lambda x: pnp.tanh(x).sum(), pile_axis)(text).sum() ** 2
        return vmap(of_text, pile_axis)(book).sum()

    want = [sum(float(sum(text)) ** 2 for text in book) for book in each]
    np.testing.assert_allclose(wrap(vmap(total, pile_axis))(books()), want, 1e-9, 1e-12)


def test_gradients_have_the_structure():
    def loss(p):
        of_text = lambda text: vmap(lambda x: (x**3).sum(), pile_axis)(text).sum()
        return vmap(lambda b: vmap(of_text, pile_axis)(b).sum(), pile_axis)(p).sum()

    for wrap in (lambda f: f, plait.jit):
        got = wrap(plait.grad(loss))(books())
        same(nested(got), [[[3 * x**2 for x in text] for text in book] for book in BOOKS])


def test_a_fourth_level():
    shelf = Pile.from_list([books(), books()[1:3]])
    same(nested(shelf), [BOOKS, BOOKS[1:3]])
    got = plait.jit(deep(lambda x: 2 * x, 4))(shelf)
    want = [[[[2 * x for x in t] for t in b] for b in s] for s in (BOOKS, BOOKS[1:3])]
    same(nested(got), want)
