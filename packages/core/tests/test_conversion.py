"""Reading bits as another dtype, against numpy's `view`.

Invariant: the reference never goes through Plait.
"""

import contextlib
import itertools
import re

import ml_dtypes
import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait._core.array import asarray
from plait._ops.conversion import bitcast
from plait._types.avals import Aval
from plait._xla import mlir
from plait.errors import ShapeError, TypeRule

NAMES = ["int8", "uint8", "int16", "uint16", "float16", ml_dtypes.bfloat16, "int32", "uint32",
         "float32", "int64", "uint64", "float64", ml_dtypes.float8_e4m3fn]  # fmt: skip


def viewed(x, dtype):
    have, want = x.dtype.itemsize, dtype.itemsize
    if have == want:
        return x.view(dtype)
    if have > want:
        return x[..., None].view(dtype)
    return x.view(dtype)[..., 0]


@pytest.mark.sampled(16)
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


def test_transfer():
    x = asarray(np.array([[1.5, -0.0], [np.inf, np.nan]]))
    f = plait.jit(lambda v: bitcast(bitcast(v, "uint32"), "float64"))
    assert np.asarray(f(x)).tobytes() == np.asarray(x).tobytes()
    assert bitcast(x, "float64") is x


def test_errors():
    for a, b in itertools.permutations(("bool", "complex64", "float32"), 2):
        with pytest.raises(TypeRule, match="cannot be read as bits"):
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


def shape_of(x):
    return plait.ShapeDtypeStruct(x.shape, x.dtype)


class Duck:
    """An object that has a shape and a dtype, and is not an array."""

    def __init__(self, dtype):
        self.shape, self.dtype = (2,), dtype


ENTRANCES = {
    "zeros_like": lambda wide: pnp.zeros_like(wide),
    "ones_like": lambda wide: pnp.ones_like(wide),
    "full_like": lambda wide: pnp.full_like(wide, 2),
    "empty_like": lambda wide: pnp.empty_like(wide),
    "lax.full_like": lambda wide: plait.lax.full_like(wide, 2),
    "asarray": lambda wide: pnp.asarray(wide),
    "array of rows": lambda wide: pnp.array([wide, wide]),
    "array by name": lambda wide: pnp.array([1, 2], wide.dtype.name),
    "zeros": lambda wide: pnp.zeros(2, wide.dtype),
    "eye": lambda wide: pnp.eye(2, dtype=wide.dtype),
    "astype": lambda wide: pnp.ones(2).astype(wide.dtype),
    "astype by name": lambda wide: pnp.ones(2).astype(wide.dtype.name),
    "pnp.astype": lambda wide: pnp.astype(pnp.ones(2), wide.dtype),
    "astype in jit": lambda wide: plait.jit(lambda x: x.astype(wide.dtype))(1),
    "convert_element_type": lambda wide: plait.lax.convert_element_type(1, wide.dtype),
    "iota": lambda wide: plait.lax.iota(wide.dtype, 3),
    "broadcasted_iota": lambda wide: plait.lax.broadcasted_iota(wide.dtype, (2, 2), 0),
    "sum": lambda wide: pnp.sum(pnp.ones(2), dtype=wide.dtype),
    "x.sum": lambda wide: pnp.ones(2).sum(dtype=wide.dtype),
    "x.mean": lambda wide: pnp.ones(2).mean(dtype=wide.dtype),
    "cumsum": lambda wide: pnp.cumsum(pnp.ones(2), dtype=wide.dtype),
    "add.reduce": lambda wide: pnp.add.reduce(pnp.ones(2), dtype=wide.dtype),
    "dot": lambda wide: pnp.dot(pnp.ones(2), pnp.ones(2), preferred_element_type=wide.dtype),
    "a numpy scalar": lambda wide: pnp.ones(2, bool) + wide[0],
    "beside numpy's": lambda wide: pnp.ones(2, bool) + wide,
    "where": lambda wide: pnp.where(True, wide, wide),
    "an argument": lambda wide: plait.jit(lambda x: x)(wide),
    "one_hot": lambda wide: plait.nn.one_hot(np.array([1]), 2, dtype=wide.dtype),
    "fromiter": lambda wide: pnp.fromiter([1, 2], wide.dtype),
    "typeof": lambda wide: plait.eval_shape(lambda x: x, wide),
    "eval_shape": lambda wide: plait.eval_shape(lambda x: x, shape_of(wide)),
    "a duck": lambda wide: plait.eval_shape(lambda x: x, Duck(wide.dtype)),
    "lower": lambda wide: plait.jit(lambda x: x).lower(shape_of(wide)).out_info,
    "compile": lambda wide: plait.jit(lambda x: x).lower(shape_of(wide)).compile()(wide),
    "make_program": lambda wide: plait.make_program(lambda x: x)(shape_of(wide)).outputs[0].aval,
    "pure_callback": lambda wide: plait.pure_callback(lambda: wide, shape_of(wide)),
    "in jit": lambda wide: plait.jit(lambda: plait.pure_callback(lambda: wide, shape_of(wide)))(),
    "io_callback": lambda wide: plait.io_callback(lambda: wide, shape_of(wide)),
    "trace": lambda wide: pnp.trace(pnp.ones((2, 2)), dtype=wide.dtype),
    "prod": lambda wide: pnp.prod(pnp.ones(2), dtype=wide.dtype),
    "view": lambda wide: pnp.zeros(8).view(wide.dtype),
}


NOT_OF_THIS_KIND = {("iota", "complex128"), ("broadcasted_iota", "complex128"),
                    ("x.mean", "int64"), ("x.mean", "uint64")}  # fmt: skip


def names_in(code):
    """Return the names in a function, and in the functions inside of it."""
    inner = [names_in(c) for c in code.co_consts if hasattr(c, "co_names")]
    return {*code.co_names}.union(*inner)


NARROWED = pytest.mark.filterwarnings("ignore:a dtype of 64 bits was requested")


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name, dtype", [
    (name, dtype) for name in ENTRANCES for dtype in ("float64", "int64", "uint64", "complex128")
    if (name, dtype) not in NOT_OF_THIS_KIND
])  # fmt: skip
def test_without_x64_nothing_enters_with_64_bits(name, dtype):
    wide = np.ones(2, dtype)
    narrow = np.dtype({"float64": "float32", "int64": "int32", "uint64": "uint32"}.get(
        dtype, "complex64"))  # fmt: skip
    requested = name != "a duck" and "dtype" in names_in(ENTRANCES[name].__code__)
    plait.clear_caches()  # a call that is found again asks for nothing
    warned = pytest.warns(UserWarning, match=f"{dtype} becomes {narrow}")
    with plait.enable_x64(False), warned if requested else contextlib.nullcontext():
        assert ENTRANCES[name](wide).dtype == narrow
    with plait.enable_x64():
        assert ENTRANCES[name](wide).dtype == dtype


INTEGERS = ["int8", "int16", "int32", "uint8", "uint16", "uint32", "bool"]


def test_without_x64_no_promotion_leads_to_64_bits():
    for a in INTEGERS:
        for b in INTEGERS:
            want = np.promote_types(a, b)
            with plait.enable_x64(False):
                narrow = {"int64": "int32"}.get(want.name, want.name)
                assert (pnp.ones(2, a) + pnp.ones(2, b)).dtype == (narrow if want != bool else bool)
                assert plait.jit(lambda x, y: x * y)(pnp.ones(2, a), pnp.ones(2, b)).dtype == narrow
                assert pnp.promote_types(a, b) == narrow == pnp.result_type(a, b)
                assert pnp.stack([pnp.ones(2, a), pnp.ones(2, b)]).dtype == narrow
            assert pnp.promote_types(a, b) == want
    with plait.enable_x64(False):
        assert pnp.argmax(pnp.ones(3)).dtype == np.int32
        with pytest.warns(UserWarning, match="int64 becomes int32"):
            assert plait.lax.argmax(pnp.ones(3), 0, "int64").dtype == np.int32


@NARROWED
def test_without_x64_bits_are_read_as_32():
    with plait.enable_x64(False):
        got = plait.lax.bitcast_convert_type(pnp.ones(2), "int64")
        assert got.dtype == np.int32 and got.tolist() == [0x3F800000] * 2
    with plait.enable_x64():
        got = plait.lax.bitcast_convert_type(pnp.ones(2, "float32"), "int64")
        assert got.item() == 0x3F8000003F800000


def test_views_and_sums_of_python_classes_have_default_dtypes():
    """As `astype`: float is the default float, and no 64 bits."""
    assert pnp.ones(2).view(int).dtype == np.int32
    assert pnp.trace(pnp.ones((2, 2)), dtype=int).dtype == np.int32


def test_astype_of_none_is_the_default_float():
    for wide in (False, True):
        with plait.enable_x64(wide):
            want = np.float64 if wide else np.float32
            assert pnp.arange(3).astype(None).dtype == want
            assert pnp.astype(pnp.arange(3), None).dtype == want


VIEWED = ["float32", "float64", "complex64", "complex128", "int32", "int16", "uint8"]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("have", VIEWED)
@pytest.mark.parametrize("want", ["complex64", "complex128", "float32", "float64", "int64"])
def test_views_of_and_as_complex_numbers(have, want):
    """A complex number is two floats, one after the other; bits are those of numpy's views."""
    rng = np.random.default_rng(3)
    for shape in ((8,), (2, 8), (3,), (), (2, 0)):
        x = (rng.normal(size=shape) * 9 + 9 + (1j if have[0] == "c" else 0)).astype(have)
        try:
            expected = x.view(want)
        except ValueError:
            with pytest.raises(ShapeError, match="cannot be viewed"):
                pnp.asarray(x).view(want)
            continue
        for got in (pnp.asarray(x).view(want), plait.jit(lambda v: v.view(want))(x)):
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            assert np.asarray(got).tobytes() == expected.tobytes()


class Unregistered(np.generic):
    """A class of scalars of no dtype."""


@pytest.mark.parametrize(
    "kind",
    [
        np.generic, np.number, np.integer, np.signedinteger, np.inexact, np.floating,
        np.complexfloating, np.character, np.flexible, Unregistered,
    ],
    ids=lambda kind: kind.__name__,
)  # fmt: skip
def test_abstract_dtypes_are_refused(kind):
    """Older versions of numpy take them for a dtype, and warn."""
    for make in (lambda: pnp.full((2,), 1, kind), lambda: plait.ShapeDtypeStruct((2,), kind)):
        with pytest.raises(TypeError, match="is not a dtype"):
            make()
