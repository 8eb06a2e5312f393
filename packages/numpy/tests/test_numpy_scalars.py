"""numpy's scalars of 64 bits act as Python's numbers beside arrays, and keep 64 bits alone.

The judge is the same program with the Python number, and numpy for scalars alone.
"""

import inspect

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax

NUMBERS = {"float64": np.float64(2.5), "int64": np.int64(3), "complex128": np.complex128(2 + 1j)}
ARRAYS = ("float32", "float16", "bfloat16", "float64", "int32", "int8", "int64", "complex64")
BINARY = tuple(
    name
    for name in dir(np)
    if isinstance(getattr(np, name), np.ufunc)
    and getattr(np, name).nin == 2
    and name in pnp.__all__
    and name != "ldexp"  # the dtype of exponents has no part in that of the result
    and [*inspect.signature(getattr(pnp, name)).parameters][1:2]
)


def array(dtype):
    return pnp.asarray([1, 2, 3]).astype(dtype)


def outcome(f):
    try:
        out = f()
    except plait.errors.PlaitError as e:
        return type(e)
    return [(x.dtype, x.weak_type, np.asarray(x).tolist()) for x in plait.tree.leaves(out)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("name", BINARY)
def test_beside_an_array_it_is_the_python_number(name, kind):
    f, scalar = getattr(pnp, name), NUMBERS[kind]
    for dtype in ARRAYS:
        x = array(dtype)
        assert outcome(lambda x=x: f(x, scalar)) == outcome(lambda x=x: f(x, scalar.item()))
        assert outcome(lambda x=x: f(scalar, x)) == outcome(lambda x=x: f(scalar.item(), x))


OTHERS = {
    "where": lambda x, s: pnp.where(x > 1, s, x),
    "clip": lambda x, s: pnp.clip(x, s, s),
    "set": lambda x, s: x.at[0].add(s),
    "stack": lambda x, s: pnp.hstack([x, s]),
    "dot": lambda x, s: pnp.dot(x, s),
    "lax": lambda x, s: lax.mul(x, s),
    "scan": lambda x, s: lax.scan(lambda c, a: (c * s, a), x[0], x)[0],
    "carry": lambda x, s: lax.scan(lambda c, a: (c + a, a), s, x)[0],
    "cond": lambda x, s: lax.cond(x[0] > 0, lambda: s * x, lambda: x),
    "jit": plait.jit(lambda x, s: x * s),
    "closure": lambda x, s: plait.jit(lambda x: x * s)(x),
    "fori": lambda x, s: lax.fori_loop(0, 3, lambda i, c: c * s, x),
}


@pytest.mark.parametrize("how", OTHERS)
def test_every_way_into_a_program(how):
    x, s = array("float32"), np.float64(2.5)
    got, want = OTHERS[how](x, s), OTHERS[how](x, 2.5)
    assert got.dtype == want.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize("run", [lambda f: f, plait.jit])
@pytest.mark.parametrize("name", ["sin", "exp", "negative", "square", "sqrt"])
def test_alone_it_keeps_its_digits(name, run):
    s = np.float64(1) / 3
    got = run(getattr(pnp, name))(s)
    assert got.dtype == np.float64
    np.testing.assert_allclose(np.asarray(got), getattr(np, name)(s), rtol=1e-15)


def test_numbers_alone():
    third = np.float64(1) / 3
    assert pnp.add(third, 1.0).dtype == np.float64
    assert pnp.add(third, 1j).dtype == np.complex128
    assert float(pnp.multiply(third, third)) == third * third
    assert pnp.array([third, third]).dtype == np.float64
    assert pnp.add(np.int64(2**40), array("int32")).dtype == np.int64  # int32 does not hold it
    assert (array("float32") * np.array(2.5)).dtype == np.float64
    assert pnp.result_type(array("float32"), third) == np.float32
    assert pnp.result_type(array("float32"), np.float64) == np.float64


def test_a_float32_model_stays_so():
    key = plait.random.key(0)
    w = plait.random.normal(key, (4, 4)) / np.sqrt(4)
    data = np.random.default_rng(0).normal(size=(8, 4))
    x = pnp.asarray((data - data.mean()) / data.std(), "float32")
    assert w.dtype == ((x - data.mean()) @ w / np.prod(x.shape)).dtype == np.float32
    assert (w.mean() * np.float64(0.1)).dtype == np.float32


def test_strong_by_the_setting():
    x, s = array("float32"), np.float64(2.5)
    with plait.config(numpy_scalars="strong"):
        assert (x * s).dtype == plait.jit(lambda x: x * s)(x).dtype == np.float64
        assert pnp.add(s, 1.0).dtype == np.float64
    assert (x * s).dtype == np.float32
