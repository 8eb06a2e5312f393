"""Contractions against numpy: matmul and its kin over shapes and dtypes, dot_general by einsum.

Invariant: what is compared with is computed by numpy, in a wider dtype where it lacks one.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest

import plait
from plait._core.array import asarray
from plait._ops.contraction import (
    contracted,
    dot,
    dot_general,
    inner,
    matmul,
    normal_precision,
    outer,
    tensordot,
    vdot,
)
from plait.errors import ArgumentError, AxisError, TypeRule

BF16 = np.dtype(ml_dtypes.bfloat16)
LEADS = [(), (1,), (3,), (4, 3), (4, 1), (1, 1), (4, 1, 3)]
rng = np.random.default_rng(0)


def close(got, want, rtol=1e-12):
    got = np.asarray(got)
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=rtol)


@pytest.mark.parametrize("left, right", list(itertools.product(LEADS, LEADS)))
def test_matmul_of_stacks(left, right):
    x, y = rng.normal(size=(*left, 2, 3)), rng.normal(size=(*right, 3, 5))
    close(matmul(x, y), np.matmul(x, y))


@pytest.mark.parametrize("lead", LEADS)
def test_matmul_with_vectors(lead):
    v, x, y = rng.normal(size=3), rng.normal(size=(*lead, 2, 3)), rng.normal(size=(*lead, 3, 2))
    close(matmul(x, v), np.matmul(x, v))
    close(matmul(v, y), np.matmul(v, y))
    close(matmul(v, v), np.matmul(v, v))


def test_matmul_of_empty_arrays():
    close(matmul(np.ones((2, 0)), np.ones((0, 3))), np.zeros((2, 3)))
    close(matmul(np.ones((0, 2, 3)), np.ones((3, 4))), np.zeros((0, 2, 4)))
    close(matmul(np.ones((1, 2, 3)), np.ones((0, 3, 4))), np.zeros((0, 2, 4)))


@pytest.mark.parametrize("name", ["bool", "int8", "int32", "int64", "uint32", BF16, "float16",
                                  "float32", "float64", "complex64"])  # fmt: skip
def test_dtypes(name):
    d = np.dtype(name)
    x, y = (rng.integers(0, 2 if d.kind == "b" else 4, s).astype(d) for s in ((2, 3), (3, 4)))
    if d.kind == "c":
        x = x * np.complex64(1 + 2j)
    wide = (v.astype(np.float64) if d.kind not in "biuc" else v for v in (x, y))
    got = matmul(x, y)
    assert got.dtype == d
    np.testing.assert_array_equal(
        np.asarray(got).astype(np.float64 if d.kind == "V" else d), np.matmul(*wide)
    )


def test_promotion_and_preferred_dtype():
    assert matmul(np.ones((2, 2), np.int8), np.ones((2, 2), np.float32)).dtype == np.float32
    assert matmul(np.ones((2, 2), np.float32), np.ones(2)).dtype == np.float64
    assert matmul(np.ones((2, 2), np.int8), np.ones(2, np.int16)).dtype == np.int16
    x = np.full((1, 300), 100, np.int8)
    assert matmul(x, x.T, preferred_element_type=np.int32).item() == 3_000_000
    assert matmul(np.ones((1, 500), BF16), np.ones((500, 1), BF16),
                  preferred_element_type=np.float32).item() == 500.0  # fmt: skip
    for f in (dot, tensordot, inner, vdot):
        out = f(np.ones((3, 3), np.float16), np.ones((3, 3), np.float16),
                preferred_element_type=np.float32)  # fmt: skip
        assert out.dtype == np.float32


def test_narrow_floats_are_accumulated_wide():
    for d in (BF16, np.float16):
        ones = np.ones(10_000, d)
        assert float(dot(ones, ones)) == float(np.asarray(10_000).astype(d))


def test_dot():
    shapes = [(), (3,), (2, 3), (4, 2, 3)], [(), (3,), (3, 5), (4, 3, 5)]
    for a, b in itertools.product(*shapes):
        x, y = rng.normal(size=a), rng.normal(size=b)
        close(dot(x, y), np.dot(x, y), 1e-11)


def test_inner_outer_vdot():
    for a, b in (((), (3,)), ((3,), (3,)), ((2, 3), (4, 3)), ((2, 3), (5, 4, 3))):
        x, y = rng.normal(size=a), rng.normal(size=b)
        close(inner(x, y), np.inner(x, y), 1e-11)
        close(outer(x, y), np.outer(x, y))
    x = (rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))).astype(np.complex64)
    y = (rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2))).astype(np.complex64)
    close(vdot(x, y), np.vdot(x, y), 1e-5)


def test_tensordot():
    x, y = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 3, 5))
    close(tensordot(x, y, 1), np.tensordot(x, y, 1))
    close(tensordot(x, y, 0), np.tensordot(x, y, 0))
    close(tensordot(x, y, ((1, 2), (1, 0))), np.tensordot(x, y, ((1, 2), (1, 0))))
    close(tensordot(x, y, (-1, 0)), np.tensordot(x, y, (-1, 0)))
    close(tensordot(x, x, 3), np.tensordot(x, x, 3), 1e-11)
    with pytest.raises(ArgumentError, match="tensordot over 4 axes"):
        tensordot(x, y, 4)
    with pytest.raises(TypeRule, match="cannot be contracted"):
        tensordot(x, y, ((0,), (0,)))


@pytest.mark.parametrize("spec, contract, shared", [
    ("abc,cd->abd", ((2,), (0,)), ((), ())),
    ("abc,bcd->ad", ((1, 2), (0, 1)), ((), ())),
    ("abc,cbd->ad", ((1, 2), (1, 0)), ((), ())),
    ("abc,dbc->bad", ((2,), (2,)), ((1,), (1,))),
    ("abc,cab->abc", ((), ()), ((0, 1, 2), (1, 2, 0))),
    ("abc,ad->abcd", ((), ()), ((0,), (0,))),
    ("abc,cba->b", ((2, 0), (0, 2)), ((1,), (1,))),
    ("abc,de->abcde", ((), ()), ((), ())),
])  # fmt: skip
def test_dot_general(spec, contract, shared):
    sizes = dict(zip("abcde", (2, 3, 4, 5, 6)))
    left, right = spec.split("->")[0].split(",")
    x, y = (rng.normal(size=[sizes[c] for c in t]) for t in (left, right))
    close(contracted(x, y, contract, shared), np.einsum(spec, x, y), 1e-11)
    negative = [[a - len(t) for a in axes] for axes, t in zip(contract, (left, right))]
    close(contracted(x, y, negative, shared, precision="highest"), np.einsum(spec, x, y), 1e-11)


def test_precisions():
    class Precision:
        name = "HIGHEST"

    assert [normal_precision(p) for p in (None, "float32", Precision, ("default", "high"))] == [
        "default", "highest", "highest", "high",
    ]  # fmt: skip
    with pytest.raises(TypeRule, match="there is no precision 'hihg'"):
        matmul(np.ones((2, 2)), np.ones((2, 2)), precision="hihg")
    text = plait.jit(lambda x: matmul(x, x, precision="high")).lower(np.ones((2, 2))).as_text()
    assert "HIGH" in text and "HIGHEST" not in text


def test_python_scalars():
    assert dot(2, 3).item() == 6
    out = plait.jit(lambda x: dot(x, 2.0))(np.ones(2, np.float32))
    assert out.dtype == np.float32


def test_operator_and_jit():
    x = rng.normal(size=(3, 3))
    close(asarray(x) @ x, x @ x)
    close(x @ asarray(x), x @ x)
    close(plait.jit(lambda a, b: a @ b)(x, x[0]), x @ x[0])


def test_errors():
    x = np.ones((2, 3))
    with pytest.raises(TypeRule, match=r"matmul of f64\[2,3\] and f64\[2,3\]"):
        matmul(x, x)
    with pytest.raises(TypeRule, match="multiply with"):
        matmul(x, 2.0)
    with pytest.raises(ValueError, match="do not broadcast"):
        matmul(np.ones((4, 2, 3)), np.ones((5, 3, 2)))
    a, b = asarray(x), asarray(x.astype(np.float32))
    rest = dict(precision="default", out_dtype=np.dtype(np.float64))
    with pytest.raises(TypeRule, match="one dtype"):
        dot_general.bind(a, b, contract=((1,), (1,)), shared=((), ()), **rest)
    with pytest.raises(AxisError, match="each once"):
        dot_general.bind(a, a, contract=((1,), (1,)), shared=((1,), (1,)), **rest)
    with pytest.raises(AxisError, match="out of range"):
        contracted(x, x, ((2,), (1,)))


@pytest.mark.parametrize("name", ["int8", "uint8"])
def test_products_of_bytes_that_a_compiler_for_gpus_doubles(name):
    """Only sums of a multiple of 16 products, which the library does, are of bytes there."""
    for depth in (3, 16, 24, 64):
        x, y = np.ones((2, depth), name), np.ones((depth, 5), name)
        f = plait.jit(lambda x, y: matmul(x, y, preferred_element_type=np.int32))
        for platform, narrow in (("cuda", depth % 16 == 0), ("cpu", True)):
            text = f.trace(x, y).lower(lowering_platforms=(platform,)).as_text()
            (line,) = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
            assert ("i8>" in line.partition("->")[0]) == narrow, line
