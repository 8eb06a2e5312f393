"""The carriers of other packages (examples) over maps of piles, each as it is.

Invariant: the reference is a loop of numpy over the elements; no carrier names piles.
"""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import plait
from plait import Pile, pile_axis, vmap

RNG = np.random.default_rng(0)
LENGTHS = np.array([3, 0, 4, 1])
ROWS = RNG.standard_normal((8, 4)).astype(np.float32)
XS = np.split(ROWS, np.cumsum(LENGTHS)[:-1])
W = RNG.standard_normal((4, 6)).astype(np.float32)
WAYS = pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["eager", "jit"])


@pytest.fixture
def example(monkeypatch):
    """Return a function that imports the package of an example."""

    def load(name):
        folder = Path(__file__).parents[2] / "examples" / name / "src"
        monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
        return importlib.import_module(f"plait_{name}")

    return load


def close(got, want, tol=1e-5):
    np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=tol, atol=tol)


@WAYS
def test_units_of_rows(example, wrap):
    units = example("units")
    speed = lambda x, t: (x / t).sum(0)  # noqa: E731
    run = lambda rows, t: vmap(speed, (pile_axis, None))(Pile(rows, LENGTHS), t)  # noqa: E731
    rows, time = units.Quantity(ROWS, units.metre), units.Quantity(np.float32(2), units.second)
    got = wrap(units.with_units(run))(rows, time)
    assert got.unit == units.metre / units.second
    close(got.value, [x.sum(0) / 2 for x in XS])
    wrong = lambda rows, t: vmap(lambda x, t: x + t, (pile_axis, None), pile_axis)(  # noqa: E731
        Pile(rows, LENGTHS), t
    )
    with pytest.raises(Exception, match="m.*s|unit"):
        wrap(units.with_units(wrong))(rows, time)


@WAYS
def test_rows_of_contractions_are_rounded(example, wrap):
    precision = example("precision")

    def run(rows, w):
        p = Pile(rows, LENGTHS)
        return vmap(lambda x, w: ((x @ w) ** 2).sum(0), (pile_axis, None))(p, w)

    def rounded(x):
        return np.asarray(x, np.float32).astype(plait.dtypes.bfloat16).astype(np.float32)

    got = np.asarray(wrap(precision.mixed_precision(run))(ROWS, W))
    close(got, [((rounded(x) @ rounded(W)) ** 2).sum(0) for x in XS], 1e-4)
    exact = np.array([((x @ W) ** 2).sum(0) for x in XS])
    assert abs(got - exact).max() > 1e-4  # so the rounding is seen


@WAYS
def test_quantised_weights_multiply_rows(example, wrap):
    quantised = example("quantised")
    q = quantised.quantise(W)
    floats = np.asarray(q.values, np.float32) * np.asarray(q.scales)
    run = lambda q, p: vmap(lambda x, q: x @ q, (pile_axis, None), pile_axis)(p, q)  # noqa: E731
    got = wrap(run)(q, Pile(ROWS, LENGTHS))
    for y, x in zip(got.to_list(), XS, strict=True):
        close(y, x @ floats, 1e-4)
    loss = lambda p: (vmap(lambda x: x @ q, pile_axis, pile_axis)(p) ** 2).sum()  # noqa: E731
    for y, x in zip(wrap(plait.grad(loss))(Pile(ROWS, LENGTHS)).to_list(), XS, strict=True):
        close(y, 2 * x @ floats @ floats.T, 1e-4)


def log_normal(x, loc, scale):
    return -(((x - loc) / scale) ** 2) / 2 - np.log(scale * np.sqrt(2 * np.pi))


@WAYS
def test_densities_of_a_model_of_piles(example, wrap):
    """Groups of measurements differ in size; one slope is drawn for all of them."""
    h = example("handlers")

    def model(p):
        slope = h.sample("slope", h.normal(0.0, 2.0))
        means = vmap(lambda x: x.sum() / 4, pile_axis)(p)
        h.sample("totals", h.normal(slope * means, 0.5))
        return slope

    totals = np.float32([0.1, 0.0, -0.3, 0.2])
    values = {"slope": np.float32(0.7), "totals": totals}
    got = wrap(lambda p: h.log_density(model, values)(p))(Pile(ROWS[:, 0], LENGTHS))
    means = np.array([x[:, 0].sum() / 4 for x in XS])
    want = log_normal(0.7, 0, 2.0) + log_normal(totals, 0.7 * means, 0.5).sum()
    close(got, want, 1e-4)


@WAYS
def test_draws_inside_of_a_map_over_a_pile(example, wrap):
    h = example("handlers")

    def model(p):
        each = lambda x: h.sample("total", h.normal(x.sum(), 0.5))  # noqa: E731
        return vmap(each, pile_axis)(p)

    totals = np.float32([0.1, 0.0, -0.3, 0.2])
    got = wrap(lambda p: h.log_density(model, {"total": totals})(p))(Pile(ROWS[:, 0], LENGTHS))
    close(got, log_normal(totals, [x[:, 0].sum() for x in XS], 0.5).sum(), 1e-4)
