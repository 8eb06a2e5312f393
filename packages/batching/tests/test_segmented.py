"""Running operations that begin anew, both ways of computing them, against a loop over segments."""

import ml_dtypes
import numpy as np
import pytest

import plait.numpy as pnp
from plait.ext.ops.cumulative import cumlogsumexp_, cummax_, cummin_, cumprod_, cumsum_, recurrence
from plait_batching.piles.segmented import _row_after_row, _tree

LENGTHS = [3, 1, 5, 2, 1, 1, 9]
LOOPS = {
    cumsum_: np.add.accumulate,
    cumprod_: np.multiply.accumulate,
    cummax_: np.maximum.accumulate,
    cummin_: np.minimum.accumulate,
    cumlogsumexp_: np.logaddexp.accumulate,
}


def by_loop(prim, segments, reverse):
    out = []
    for xs in segments:
        xs = [x[::-1] for x in xs] if reverse else xs
        with np.errstate(all="ignore"):
            if prim is recurrence:
                y, ys = np.zeros_like(xs[0][0]), []
                for a, u in zip(*xs):
                    y = a * y + u
                    ys.append(y)
                y = np.stack(ys)
            else:
                y = LOOPS[prim](xs[0], axis=0)
        out.append(y[::-1] if reverse else y)
    return np.concatenate(out)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("say", [_row_after_row, _tree], ids=["rows", "tree"])
@pytest.mark.parametrize("prim", [*LOOPS, recurrence], ids=lambda p: p.name)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("special", [False, True], ids=["numbers", "infinite"])
def test_segments(say, prim, reverse, special):
    rng = np.random.default_rng(3)
    count = 2 if prim is recurrence else 1
    segments = [[rng.standard_normal((n, 3)) for _ in range(count)] for n in LENGTHS]
    if special:
        for s, v in zip(segments[::2], (np.inf, -np.inf, np.nan, np.inf)):
            s[-1][rng.integers(len(s[-1])), 1] = v
    ends = np.cumsum(LENGTHS)
    new = np.zeros(ends[-1], bool)
    new[(ends - 1) if reverse else np.r_[0, ends[:-1]]] = True
    flat = [np.concatenate(c).astype(np.float32) for c in zip(*segments)]
    for axis in (0, 1):
        xs = [pnp.asarray(np.moveaxis(x, 0, axis)) for x in flat]
        got = say(pnp.asarray(new), *xs, of=prim, axis=axis, reverse=reverse)
        want = by_loop(prim, [[x.astype(np.float32) for x in s] for s in segments], reverse)
        got = np.moveaxis(np.asarray(got), axis, 0)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("say", [_row_after_row, _tree], ids=["rows", "tree"])
def test_narrow_floats_are_accumulated_wide(say):
    ones = pnp.ones(600, ml_dtypes.bfloat16)
    got = say(pnp.arange(600) % 300 == 0, ones, of=cumsum_, axis=0, reverse=False)
    assert got.dtype == ml_dtypes.bfloat16
    want = np.float32(np.arange(600) % 300 + 1).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(np.asarray(got), want)
