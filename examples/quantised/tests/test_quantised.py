"""Weights in eight bits act as the floats that they stand for."""

import numpy as np
import pytest
from plait_quantised import Quantised, matmul, quantise

import plait
import plait.numpy as pnp
from plait import lax

RNG = np.random.default_rng(0)
W = RNG.standard_normal((4, 6)).astype(np.float32)
X = RNG.standard_normal((8, 4)).astype(np.float32)
Q = quantise(W)
FLOATS = np.asarray(Q.values, np.float32) * np.asarray(Q.scales)
CUBE = [quantise(w) for w in RNG.standard_normal((3, 4, 4)).astype(np.float32)]
STACK = plait.tree.map(lambda *leaves: pnp.stack(leaves), *CUBE)


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-5)


def test_the_nearest():
    assert Q.values.dtype == np.int8 and Q.shape == W.shape
    close(Q.scales, abs(W).max(0) / 127)
    assert (abs(FLOATS - W) <= np.asarray(Q.scales) * 0.5001).all()
    close(Q.floats(), FLOATS)
    assert not np.asarray(quantise(np.zeros((3, 2))).floats()).any()


def test_the_primitive():
    def reference(x, values, scales):
        return x @ (values * scales).astype(x.dtype)

    sample = X, np.asarray(Q.values), np.asarray(Q.scales)
    report = plait.testing.conformance(matmul, [sample], reference, at_least=30)
    assert {"value", "jit", "text", "law jvp", "law batching", "law jet"} <= report.checks.keys()


def turned(x, q):
    turn = lambda s: (s[0] + 1, s[1] @ q @ q.floats().T)
    return lax.while_loop(lambda s: s[0] < 2, turn, (0, x))[1]


PROGRAMS = {  # name: (f of x and weights, the same in numpy)
    "eager": (lambda x, q: x @ q, lambda x: x @ FLOATS),
    "jit": (plait.jit(lambda x, q: x @ q), lambda x: x @ FLOATS),
    "closed over": (lambda x, q: plait.jit(lambda x: x @ q)(x), lambda x: x @ FLOATS),
    "vmap": (plait.vmap(lambda x, q: x @ q, in_axes=(0, None)), lambda x: x @ FLOATS),
    "grad": (plait.grad(lambda x, q: ((x @ q) ** 2).sum()), lambda x: 2 * x @ FLOATS @ FLOATS.T),
    "hvp": (
        lambda x, q: plait.jvp(plait.grad(lambda v: ((v @ q) ** 2).sum()), (x,), (x,))[1],
        lambda x: 2 * x @ FLOATS @ FLOATS.T,
    ),
    "cond": (
        lambda x, q: lax.cond(x[0, 0] > 9, lambda: x @ q * 0, lambda: x @ q), lambda x: x @ FLOATS,
    ),
    "checkpoint": (
        plait.grad(plait.checkpoint(lambda x, q: (x @ q).sum())), lambda x: 0 * x + FLOATS.sum(1),
    ),
    "while": (lambda x, q: turned(x, q), lambda x: x @ FLOATS @ FLOATS.T @ FLOATS @ FLOATS.T),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("compiled", [False, True])
def test_in_programs(name, compiled):
    f, reference = PROGRAMS[name]
    close((plait.jit(f) if compiled else f)(X, Q), reference(X))


def test_a_stack_of_layers():
    want = X
    for q in CUBE:
        want = want @ (np.asarray(q.values, np.float32) * np.asarray(q.scales))
    through = lambda x, stack: lax.scan(lambda c, q: (c @ q, None), x, stack)[0]
    close(through(X, STACK), want)
    close(plait.jit(through)(X, STACK), want)
    product = np.linalg.multi_dot([np.asarray(q.floats()) for q in CUBE])
    close(plait.grad(lambda x: through(x, STACK).sum())(X), 0 * X + product.sum(1))
    each = plait.vmap(lambda x, q: x @ q, in_axes=(None, 0))(X, STACK)
    close(each, np.stack([X @ np.asarray(q.floats()) for q in CUBE]))
    close(STACK.floats(), np.stack([np.asarray(q.floats()) for q in CUBE]))


def test_made_inside_programs():
    close(plait.jit(lambda w, x: x @ quantise(w))(W, X), X @ FLOATS)
    made = plait.vmap(quantise)(np.stack([W, 2 * W]))
    close(made.floats(), np.stack([FLOATS, 2 * FLOATS]))


def test_on_eight_devices(rows):
    mesh, cut = rows
    run = plait.shard_map(lambda x, q: x @ q, mesh=mesh, in_specs=(cut, plait.P()), out_specs=cut)
    close(run(X, Q), X @ FLOATS)
    close(plait.grad(lambda x: run(x, Q).sum())(X), 0 * X + FLOATS.sum(1))


def test_exported():
    f = plait.jit(lambda x, values, scales: x @ Quantised(values, scales))
    file = plait.export.export(f)(X, Q.values, Q.scales).serialize()
    close(plait.export.deserialize(file).call(X, Q.values, Q.scales), X @ FLOATS)


def test_wrong_input(told):
    told(lambda: X.astype(np.int32) @ Q, "takes floats, int8 and floats", "i32[8,4]")
    told(lambda: X[:, :3] @ Q, "f32[8,3]", "do not meet")
    told(lambda: X @ STACK, "do not meet")
    told(lambda: quantise(np.arange(6).reshape(2, 3)), "matrices of floats")
    told(lambda: quantise(X[0]), "f32[4]")
    told(lambda: plait.grad(lambda q: (X @ q).sum())(Q), "i8[4,6]", "allow_int")
