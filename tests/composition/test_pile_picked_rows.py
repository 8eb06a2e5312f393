"""Rows of piles, picked by a mask: `p[mask]`.

Invariant: the other side is numpy's `x[mask]`, one example after the other.
"""

import numpy as np
import pytest

import plait
from plait import Pile
from plait.errors import ShapeError, SubscriptError, UnknownMask

MASKED = [np.arange(6.0).reshape(3, 2), np.zeros((0, 2)), np.array([[9.0, 1.0]]), np.ones((4, 2))]


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("way", ["rows", "trees", "gradient"])
def test_rows_are_picked_by_a_mask(way, jit):
    """Each element keeps the rows that the mask holds for, like `x[mask]` of one array."""
    run = plait.jit if jit else lambda f: f
    p = Pile.from_list(MASKED)
    masks = [x.sum(1) > 2 for x in MASKED]
    m = Pile.from_list(masks)
    if way == "gradient":
        got = run(plait.grad(lambda p, m: (p[m] ** 3).sum()))(p, m).to_list()
        want = [3 * x**2 * k[:, None] for x, k in zip(MASKED, masks, strict=True)]
    elif way == "rows":
        got = run(lambda p, m: 2 * p[m])(p, m).to_list()
        want = [2 * x[k] for x, k in zip(MASKED, masks, strict=True)]
    else:
        trees = Pile.from_list([{"a": x, "n": np.arange(len(x))} for x in MASKED])
        got = run(lambda p, m: p[m])(trees, m).to_list()
        assert all(len(d["a"]) == len(d["n"]) for d in got)
        got = [d["a"] + d["n"][:, None] for d in got]
        want = [x[k] + np.flatnonzero(k)[:, None] for x, k in zip(MASKED, masks, strict=True)]
    for y, x in zip(got, want, strict=True):
        np.testing.assert_allclose(y, x)


def test_masks_that_do_not_fit_the_rows():
    p = Pile.from_list(MASKED)
    with pytest.raises(ShapeError, match="equal lengths"):
        p[Pile.from_list([np.ones(1, bool)] * 4)]
    with pytest.raises(SubscriptError, match="picked by"):
        p[p]


def test_a_mask_inside_of_a_map_is_refused_by_what_to_write():
    """The number of rows of each element would be known from values only."""
    p = Pile.from_list(MASKED)
    with pytest.raises(UnknownMask, match=r"outside of vmap, by a pile of booleans: p\[mask\]"):
        plait.vmap(lambda x: x[x.sum(1) > 2], plait.pile_axis, plait.pile_axis)(p)
