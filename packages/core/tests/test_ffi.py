"""Foreign functions: LAPACK's, which are there anyway, called as anybody's."""

import numpy as np
import pytest

import plait
from plait._ops.foreign_calls import said

A = np.array([[4.0, 1.0], [1.0, 9.0]], np.float32)
L = np.linalg.cholesky(A)
KIND = (plait.ShapeDtypeStruct((2, 2), np.float32), plait.ShapeDtypeStruct((), np.int32))
# LAPACK has its matrices column by column
COLUMNS = {"input_layouts": [(1, 0)], "output_layouts": [(1, 0), ()]}


def factor(x, **options):
    call = plait.ffi.ffi_call("lapack_spotrf_ffi", KIND, **COLUMNS, **options)
    return plait.numpy.tril(call(x, uplo=np.uint8(ord("L")))[0])


def test_values_eager_and_jitted():
    np.testing.assert_allclose(factor(A), L, rtol=1e-6)
    np.testing.assert_allclose(plait.jit(factor)(A), L, rtol=1e-6)


def test_memory_of_an_operand():
    np.testing.assert_allclose(factor(A, input_output_aliases={0: 0}), L, rtol=1e-6)


def test_text():
    program = plait.make_program(factor)(A)
    assert plait.text.same_program(plait.text.parse(str(program)), program)
    assert "@lapack_spotrf_ffi" in plait.jit(factor).lower(A).as_text()


def test_attributes():
    told = {
        "a": 3, "b": 0.5, "c": True, "d": 'x"y', "e": np.float32(1.5), "f": np.array([1, 2], "i4"),
        "g": {"h": np.uint8(7), "i": float("inf")},
    }  # fmt: skip
    assert said("", told) == (
        '{a = 3 : i64, b = 5.00000000000000000e-01 : f64, c = true, d = "x\\"y", '
        "e = 1.50000000000000000e+00 : f32, f = dense<[1, 2]> : tensor<2xi32>, "
        "g = {h = 7 : ui8, i = 0x7ff0000000000000 : f64}}"
    )
    for bad in (1j, [[1]], object()):
        with pytest.raises(TypeError, match="told"):
            plait.ffi.ffi_call("f", KIND)(A, a=bad)


def test_errors():
    with pytest.raises(TypeError, match="vmap_method"):
        plait.ffi.ffi_call("f", KIND, vmap_method="fast")
    with pytest.raises(TypeError, match="not an order of axes"):
        plait.ffi.ffi_call("f", KIND, input_layouts=[(0, 0)])(A)
    with pytest.raises(TypeError, match="layouts were given"):
        plait.ffi.ffi_call("f", KIND, input_layouts=[])(A)
    with pytest.raises(TypeError, match="cannot become result 1"):
        plait.ffi.ffi_call("f", KIND, input_output_aliases={0: 1})(A)
    with pytest.raises(plait.PlaitError, match="refused"):
        plait.ffi.ffi_call("no_such_function", KIND[0])(A)
