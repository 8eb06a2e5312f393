"""Constraints that users of `mask` state, against the unpadded function.

Invariant: the other side is the function itself on the data without padding; sizes that break a
constraint are refused, when the program runs if they are traced.
"""

import numpy as np
import pytest

import plait
from plait import mask
from plait.checks import FailedCheckError, checkify
from plait.errors import ArgumentError, ShapeError, UndecidedDim

X = np.arange(7.0) ** 2
PROGRAMS = {  # function, shape of the result, constraints, sizes that satisfy them, one that breaks
    "second": (lambda x: x[1] * x.sum(), "", ["n > 1"], (2, 5, 7), 1),
    "pairs": (lambda x: x[::2] + x[1::2], "n//2", ["mod(n, 2) == 0"], (0, 4, 6), 3),
    "blocks": (lambda x: x.reshape(-1, 3).sum(1), "n//3", "mod(n, 3) == 0", (3, 6), 5),
    "between": (lambda x: x[1] + x[:4].sum(), "", ["2 <= n <= 5"], (2, 5), 6),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_constraints(name):
    f, out, constraints, fitting, breaking = PROGRAMS[name]
    masked = mask(f, ["n"], out, constraints=constraints)
    traced = plait.jit(lambda n: masked([X], {"n": n}))
    for n in fitting:
        want = np.asarray(f(plait.numpy.asarray(X[:n])))
        for got in (masked([X], {"n": n}), traced(n)):
            np.testing.assert_allclose(np.asarray(got)[: len(want)] if out else got, want)
    with pytest.raises(ShapeError, match=f"constraints say .*, and n is {breaking}"):
        masked([X], {"n": breaking})
    with pytest.raises(FailedCheckError, match=f"constraints say .*, and n is {breaking}"):
        np.asarray(traced(breaking))
    assert f"n is {breaking}" in checkify(traced)(breaking)[0].get()


def test_constraints_between_sizes_of_mapped_masks():
    f = lambda x, y: x[y.shape[0] - 1] + y[-1]
    masked = mask(f, ["n", "m"], "", constraints=["n >= m", "m >= 1"])
    batch = plait.jit(plait.vmap(lambda n, m: masked([X, X], {"n": n, "m": m})))
    got = batch(np.array([4, 5]), np.array([2, 5]))
    np.testing.assert_allclose(got, [2 * X[1], 2 * X[4]])
    with pytest.raises(FailedCheckError, match="'n >= m', and n is 5, m is 6, in example 1"):
        np.asarray(batch(np.array([4, 5]), np.array([2, 6])))


def test_the_error_says_which_constraint_to_give():
    with pytest.raises(UndecidedDim, match=r'is n > 1\?[^$]*constraints=\["n >= 0", "n > 1"\]'):
        mask(lambda x: x[1], ["n"], "", constraints=["n >= 0"])([X], {"n": 3})


def test_examples_that_are_too_short():
    """A median of no numbers is refused as it is alone."""
    masked = mask(plait.numpy.median, ["n"], "")
    with pytest.raises(ShapeError, match="mask, where n is 0: quantiles of nothing"):
        masked([X], {"n": 0})
    traced = plait.jit(lambda n: masked([X], {"n": n}))
    np.testing.assert_allclose(traced(3), 1.0)
    with pytest.raises(FailedCheckError, match="mask, where n is 0: quantiles of nothing"):
        np.asarray(traced(0))


@pytest.mark.parametrize("wrong", [[3], ["k > 1"], ["n >"]])
def test_constraints_that_cannot_be_read(wrong):
    with pytest.raises((ArgumentError, plait.errors.ProgramError)):
        mask(lambda x: x.sum(), ["n"], "", constraints=wrong)([X], {"n": 3})
