"""Contractions round their operands and add up in float32; nothing else is rounded."""

import numpy as np
import pytest
from plait_precision import mixed_precision

import plait
import plait.numpy as pnp
from plait import lax

RNG = np.random.default_rng(0)
A = RNG.standard_normal((8, 5)).astype(np.float32)
B = RNG.standard_normal((5, 5)).astype(np.float32)
KINDS = {"bfloat16": plait.dtypes.bfloat16, "float16": np.float16}


def rounded(x, kind="bfloat16"):
    return np.asarray(x, np.float32).astype(KINDS[kind]).astype(np.float32)


def dot(x, y, kind="bfloat16"):
    """The product by the policy, in numpy."""
    return rounded(x, kind) @ rounded(y, kind)


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_rounded(kind):
    for f in (lambda x, y: x @ y, plait.jit(lambda x, y: x @ y)):
        got = mixed_precision(f, kind)(A, B)
        assert got.dtype == np.float32
        close(got, dot(A, B, kind))
        assert abs(np.asarray(got) - A @ B).max() > 1e-4  # so the rounding is seen


@pytest.mark.parametrize("kind", KINDS)
def test_convolutions_are_rounded(kind):
    x, k = RNG.standard_normal((1, 1, 9)).astype("f"), RNG.standard_normal((1, 1, 3)).astype("f")
    got = mixed_precision(lambda x, k: lax.conv(x, k, (1,), "VALID"), kind)(x, k)
    close(got[0, 0], np.correlate(rounded(x[0, 0], kind), rounded(k[0, 0], kind), "valid"))


def test_the_rest_is_left_alone():
    f = lambda x: pnp.exp(x).sum() + pnp.tanh(x).mean() + pnp.cumsum(x).max()
    assert np.asarray(mixed_precision(f)(A)) == np.asarray(f(A))
    chol = mixed_precision(pnp.linalg.cholesky)(B @ B.T + np.eye(5, dtype="f"))
    close(chol, np.linalg.cholesky(B @ B.T + np.eye(5, dtype="f")))
    wide = A.astype(np.float64)
    assert np.array_equal(
        mixed_precision(lambda x: x @ x.T)(wide), plait.jit(lambda x: x @ x.T)(wide)
    )
    whole = np.arange(300, 306).reshape(2, 3)  # bfloat16 has no 301
    assert np.array_equal(mixed_precision(lambda x: x @ x.T)(whole), whole @ whole.T)


def test_under_and_over_everything():
    plait.testing.transform_suite(mixed_precision, lambda f: f, [A[0]], at_least=50)
    weights = np.float32([[0.5, 0.25], [1.0, 0.5]])  # exact in sixteen bits, as is what they make
    plait.testing.transform_suite(
        mixed_precision,
        lambda f: f,
        [np.float32([2.0, 4.0])],
        step=lambda x: x @ weights,
        at_least=50,
    )


LAYERS = {  # the same network three deep, by operations that hold programs
    "scan": lambda x, w: lax.scan(lambda c, _: (pnp.tanh(c @ w), None), x, None, length=3)[0],
    "while": lambda x, w: lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, pnp.tanh(s[1] @ w)), (0, x)
    )[1],
    "cond": lambda x, w: lax.fori_loop(
        0, 6, lambda i, c: lax.cond(i % 2 == 0, lambda v: pnp.tanh(v @ w), lambda v: v, c), x
    ),
    "checkpoint": lambda x, w: layer(layer(layer(x, w), w), w),
    "vmap": lambda x, w: plait.vmap(lambda row: layer(layer(layer(row, w), w), w))(x),
}
layer = plait.checkpoint(lambda x, w: pnp.tanh(x @ w))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("compiled", [False, True])
def test_inside_operations_with_programs(name, compiled):
    want = A
    for _ in range(3):
        want = np.tanh(dot(want, B))
    fast = mixed_precision(LAYERS[name])
    got = (plait.jit(fast) if compiled else fast)(A, B)
    np.testing.assert_allclose(got, want, atol=5e-3)  # a tanh may fall to the other side
    assert abs(np.asarray(got) - np.asarray(LAYERS[name](A, B))).max() > 1e-4


def contractions(f, *args):
    """The types of the operands of all contractions of a program."""
    eqns = plait.make_program(f)(*args).eqns
    return [[a.aval.dtype.name for a in e.inputs] for e in eqns if "dot_general" in e.prim.name]


def test_derivatives_inside_are_rounded_too():
    loss = lambda w, x: (x @ w).sum()
    close(mixed_precision(plait.grad(loss))(B, A), dot(A.T, np.ones((8, 5))))
    assert contractions(mixed_precision(plait.grad(loss)), B, A) == [["bfloat16"] * 2] * 2
    np.testing.assert_allclose(
        plait.grad(mixed_precision(loss))(B, A), A.T @ np.ones((8, 5)), rtol=2e-2, atol=2e-2
    )


def test_mapped_and_differentiated_from_outside():
    fast = mixed_precision(lambda x, w: x @ w)
    close(plait.vmap(fast, in_axes=(0, None))(A, B), dot(A, B))
    t = plait.jvp(lambda x: fast(x, B), (A,), (A,))[1]
    close(t, dot(A, B))


def test_on_eight_devices(rows):
    mesh, cut = rows
    run = lambda f: plait.shard_map(f, mesh=mesh, in_specs=(cut, plait.P()), out_specs=cut)
    close(run(mixed_precision(lambda x, w: x @ w))(A, B), dot(A, B))
    close(mixed_precision(run(lambda x, w: x @ w))(A, B), dot(A, B))


def test_exported():
    file = plait.export.export(plait.jit(mixed_precision(lambda x, w: x @ w)))(A, B).serialize()
    close(plait.export.deserialize(file).call(A, B), dot(A, B))


def test_wrong_input(told):
    told(lambda: mixed_precision(lambda x: x, "float32"), "float32", "bfloat16, float16")
    told(lambda: mixed_precision(lambda x: x @ x)(A), "f32[8,5]")


def test_custom_rules_are_kept():
    """The rule of a straight-through estimator, and a rule for mapping."""
    rounded = plait.custom_vjp(lambda x: pnp.round(x))
    rounded.defvjp(lambda x: (rounded(x), None), lambda _, ct: (ct,))
    loss = lambda f: lambda x: (f(x) * 2.0).sum()
    for around in (lambda f: f, plait.jit, plait.checkpoint):
        grad = plait.grad(loss(mixed_precision(around(rounded))))
        assert np.array_equal(grad(A), np.full_like(A, 2))
        assert np.array_equal(plait.jit(grad)(A), np.full_like(A, 2))
    doubled = plait.custom_vmap(lambda x: x * 2.0)
    doubled.def_vmap(lambda size, stacked, x: (x * 5.0, True))
    assert np.array_equal(plait.vmap(mixed_precision(doubled))(A), 5 * A)
