"""What jit does with arguments: donated, static, keyword, out of range, and of odd kinds."""

import numpy as np
import pytest

import plait
from plait.errors import ConcretizationError, DeletedArrayError

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


ones = np.ones(4, np.float32)


# ---- donation --------------------------------------------------------------------------------


def test_donated_argument_is_gone():
    """A donated argument is deleted, and says so; under a transformation nothing is donated."""
    f = plait.jit(lambda x: x * 2.0, donate_argnums=0)
    x = f32(ones)
    np.testing.assert_array_equal(f(x), 2 * ones)
    assert x.is_deleted() and "deleted" in repr(x)
    with pytest.raises(DeletedArrayError):
        f(x)
    y = f32(ones)
    np.testing.assert_array_equal(plait.grad(lambda y: f(y).sum())(y), 2 * ones)
    np.testing.assert_array_equal(plait.vmap(f)(y), 2 * ones)
    np.testing.assert_array_equal(y, ones)


# ---- numbers that do not fit -----------------------------------------------------------------


def test_python_numbers_that_do_not_fit():
    """A Python integer that the array's dtype cannot hold: our error, or the sum modulo the range
    of a dtype; never an exception of numpy's, nor a saturated or random number."""
    one = {t: pnp.asarray(np.dtype(t).type(1)) for t in ("int8", "uint8", "int32", "uint32")}
    for f, want in (
        (lambda: one["int8"] + 300, 301),
        (lambda: 300 + one["int8"], 301),
        (lambda: one["uint8"] + (-1), 0),
        (lambda: one["uint8"] - 2, -1),
        (lambda: one["int32"] + 2**40, 2**40 + 1),
        (lambda: one["uint32"] + (2**32 - 1), 2**32),
        (lambda: plait.jit(lambda x: x + 300)(one["int8"]), 301),
        (lambda: plait.vmap(lambda x: x + 300)(one["int8"][None])[0], 301),
    ):
        try:
            out = f()
        except plait.PlaitError:
            continue
        assert (out.item() - want) % 2 ** (8 * out.dtype.itemsize) == 0


# ---- numpy and tracers -----------------------------------------------------------------------


def test_numpy_functions_of_tracers():
    """numpy's own functions would drop what a transformation carries: an error, always."""
    attempts = (
        lambda x: np.sin(x) * x,
        lambda x: np.stack([x, x]).sum(),
        lambda x: np.asarray(x).sum(),
        lambda x: float(x) * x,
        lambda x: complex(x).real * x,
        lambda x: np.float32(x),
        lambda x: x.item() * x,
        lambda x: x.tolist() * x,
        lambda x: np.dot(np.ones(2), pnp.stack([x, x])),
    )
    for f in attempts:
        for run in (plait.grad, plait.jit, lambda f: lambda x: plait.vmap(f)(x[None])):
            with pytest.raises((ConcretizationError, TypeError)):
                run(f)(f32(1))
