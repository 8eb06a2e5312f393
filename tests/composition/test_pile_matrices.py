"""Decompositions of matrices whose sizes differ, with numpy; those that lack rank among them.

Invariant: what a decomposition says is multiplied out, and its factors are orthonormal.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax, pile_axis, vmap
from plait.errors import MissingRule

RNG = np.random.default_rng(0)
HEIGHTS = (3, 5, 1, 0, 9)
SIZES = ((3, 5), (5, 2), (1, 1), (0, 3), (4, 4))
MATRICES = {
    "of rank 1": ([np.outer(np.arange(n) + 1.0, np.arange(4) + 1.0) for n in HEIGHTS], 0),
    "of zeros": ([np.zeros((n, 4)) for n in HEIGHTS], 0),
    "random": ([RNG.standard_normal((n, 4)) for n in HEIGHTS], 0),
    "wide, of rank 1": ([np.outer(np.arange(4) + 1.0, np.arange(n) + 1.0) for n in HEIGHTS], 1),
    "of two sizes, of rank 2": (
        [RNG.standard_normal((n, 2)) @ RNG.standard_normal((2, m)) for n, m in SIZES], (0, 1)
    ),
}  # fmt: skip


def orthonormal(v):
    np.testing.assert_allclose(v.T @ v, np.eye(v.shape[1]), 1e-9, 1e-9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MATRICES)
def test_singular_values(name):
    xs, axis = MATRICES[name]
    f = lambda x: tuple(pnp.linalg.svd(x, full_matrices=False))
    got = plait.jit(vmap(f, pile_axis, pile_axis), tier="fast")(plait.Pile.from_list(xs, axis=axis))
    for x, u, s, vt in zip(xs, *[p.to_list() for p in got], strict=True):
        assert (u.shape, vt.shape) == ((x.shape[0], min(x.shape)), (min(x.shape), x.shape[1]))
        np.testing.assert_allclose(s, np.linalg.svd(x, compute_uv=False), 1e-9, 1e-9)
        np.testing.assert_allclose((u * s) @ vt, x, 1e-9, 1e-9)
        orthonormal(u)
        orthonormal(vt.T)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MATRICES)
def test_other_decompositions(name):
    xs, axis = MATRICES[name]
    f = lambda x: (*pnp.linalg.qr(x), pnp.linalg.pinv(x), pnp.linalg.matrix_rank(x))
    got = plait.jit(vmap(f, pile_axis, pile_axis), tier="fast")(plait.Pile.from_list(xs, axis=axis))
    for x, q, r, inverse, rank in zip(xs, *[p.to_list() for p in got], strict=True):
        np.testing.assert_allclose(q @ r, x, 1e-9, 1e-9)
        orthonormal(q)
        np.testing.assert_allclose(inverse, np.linalg.pinv(x), 1e-7, 1e-9)
        assert rank == np.linalg.matrix_rank(x)


def test_all_singular_vectors_are_refused_where_lengths_are_not_known():
    p = plait.Pile.from_list(MATRICES["random"][0])
    with pytest.raises(MissingRule, match="all singular vectors") as e:
        plait.jit(vmap(pnp.linalg.svd, pile_axis, pile_axis))(p)
    assert "full_matrices=False" in e.value.fix


SHAPES = {
    "columns": ([(3, 2), (1, 2), (0, 2), (5, 2)], 0),
    "rows": ([(3, 1), (3, 5), (3, 3)], 1),
    "two sizes": ([(3, 5), (4, 2), (1, 6), (2, 2)], (0, 1)),
    "square": ([(3, 3), (1, 1), (4, 4)], (0, 1)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_triangular_factors(name):
    """Rows of padding are exchanged with none, also in a matrix of zeros."""
    shapes, axis = SHAPES[name]
    xs = [np.zeros(shapes[0]), *[RNG.standard_normal(s) for s in shapes[1:]]]
    f = plait.jit(vmap(lambda x: tuple(lax.linalg.lu(x)), pile_axis, pile_axis), tier="fast")
    packed, pivots, order = [p.to_list() for p in f(plait.Pile.from_list(xs, axis=axis))]
    for x, lu, p, rows in zip(xs, packed, pivots, order, strict=True):
        k = min(x.shape)
        assert lu.shape == x.shape and p.shape == (k,) and sorted(rows) == [*range(len(x))]
        lower = np.tril(lu, -1)[:, :k] + np.eye(len(x), k)
        np.testing.assert_allclose(lower @ np.triu(lu)[:k], x[rows], rtol=1e-9, atol=1e-12)
        assert (np.abs(lower) <= 1 + 1e-12).all()
