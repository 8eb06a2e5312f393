"""Maps along every axis over operations with programs: scan, map_axes, while, cond, nested.

Invariant: the reference is a loop of numpy's over the mapped axis, never another map.
"""

import numpy as np
import pytest

import plait
from plait import lax

RNG = np.random.default_rng(0)
V = RNG.random((2, 3, 4)).astype(np.float32)


def scan_rows(v):
    return lax.scan(lambda c, r: (c, r * 2), 0.0, v)[1]


def scan_carry(v):
    return lax.scan(lambda c, r: (c + r, c * r), v[0], v)


def np_scan_carry(v):
    c, ys = v[0], []
    for r in v:
        ys.append(c * r)
        c = c + r
    return c, np.stack(ys)


def scan_backwards(v):
    return lax.scan(lambda c, r: (c + r, c), v[0], v, reverse=True)


def np_scan_backwards(v):
    c, ys = v[0], []
    for r in v[::-1]:
        ys.append(c)
        c = c + r
    return c, np.stack(ys[::-1])


def columns(v):
    return plait.map_axes(lambda c: (c * 2, c + 1), in_axes=1, out_axes=(1, 0))(v)


def while_all(v):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * v), (0, v))[1]


def branch_rows(v):
    return lax.cond(v[0, 0] > 0.5, lambda v: scan_rows(v), lambda v: v + 1, v)


def nested(v):
    return lax.scan(lambda c, r: (c, lax.scan(lambda d, x: (d, x + c), 0.0, r)[1]), 1.0, v)[1]


CASES = {
    "rows": (scan_rows, lambda v: (v * 2,)),
    "carry": (scan_carry, np_scan_carry),
    "backwards": (scan_backwards, np_scan_backwards),
    "columns": (columns, lambda v: (v * 2, (v + 1).T)),
    "while": (while_all, lambda v: (v * v * v * v,)),
    "branch": (branch_rows, lambda v: (v * 2 if v[0, 0] > 0.5 else v + 1,)),
    "nested": (nested, lambda v: (v + 1,)),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", CASES)
def test_every_axis(name, axis):
    """in_axes and out_axes are any: what is stacked is what a loop stacks."""
    f, reference = CASES[name]
    each = [reference(r) for r in np.moveaxis(V, axis, 0)]
    for wrap in (lambda f: f, plait.jit):
        got = plait.vmap(wrap(f), in_axes=axis)(V)
        got = got if isinstance(got, tuple) else (got,)
        for k, g in enumerate(got):
            np.testing.assert_allclose(g, np.stack([e[k] for e in each]), rtol=1e-6)
        out = plait.vmap(lambda v: wrap(f)(v), in_axes=axis, out_axes=1)(V)
        for k, g in enumerate(out if isinstance(out, tuple) else (out,)):
            np.testing.assert_allclose(g, np.stack([e[k] for e in each], 1), rtol=1e-6)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("axes", [(0, 2), (2, 1), (1, 0), (2, 0)])
@pytest.mark.parametrize("name", [n for n in CASES if n != "branch"])
def test_two_maps(name, axes):
    """A map in a map, each along an axis of its own."""
    f, reference = CASES[name]
    w = RNG.random((2, 3, 4, 5)).astype(np.float32)
    outer = np.moveaxis(w, axes[0], 0)
    each = [[reference(r) for r in np.moveaxis(o, axes[1], 0)] for o in outer]
    got = plait.vmap(plait.vmap(f, in_axes=axes[1]), in_axes=axes[0])(w)
    for k, g in enumerate(got if isinstance(got, tuple) else (got,)):
        want = np.stack([np.stack([e[k] for e in row]) for row in each])
        np.testing.assert_allclose(g, want, rtol=1e-6)
