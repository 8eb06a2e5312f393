"""Derivatives of quotients: their values, and the arrays that they take.

Invariant: derivatives are compared with formulas of numpy's in float64.
"""

import numpy as np
import pytest

import plait
from plait import grad, jvp, vjp
from plait import numpy as pnp

ROWS, COLUMNS = 64, 1000


def close(got, want, dtype):
    np.testing.assert_allclose(
        np.asarray(got).astype("complex128"), want, rtol=40 * float(pnp.finfo(dtype).eps)
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_both_operands(dtype):
    r = np.random.RandomState(0)
    x, y, t, u, ct = (np.asarray(r.uniform(1, 4, 50)).astype(pnp.dtype(dtype)) for _ in range(5))
    X, Y, T, U, C = (v.astype("complex128") for v in (x, y, t, u, ct))
    out, tangent = jvp(lambda x, y: x / y, (x, y), (t, u))
    assert tangent.dtype == out.dtype == x.dtype
    np.testing.assert_allclose(
        np.asarray(tangent).astype("complex128"), T / Y - X / Y**2 * U,
        atol=40 * float(pnp.finfo(dtype).eps),
    )  # fmt: skip
    dx, dy = vjp(lambda x, y: x / y, x, y)[1](plait.numpy.asarray(ct))
    close(dx, C / Y, dtype)
    close(dy, -C * X / Y**2, dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_large_divisor(dtype):
    """A derivative in float16 that divides first would keep one digit."""
    x, y, ct = (np.full(3, v, dtype) for v in (60000, 300, 1e-4))
    dy = vjp(lambda x, y: x / y, x, y)[1](plait.numpy.asarray(ct))[1]
    close(dy, -ct.astype("float64") * 60000 / 300**2, "float16")


@pytest.mark.parametrize("way", [lambda f: f, plait.jit, lambda f: plait.jit(f, tier="full")])
def test_a_divisor_of_each_row(way):
    r = np.random.RandomState(0)
    x, y, w = r.uniform(1, 4, (5, 7)), r.uniform(1, 4, (5, 1)), r.uniform(1, 4, (5, 7))
    given = [v.astype("float32") for v in (x, y)]
    dx, dy = way(grad(lambda x, y: (x / y * w.astype("float32")).sum(), argnums=(0, 1)))(*given)
    close(dx, w / y, "float32")
    close(dy, -(w * x / y**2).sum(1, keepdims=True), "float32")


def test_second_derivatives():
    x, y = np.float64(3), np.float64(2)
    (xx, xy), (yx, yy) = plait.hessian(lambda x, y: x / y, argnums=(0, 1))(x, y)
    close(xx, 0, "float64")
    close(xy, -1 / y**2, "float64")
    close(yx, -1 / y**2, "float64")
    close(yy, 2 * x / y**3, "float64")


def by_hand(x):
    terms = pnp.exp(x - x.max(-1, keepdims=True))
    return terms / terms.sum(-1, keepdims=True)


def normalised(x):
    return (x - x.mean(-1, keepdims=True)) / pnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


@pytest.mark.parametrize(
    ("f", "most"), [(plait.nn.softmax, 1.5), (by_hand, 2.5), (normalised, 1.5)]
)
def test_quotients_by_sums_of_rows_make_no_arrays_between(f, most):
    """Neither their derivatives nor what keeps the compiler from rounding them otherwise do."""
    x = np.ones((ROWS, COLUMNS), "float32")
    with plait.config(cache_dir=None):
        step = plait.jit(grad(lambda x: (f(x) ** 2).sum()), tier="full")
        taken = step.lower(x).compile().memory_analysis().temp_size_in_bytes
    assert taken < most * x.nbytes
