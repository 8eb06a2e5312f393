"""A third party's carrier over maps of piles: rows are lifted, and lengths must be plain.

Invariant: bounds are compared with those of a loop over examples; the carrier names no pile.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Pile, pile_axis, vmap
from plait.errors import MissingRule

LENGTHS = np.array([30, 0, 33, 1])
ROWS = np.linspace(-1.0, 1.0, 64 * 2).reshape(64, 2)


@pytest.fixture
def bounds(monkeypatch):
    """The transformation of examples/interval."""
    folder = Path(__file__).parents[2] / "examples/interval/src"
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    return pytest.importorskip("plait_interval").bounds


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


def test_lifted_lengths_are_refused(bounds):
    """Their parts would be taken for rows."""
    p, q = (Pile(ROWS + k, LENGTHS) for k in (0, 0.1))
    with pytest.raises(MissingRule, match=r"piles.map depends on a lifted value"):
        bounds(lambda p: vmap(FUNCTIONS["exp"], pile_axis)(p))(p, q)
