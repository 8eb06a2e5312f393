"""Third parties' carriers over maps of piles: rows are lifted, and lengths must be plain.

Invariant: bounds are compared with those of a loop over examples; no carrier names piles.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Pile, pile_axis, vmap
from plait.errors import MissingRule, ShapeError

LENGTHS = np.array([30, 0, 33, 1])
ROWS = np.linspace(-1.0, 1.0, 64 * 2).reshape(64, 2)


def example(monkeypatch, name):
    """Import the package of an example."""
    folder = Path(__file__).parents[2] / "examples" / name / "src"
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    return pytest.importorskip(f"plait_{name}")


@pytest.fixture
def bounds(monkeypatch):
    """The transformation of examples/interval."""
    return example(monkeypatch, "interval").bounds


@pytest.fixture
def precision(monkeypatch):
    """The transformation of examples/precision."""
    return example(monkeypatch, "precision").mixed_precision


FUNCTIONS = {
    "doubled": lambda x: (x * -2).sum(0),
    "exp": lambda x: pnp.exp(x).sum(0),
    "sin": lambda x: pnp.sin(x * 3).sum(),
}


@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_are_lifted(bounds, name, wrap):
    f = FUNCTIONS[name]
    low, high = wrap(bounds(lambda rows: vmap(f, pile_axis)(Pile(rows, LENGTHS))))(
        pnp.asarray(ROWS), pnp.asarray(ROWS + 0.1)
    )
    ends = np.cumsum(LENGTHS)
    for b, (start, end) in enumerate(zip(ends - LENGTHS, ends)):
        x = pnp.asarray(ROWS[start:end])
        least, most = bounds(f)(x, x + 0.1)
        np.testing.assert_allclose(low[b], least, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(high[b], most, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_whole_piles(bounds, name, wrap):
    """A carrier that lifts its arguments by `tree.map` leaves lengths alone."""
    p, q = (Pile(ROWS + k, LENGTHS) for k in (0, 0.1))
    low, high = wrap(bounds(lambda p: vmap(FUNCTIONS[name], pile_axis)(p)))(p, q)
    for b, (x, y) in enumerate(zip(p, q)):
        least, most = bounds(FUNCTIONS[name])(x, y)
        np.testing.assert_allclose(low[b], least, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(high[b], most, rtol=1e-9, atol=1e-12)


def test_piles_of_bounds(bounds):
    """Results are piles of the lengths of the arguments."""
    p, q = (Pile(ROWS + k, LENGTHS) for k in (0, 0.1))
    low, high = bounds(vmap(lambda x: 1 - x, pile_axis, pile_axis))(p, q)
    for x, y, least, most in zip(p, q, low, high, strict=True):
        np.testing.assert_array_equal(least, 1 - np.asarray(y))
        np.testing.assert_array_equal(most, 1 - np.asarray(x))


@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_whole_piles_in_mixed_precision(precision, wrap):
    rows = ROWS.astype("float32")
    f = vmap(lambda x: (x.T @ x).sum(), pile_axis)
    got = wrap(precision(f))(Pile(rows, LENGTHS))
    want = [float((x.T @ x).sum()) for x in np.split(rows, np.cumsum(LENGTHS))[:-1]]
    np.testing.assert_allclose(got, want, rtol=2e-2, atol=1e-2)
    assert not np.array_equal(got, np.asarray(f(Pile(rows, LENGTHS))))  # it computed in 8 bits


def test_bounds_of_different_lengths_are_refused(bounds):
    """Lower and upper bounds belong to the same rows."""
    p, q = Pile(ROWS, LENGTHS), Pile(ROWS, np.array([29, 1, 33, 1]))
    with pytest.raises(ShapeError, match=r"must have equal lengths.*30.*29"):
        bounds(lambda p: vmap(FUNCTIONS["exp"], pile_axis)(p))(p, q)


def test_lifted_lengths_are_refused(bounds):
    """Their parts would be taken for rows."""
    p, q = (Pile(ROWS + k, LENGTHS) for k in (0, 0.1))
    leaves, kind = plait.tree.flatten(p)
    with pytest.raises(MissingRule, match=r"piles.map depends on a lifted value"):
        bounds(lambda all_: vmap(FUNCTIONS["exp"], pile_axis)(kind.unflatten(all_)))(
            leaves, plait.tree.leaves(q)
        )
