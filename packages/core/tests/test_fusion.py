"""Loops that the compiler can compute in one, and what is left as it is.

Invariant: arrays are counted in the compiled program; values are those of the single operations.
"""

import numpy as np
import pytest

import plait
from plait import numpy as pnp
from plait._xla.apart import kept_apart

SHAPE = (64, 256)
X = np.linspace(0.1, 2, SHAPE[0] * SHAPE[1], dtype=np.float32).reshape(SHAPE)
Y = X[::-1] + np.float32(0.5)


def gate(x, y):
    v = x + y
    t = pnp.tanh(v)
    return t * t * v + t * v


def quotient(x, y):
    v = x * y
    t = v / y
    return t * pnp.sin(t) + v


def root(x, y):
    v = x + y
    t = pnp.sqrt(v)
    return pnp.exp(t) + pnp.sin(t) + v


def chain(x, y):
    v = x * y
    t = pnp.log1p(v)
    u = pnp.exp(t * v) - t
    return u * pnp.tanh(u) + t / v


ONE_LOOP = [gate, quotient, root, chain]


def arrays(f):
    with plait.config(cache_dir=None):
        text = plait.jit(f, tier="full").lower(X, Y).compile().as_text()
    steps = text[text.index("ENTRY") :].splitlines()[1:]
    return sum("= f32[64,256]" in s for s in steps if " parameter(" not in s)


@pytest.mark.parametrize("f", ONE_LOOP)
def test_one_loop(f):
    assert arrays(f) == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("f", ONE_LOOP)
def test_values(f, dtype):
    x, y = (pnp.asarray(v, dtype=dtype) for v in (X, Y))
    for tier in ("full", "fast"):
        got = plait.jit(f, tier=tier)(x, y)
        # The processor may round a multiplication and an addition once.
        np.testing.assert_allclose(
            np.asarray(got, float), np.asarray(f(x, y), float), rtol=8 * float(pnp.finfo(dtype).eps)
        )


def test_an_array_that_several_loops_read_is_written_once():
    def f(x, y):
        t = pnp.tanh(x)
        return t * y, t + y

    assert arrays(f) == 3


def test_an_array_that_a_reduction_reads_is_written_once():
    def f(x, y):
        t = pnp.tanh(x)
        return pnp.sum(t * x, axis=1), t * y

    assert arrays(f) == 2


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: pnp.sum(pnp.tanh(x * y) ** 3, axis=1),
        lambda x, y: pnp.sum(gate(x, y), axis=1),
        lambda x, y: pnp.sum((x / y) ** 2 + x / y, axis=1),
    ],
    ids=["cube", "gate", "quotient"],
)
def test_reductions_of_one_loop_write_no_array(f):
    """The compiler's library of kernels computes them, if it knows all of their operations."""
    assert arrays(f) == 0


def test_nothing_is_inserted_for_other_devices():
    code = plait.jit(gate).lower(X, Y).as_text().encode()
    assert kept_apart(code, 0).count(b"reduce_precision") < kept_apart(code, 1).count(
        b"reduce_precision"
    )
