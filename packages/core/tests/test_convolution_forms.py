"""Convolutions in the forms that CPUs compute fast, against loops of numpy over every position.

Invariant: each case is drawn at random, and its program holds the convolutions that its form has.
"""

import re

import numpy as np
import pytest

import plait
from plait.ext.ops.convolution import ConvDims, conv_general
from plait.testing.references import reference

VALUE = reference(conv_general).value


def drawn(kind, seed):
    """Return (input, kernel, parameters) of a convolution of a kind that has a form."""
    r = np.random.default_rng(seed)
    count = 3 if kind == "few places" else int(r.integers(1, 3))
    pick = lambda low, high: [int(n) for n in r.integers(low, high, count)]  # noqa: E731
    one = (1,) * count
    features, more, batch = (int(n) for n in r.integers(1, 5, 3))
    window, sizes, strides, steps, gaps = pick(1, 4), pick(5, 9), pick(1, 4), pick(1, 3), one
    padding = [(int(a), int(b)) for a, b in r.integers(0, 3, (count, 2))]
    groups, parts = 1, 1
    if kind.endswith("by groups"):
        n, of_each = (12, 48) if kind.startswith("few") else (int(r.integers(2, 4)), 2)
        more, batch = of_each * n, max(batch, 2)
        if r.integers(2):
            groups, features = n, n * features
        else:
            parts, batch = n, n * batch
    if kind.startswith("one element"):
        window, padding, steps = one, [(0, 0)] * count, one
    elif kind.startswith(("one place", "few places")):
        window, steps, strides = [n - 1 for n in sizes], one, one
        padding = [(0, 0)] * count
        window = [*sizes] if kind.startswith("one place") else window
    elif kind == "depthwise":
        features = more = groups = int(r.integers(2, 5))
        gaps = pick(1, 3)
        padding = [(a - 1, b) for a, b in padding]
    elif kind == "derivative by a depthwise kernel":
        parts = batch = more = int(r.integers(2, 5))
        window = [n - 1 for n in sizes]
        steps = one
    elif kind == "gaps as wide as the window":
        strides, steps = one, one
        gaps = [w + int(r.integers(0, 2)) for w in window]
        gaps[0] = max(gaps[0], 2)
        padding = [(a - 1, b) for a, b in padding]
    elif kind == "groups":
        groups, window, strides, steps = 2, pick(2, 4), one, one
        features, more = 2 * features + 2, 2 * more + 2
    order = lambda: tuple(int(a) for a in r.permutation(count + 2))  # noqa: E731
    dims = ConvDims(order(), order(), order())
    x = np.empty((batch, features, *sizes))
    y = np.empty((more, features // groups, *window))
    x, y = (r.normal(size=v.transpose(np.argsort(d)).shape) for v, d in zip((x, y), dims))
    params = dict(
        window_strides=tuple(strides), padding=tuple(padding), lhs_dilation=tuple(gaps),
        rhs_dilation=tuple(steps), dims=dims, feature_group_count=groups, batch_group_count=parts,
        precision="default", out_dtype=np.dtype("float32"),
    )  # fmt: skip
    return x.astype("float32"), y.astype("float32"), params


KINDS = {
    "one element": 0,
    "one element by groups": 0,
    "one place": 0,
    "one place by groups": 0,
    "few places by groups": 0,
    "few places": 0,
    "gaps as wide as the window": 0,
    "depthwise": 0,
    "derivative by a depthwise kernel": 0,
    "groups": 2,
}
"""The number of convolutions that are left for the compiler."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_values(kind, seed):
    x, y, params = drawn(kind, seed)
    f = plait.jit(lambda x, y: conv_general.bind(x, y, **params))
    want = VALUE(x, y, **params)
    got = np.asarray(f(x, y))
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert f.lower(x, y).as_text().count("stablehlo.convolution") == KINDS[kind]
    with plait.config(cpu_forms=False):  # as a check that the form is what was computed
        assert f.lower(x, y).as_text().count("stablehlo.convolution") == 1
        np.testing.assert_allclose(np.asarray(f(x, y)), want, rtol=1e-5, atol=1e-5)


def test_an_operation_alone_has_the_bits_of_the_jitted_one():
    for kind in KINDS:
        x, y, params = drawn(kind, 5)
        alone = conv_general.bind(x, y, **params)
        jitted = plait.jit(lambda x, y, params=params: conv_general.bind(x, y, **params))(x, y)
        np.testing.assert_array_equal(np.asarray(alone), np.asarray(jitted), err_msg=kind)


def test_padding_in_double_precision_is_not_multiplied():
    """The compiler's own loop visits no padding there, so that an infinite number of the kernel
    stays where it meets the input."""
    x, y = np.ones((1, 2, 3)), np.array([[[np.inf, 0, 1]], [[0, 1, 0]]])
    one = (1,)
    out = conv_general.bind(
        x, y, window_strides=one, padding=((1, 1),), lhs_dilation=one, rhs_dilation=one,
        dims=ConvDims((0, 1, 2), (0, 1, 2), (0, 1, 2)), feature_group_count=2,
        batch_group_count=1, precision="default", out_dtype=np.dtype("float64"),
    )  # fmt: skip
    np.testing.assert_array_equal(np.asarray(out)[0, 0], [1, np.inf, np.inf])


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kind", ["depthwise", "gaps as wide as the window", "one element"])
def test_what_is_not_finite_reaches_the_places_that_meet_it(kind, value):
    x, y, params = drawn(kind, 3)
    at = tuple([n // 2 for n in x.shape])
    marked = x.copy()
    marked[at] = value
    got = np.asarray(plait.jit(lambda x, y: conv_general.bind(x, y, **params))(marked, y))
    one = np.zeros_like(x)
    one[at] = 1
    met = VALUE(one, np.ones_like(y), **params) != 0
    np.testing.assert_array_equal(np.isfinite(got), ~met)


def test_derivatives_by_depthwise_kernels_sum_a_part_of_an_axis_by_slices():
    """The library reads an eighth of the products from memory."""
    x, y = np.ones((16, 16, 18, 8), "float32"), np.ones((16, 16, 16, 8), "float32")
    params = dict(
        window_strides=(1, 1), padding=((0, 0), (0, 0)), lhs_dilation=(1, 1), rhs_dilation=(1, 1),
        dims=ConvDims((3, 0, 1, 2), (3, 0, 1, 2), (3, 2, 0, 1)), feature_group_count=1,
        batch_group_count=8, precision="default", out_dtype=np.dtype("float32"),
    )  # fmt: skip
    f = plait.jit(lambda x, y: conv_general.bind(x, y, **params))
    text = f.lower(x, y).as_text()
    summed = re.findall(r"stablehlo.reduce.*?: \(tensor<([0-9x]+)xf32>", text)
    assert summed and all(np.prod([*map(int, n.split("x"))]) <= y.size / 8 for n in summed)
    np.testing.assert_allclose(f(x, y), VALUE(x, y, **params))


def test_other_compilers_get_the_operation():
    x, y, params = drawn("depthwise", 0)
    f = plait.jit(lambda x, y: conv_general.bind(x, y, **params))
    text = f.trace(x, y).lower(lowering_platforms=("tpu",)).as_text()
    assert text.count("stablehlo.convolution") == 1
