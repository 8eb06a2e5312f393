"""Batches of examples that all have the greatest length: no masks of pairs of rows, and scans that
read rows where they are, in a branch.

Invariant: what is compared is the loop over examples, also for batches that are nearly full.
"""

import re

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Pile, nn, pile_axis, vmap
from plait_batching.piles import running

from .pile_checks import check
from .pile_families import FAMILIES, WITHOUT_DERIVATIVE

FULL = (8,) * 8
NEARLY = (8, 8, 5, 8, 8, 8, 8, 0)
OF_PAIRS = [  # all families whose pairs of rows neither enter nor leave the program
    "int rows", "diagonal", "trace", "n * m", "grad inside", "solve", "triangular solve", "det",
    "slogdet", "eigenvalues", "singular values", "jacrev inside", "callback of pairs",
    "scan, two states", "scan, two piles", "scan over arange", "scan of ragged carry",
    "scan of no xs", "scan ints",
]  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", OF_PAIRS)
def test_families_of_full_examples(name, monkeypatch):
    seen = []
    decide = running.may_be_full
    monkeypatch.setattr(running, "may_be_full", lambda *xs: seen.append(decide(*xs)) or seen[-1])
    f, *kinds = FAMILIES[name]
    backwards = name not in WITHOUT_DERIVATIVE
    check(f, kinds, (FULL, FULL, FULL), gradient=backwards, tier="fast")
    assert any(seen)


def attention(w, x):
    a = nn.softmax((x @ w) @ x.T, axis=-1)
    return (a @ x).sum(0)


PROGRAMS = {
    "attention": attention,
    "distances": lambda w, x: ((x @ w)[:, None] - x[None]).max(1).sum(0),
    "causal": lambda w, x: nn.softmax(pnp.tril(x @ x.T) - 1, axis=1) @ x @ w,
    "shorter": lambda w, x: nn.softmax(x[1:] @ w @ x.T, axis=0).T @ x[1:],
    "of a scan": lambda w, x: plait.lax.scan(
        lambda c, r: (c + (x @ x.T).sum(1) @ x * r, c), pnp.zeros(4, x.dtype), x
    )[0],
    "states": lambda w, x: plait.lax.scan(turn(w), pnp.zeros(4, x.dtype), x)[1],
    "backwards": lambda w, x: plait.lax.scan(turn(w), x.sum(0), x, reverse=True)[1] @ w,
    "end": lambda w, x: plait.lax.scan(turn(w), pnp.ones(4, x.dtype), x)[0],
    "over positions": lambda w, x: plait.lax.scan(
        lambda c, i: (pnp.tanh(c @ w + i), (c, i)), pnp.zeros(4, x.dtype), pnp.arange(x.shape[0])
    )[1][0],
    "of all rows": lambda w, x: plait.lax.scan(
        lambda c, r: (pnp.tanh(c @ w + (x * r).sum(0)), c), pnp.zeros(4, x.dtype), x
    )[1],
    "carries rows": lambda w, x: plait.lax.scan(
        lambda c, r: (pnp.tanh(c @ w + r), r), x, x
    )[0],
    "keys": lambda w, x: plait.lax.scan(
        lambda k, r: (plait.random.split(k)[0], plait.random.normal(k, (4,), x.dtype) * r @ w),
        plait.random.key(3), x,
    )[1],
}  # fmt: skip
VECTORS = ("attention", "distances", "of a scan", "end")


def turn(w):
    def body(c, r):
        c = pnp.tanh(c @ w + r)
        return c, c * r

    return body


def batch(lengths, seed):
    r = np.random.default_rng(seed)
    xs = [r.standard_normal((n, 4)).astype("float32") for n in lengths]
    rows = np.concatenate([*xs, np.full((64 - sum(lengths), 4), np.nan, "float32")])
    return xs, Pile(rows, lengths, capacity=(64, 8))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program_takes_full_batches_and_others(name):
    w = np.random.default_rng(1).standard_normal((4, 4)).astype("float32") / 2
    one = PROGRAMS[name]
    out = 0 if name in VECTORS else pile_axis
    f = plait.jit(vmap(one, (None, pile_axis), out))
    loss = lambda w, p: sum(
        (y**2).sum()
        for y in plait.tree.leaves(vmap(one, (None, pile_axis), out)(w, p))
        if y.dtype.kind == "f"
    )
    slope = plait.jit(plait.grad(loss))
    # The greatest of none is refused.
    given = [FULL, FULL] if name == "distances" else [FULL, NEARLY, FULL]
    for seed, lengths in enumerate(given):
        xs, p = batch(lengths, seed)
        with plait.events.counting() as n:
            got = f(w, p)
        assert n["trace"] == 0 or seed == 0
        for y, x in zip(got.to_list() if out is pile_axis else got, xs, strict=True):
            np.testing.assert_allclose(y, one(w, pnp.asarray(x)), rtol=2e-5, atol=2e-5)
        whole = lambda w, xs=xs: sum((one(w, pnp.asarray(x)) ** 2).sum() for x in xs if len(x))
        np.testing.assert_allclose(slope(w, p), plait.grad(whole)(w), rtol=2e-4, atol=2e-4)


def test_pairs_of_full_examples_have_no_masks():
    """Masks of pairs are in one of the two branches; a program of rows alone has no branch."""
    w, (_, p) = np.eye(4, dtype="float32"), batch(FULL, 0)
    text = plait.jit(vmap(attention, (None, pile_axis))).lower(w, p).as_text()
    branches = re.split(r"\}, \{\n", text[text.index("stablehlo.case") :], maxsplit=1)
    masks = [len(re.findall(r"stablehlo\.select.*8x8x8", b)) for b in branches]
    assert sorted(map(bool, masks)) == [False, True], masks
    rows = plait.jit(vmap(lambda w, x: nn.softmax(x @ w, axis=0), (None, pile_axis), pile_axis))
    assert "stablehlo.case" not in rows.lower(w, p).as_text()


def test_scans_of_full_examples_gather_no_rows():
    """One of the two branches reads the rows of each turn where they are."""
    w, (_, p) = np.eye(4, dtype="float32"), batch(FULL, 0)
    text = plait.jit(vmap(PROGRAMS["states"], (None, pile_axis), pile_axis)).lower(w, p).as_text()
    branches = re.split(r"\}, \{\n", text[text.index("stablehlo.case") :], maxsplit=1)
    gathers = [len(re.findall(r"stablehlo\.gather.*x4xf32", b)) for b in branches]
    assert sorted(map(bool, gathers)) == [False, True], gathers
