"""Limits of the forms for CPUs: set by the user, read when a form is chosen.

Invariant: results with any limits are those of numpy.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import PlaitError


def slices(x):
    """Return how many slices the sum over the first axis is written with."""
    return plait.jit(lambda x: x.sum(0)).lower(x).as_text().count("stablehlo.slice")


def test_limits_choose_the_form():
    x = pnp.ones((4, 64))
    assert slices(x) == 4
    with plait.config(cpu_limits="reduction.longest=3"):
        assert slices(x) == 0
    with plait.config(cpu_limits={"reduction.longest": 4, "reduction.shortest_row": 65}):
        assert slices(x) == 0
    assert slices(x) == 4


def test_compiled_functions_notice_other_limits():
    x = np.arange(20 * 40, dtype=np.float32).reshape(20, 40)
    f = plait.jit(lambda x: pnp.sum(x * 2, 0))
    texts = []
    for longest in (1, 20, 1):
        with plait.config(cpu_limits={"reduction.longest": longest}):
            np.testing.assert_array_equal(f(x), 2 * x.sum(0))
            texts.append(f.lower(x).as_text())
    assert texts[0] == texts[2] != texts[1]


EXTREMES = [
    {"contraction.smallest_stacked": 1, "contraction.fewest_integers": 0},
    {"contraction.smallest_stacked": 1, "contraction.wider": 1}, {"contraction.wider": 10**6},
    {"convolution.most_terms": 0, "convolution.most_sums": 0, "convolution.most_groups": 0},
    {"convolution.most_terms": 10**6, "convolution.most_sums": 10**6},
    {"convolution.smallest_result": 0, "convolution.most_groups": 10**6},
    {"reduction.longest": 0}, {"reduction.longest": 10**6, "reduction.shortest_row": 0},
    {"top_k.fewest": 0, "top_k.least_left_out": 1, "top_k.block": 3},
    {"sort.fewest": 0}, {"sort.fewest": 10**6},
]  # fmt: skip


@pytest.mark.parametrize("limits", EXTREMES, ids=str)
def test_results_are_the_same_with_extreme_limits(limits):
    r = np.random.default_rng(0)
    a, b = (r.normal(size=(3, 5, 5)).astype(np.float32) for _ in range(2))
    rows = r.integers(-9, 9, size=(70, 33)).astype(np.int32)
    image = r.normal(size=(2, 9, 9, 4)).astype(np.float32)
    kernel = r.normal(size=(3, 3, 1, 4)).astype(np.float32)

    def convolve(x, k):
        return plait.lax.conv_general_dilated(
            x, k, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=4
        )

    patches = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (1, 2))
    with plait.config(cpu_limits=limits):
        got = plait.jit(lambda a, b: plait.lax.batch_matmul(a.transpose(0, 2, 1), b))(a, b)
        np.testing.assert_allclose(got, a.transpose(0, 2, 1) @ b, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(plait.jit(lambda a: a.sum(1))(a), a.sum(1), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(plait.jit(lambda x: pnp.sort(x, 1))(rows), np.sort(rows, 1))
        middle = plait.jit(lambda x: pnp.quantile(x, np.array([0.1, 0.5, 0.9]), 1))(rows)
        np.testing.assert_allclose(middle, np.quantile(rows, [0.1, 0.5, 0.9], 1), rtol=1e-6)
        values, at = plait.jit(lambda x: plait.lax.top_k(x, 5))(rows)
        np.testing.assert_array_equal(values, -np.sort(-rows, 1)[:, :5])
        np.testing.assert_array_equal(at, np.argsort(-rows, 1, kind="stable")[:, :5])
        want = np.einsum("nhwcij,ijc->nhwc", patches, kernel[:, :, 0])
        np.testing.assert_allclose(plait.jit(convolve)(image, kernel), want, rtol=1e-4, atol=1e-4)


def test_an_unknown_limit_is_refused_with_those_that_there_are():
    with plait.config(cpu_limits="reduction.longset=4"):
        with pytest.raises(PlaitError, match=r"(?s)cpu_limits.*longset.*reduction\.longest"):
            slices(pnp.ones((4, 64)))


def test_a_number_that_a_limit_cannot_be_is_refused():
    with plait.config(cpu_limits="top_k.block=0"):
        with pytest.raises(PlaitError, match=r"(?s)top_k\.block.* 0.*at least 1"):
            plait.jit(lambda x: plait.lax.top_k(x, 5)).lower(pnp.ones(4096)).as_text()


WRONG = ["reduction.longest", "longest=4", "reduction.longest=x", [3], {"reduction.longest": -1},
         "reduction.longest=1=2"]  # fmt: skip


@pytest.mark.parametrize("text", WRONG, ids=str)
def test_a_setting_that_names_no_numbers_is_refused(text):
    with pytest.raises(PlaitError, match=r"cpu_limits.*cannot be"):
        with plait.config(cpu_limits=text):
            pass
