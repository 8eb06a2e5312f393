"""What tests of batching rules share: mapping compared with a Python loop.

Invariant: the reference applies the function itself to each element, and never maps.
"""

import itertools

import numpy as np
import pytest

import plait
from plait_batching import vmap


def _list(out):
    return list(out) if isinstance(out, list | tuple) else [out]


def looped(f, xs, axes):
    """Results of `f` on each element, stacked along axis 0."""
    size = next(x.shape[a] for x, a in zip(xs, axes) if a is not None)
    rows = []
    for i in range(size):
        rows.append(_list(f(*[x if a is None else x.take(i, a) for x, a in zip(xs, axes)])))
    return [np.stack([np.asarray(o) for o in column]) for column in zip(*rows)]


def _sample(rng, shape, dtype):
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 5, shape).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def _close(got, want, tol):
    for g, w in zip(_list(got), want, strict=True):
        g = np.asarray(g)
        assert g.shape == w.shape and g.dtype == w.dtype, (g.shape, w.shape, g.dtype, w.dtype)
        np.testing.assert_allclose(g, w, rtol=tol, atol=tol)


def every_axis(f, *shapes, dtypes=np.float64, size=3, tol=1e-10):
    """`f` of arrays of these shapes, mapped along every axis of each of them, or along none."""
    dtypes = dtypes if isinstance(dtypes, tuple) else (dtypes,) * len(shapes)
    rng = np.random.default_rng(0)
    choices = [[None, *range(len(s) + 1)] for s in shapes]
    for axes in itertools.product(*choices):
        if all(a is None for a in axes):
            continue
        xs = [
            _sample(rng, s if a is None else (*s[:a], size, *s[a:]), d)
            for s, a, d in zip(shapes, axes, dtypes)
        ]
        out_axes = -1 if sum(a or 0 for a in axes) % 2 else 0
        want = [np.moveaxis(w, 0, out_axes) for w in looped(f, xs, axes)]
        _close(plait.jit(vmap(f, in_axes=axes, out_axes=out_axes))(*xs), want, tol)


def nested(f, *shapes, dtypes=np.float64, tol=1e-10):
    """Mapped twice: along the last axis of each operand, and inside along its first."""
    dtypes = dtypes if isinstance(dtypes, tuple) else (dtypes,) * len(shapes)
    rng = np.random.default_rng(1)
    xs = [_sample(rng, (2, *s, 3), d) for s, d in zip(shapes, dtypes)]
    inner = lambda *ys: looped(f, ys, (0,) * len(ys))  # noqa: E731
    want = looped(inner, xs, (-1,) * len(xs))
    _close(vmap(vmap(f), in_axes=-1)(*xs), want, tol)


@pytest.fixture
def mapped():
    """`mapped(f, *shapes, dtypes=)`: along every axis, along axes of size 1, and nested;
    `mapped.nested` only the latter."""

    def check(f, *shapes, dtypes=np.float64, tol=1e-10):
        every_axis(f, *shapes, dtypes=dtypes, tol=tol)
        nested(f, *shapes, dtypes=dtypes, tol=tol)
        rng = np.random.default_rng(2)
        kinds = dtypes if isinstance(dtypes, tuple) else (dtypes,) * len(shapes)
        ones = [_sample(rng, (1, *s), d) for s, d in zip(shapes, kinds)]
        _close(vmap(f)(*ones), looped(f, ones, (0,) * len(ones)), tol)

    check.nested = nested
    return check
