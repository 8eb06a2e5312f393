"""Windows of `reduce_window`, gathers, scatters and convolutions: paddings and roles of axes."""

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import TypeRule


def pooled(x, window, stride, pads, base):
    """Sum windows of a vector by a loop."""
    wide = np.zeros((len(x) - 1) * base + 1, x.dtype)
    wide[::base] = x
    wide = np.concatenate([np.zeros(pads[0], x.dtype), wide, np.zeros(pads[1], x.dtype)])
    return [wide[i : i + window].sum() for i in range(0, len(wide) - window + 1, stride)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("padding", ["VALID", "SAME", "SAME_LOWER"])
@pytest.mark.parametrize("base", [1, 2, 3])
@pytest.mark.parametrize("count", [4, 5])
@pytest.mark.parametrize(("window", "stride"), [(2, 1), (2, 2), (3, 2), (1, 2)])
def test_named_paddings_count_elements_before_dilation(padding, base, count, window, stride):
    x = np.arange(1.0, count + 1, dtype=np.float32)
    (pads,) = lax.padtype_to_pads((count,), (window,), (stride,), padding)
    want = pooled(x, window, stride, pads, base)
    got = lax.reduce_window(x, 0.0, lax.add, (window,), (stride,), padding, (base,))
    np.testing.assert_allclose(got, want)
    form = (count,), (window,), (stride,), padding, (base,)
    assert lax.reduce_window_shape_tuple(*form) == (len(want),)


def numbers(kind, dropped, batching=(), of_indices=()):
    return kind((), dropped, (0,), batching, of_indices)


ABSENT = [(1, 5), (), ()], [(0, -1), (), ()], [(0,), (7,), (0,)], [(0,), (1,), (1,)]


@pytest.mark.parametrize("roles", ABSENT)
def test_axes_that_an_operand_lacks_are_refused(roles):
    x, at = np.ones((4, 3), np.float32), np.zeros((3, 1), np.int32)
    with pytest.raises(TypeRule, match="axes"):
        lax.gather(x, at, numbers(lax.GatherDimensionNumbers, *roles), (1, 1))
    with pytest.raises(TypeRule, match="axes"):
        lax.scatter_add(x, at, np.ones(3, np.float32), numbers(lax.ScatterDimensionNumbers, *roles))


@pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER", "VALID"])
def test_a_stride_of_zero_is_refused(padding):
    x, k = np.ones((1, 1, 4), np.float32), np.ones((1, 1, 2), np.float32)
    with pytest.raises(TypeRule, match="positive"):
        lax.conv_general_dilated(x, k, (0,), padding)


def test_exp2_of_a_complex_number():
    for x in (1j, 0.5 + 2j):
        np.testing.assert_allclose(lax.exp2(x), 2.0**x, rtol=1e-6)
        np.testing.assert_allclose(plait.jit(lax.exp2)(x), 2.0**x, rtol=1e-6)
