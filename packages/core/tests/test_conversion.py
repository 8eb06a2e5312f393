"""Reading bits as another dtype, against numpy's `view`.

Invariant: the reference never goes through Plait.
"""

import itertools
import re

import ml_dtypes
import numpy as np
import pytest

import plait
from plait._core.array import asarray
from plait._ops.conversion import bitcast
from plait._types.avals import Aval
from plait._xla import mlir
from plait.errors import TypeRule

NAMES = ["int8", "uint8", "int16", "uint16", "float16", ml_dtypes.bfloat16, "int32", "uint32",
         "float32", "int64", "uint64", "float64", ml_dtypes.float8_e4m3fn]  # fmt: skip


def viewed(x, dtype):
    have, want = x.dtype.itemsize, dtype.itemsize
    if have == want:
        return x.view(dtype)
    if have > want:
        return x[..., None].view(dtype)
    return x.view(dtype)[..., 0]


@pytest.mark.parametrize("have", NAMES)
def test_against_view(have):
    have = np.dtype(have)
    rng = np.random.default_rng(0)
    for want in map(np.dtype, NAMES):
        last = max(want.itemsize // have.itemsize, 1)
        shape = (3, last) if last > 1 else (3,)
        x = rng.integers(0, 255, (*shape, have.itemsize), np.uint8).view(have)[..., 0]
        x = np.ascontiguousarray(x)
        got, ref = bitcast(x, want), viewed(x, want)
        assert got.dtype == want and got.shape == ref.shape
        assert np.asarray(got).tobytes() == ref.tobytes()


def test_four_bits():
    x = np.array([1, -8, 7], ml_dtypes.int4)
    np.testing.assert_array_equal(np.asarray(bitcast(x, ml_dtypes.uint4)).astype(int), [1, 8, 7])


def test_there_and_back():
    x = asarray(np.array([[1.5, -0.0], [np.inf, np.nan]]))
    f = plait.jit(lambda v: bitcast(bitcast(v, "uint32"), "float64"))
    assert np.asarray(f(x)).tobytes() == np.asarray(x).tobytes()
    assert bitcast(x, "float64") is x


def test_errors():
    for a, b in itertools.permutations(("bool", "complex64", "float32"), 2):
        with pytest.raises(TypeRule, match="can not be read as bits"):
            bitcast(np.zeros(2, a), b)
    with pytest.raises(TypeRule, match="must have size 4"):
        bitcast(np.zeros((2, 3), np.int8), np.float32)
    with pytest.raises(TypeRule, match="must have size 2"):
        bitcast(np.int16(3), np.float32)


@pytest.mark.parametrize("shape", [(), (1,), (2,), (7,), (8,), (9,), (3, 3), (4, 4), (2, 0)])
def test_boolean_constants_of_a_module(shape):
    """Constants that are written into the code, as for export, keep every bit."""
    n = int(np.prod(shape))
    for x in (np.arange(n) % 3 == 0, np.ones(n, bool), np.zeros(n, bool)):
        x = x.reshape(shape)
        said = str(mlir.dense(x, Aval(shape, bool)))
        values = re.sub(r" : .*|[^a-z,]", "", said).removeprefix("dense").split(",")
        got = [v == "true" for v in values if v]
        want = x.ravel().tolist()
        assert got == want or got == want[:1] and len({*want}) == 1


def test_boolean_scalars_fill():
    for value in (True, False):
        said = str(mlir.dense(np.array(value), Aval((2, 3), bool)))
        assert said == f"dense<{str(value).lower()}> : tensor<2x3xi1>"
