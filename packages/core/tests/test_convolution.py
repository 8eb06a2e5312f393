"""Convolutions against sums written out in numpy, and against scipy.

Invariant: the reference is the definition: for every output place, a sum over the window.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest
from scipy import signal

import plait
from plait._ops.convolution import (
    ConvDims,
    conv,
    conv_dimension_numbers,
    conv_general,
    conv_general_dilated,
    conv_transpose,
    conv_with_general_padding,
)
from plait.errors import AxisError, TypeRule

rng = np.random.default_rng(0)


def spread(x, steps):
    """Zeros between the elements of the spatial axes (2 and on)."""
    shape = [*x.shape[:2], *((n - 1) * s + 1 if n else 0 for n, s in zip(x.shape[2:], steps))]
    out = np.zeros(shape, x.dtype)
    out[(..., *(slice(None, None, s) for s in steps))] = x
    return out


def padded(x, pads):
    for axis, (low, high) in enumerate(pads, 2):
        cut = slice(max(-low, 0), x.shape[axis] - max(-high, 0))
        x = x[(slice(None),) * axis + (cut,)]
        widths = [(0, 0)] * x.ndim
        widths[axis] = max(low, 0), max(high, 0)
        x = np.pad(x, widths)
    return x


def by_definition(x, y, strides, pads, dl=None, dr=None, features=1, batches=1):
    """x: N C space, y: O I space -> N O space."""
    count = x.ndim - 2
    x = padded(spread(x, dl or (1,) * count), pads)
    y = spread(y, dr or (1,) * count)
    if batches * features > 1:
        groups, axis = (batches, 0) if batches > 1 else (features, 1)
        pairs = zip(np.split(x, groups, axis), np.split(y, groups, 0))
        none = ((0, 0),) * count
        return np.concatenate([by_definition(a, b, strides, none) for a, b in pairs], 1)
    window = y.shape[2:]
    places = [max((n - w) // s + 1, 0) for n, w, s in zip(x.shape[2:], window, strides)]
    out = np.zeros((x.shape[0], y.shape[0], *places), x.dtype)
    for at in itertools.product(*map(range, places)):
        box = tuple(slice(i * s, i * s + w) for i, s, w in zip(at, strides, window))
        out[(..., *at)] = np.tensordot(x[(..., *box)], y, (range(1, x.ndim), range(1, y.ndim)))
    return out


CASES = {
    "plain": dict(strides=(1, 1), pads=((0, 0), (0, 0))),
    "padded": dict(strides=(1, 1), pads=((1, 2), (3, 0))),
    "cut": dict(strides=(1, 1), pads=((-1, 2), (0, -2))),
    "strided": dict(strides=(2, 3), pads=((1, 1), (0, 2))),
    "dilated": dict(strides=(1, 2), pads=((2, 2), (2, 2)), dr=(2, 3)),
    "transposed": dict(strides=(1, 1), pads=((2, 1), (1, 1)), dl=(2, 3)),
    "both": dict(strides=(2, 1), pads=((2, 1), (1, 1)), dl=(3, 2), dr=(2, 2)),
    "grouped": dict(strides=(1, 2), pads=((1, 1), (1, 1)), features=2),
    "depthwise": dict(strides=(1, 1), pads=((1, 1), (1, 1)), features=4),
    "batch groups": dict(strides=(1, 2), pads=((1, 1), (1, 1)), batches=2),
    "too large a window": dict(strides=(1, 1), pads=((0, 0), (0, 0)), dr=(5, 1)),
}


@pytest.mark.parametrize("case", CASES)
def test_against_the_definition(case):
    p = CASES[case]
    features, batches = p.get("features", 1), p.get("batches", 1)
    x, y = rng.normal(size=(2, 4, 7, 6)), rng.normal(size=(4, 4 // features, 3, 2))
    got = conv_general_dilated(x, y, p["strides"], p["pads"], p.get("dl"), p.get("dr"), None,
                               features, batches)  # fmt: skip
    want = by_definition(x, y, **p)
    assert got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("numbers", [
    ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NHWC"), ("CNWH", "IWOH", "WNCH"), None,
])  # fmt: skip
def test_orders_of_axes(numbers):
    x, y = rng.normal(size=(2, 3, 5, 4)), rng.normal(size=(6, 3, 2, 3))
    dims = conv_dimension_numbers(x.shape, y.shape, numbers)
    moved = lambda v, axes: np.transpose(v, np.argsort(axes))  # noqa: E731
    got = conv_general_dilated(moved(x, dims.lhs_spec), moved(y, dims.rhs_spec), (1, 2), "SAME",
                               dimension_numbers=numbers)  # fmt: skip
    want = by_definition(x, y, (1, 2), ((0, 1), (0, 1)))
    np.testing.assert_allclose(np.transpose(np.asarray(got), dims.out_spec), want, rtol=1e-10)
    again = conv_general_dilated(moved(x, dims.lhs_spec), moved(y, dims.rhs_spec), (1, 2), "SAME",
                                 dimension_numbers=dims)  # fmt: skip
    np.testing.assert_array_equal(np.asarray(got), np.asarray(again))


@pytest.mark.parametrize("n, k, s", [(7, 3, 1), (7, 3, 2), (8, 2, 2), (8, 5, 3), (5, 1, 2)])
def test_words_for_padding(n, k, s):
    x, y = rng.normal(size=(1, 2, n)), rng.normal(size=(3, 2, k))
    size = -(-n // s)
    total = max((size - 1) * s + k - n, 0)
    for word, low in (("SAME", total // 2), ("same_lower", total - total // 2)):
        got = conv(x, y, (s,), word)
        want = by_definition(x, y, (s,), ((low, total - low),))
        assert got.shape == (1, 3, size)
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-10)
    want = by_definition(x, y, (s,), ((0, 0),))
    np.testing.assert_allclose(np.asarray(conv(x, y, (s,), "VALID")), want, rtol=1e-10)


def test_against_scipy():
    x, y = rng.normal(size=(9, 8)), rng.normal(size=(3, 4))
    got = np.asarray(conv(x[None, None], y[None, None], (1, 1), "VALID"))[0, 0]
    np.testing.assert_allclose(got, signal.correlate(x, y, "valid"), rtol=1e-10)


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("low, high", [(-1, 1), (1, -1), (-1, 2), (-2, 0), (-4, 3)])
@pytest.mark.parametrize("window", [1, 3])
def test_cut_off_at_one_end(window, low, high, steps):
    """XLA for CPUs takes padding by -1 and 1 for none."""
    x = rng.standard_normal((2, 3, 6)).astype(np.float32)
    y = rng.standard_normal((4, 3, window)).astype(np.float32)
    for stride in (1, 2):
        got = conv_general_dilated(x, y, (stride,), [(low, high)], (steps,))
        want = by_definition(x, y, (stride,), [(low, high)], (steps,))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_dilated_input_with_a_stride_and_a_kernel_larger_than_the_input():
    """XLA exchanges input and kernel, forgets the axis with both, and ends the process."""
    x = rng.standard_normal((2, 8, 16, 6)).astype(np.float32)
    y = rng.standard_normal((3, 8, 3, 8)).astype(np.float32)
    how = (2, 1), [(0, 0), (7, 7)], (3, 1), (1, 2)
    want = by_definition(x, y, *how)
    got = conv_general_dilated(x, y, *how)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_numbers_of_axes(count):
    x = rng.normal(size=(2, 3, *(5, 4, 4)[:count]))
    y = rng.normal(size=(4, 3, *(2, 3, 1)[:count]))
    got = conv_with_general_padding(x, y, (1,) * count, "VALID", None, None)
    want = by_definition(x, y, (1,) * count, ((0, 0),) * count)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-10)


@pytest.mark.parametrize("shapes", [((0, 2, 5), (3, 2, 2)), ((2, 2, 0), (3, 2, 2)),
                                    ((2, 0, 5), (3, 0, 2)), ((2, 2, 5), (0, 2, 2))])  # fmt: skip
def test_empty(shapes):
    x, y = map(np.ones, shapes)
    got = conv(x, y, (1,), "SAME")
    want = by_definition(x, y, (1,), ((0, 1),) if x.shape[2] else ((0, 0),))
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("name", ["int8", "int32", ml_dtypes.bfloat16, "float16", "float32",
                                  "complex64"])  # fmt: skip
def test_dtypes(name):
    d = np.dtype(name)
    x, y = (rng.integers(0, 3, s).astype(d) for s in ((1, 2, 5), (2, 2, 3)))
    if d.kind == "c":
        x = x * np.complex64(1 - 2j)
    got = conv(x, y, (1,), "SAME")
    assert got.dtype == d
    wide = np.complex128 if d.kind == "c" else np.float64
    want = by_definition(x.astype(wide), y.astype(wide), (1,), ((1, 1),))
    np.testing.assert_array_equal(np.asarray(got).astype(wide), want)
    if d.kind != "c":
        assert conv(x, y, (1,), "SAME", preferred_element_type=np.float32).dtype == np.float32


@pytest.mark.parametrize("padding, s, k, d", [
    ("SAME", 1, 3, 1), ("SAME", 2, 3, 1), ("SAME", 3, 2, 1), ("VALID", 2, 3, 1),
    ("VALID", 3, 2, 1), ("SAME", 2, 3, 2), ("VALID", 1, 2, 3),
])  # fmt: skip
def test_conv_transpose_is_the_transpose(padding, s, k, d):
    """<c, conv(x)> = <conv_transpose(c), x>, the kernel being transposed too."""
    c, y = rng.normal(size=(1, 4, 3)), rng.normal(size=(k, 2, 3))  # NHC; HIO of the convolution
    got = np.asarray(conv_transpose(c, y, (s,), padding, (d,), transpose_kernel=True))
    reach = (k - 1) * d + 1
    assert got.shape == (1, 4 * s + (max(reach - s, 0) if padding == "VALID" else 0), 2)
    x = rng.normal(size=got.shape)
    z = np.asarray(conv_general_dilated(x, y, (s,), padding, None, (d,), ("NHC", "HIO", "NHC")))
    np.testing.assert_allclose(np.sum(c * z), np.sum(got * x), rtol=1e-10)


def test_conv_transpose_written_out():
    x, y = rng.normal(size=(1, 4, 3)), rng.normal(size=(3, 3, 2))
    got = conv_transpose(x, y, (2,), ((1, 0),))
    want = by_definition(np.moveaxis(x, 2, 1), np.transpose(y, (2, 1, 0)), (1,), ((1, 0),), (2,))
    np.testing.assert_allclose(np.asarray(got), np.moveaxis(want, 1, 2), rtol=1e-10)
    got = conv_transpose(np.ones((1, 3, 4, 4)), np.ones((3, 5, 2, 2)), (2, 2), "SAME",
                         dimension_numbers=("NCHW", "IOHW", "NCHW"))  # fmt: skip
    assert got.shape == (1, 5, 8, 8)
    with pytest.raises(TypeRule, match="not one of conv_transpose"):
        conv_transpose(x, y, (2,), "SAME_LOWER")


def test_inside_jit_with_precision():
    x, y = rng.normal(size=(1, 2, 5)), rng.normal(size=(3, 2, 2))
    f = plait.jit(lambda a, b: conv(a, b, (1,), "VALID", precision="highest"))
    np.testing.assert_allclose(
        np.asarray(f(x, y)), by_definition(x, y, (1,), ((0, 0),)), rtol=1e-10
    )
    assert "HIGHEST" in f.lower(x, y).as_text()


def test_errors():
    x, y = np.ones((2, 4, 5)), np.ones((3, 4, 2))
    good = dict(window_strides=(1,), padding=((0, 0),))
    for bad, words in (
        (dict(rhs=np.ones((3, 2, 2))), "has 4 features, the kernel"),
        (dict(rhs=np.ones((3, 2, 2)), feature_group_count=2), "do not divide into 2 groups"),
        (dict(lhs=np.ones((3, 4, 5)), rhs=np.ones((4, 4, 2)), batch_group_count=2),
         "a batch of 3 does not divide"),
        (dict(window_strides=(1, 1)), "there are 1 spatial axes"),
        (dict(window_strides=(0,)), "positive"),
        (dict(rhs_dilation=(0,)), "positive"),
        (dict(padding="SOME"), "padding 'SOME'"),
        (dict(padding=((0, 0), (1, 1))), "is not one of a window over 1 axes"),
        (dict(padding=((-3, -3),)), "leaves nothing"),
        (dict(feature_group_count=2, batch_group_count=2), "one of them is 1"),
        (dict(precision="best"), "no precision"),
        (dict(rhs=np.ones((3, 4, 0))), "has no elements along axis 2"),
    ):  # fmt: skip
        with pytest.raises(TypeRule, match=words):
            conv_general_dilated(**{"lhs": x, "rhs": y, **good, **bad})
    for bad in ("NCW", ("NCW", "OIW"), ("NCW", "OIW", "NCX"), ((0, 1, 2), (0, 1, 1), (0, 1, 2))):
        with pytest.raises(AxisError):
            conv_general_dilated(x, y, dimension_numbers=bad, **good)
    with pytest.raises(AxisError, match="as many axes"):
        conv(x, np.ones((3, 4)), (1,), "SAME")
    with pytest.raises(AxisError, match="do not number the axes"):
        rest = dict(lhs_dilation=(1,), rhs_dilation=(1,), feature_group_count=1,
                    batch_group_count=1, precision="default", out_dtype=x.dtype)  # fmt: skip
        dims = ConvDims((0, 1, 1), (0, 1, 2), (0, 1, 2))
        conv_general(x, y, dims=dims, **good, **rest)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["int8", "uint16", "int32", "int64", "complex64", "complex128"])
@pytest.mark.parametrize("case", CASES)
def test_platforms_with_convolutions_of_floats_only(case, name, monkeypatch):
    """There, complex ones are four of real numbers, and those of integers products."""
    it = {"dl": (1, 1), "dr": (1, 1), "features": 1, "batches": 1, **CASES[case]}
    d = np.dtype(name)
    x = rng.integers(-3, 4, (4, 4, 6, 7)).astype(d)
    y = rng.integers(-3, 4, (4, 4 // it["features"], 2, 3)).astype(d)
    if d.kind == "c":
        x, y = x * d.type(1 - 2j), y * d.type(2 + 1j)
    given = dict(
        window_strides=it["strides"], padding=it["pads"], lhs_dilation=it["dl"],
        rhs_dilation=it["dr"], feature_group_count=it["features"], batch_group_count=it["batches"],
    )  # fmt: skip
    f = plait.jit(lambda x, y: conv_general_dilated(x, y, **given))
    elsewhere = f.trace(x, y).lower(lowering_platforms=("cuda",)).as_text()
    lines = [line for line in elsewhere.splitlines() if "stablehlo.convolution" in line]
    assert len(lines) == (4 if d.kind == "c" else 0)
    assert all("complex" not in line.rpartition("->")[2] for line in lines)
    monkeypatch.setattr("plait._ops.sliding.LACKING", frozenset(["cpu", "cuda"]))
    got = plait.jit(lambda x, y: conv_general_dilated(x, y, **given))(x, y)
    assert got.dtype == d
    want = by_definition(x, y, it["strides"], it["pads"], it["dl"], it["dr"], it["features"],
                         it["batches"])  # fmt: skip
    np.testing.assert_array_equal(np.asarray(got), want)
