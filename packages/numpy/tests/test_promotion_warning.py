"""An array of numpy that turns 32 bits into 64 is warned of, once for a line.

Invariant: every warning is expected by name; dtypes are compared with numpy's promotion.
"""

import warnings

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import PromotionWarning

X = pnp.ones(3)
WIDE = np.ones(3)
MATRIX = np.ones((3, 3))


@pytest.fixture(autouse=True)
def on():
    with plait.config(promotion_warning=True):
        yield


def warned(run):
    """Return the dtype of a result, and the warnings: their line among them."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        out = run()
    return out, [w for w in found if w.category is PromotionWarning]


MIXED = {
    "operator": lambda: X + WIDE,
    "reflected": lambda: WIDE * X,
    "function": lambda: pnp.add(X, WIDE),
    "composed": lambda: pnp.hypot(X, WIDE),
    "where": lambda: pnp.where(True, X, WIDE),
    "matmul": lambda: X @ MATRIX,
    "dot": lambda: pnp.dot(MATRIX, X),
    "einsum": lambda: pnp.einsum("ij,j->i", MATRIX, X),
    "concatenate": lambda: pnp.concatenate([X, WIDE]),
    "stack": lambda: pnp.stack([X, WIDE]),
    "jit": lambda: plait.jit(lambda x: x * WIDE)(X),
    "half": lambda: X.astype("float16") * WIDE,
    "complex": lambda: X * (WIDE * 1j),
    "no axes": lambda: X * np.array(2.0),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_wide_array_is_warned_of(name):
    out, found = warned(MIXED[name])
    assert out.dtype.itemsize == (16 if name == "complex" else 8)
    (w,) = found
    line = MIXED[name].__code__.co_firstlineno
    assert (w.filename, w.lineno) == (__file__, line)
    assert "becomes" in str(w.message)
    assert "astype('float" in str(w.message)


def test_once_for_a_line():
    def line():
        return X - WIDE

    def another():
        return X - WIDE

    assert [len(warned(f)[1]) for f in (line, line, another)] == [1, 0, 1]


MEANT = {
    "integers": (lambda: X * np.arange(3), "float32"),
    "scalar": (lambda: X * np.float64(2), "float32"),
    "number": (lambda: X * 2.0, "float32"),
    "narrow": (lambda: X * WIDE.astype("float32"), "float32"),
    "wide both": (lambda: pnp.asarray(WIDE) * WIDE, "float64"),
    "numpy both": (lambda: pnp.add(WIDE, WIDE), "float64"),
    "plait's own": (lambda: X * pnp.asarray(WIDE), "float64"),
    "asked": (lambda: pnp.concatenate([X, WIDE], dtype="float64"), "float64"),
    "weak": (lambda: pnp.asarray(2.0) * WIDE, "float64"),
    "comparison of integers": (lambda: pnp.arange(3) < WIDE, "bool"),
}


@pytest.mark.parametrize("name", MEANT)
def test_what_is_meant_is_not(name):
    run, dtype = MEANT[name]
    out, found = warned(run)
    assert (out.dtype, found) == (np.dtype(dtype), [])


def test_off():
    run = lambda: X / WIDE  # noqa: E731
    for off in ({"promotion_warning": False}, {"numpy_scalars": "strong"}, {"x64": False}):
        with plait.config(**off):
            assert not warned(run)[1], off
    assert warned(run)[1]
