"""What the branches of cond and switch may return.

Invariant: dtypes are promoted as numpy promotes them, shapes must agree.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import (
    TypeRule,
)

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


WAYS = {
    "eager": lambda f, *xs: f(*xs),
    "jit": lambda f, *xs: plait.jit(lambda *a: f(*a))(*xs),
    "vmap": lambda f, *xs: plait.vmap(f)(*[pnp.asarray(x)[None] for x in xs])[0],
    "scan": lambda f, *xs: lax.scan(
        lambda c, _: (c, f(*xs)), f32(0), None, length=1
    )[1][0],
}  # fmt: skip


def test_promoted_strong_results():
    """Strong dtypes are promoted too, and a Python number takes the dtype of an array."""
    wide, narrow = pnp.asarray(np.float64(0.1)), f32(0.5)
    out = lax.cond(True, lambda: wide, lambda: narrow)
    assert out.dtype == np.float64 and out.item() == 0.1
    out = lax.cond(False, lambda: wide, lambda: narrow)
    assert out.dtype == np.float64 and out.item() == 0.5
    half = pnp.asarray(np.float16(2))
    assert lax.cond(True, lambda: half, lambda: 1.0).dtype == np.float16


# ---- what branches may return ----------------------------------------------------------------


def test_shapes_must_agree():
    """Promotion is for dtypes only."""
    with pytest.raises(TypeRule, match="different shapes"):
        lax.cond(True, lambda: f32(1), lambda: f32([1]))
