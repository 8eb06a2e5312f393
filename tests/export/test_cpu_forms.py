"""Artifacts whose operations have the forms for CPUs, because the export asked for them.

The oracle is numpy, and the artifact without forms.
"""

import math
import re

import numpy as np
import pytest

import plait
from plait import export, lax
from plait.errors import PlaitError

R = np.random.default_rng(0)
IMAGE, KERNEL = (R.normal(size=s).astype(np.float32) for s in ((2, 12, 12, 8), (3, 3, 1, 8)))
HEADS = R.normal(size=(1, 512, 2, 8)).astype(np.float32)


def depthwise(x, k):
    return lax.conv_general_dilated(
        x, k, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=8
    )


def attention(x):
    return plait.nn.dot_product_attention(x, x, x, is_causal=True)


def linear(x, w):
    return (x @ w * w.sum(0)).sum()


CASES = {
    "convolution": (depthwise, (IMAGE, KERNEL)),
    "attention": (attention, (HEADS,)),
    "gradient": (plait.grad(lambda x: (attention(x) ** 2).sum()), (HEADS,)),
    "weights": (plait.grad(linear, 1), (IMAGE.reshape(2, 144, 8), KERNEL[0, :, 0].T)),
    "greatest": (lambda x: lax.top_k(x.reshape(2, -1), 3), (IMAGE,)),
}


def largest(text):
    shapes = re.findall(r"tensor<((?:\d+x)+)[a-z]", text)
    return max(math.prod(map(int, s[:-1].split("x"))) for s in shapes)


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    f, xs = CASES[name]
    plain, formed = (export.export(f, cpu_forms=asked)(*xs) for asked in (False, True))
    assert plain.mlir_module() != formed.mlir_module()
    kept = export.deserialize(formed.serialize(vjp_order=0))
    wants = plait.tree.leaves(plain.call(*xs))
    for run in (formed.call, kept.call, plait.jit(kept.call)):
        for got, want in zip(plait.tree.leaves(run(*xs)), wants):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_the_forms_are_those_of_compiled_functions():
    f, xs = CASES["convolution"]
    assert "stablehlo.convolution" in export.export(f)(*xs).mlir_module()
    formed = export.export(f, cpu_forms=True)(*xs)
    assert "stablehlo.convolution" not in formed.mlir_module()
    patches = np.lib.stride_tricks.sliding_window_view(IMAGE, (3, 3), (1, 2))
    want = np.einsum("nhwcij,ijc->nhwc", patches, KERNEL[:, :, 0])
    np.testing.assert_allclose(formed.call(*xs), want, rtol=1e-4, atol=1e-4)
    f, xs = CASES["attention"]
    pairs = 2 * 512 * 512
    assert largest(export.export(f)(*xs).mlir_module()) >= pairs
    assert largest(export.export(f, cpu_forms=True)(*xs).mlir_module()) < pairs


@pytest.mark.parametrize("name", ["convolution", "attention"])
def test_derivatives(name):
    f, xs = CASES[name]
    made = export.deserialize(export.export(f, cpu_forms=True)(*xs).serialize(vjp_order=1))
    loss = lambda f: lambda *xs: (f(*xs) ** 2).sum()  # noqa: E731
    for got, want in zip(
        plait.grad(loss(made.call), tuple(range(len(xs))))(*xs),
        plait.grad(loss(f), tuple(range(len(xs))))(*xs),
    ):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


def test_symbolic_sizes():
    (x,) = export.symbolic_args_specs((HEADS,), "b, 512, 2, 8")
    made = export.export(attention, cpu_forms=True)(x)
    for n in (1, 3):
        xs = np.concatenate([HEADS] * n)
        np.testing.assert_allclose(made.call(xs), attention(xs), rtol=1e-4, atol=1e-5)
    image, kernel = export.symbolic_args_specs((IMAGE, KERNEL), ("b, 12, 12, 8", "3, 3, 1, 8"))
    made = export.export(depthwise, cpu_forms=True)(image, kernel)
    np.testing.assert_allclose(
        made.call(IMAGE, KERNEL), depthwise(IMAGE, KERNEL), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cpu_forms": True, "platforms": ["cuda"]}, "the export is for cuda"),
        ({"cpu_forms": True, "platforms": ["cpu", "tpu"]}, "the export is for cpu, tpu"),
        ({"cpu_forms": "yes"}, "cpu_forms is 'yes'"),
    ],
)
def test_what_is_refused(options, said):
    with pytest.raises(PlaitError, match=said) as e:
        export.export(attention, **options)(HEADS)
    assert __file__ in e.value.where and e.value.fix
