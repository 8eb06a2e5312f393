"""Derivatives of convolutions against finite differences: strides, dilations, padding, groups.

Invariant: in both operands, to the second order, in every order of axes.
"""

import numpy as np
import pytest

import plait
from plait.lax import conv_general_dilated, conv_transpose
from plait_autodiff import check_grads, grad

rng = np.random.default_rng(0)
NCH = ("NCH", "OIH", "NCH")


@pytest.mark.sampled(10)
@pytest.mark.parametrize("case", [
    dict(window_strides=(1,), padding="SAME"),
    dict(window_strides=(2,), padding=((1, 2),)),
    dict(window_strides=(3,), padding=((0, 0),)),  # elements left over at the end
    dict(window_strides=(2,), padding=((-1, 1),)),
    dict(window_strides=(1,), padding=((2, 1),), lhs_dilation=(3,)),
    dict(window_strides=(2,), padding=((1, 3),), lhs_dilation=(2,), rhs_dilation=(2,)),
    dict(window_strides=(1,), padding=((4, 4),)),  # padding wider than the window
    dict(window_strides=(2,), padding=((1, 1),), feature_group_count=2),
    dict(window_strides=(2,), padding=((1, 1),), batch_group_count=2),
    dict(window_strides=(1,), padding=((1, 1),), dimension_numbers=("HNC", "IHO", "CHN")),
    dict(window_strides=(1,), padding=((1, 1),), feature_group_count=2,
         dimension_numbers=("CHN", "HOI", "HNC")),
    dict(window_strides=(2,), padding=((1, 0),), batch_group_count=2,
         dimension_numbers=("CHN", "HOI", "HNC")),
])  # fmt: skip
def test_one_spatial_axis(case):
    numbers = case.get("dimension_numbers", NCH)
    c = 4 // case.get("feature_group_count", 1)
    sizes = dict(N=2, C=4, H=6), dict(O=4, I=c, H=3)
    x, y = (rng.normal(size=[s[k] for k in t]) for s, t in zip(sizes, numbers))
    params = {**case, "dimension_numbers": numbers}
    check_grads(lambda a, b: conv_general_dilated(a, b, **params), (x, y), order=2)


def test_two_spatial_axes():
    x, y = rng.normal(size=(2, 5, 4, 3)), rng.normal(size=(3, 2, 3, 2))
    f = lambda a, b: conv_general_dilated(  # noqa: E731
        a, b, (2, 1), "SAME", (1, 2), (1, 2), ("NHWC", "HWIO", "NHWC")
    )
    check_grads(f, (x, y), order=2)
    assert plait.jit(grad(lambda a: f(a, y).sum()))(x).shape == x.shape


def test_no_spatial_axis_and_transposed():
    x, y = rng.normal(size=(2, 3)), rng.normal(size=(4, 3))
    check_grads(lambda a, b: conv_general_dilated(a, b, (), ()), (x, y), order=2)
    x, y = rng.normal(size=(1, 4, 2)), rng.normal(size=(3, 2, 2))
    check_grads(lambda a, b: conv_transpose(a, b, (2,), "SAME"), (x, y), order=2)


def test_complex():
    x = rng.normal(size=(1, 2, 5)) + 1j * rng.normal(size=(1, 2, 5))
    y = rng.normal(size=(2, 2, 2)) + 1j * rng.normal(size=(2, 2, 2))
    check_grads(lambda a, b: conv_general_dilated(a, b, (2,), "SAME"), (x, y), order=2)


def test_a_window_that_never_fits():
    x, y = rng.normal(size=(1, 1, 2)), rng.normal(size=(1, 1, 3))
    f = lambda a, b: conv_general_dilated(a, b, (1,), "VALID").sum()  # noqa: E731
    a, b = grad(f, (0, 1))(x, y)
    np.testing.assert_array_equal(np.asarray(a), np.zeros((1, 1, 2)))
    np.testing.assert_array_equal(np.asarray(b), np.zeros((1, 1, 3)))


def test_dtypes_of_cotangents():
    x, y = np.ones((1, 1, 4), np.float16), np.ones((1, 1, 2), np.float16)
    f = lambda a, b: conv_general_dilated(  # noqa: E731
        a, b, (1,), "SAME", preferred_element_type=np.float32
    ).sum()
    assert [g.dtype for g in grad(f, (0, 1))(x, y)] == [np.float16, np.float16]
