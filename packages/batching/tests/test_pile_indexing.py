"""Rows of piles that are read and written at places that values say.

Invariant: what is expected is what numpy makes of one example after the other; there are rows for
example after example, so that a row of the next one would be seen.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait_batching import vmap

LENGTHS = [3, 0, 200, 1, 40]
axis = plait.pile_axis
DRAW = np.random.RandomState(0)
ROWS = [DRAW.randn(n, 4).astype("float32") for n in LENGTHS]
COUNTS = np.array([2, 3, 0, 5, 1], "int32")  # other sizes, for places


def piled(rows):
    return plait.Pile.from_list(rows)


def agree(got, want):
    got = got.to_list() if isinstance(got, plait.Pile) else got
    for g, w in zip(got, want, strict=True):
        assert np.shape(g) == np.shape(w)
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_places_are_moved_to_the_nearest_row(dtype, wrap):
    """Sizes need not fit into the dtype of places."""
    at = np.array([[0, 100], [3, 90], [127, 2], [0, 5], [39, 40]], dtype)
    f = wrap(vmap(lambda x, i: pnp.take(x, i, axis=0, mode="clip"), (axis, 0)))
    wide = at.astype("int64")  # numpy 2.0 clips to bounds of the same dtype only
    want = [
        x[np.clip(i, 0, len(x) - 1)] if len(x) else np.zeros((2, 4)) for x, i in zip(ROWS, wide)
    ]
    full = [i for i, n in enumerate(LENGTHS) if n]  # alone, nothing can be read of no rows
    got = f(piled([ROWS[i] for i in full]), at[full])
    agree(got, [want[i] for i in full])


def test_places_outside_are_filled():
    """Where lengths are known an example of no rows is refused, as it is alone; not here."""
    at = [DRAW.randint(-3, 250, n).astype("int32") for n in COUNTS]
    f = plait.jit(
        vmap(
            lambda x, i: x.at[i].get(mode="fill", fill_value=7.0, wrap_negative_indices=False),
            axis,
            axis,
        )  # fmt: skip
    )
    want = [
        np.stack([x[j] if 0 <= j < len(x) else np.full(4, 7) for j in i]) if len(i) else x[:0]
        for x, i in zip(ROWS, at)
    ]
    agree(f(piled(ROWS), piled(at)), want)


@pytest.mark.parametrize("way", ["add", "set", "max"])
def test_writing_among_rows(way):
    """Places outside are left out, and the next example has none of them."""
    at = [DRAW.permutation(250)[:n].astype("int32") for n in COUNTS]
    new = [DRAW.randn(n, 4).astype("float32") for n in COUNTS]

    def write(x, i, y):
        return getattr(x.at[i], way)(y, mode="drop")

    want = [x.copy() for x in ROWS]
    for x, i, y in zip(want, at, new):
        for j, row in zip(i, y):
            if j < len(x):
                x[j] = {"add": x[j] + row, "set": row, "max": np.maximum(x[j], row)}[way]
    agree(plait.jit(vmap(write, axis, axis))(piled(ROWS), piled(at), piled(new)), want)


def test_writing_rows_into_few_of_each_example():
    at = [DRAW.randint(0, 5, n).astype("int32") for n in LENGTHS]
    got = vmap(lambda i, x: pnp.zeros((4, 4)).at[i].add(x, mode="drop"), axis)(
        piled(at), piled(ROWS)
    )
    want = np.zeros((5, 4, 4))
    for w, i, x in zip(want, at, ROWS):
        for j, row in zip(i, x):
            if j < 4:
                w[j] += row
    agree(got, want)


def test_updates_of_slices():
    """`roll` backwards is one: rows are put where a value says, and may begin too late."""
    starts = np.array([1, 0, 9, 1, 1000], "int32")
    short = [x[: len(x) // 2] for x in ROWS]
    f = vmap(lambda x, y, s: lax.dynamic_update_slice_in_dim(x, y, s, 0), (axis, axis, 0), axis)
    want = [x.copy() for x in ROWS]
    for w, y, s in zip(want, short, starts):
        s = min(s, len(w) - len(y))
        w[s : s + len(y)] = y
    halves = vmap(lambda x: x[: x.shape[0] // 2], axis, axis)(piled(ROWS))
    agree(f(piled(ROWS), halves, starts), want)


def test_rows_of_keys():
    """Keys have no zero that could be read where an example has no rows."""

    def backwards(x, key):
        keys = plait.random.split(key, x.shape[0])
        return plait.random.key_data(keys[pnp.arange(x.shape[0])[::-1]])

    keys = plait.random.split(plait.random.key(0), 2)
    got = plait.jit(vmap(backwards, (axis, 0), axis))(
        piled([np.ones((3, 2)), np.ones((1, 2))]), keys
    )
    for g, n, key in zip(got.to_list(), (3, 1), keys, strict=True):
        np.testing.assert_array_equal(g, plait.random.key_data(plait.random.split(key, n))[::-1])
