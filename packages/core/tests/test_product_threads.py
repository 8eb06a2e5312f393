"""All processors share the products of a module where its types say that this gains time.

Invariant: results are those of numpy, whichever library computes them.
"""

import numpy as np
import pytest

import plait
from plait._base import jaxlib_api
from plait._xla import product_threads

NAMES = ("NHWC", "HWIO", "NHWC")
HAS_CHOICE = pytest.mark.skipif(
    not jaxlib_api.HAS_PRODUCTS_OF_ONE_THREAD, reason="this jaxlib shares products by itself"
)


def convolve(x, k):
    return plait.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=NAMES)


def multiply(x, y):
    return plait.lax.batch_matmul(x, y)


def over_rows(x, y):
    return plait.lax.dot_general(x, y, (((1,), (1,)), ((0,), (0,))))


def drawn(dtype, *shapes):
    r = np.random.default_rng(0)
    return [r.integers(-3, 4, s).astype(dtype) for s in shapes]


CASES = {
    "large matrices in a stack": (multiply, "f", (16, 128, 128), (16, 128, 128), True),
    "small matrices in a stack": (multiply, "f", (64, 16, 16), (64, 16, 16), False),
    "stacks summed over rows": (over_rows, "f", (16, 128, 128), (16, 128, 128), True),
    "a product": (multiply, "f", (1, 256, 256), (1, 256, 256), False),
    "huge matrices in a stack": (multiply, "f", (2, 512, 512), (2, 512, 512), False),
    "stacks of doubles": (multiply, "d", (16, 128, 128), (16, 128, 128), True),
    "many features": (convolve, "f", (2, 16, 16, 32), (3, 3, 32, 64), True),
    "one feature": (convolve, "f", (8, 28, 28, 1), (3, 3, 1, 32), False),
    "features in double precision": (convolve, "d", (2, 8, 8, 32), (3, 3, 32, 64), False),
}


@HAS_CHOICE
@pytest.mark.parametrize("case", CASES)
def test_choice(case, monkeypatch):
    f, dtype, x, y, shared = CASES[case]
    monkeypatch.setattr(product_threads, "processors", lambda: 2)
    x, y = drawn(dtype, x, y)
    assert is_shared(plait.jit(f), x, y) == shared
    monkeypatch.setattr(product_threads, "processors", lambda: 1)  # what is alone shares nothing
    assert is_shared(plait.jit(lambda x, y: f(x, y)), x, y) == (f is over_rows)


def is_shared(f, *args):
    """Return whether no product of a compiled function is the first library's."""
    return "__ynn_fusion" not in f.lower(*args).compile().as_text()


@HAS_CHOICE
def test_gains_and_losses_are_added(monkeypatch):
    monkeypatch.setattr(product_threads, "processors", lambda: 2)
    many, one = CASES["many features"], CASES["features in double precision"]
    args = [*drawn("f", *many[2:4]), *drawn("d", *one[2:4])]
    both = plait.jit(lambda x, k, z, m: (convolve(x, k), convolve(z, m)))
    assert not is_shared(both, *args)  # the loss of the second is greater
    for got, want in zip(both(*args), (convolve(*args[:2]), convolve(*args[2:]))):
        np.testing.assert_array_equal(got, want)


@HAS_CHOICE
def test_the_user_decides(monkeypatch):
    monkeypatch.setattr(product_threads, "processors", lambda: 2)
    x, y = drawn("f", (16, 128, 128), (16, 128, 128))
    (flag,) = jaxlib_api.SHARED_PRODUCTS
    asked = {flag: "LIBRARY_FUSION_TYPE_DOT"}
    assert not is_shared(plait.jit(multiply, compiler_options=asked), x, y)
    with plait.config(cpu_forms=False):
        assert not is_shared(plait.jit(lambda x, y: multiply(x, y)), x, y)
    assert is_shared(plait.jit(lambda x, y: multiply(x, y)), x, y)  # the same code, compiled anew


@pytest.mark.parametrize("processors", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_values(case, processors, monkeypatch):
    f, dtype, x, y, _ = CASES[case]
    monkeypatch.setattr(product_threads, "processors", lambda: processors)
    x, y = drawn(dtype, x, y)
    got = np.asarray(plait.jit(lambda x, y: f(x, y))(x, y))
    if f is multiply:
        want = x.astype("d") @ y.astype("d")
    elif f is over_rows:
        want = np.swapaxes(x.astype("d"), 1, 2) @ y.astype("d")
    else:
        padded = np.pad(x.astype("d"), ((0, 0), (1, 1), (1, 1), (0, 0)))
        patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
        want = np.einsum("nhwcij,ijco->nhwo", patches, y.astype("d"))
    np.testing.assert_array_equal(got, want)  # whole numbers, which float32 holds
