"""Positions that are compared beside exponentials: by floats, with the outcomes of integers.

The oracle is numpy's comparison of integers.

Invariant: a loop of the compiled program that computes an exponential compares no integers.
"""

import operator
import re

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait._xla import mlir
from plait._xla.apart import kept_apart

X = np.random.default_rng(0).normal(size=(4, 96, 160)).astype(np.float32)


def masked(x, mask):
    return pnp.where(mask, pnp.exp(pnp.where(mask, x, -np.inf)), 0.0)


def causal(x):
    i, j = (lax.broadcasted_iota(np.int32, (96, 160), axis) for axis in (0, 1))
    return masked(x, i + 64 >= j)


def of_a_length(x, n=77):
    return masked(x, pnp.arange(160) < n)


def by_turns(x):
    def turn(first, row):
        return first + 1, masked(row, first >= lax.iota(np.uint32, 160))

    return lax.scan(turn, np.uint32(3), x.reshape(4 * 96, 160))[1].reshape(x.shape)


def window(x):
    i, j = pnp.arange(96)[:, None], pnp.arange(160)[None]
    return masked(x, (j >= i - 3) & (j <= i + 3))


SEEN = {
    causal: lambda i, j: i % 96 + 64 >= j,
    of_a_length: lambda i, j: j < 77,
    by_turns: lambda i, j: j <= i + 3,
    window: lambda i, j: abs(j - i % 96) <= 3,
}


def loops(text):
    """The computations of a compiled program that compute exponentials."""
    return [t for t in re.split(r"\n\n", text) if re.search(r"\bexponential\(", t)]


def compares_integers(loop):
    integers = set(re.findall(r"(%[\w.-]+) = [su]\d+\[", loop))
    compared = re.findall(r" compare\((?:[^%()]*)(%[\w.-]+),[^%()]*(%[\w.-]+)\)", loop)
    return any(integers.intersection(pair) for pair in compared)


@pytest.mark.full_tier
@pytest.mark.parametrize("f", SEEN, ids=lambda f: f.__name__)
def test_loops_with_exponentials_compare_no_integers(f):
    with plait.config(cache_dir=None):
        text = plait.jit(f, tier="full").lower(X).compile().as_text()
    found = loops(text)
    assert found
    assert not any(map(compares_integers, found)), text


@pytest.mark.parametrize("under", [lambda f: f, plait.jit])
@pytest.mark.parametrize("f", SEEN, ids=lambda f: f.__name__)
def test_values_of_masks(f, under):
    i, j = np.indices((4 * 96, 160))
    seen = SEEN[f](i, j).reshape(X.shape)
    np.testing.assert_allclose(under(f)(X), np.where(seen, np.exp(X), 0), rtol=1e-6)


ENDS = [0, 1, 2, 68, 69, 70, 2**24 - 1, 2**24, 2**24 + 1, 2**31 - 65, 2**31 - 64, 2**31 - 1]
DIRECTIONS = ["eq", "ne", "lt", "le", "gt", "ge"]


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_outcomes_are_those_of_integers(dtype):
    ends = ENDS + ([-n for n in ENDS] + [-(2**31)] if dtype == "int32" else [2**32 - 1])
    n = np.array(ends, dtype)

    def outcomes(n):
        at = lax.iota(dtype, 70)
        e = pnp.exp(pnp.zeros((len(ends), 70)))  # which has all positions compared as floats
        pairs = [(n[:, None], at[None]), (at[None], n[:, None])]
        found = [getattr(lax, d)(*pnp.broadcast_arrays(*p)) for d in DIRECTIONS for p in pairs]
        return [pnp.where(f, e, 0.0) for f in found]

    at = np.arange(70)
    for got, (direction, turned) in zip(
        plait.jit(outcomes)(n), [(d, t) for d in DIRECTIONS for t in (False, True)]
    ):
        a, b = np.array(ends, object)[:, None], at[None].astype(object)
        want = getattr(operator, direction)(*((b, a) if turned else (a, b)))
        np.testing.assert_array_equal(np.asarray(got), want.astype(np.float32), direction)


def test_positions_that_are_no_floats_stay_integers():
    n = 2**24 + 8

    def count(k):
        hit = lax.iota(np.int32, n) == k
        return pnp.where(hit, pnp.exp(pnp.float32(0)), 0.0).sum()

    run = plait.jit(count)
    for k in (2**24 - 1, 2**24, 2**24 + 1, 2**24 + 7):
        assert run(np.int32(k)) == 1


def rewritten(f):
    """Return the text that the compiler gets for a function on one CPU."""
    return mlir.text(kept_apart(plait.jit(f).lower(X).module().code, 1))


def test_only_comparisons_beside_expensive_functions_are_changed():
    plain = rewritten(lambda x: pnp.where(pnp.arange(160) < 9, x, 0.0) + x)
    assert "stablehlo.compare" in plain and "FLOAT" not in plain
    assert "FLOAT" in rewritten(of_a_length)
