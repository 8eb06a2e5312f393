"""What has no rule for sizes that differ, by groups of equal sizes, against the loop.

Invariant: the other side is the function itself, applied to one example after the other.
"""

import warnings

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import config
from plait.errors import MissingRule

SIZES = (3, 2, 3, 1, 0, 5)
axis = plait.pile_axis


def squares(seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, n)) for n in SIZES]


def triangular(x):
    return plait.scipy.linalg.schur(x)[0]


def doubled(x):
    shape = plait.ShapeDtypeStruct(x.shape, x.dtype)
    return plait.pure_callback(lambda v: np.asarray(v) * 2, shape, x, vmap_method="sequential")


FUNCTIONS = {
    "schur": triangular,
    "eigenvalues": lambda x: pnp.sort(pnp.abs(pnp.linalg.eigvals(x))),
    "with a callback": lambda x: doubled(triangular(x)),
    "with what has rules": lambda x: (triangular(x).sum(0), x @ x.T, pnp.cumsum(x.reshape(-1))),
    "inside of jit": lambda x: pnp.trace(plait.jit(triangular)(x)),
    "inside of cond": lambda x: plait.lax.cond(x.sum() > 0, triangular, lambda v: -v, x),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_the_loop(name):
    f, xs = FUNCTIONS[name], squares()
    got = plait.vmap(f, axis, axis)(plait.Pile.from_list(xs, axis=(0, 1)))
    piles = plait.tree.leaves(got, is_leaf=lambda v: isinstance(v, plait.Pile))
    columns = zip(*[plait.tree.leaves(f(pnp.asarray(x))) for x in xs])
    for pile, column in zip(piles, columns, strict=True):
        for p, q in zip(pile.to_list(), column, strict=True):
            assert p.shape == q.shape and p.dtype == q.dtype
            np.testing.assert_allclose(p, q, rtol=1e-9, atol=1e-9)


def test_beside_stacked_and_shared_arguments_and_sizes():
    xs, k = squares(), np.arange(6.0)
    f = lambda x, s, w: pnp.trace(triangular(x)) * s + w
    got = plait.vmap(f, (axis, 0, None))(plait.Pile.from_list(xs, axis=(0, 1)), k, 3.0)
    want = [np.trace(triangular(pnp.asarray(x))) * s + 3 for x, s in zip(xs, k)]
    np.testing.assert_allclose(got, want, rtol=1e-9)
    got = plait.vmap(lambda n: triangular(2 * pnp.eye(n)), out_axes=axis)([3, 1, 0, 3])
    assert [p.tolist() for p in got.to_list()] == [(2 * np.eye(n)).tolist() for n in (3, 1, 0, 3)]


@pytest.mark.wide
def test_gradients():
    """Lengths are known under grad, too."""
    xs = [x + x.T for x in squares()]
    pile = plait.Pile.from_list(xs, axis=(0, 1))

    def each(w, x):
        return (pnp.abs(pnp.linalg.eigvals(x)) ** 2).sum() * w**2

    loss = lambda w, p: plait.vmap(each, (None, axis))(w, p).sum()
    want = 2 * 1.5 * sum((np.linalg.eigvalsh(x) ** 2).sum() for x in xs)
    np.testing.assert_allclose(plait.grad(loss)(1.5, pile), want, rtol=1e-6)
    got = plait.grad(loss, 1)(1.5, pile).to_list()  # the squares of eigenvalues sum to the norm
    for g, x in zip(got, xs, strict=True):
        np.testing.assert_allclose(g, 2 * 1.5**2 * x, rtol=1e-5, atol=1e-9)


def test_refused_where_lengths_are_not_known_or_one_says_so():
    pile = plait.Pile.from_list(squares(), axis=(0, 1))
    mapped = plait.vmap(triangular, axis, axis)
    with pytest.raises(MissingRule, match="linalg.schur has no rule for sizes that differ"):
        plait.jit(mapped)(pile)
    with config(ragged_fallback="error"), pytest.raises(MissingRule, match="n0_0 at axis 0"):
        mapped(pile)
    named = plait.vmap(lambda x: triangular(x).sum() + plait.lax.psum(1, "i"), axis, axis_name="i")
    with pytest.raises(MissingRule):  # a collective would speak of its group
        named(pile)


def test_said_if_asked_for():
    pile = plait.Pile.from_list(squares(), axis=(0, 1))
    with config(ragged_fallback="warn"), pytest.warns(UserWarning, match="5 groups of equal sizes"):
        plait.vmap(triangular, axis, axis)(pile)
    with config(ragged_fallback="warn"), warnings.catch_warnings():
        warnings.simplefilter("error")
        plait.vmap(lambda x: x.sum(), axis)(pile)
