"""Derivatives of contractions against finite differences and einsum.

Invariant: both operands, every pattern of contracted, shared and own axes, second order too.
"""

import ml_dtypes
import numpy as np
import pytest

import plait
from plait.lax import dot_general
from plait.numpy import matmul, tensordot
from plait_autodiff import check_grads, grad, linear_transpose

rng = np.random.default_rng(0)
PATTERNS = [
    ("ab,bc->ac", ((1,), (0,)), ((), ())),
    ("abc,dcb->ad", ((1, 2), (2, 1)), ((), ())),
    ("abc,cdb->bad", ((2,), (0,)), ((1,), (2,))),
    ("abcd,dceb->bae", ((2, 3), (1, 0)), ((1,), (3,))),
    ("abc,bca->abc", ((), ()), ((0, 1, 2), (2, 0, 1))),
    ("a,b->ab", ((), ()), ((), ())),
    ("abc,cba->b", ((2, 0), (0, 2)), ((1,), (1,))),
]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("spec, contract, shared", PATTERNS)
def test_every_pattern(spec, contract, shared):
    sizes = dict(zip("abcde", (2, 3, 4, 2, 3)))
    left, right = spec.split("->")[0].split(",")
    x, y = (rng.normal(size=[sizes[c] for c in t]) for t in (left, right))
    f = lambda x, y: dot_general(x, y, (contract, shared))  # noqa: E731
    check_grads(f, (x, y), order=2)
    ct = rng.normal(size=np.einsum(spec, x, y).shape)
    by_x = grad(lambda v: (f(v, y) * ct).sum())(x)
    want = np.einsum(f"{spec.split('->')[1]},{right},{left}->{left}", ct, y, np.ones_like(x))
    np.testing.assert_allclose(np.asarray(by_x), want, rtol=1e-10)


@pytest.mark.parametrize("x, w", [((4, 3), (3, 5)), ((2, 4, 3), (3, 5)), ((2, 4, 3), (2, 3, 5))])
@pytest.mark.parametrize("by", [0, 1])
def test_a_cotangent_of_a_product_is_one_operation(x, w, by):
    """Its factors are in the order whose result has the axes of the operand: nothing is transposed
    after it."""
    program = plait.make_program(grad(lambda *xs: matmul(*xs).sum(), by))(np.ones(x), np.ones(w))
    names = [e.prim.name for e in program.eqns]
    assert "core.transpose" not in names and names.count("core.dot_general") == 2


def test_matmul_and_complex():
    x, y = rng.normal(size=(2, 1, 2, 3)), rng.normal(size=(4, 3, 2))
    check_grads(matmul, (x, y), order=2)
    z = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    check_grads(lambda a: tensordot(a, a, ((1,), (1,))), (z,), order=2)


def test_dtypes_of_cotangents():
    x, y = np.ones((2, 3), ml_dtypes.bfloat16), np.ones((3, 4), ml_dtypes.bfloat16)
    f = lambda a, b: matmul(a, b, preferred_element_type=np.float32).sum()  # noqa: E731
    a, b = grad(f, (0, 1))(x, y)
    assert a.dtype == b.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(a).astype(float), np.full((2, 3), 4.0))
    np.testing.assert_array_equal(np.asarray(b).astype(float), np.full((3, 4), 2.0))
    g = grad(lambda a: matmul(a, np.ones(3), preferred_element_type=np.float32).sum())(
        np.ones((2, 3))
    )
    assert g.dtype == np.float64


def test_integers_have_no_derivative():
    x = np.arange(3)
    g = grad(lambda v: (matmul(x, x) * v).sum())(np.ones(2))
    np.testing.assert_array_equal(np.asarray(g), [5.0, 5.0])


def test_linear_transpose():
    y = rng.normal(size=(3, 4))
    t = linear_transpose(lambda a: matmul(a, y), np.ones((2, 3)))
    ct = rng.normal(size=(2, 4))
    np.testing.assert_allclose(np.asarray(t(ct)[0]), ct @ y.T, rtol=1e-12)


def test_precision_is_kept():
    p = plait.make_jaxpr(grad(lambda v: matmul(v, v, precision="highest").sum()))(np.ones((2, 2)))
    said = [e.params["precision"] for e in p.eqns if e.prim.name == "core.dot_general"]
    assert len(said) >= 2 and set(said) == {"highest"}


# ---- the setting of strict promotion is about users' operands --------------------------------


def _conv(x, w):
    how = dict(window_strides=(1,), padding="VALID", preferred_element_type=np.float32)
    return plait.lax.conv_general_dilated(x, w, dimension_numbers=("NWC", "WIO", "NWC"), **how)


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (lambda x, y: plait.lax.dot(x, y, preferred_element_type=np.float32), ((2, 3), (3, 2))),
        (lambda x, y: plait.numpy.matmul(x, y, preferred_element_type=np.float32), ((2, 3), (3,))),
        (_conv, ((1, 8, 2), (3, 2, 4))),
    ],
    ids=["dot", "matmul", "conv"],
)
def test_strict_promotion_and_preferred_dtypes(f, shapes):
    """Cotangents are wider than operands: that is nothing that a user wrote."""
    rng = np.random.default_rng(0)
    wide = [rng.integers(-3, 4, s).astype(np.float32) for s in shapes]
    narrow = [plait.numpy.asarray(x, "bfloat16") for x in wide]
    total = lambda *xs: f(*xs).sum()  # noqa: E731
    want = plait.grad(total, argnums=(0, 1))(*wide)
    with plait.numpy_dtype_promotion("strict"):
        got = plait.grad(total, argnums=(0, 1))(*narrow)
        plait.jvp(f, tuple(narrow), tuple(narrow))
    for g, w in zip(got, want):
        assert g.dtype == "bfloat16"
        np.testing.assert_allclose(np.asarray(g, np.float32), np.asarray(w), rtol=1e-2)
