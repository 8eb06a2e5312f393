"""Indices that are negative or outside, in every mode, and places between elements.

Invariant: what is read or written is found by a Python loop over the indices, by numpy or by scipy.
"""

import numpy as np
import pytest
import scipy.ndimage

import plait

jnp = plait.numpy
N = 5
X = np.arange(10, 10 * N + 1, 10, dtype=np.int32)
AT = np.array([-12, -11, -7, -6, -5, -4, -1, 0, 1, 4, 5, 6, 9, 10, 2**31 - 1, -(2**31)])
LEAST = np.iinfo(np.int32).min


def found(i, mode, from_end):
    """Where an index reads, or None for outside; `from_end`: whether a negative one counts so."""
    if mode == "wrap":
        return i % N
    i = i + N if i < 0 and from_end else i
    if mode == "clip":
        return min(max(i, 0), N - 1)
    return i if 0 <= i < N else None


def read(i, mode, from_end=True):
    at = [found(int(v), mode, from_end) for v in i]
    return np.array([LEAST if k is None else X[k] for k in at])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("mode", [None, "fill", "clip", "wrap"])
def test_taking(mode, dtype):
    """With "clip" `take` clips negative numbers, as numpy's; all others count from the end."""
    i = AT.astype(dtype)
    np.testing.assert_array_equal(jnp.take(X, i, mode=mode), read(i, mode, mode != "clip"))
    if mode in ("clip", "wrap"):
        np.testing.assert_array_equal(jnp.take(X, i, mode=mode), np.take(X, i, mode=mode))
    np.testing.assert_array_equal(jnp.take_along_axis(X, i, 0, mode=mode), read(i, mode))
    x, j = np.stack([X, X + 1]), np.stack([i, i[::-1]])
    both = np.stack([read(i, mode), read(i[::-1], mode) + (read(i[::-1], mode) != LEAST)])
    np.testing.assert_array_equal(jnp.take_along_axis(x, j, 1, mode=mode), both)
    np.testing.assert_array_equal(jnp.take_along_axis(x.T, j.T, axis=0, mode=mode), both.T)


@pytest.mark.parametrize("mode", [None, "fill", "clip", "drop"])
def test_reading_and_writing_at(mode):
    i = jnp.asarray(AT.astype(np.int32))
    reads = {None: "clip", "drop": "fill"}.get(mode, mode)
    np.testing.assert_array_equal(jnp.asarray(X).at[i].get(mode=mode), read(AT, reads))
    want = np.zeros(N, np.int32)
    for n, v in enumerate(AT):
        k = found(int(v), "clip" if mode == "clip" else "fill", True)
        if k is not None:
            want[k] += n + 1
    got = jnp.zeros(N, "int32").at[i].add(jnp.arange(1, i.size + 1), mode=mode)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_choosing_and_numbering(mode):
    c = np.array([-7, -1, 0, 2, 3, 8])
    choices = [X[:1] + k for k in range(3)]
    np.testing.assert_array_equal(
        jnp.choose(c, choices, mode=mode), np.choose(c, choices, mode=mode)
    )
    i, j = np.array([-1, 3, 2, -9]), np.array([5, -5, 1, 4])
    np.testing.assert_array_equal(
        jnp.ravel_multi_index((i, j), (3, 4), mode=mode),
        np.ravel_multi_index((i, j), (3, 4), mode=mode),
    )


@pytest.mark.parametrize("i", [[-1, -5, 2], [0, 4, 3], [-2, 1, -4]])
def test_putting(i):
    want = X.copy()
    np.put_along_axis(want, np.array(i), np.array([1, 2, 3]), 0)
    got = jnp.put_along_axis(X, np.array(i), np.array([1, 2, 3]), 0, inplace=False)
    np.testing.assert_array_equal(got, want)
    for mode in ("clip", "wrap"):
        want, far = X.copy(), np.array(i) + 7
        np.put(want, far, [1, 2, 3], mode=mode)
        got = jnp.put(X, far, np.array([1, 2, 3]), mode=mode, inplace=False)
        np.testing.assert_array_equal(got, want)


MODES = {"constant": "grid-constant", "nearest": "nearest", "wrap": "grid-wrap",
         "mirror": "mirror", "reflect": "reflect"}  # fmt: skip
PLACES = np.concatenate([np.arange(-13, 14) / 2, [0.49999997, 2.4999998, 2.5000002, -0.49999997,
                                                  1e-9, 3.9999, 4.0001]])  # fmt: skip


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", MODES)
def test_places_between_elements(mode, order):
    """Halves, and beyond the edges, of integers of both signs and of floats."""
    at = PLACES.astype(np.float32)
    images = np.arange(-3, 3, dtype=np.int32), np.float32([0.5, -2, 3.25, 7, 1, -1])
    for x in images:
        got = plait.scipy.ndimage.map_coordinates(x, [at], order, mode, cval=-9)
        want = scipy.ndimage.map_coordinates(x, [at.astype(np.float64)], None, order,
                                             mode=MODES[mode], cval=-9)  # fmt: skip
        np.testing.assert_allclose(got, want, 2e-6, 2e-6)
    y = np.arange(12, dtype=np.int32 if order == 0 else np.float32).reshape(3, 4) - 5
    pair = [at[:24], at[::-1][:24]]
    got = plait.scipy.ndimage.map_coordinates(y, pair, order, mode)
    want = scipy.ndimage.map_coordinates(y, np.float64(pair), None, order, mode=MODES[mode])
    np.testing.assert_allclose(got, want, 2e-6, 2e-6)
