"""The order of LAPACK's kernels in a module: what is inserted where, and that no bit changes."""

import numpy as np
import pytest

import plait
from plait import lax
from plait._base import jaxlib_api
from plait._xla import mlir
from plait._xla.kernel_order import in_order

ALIKE = np.random.default_rng(3).normal(size=(6, 3, 4, 4))
ALIKE = ALIKE @ ALIKE.swapaxes(-1, -2) + 9 * np.eye(4)


def roots(x):
    """The Cholesky factors of symmetric matrices; by columns, they are the upper triangles."""
    letter = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}[x.dtype.name]
    kinds = plait.ShapeDtypeStruct(x.shape, x.dtype), plait.ShapeDtypeStruct(x.shape[:-2], "int32")
    return plait.ffi.ffi_call(f"lapack_{letter}potrf_ffi", kinds)(x, uplo=np.uint8(ord("U")))[0]


def lowered(f, *args):
    """The code of a jitted function's module, as bytes."""
    text = plait.jit(f).lower(*args).as_text()
    with jaxlib_api.lock:
        return mlir.bytecode(mlir.parse(text))


def calls(code):
    """Return the number of kernels of a module that were made to wait."""
    return mlir.text(code).count("call @plait_delay_")


def alone(x):
    return [roots(m) for m in x]


def chained(x):
    return roots(roots(x[0]) + x[1])


def in_functions(x):
    inner = plait.jit(lambda m, n: (roots(n), m))
    return [inner(m, m + 1) for m in x]


def beside_others(x):
    inner = plait.jit(lambda m: m + 1)
    return [roots(inner(m)) for m in x]


def in_loop(x):
    return lax.scan(lambda c, _: (c, alone(c)), x, None, length=2)


def in_branches(x):
    return lax.cond(x[0, 0, 0, 0] > 0, alone, lambda x: list(x), x)


def through_a_loop(x):
    first = roots(x[0])
    between = lax.fori_loop(0, 3, lambda _, c: c + first, x[1])
    return roots(between)


DELAYED = {
    alone: 5,
    chained: 0,
    in_functions: 5,
    beside_others: 5,
    in_loop: 5,
    in_branches: 5,
    through_a_loop: 0,
}


@pytest.mark.parametrize("f", DELAYED, ids=lambda f: f.__name__)
def test_what_needs_no_other_waits(f):
    """Each kernel but the first of its block waits, unless it needs an earlier one already."""
    assert calls(in_order(lowered(f, ALIKE), 1)) == DELAYED[f]


def test_a_module_in_order_stays():
    """A second pass finds nothing to do."""
    once = in_order(lowered(alone, ALIKE), 1)
    assert in_order(once, 1) == once


def test_no_messages_between_devices():
    """Where the compiler divides arrays among devices, nothing is inserted."""
    code = lowered(alone, ALIKE)
    assert in_order(code, 2) == code


def test_empty_stacks_do_not_wait():
    """Stacks without elements have no number that could be read."""
    code = lowered(lambda x: [roots(m) for m in (x, x[0][:0], x[1])], ALIKE)
    assert calls(in_order(code, 1)) == 1


def test_single_matrices_do_not_wait():
    """Their kernels have no parts to wait for."""
    code = lowered(lambda x: [roots(m[0]) for m in x] + [roots(m[:1]) for m in x], ALIKE)
    assert calls(in_order(code, 1)) == 0


def test_one_text_serves_many():
    """The inserted function is there once for each pair of types."""
    made = mlir.text(in_order(lowered(alone, ALIKE), 1))
    assert made.count("func.func private @plait_delay_") == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("f", DELAYED, ids=lambda f: f.__name__)
def test_values_have_the_same_bits(f, dtype, monkeypatch):
    """A program gives the same bits with an order and without."""
    x = ALIKE.astype(dtype)
    got = {}
    for wait in (True, False):
        monkeypatch.setattr(jaxlib_api, "HAS_KERNELS_THAT_WAIT", wait)
        plait.clear_caches()
        got[wait] = plait.tree.leaves(plait.jit(lambda x: f(x))(x))
    for a, b in zip(got[True], got[False], strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    expected = np.linalg.cholesky(x)
    if f is alone:
        for a, e in zip(got[True], expected):
            np.testing.assert_allclose(np.tril(a), e, rtol=1e-4)


def test_nan_and_infinity_pass(monkeypatch):
    """Whatever the kernel before returned, the next operand keeps its bits."""
    monkeypatch.setattr(jaxlib_api, "HAS_KERNELS_THAT_WAIT", True)
    odd = np.full((3, 4, 4), np.nan)
    for first in (odd, odd * 0 + np.inf, odd * 0 - 1.0, -ALIKE[0]):
        x = np.stack([first, ALIKE[1]])
        _, got = plait.jit(lambda x: [roots(m) for m in x])(x)
        np.testing.assert_allclose(np.tril(got), np.linalg.cholesky(x[1]), rtol=1e-10)
