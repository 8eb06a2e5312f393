"""Contractions in the forms that CPUs compute fast, against numpy's einsum in double precision.

Invariant: dimension numbers are drawn at random; programs hold the forms that are expected.
"""

import re
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plait
import plait.numpy as pnp
from plait.ext.ops.contraction import dot_general

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int32", "uint16", "bool",
          "complex64", "complex128")  # fmt: skip


@st.composite
def contractions(draw, dtypes=DTYPES):
    """Draw the shapes of two operands, the axes that meet and are shared, and a dtype."""
    sizes = st.sampled_from((0, 1, 1, 2, 3, 4))
    met, common, left, right = (
        draw(st.lists(sizes, max_size=most)) for most in (3, 2, 2, 2)
    )  # fmt: skip
    x = [("k", i) for i in range(len(met))] + [("b", i) for i in range(len(common))]
    y = draw(st.permutations([*x, *(("n", i) for i in range(len(right)))]))
    x = draw(st.permutations([*x, *(("m", i) for i in range(len(left)))]))
    if draw(st.booleans()):  # neighbours in one order on both sides
        x, y = sorted(x), sorted(y, reverse=draw(st.booleans()))
    size = {"k": met, "b": common, "m": left, "n": right}
    shapes = [tuple(size[role][i] for role, i in v) for v in (x, y)]
    of = lambda role, v, n: tuple(v.index((role, i)) for i in range(n))  # noqa: E731
    contract = of("k", x, len(met)), of("k", y, len(met))
    shared = of("b", x, len(common)), of("b", y, len(common))
    return *shapes, contract, shared, draw(st.sampled_from(dtypes)), draw(st.integers(0, 99))


def by_einsum(x, y, contract, shared):
    """Return the contraction of numpy, in the dtype of the operands."""
    letters = iter(string.ascii_letters)
    left = [next(letters) for _ in range(x.ndim)]
    right = [next(letters) for _ in range(y.ndim)]
    for a, b in (*zip(*contract), *zip(*shared)):
        right[b] = left[a]
    own = [[n for i, n in enumerate(v) if i not in (*contract[s], *shared[s])]
           for s, v in enumerate((left, right))]  # fmt: skip
    out = "".join([*(left[a] for a in shared[0]), *own[0], *own[1]])
    return np.einsum(f"{''.join(left)},{''.join(right)}->{out}", x, y)


def operands(shapes, dtype, seed):
    """Return operands of small whole numbers, of which every dtype here holds all sums."""
    r = np.random.default_rng(seed)
    low, high = (0, 2) if dtype == "bool" else (0, 3) if dtype.startswith("u") else (-2, 3)
    made = [r.integers(low, high, s) for s in shapes]
    if dtype.startswith("complex"):
        made = [v + 1j * r.integers(low, high, v.shape) for v in made]
    return made


@settings(max_examples=40, deadline=None)
@given(contractions())
def test_values(case):
    *shapes, contract, shared, dtype, seed = case
    x, y = operands(shapes, dtype, seed)
    params = dict(contract=contract, shared=shared, precision="default")
    args = [pnp.asarray(v).astype(dtype) for v in (x, y)]
    alone = dot_general.bind(*args, **params, out_dtype=args[0].dtype)
    want = by_einsum(x, y, contract, shared)
    want = want.astype(dtype) if dtype != "bfloat16" else want  # integers wrap around
    np.testing.assert_array_equal(np.asarray(alone).astype(want.dtype), want)


@settings(max_examples=15, deadline=None)
@given(contractions(("float32", "float16", "complex64")), st.booleans())
def test_an_operation_alone_has_the_bits_of_the_jitted_one(case, wide):
    *shapes, contract, shared, dtype, seed = case
    r = np.random.default_rng(seed)
    args = [pnp.asarray(r.normal(size=s).astype("float32")).astype(dtype) for s in shapes]
    out = np.dtype("float32") if wide and dtype == "float16" else args[0].dtype
    params = dict(contract=contract, shared=shared, precision="default", out_dtype=out)
    f = lambda x, y: dot_general.bind(x, y, **params)  # noqa: E731
    alone, jitted = np.asarray(f(*args)), np.asarray(plait.jit(f)(*args))
    np.testing.assert_array_equal(alone, jitted)
    want = by_einsum(*[np.asarray(v).astype("complex128") for v in args], contract, shared)
    tol = 1e-2 if out == np.float16 else 1e-4
    np.testing.assert_allclose(alone.astype("complex128"), want, rtol=tol, atol=tol)


def lowered(f, *shapes):
    args = [np.ones(s, np.float32) for s in shapes]
    return plait.jit(f).lower(*args).as_text()


def test_neighbouring_axes_become_one():
    text = lowered(lambda x, g: plait.lax.dot_general(x, g, (((0, 1), (0, 1)), ((), ()))),
                   (2, 3, 4), (2, 3, 5))  # fmt: skip
    assert "contracting_dims = [0] x [0] : (tensor<6x4xf32>, tensor<6x5xf32>)" in text
    text = lowered(lambda x, w: x @ w, (2, 3, 4), (4, 5))
    assert "(tensor<6x4xf32>, tensor<4x5xf32>)" in text
    with plait.config(cpu_forms=False):
        text = lowered(lambda x, w: x @ w, (2, 3, 4), (4, 5))
        assert "(tensor<2x3x4xf32>, tensor<4x5xf32>)" in text


def test_axes_of_size_one_separate_no_others():
    text = lowered(lambda x, y: plait.lax.dot_general(x, y, (((0, 2), (0, 1)), ((), ()))),
                   (3, 1, 4, 5), (3, 4, 6))  # fmt: skip
    assert "(tensor<12x5xf32>, tensor<12x6xf32>)" in text


def test_axes_in_another_order_stay():
    text = lowered(lambda x, y: plait.lax.dot_general(x, y, (((0, 1), (1, 0)), ((), ()))),
                   (3, 4, 5), (4, 3, 6))  # fmt: skip
    assert "reshape" not in text


@pytest.mark.parametrize("numbers, right, exchanged", [
    (((1,), (2,)), (3, 16, 20), True),
    (((1,), (1,)), (3, 20, 8), True),
    (((1,), (1,)), (3, 20, 9), False),
    (((1,), (1,)), (3, 20, 160), False),
])  # fmt: skip
def test_stacks_that_are_slow_are_exchanged(numbers, right, exchanged):
    """The first axis meets the last one, or that of a matrix with a quarter of the columns."""
    f = lambda x, y: plait.lax.dot_general(x, y, (numbers, ((0,), (0,))))  # noqa: E731
    x = np.random.default_rng(0).normal(size=(3, 20, 35)).astype(np.float32)
    y = np.random.default_rng(1).normal(size=right).astype(np.float32)
    assert ("stablehlo.transpose" in lowered(f, x.shape, y.shape)) is exchanged
    want = by_einsum(x.astype(float), y.astype(float), numbers, ((0,), (0,)))
    np.testing.assert_allclose(np.asarray(plait.jit(f)(x, y)), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(np.asarray(f(x, y)), np.asarray(plait.jit(f)(x, y)))


INTEGERS = ("int8", "uint8", "int16", "uint16", "uint32", "bool")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("numbers", [(((2,), (1,)), ((0,), (0,))), (((0, 2), (0, 1)), ((), ())),
                                     (((1,), (2,)), ((0,), (0,)))], ids=str)  # fmt: skip
def test_integers_are_summed_in_words_and_wrap_around(dtype, numbers):
    r = np.random.default_rng(3)
    kind = np.dtype(dtype)
    low, high = (0, 2) if dtype == "bool" else (np.iinfo(kind).min, np.iinfo(kind).max + 1)
    x, y = (r.integers(low, high, (3, 32, 32)).astype(kind) for _ in range(2))
    f = plait.jit(lambda x, y: plait.lax.dot_general(x, y, numbers))
    text = f.lower(x, y).as_text()
    assert re.search(r"dot_general.*-> tensor<[0-9x]+xi32>", text)
    want = by_einsum(x.astype(object), y.astype(object), *numbers)  # whole numbers of any size
    want = want > 0 if dtype == "bool" else (want % (1 << 8 * kind.itemsize)).astype("uint64")
    np.testing.assert_array_equal(np.asarray(f(x, y)), want.astype(kind))
    few = f.lower(x[:, :2, :2], y[:, :2, :2]).as_text()
    assert not re.search(r"dot_general.*-> tensor<[0-9x]+xi32>", few)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_row(value):
    x = np.ones((2, 3, 4), np.float32)
    x[1, 2, 0] = value
    got = np.asarray(plait.jit(lambda x, w: x @ w)(x, np.ones((4, 5), np.float32)))
    assert not np.isfinite(got[1, 2]).any()
    assert np.isfinite(np.delete(got.reshape(6, 5), 5, 0)).all()


def test_other_compilers_get_the_operation():
    f = plait.jit(lambda x, w: x @ w)
    x, w = np.ones((2, 3, 4), np.float32), np.ones((4, 5), np.float32)
    text = f.trace(x, w).lower(lowering_platforms=("tpu",)).as_text()
    assert "(tensor<2x3x4xf32>, tensor<4x5xf32>)" in text
