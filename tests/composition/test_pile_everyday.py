"""Everyday functions over piles, with known lengths and with declared facts, against a loop.

Invariant: the other side is the function itself, applied to one example after the other; where the
loop refuses an example, so does the map, by an error of the same class.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Pile, pile_axis, vmap
from plait.checks import FailedCheckError
from plait.errors import ArgumentError, MissingRule, PlaitError, ShapeError, UndecidedDim

from .everyday import EVERYDAY, NUMBERS

LENGTHS = {"even": (4, 8, 12, 6), "mixed": (3, 0, 5, 1), "equal": (6, 6, 6)}


def examples(lengths):
    rng = np.random.default_rng(1)
    return [np.round(rng.standard_normal((n, 4)) * 8, 2) for n in lengths]


def compare(f, run, xs):
    """Raise AssertionError unless the results, or the refusals, are those of the loop."""
    try:
        want = [list(map(pnp.asarray, plait.tree.leaves(f(pnp.asarray(x))))) for x in xs]
    except Exception as error:
        with pytest.raises(type(error) if isinstance(error, PlaitError) else Exception):
            run()
        return
    got = plait.tree.leaves(run(), is_leaf=lambda v: isinstance(v, Pile))
    for pile, column in zip(got, zip(*want, strict=True), strict=True):
        for p, q in zip(pile.to_list(), column, strict=True):
            assert p.shape == q.shape
            assert p.dtype == np.result_type(*column)  # an empty sum is the integer 0 in Python
            np.testing.assert_allclose(p, q, rtol=1e-9, atol=1e-9)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("name", EVERYDAY)
def test_known_lengths(name, lengths):
    f, xs = EVERYDAY[name], examples(LENGTHS[lengths])
    compare(f, lambda: vmap(f, pile_axis, pile_axis)(Pile.from_list(xs)), xs)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", [k for k in EVERYDAY if k not in NUMBERS])
def test_traced_lengths_of_which_facts_are_declared(name):
    f, xs = EVERYDAY[name], examples(LENGTHS["even"])

    @plait.jit
    def run(rows, lengths):
        return vmap(f, pile_axis, pile_axis)(Pile(rows, lengths, at_least=4, multiple_of=2))

    compare(f, lambda: run(np.concatenate(xs), np.array(LENGTHS["even"])), xs)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("lengths", ["mixed", "equal"])
@pytest.mark.parametrize("name", EVERYDAY)
def test_traced_lengths(name, lengths):
    """Results are right, or the call is refused: in particular if the loop refuses an example."""
    f, xs = EVERYDAY[name], examples(LENGTHS[lengths])
    run = plait.jit(lambda p: vmap(f, pile_axis, pile_axis)(p))
    try:
        got = plait.block_until_ready(run(Pile.from_list(xs)))
    except (FailedCheckError, UndecidedDim, MissingRule):
        return
    except TypeError as error:  # numpy and range, of sizes that have no number
        assert "n0_0" in str(error)
        return
    compare(f, lambda: got, xs)


def test_facts_found_for_known_lengths_do_not_depend_on_the_lengths():
    """Batches of random lengths share the programs of their capacities."""
    rng = np.random.default_rng(0)
    rows = np.ones((400, 4))
    with plait.events.counting() as n:
        for _ in range(30):
            lengths = rng.integers(2, 30, 12)
            got = vmap(lambda x: x[1] + x[-2] * x.sum(), pile_axis)(Pile(rows, lengths))
            np.testing.assert_array_equal(got[:, 0], 1.0 + 4 * lengths)
    assert n["compile"] + n.get("load", 0) <= 12


def test_declared_facts():
    second = plait.jit(
        lambda n: vmap(lambda x: x[1], pile_axis)(Pile(np.arange(9.0), n, at_least=2))
    )
    np.testing.assert_array_equal(second(np.array([2, 3, 4])), [1, 3, 6])
    with pytest.raises(FailedCheckError, match="element 1 has 1 rows, .* at least 2"):
        np.asarray(second(np.array([3, 1, 4])))
    with pytest.raises(ShapeError, match="element 1 has 3 rows, .* a multiple of 2"):
        Pile.from_list([[1.0, 2.0], [1.0, 2.0, 3.0]], multiple_of=2)
    with pytest.raises(ShapeError, match="element 0 has 1 rows"):
        Pile.from_padded(np.ones((2, 4)), [1, 4], at_least=2)
    for wrong in ({"at_least": -1}, {"multiple_of": 0}, {"at_least": 2.5}):
        with pytest.raises(ArgumentError, match="must be an int of"):
            Pile(np.ones(3), [3], **wrong)


def test_declared_facts_stay_with_results():
    """A result of the same lengths is used together with its argument, and mapped again."""

    @plait.jit
    def run(rows, n):
        p = Pile(rows, n, at_least=3, multiple_of=3)
        q = vmap(lambda x: x * x[2], pile_axis, pile_axis)(p)
        both = vmap(lambda x, y: (x + y).reshape(-1, 3).sum(1), pile_axis, pile_axis)(p, q)
        return both, vmap(lambda x: x[1], pile_axis)(both)

    rows, n = np.arange(18.0), np.array([6, 6, 6])
    with pytest.raises(UndecidedDim, match="at_least=6, multiple_of=3"):
        run(rows, n)  # thirds of three rows have one row
    n = np.array([3, 9, 6])
    p = Pile(rows, n, at_least=3, multiple_of=3)
    again = plait.jit(lambda p: vmap(lambda x: x[2], pile_axis)(p))
    np.testing.assert_array_equal(again(plait.jit(lambda p: p)(p)), [2, 5, 14])


def test_gradients_where_facts_are_used():
    xs = examples(LENGTHS["even"])
    f = lambda x: (x[0::2] * x[1::2]).sum() + x[3, 1] ** 2
    got = plait.grad(lambda p: vmap(f, pile_axis)(p).sum())(Pile.from_list(xs)).to_list()
    for g, x in zip(got, xs, strict=True):
        np.testing.assert_allclose(g, plait.grad(f)(pnp.asarray(x)))


def test_advice_for_traced_lengths():
    rows, n = np.ones((8, 4)), np.array([4, 4])
    for f, told in (
        (lambda x: x[1], r"Pile\(rows, lengths, at_least=2\)"),
        (lambda x: x.reshape(-1, 8).sum(1), r"Pile\(rows, lengths, multiple_of=2\)"),
    ):
        with pytest.raises(UndecidedDim, match=told):
            plait.jit(lambda n, f=f: vmap(f, pile_axis, pile_axis)(Pile(rows, n)))(n)


def test_fallback_may_be_refused():
    p = Pile.from_list(examples(LENGTHS["even"]))
    with plait.config(ragged_fallback="error"), pytest.raises(UndecidedDim):
        vmap(lambda x: x.sum() * len(x), pile_axis)(p)
    with plait.config(ragged_fallback="warn"), pytest.warns(UserWarning, match="4 groups"):
        vmap(lambda x: x.sum() * len(x), pile_axis)(p)
