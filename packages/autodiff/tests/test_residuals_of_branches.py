"""What branches keep for the way back: no operands, and one place for what only one of them needs.

Memory is told by the compiler (`temp_size_in_bytes`), values by numpy: a loop over the turns, and
finite differences in double precision.

Invariant: sizes are bounds on bytes of temporaries, with names for what must be there.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait_autodiff import checkpoint, grad, linearize, vjp
from plait_autodiff.split import pooled, split_program

TURNS, N = 200, 32
R = np.random.RandomState(0)
W = R.randn(N, N) / 8
X = R.randn(N)
KS = np.arange(TURNS) % 3 - 1
ROW = N * 8
"""Bytes of a vector in double precision."""

BRANCHES = {
    "tanh, sine": (lambda w, c: pnp.tanh(w @ c), lambda w, c: pnp.sin(w @ c) * c),
    "one is the identity": (lambda w, c: c, lambda w, c: pnp.tanh(w @ c)),
    "one is constant": (lambda w, c: pnp.ones(N, c.dtype), lambda w, c: pnp.tanh(w @ c)),
    "products of operands": (lambda w, c: w[0] * c, lambda w, c: w[1] * c * 0.5),
    "three": (
        lambda w, c: pnp.tanh(w @ c),
        lambda w, c: pnp.cos(w @ c),
        lambda w, c: pnp.exp(-(c * c)) + w[0],
    ),
    "other types": (
        lambda w, c: pnp.sin(w @ c).astype("float32").astype("float64") * c,
        lambda w, c: pnp.sin((w @ c).astype("float32")).astype("float64"),
    ),
}

WRAPPED = {
    "plain": lambda f: f,
    "checkpoint": checkpoint,
    "dots": lambda f: checkpoint(f, policy=plait.checkpoint_policies.dots_saveable),
    "everything": lambda f: checkpoint(f, policy=plait.checkpoint_policies.everything_saveable),
}


def loss(branches, wrap):
    def run(w, x, ks):
        turn = wrap(lambda w, c, k: lax.switch(k % len(branches), branches, w, c))
        return (lax.scan(lambda c, k: (turn(w, c, k), None), x, ks)[0] ** 2).sum()

    return run


NUMPY = {
    "tanh, sine": (lambda w, c: np.tanh(w @ c), lambda w, c: np.sin(w @ c) * c),
    "one is the identity": (lambda w, c: c, lambda w, c: np.tanh(w @ c)),
    "one is constant": (lambda w, c: np.ones(N), lambda w, c: np.tanh(w @ c)),
    "products of operands": (lambda w, c: w[0] * c, lambda w, c: w[1] * c * 0.5),
    "three": (
        lambda w, c: np.tanh(w @ c),
        lambda w, c: np.cos(w @ c),
        lambda w, c: np.exp(-(c * c)) + w[0],
    ),
}


def in_numpy(branches, w, x, ks):
    for k in ks:
        x = branches[k % len(branches)](w, x)
    return (x**2).sum()


@pytest.mark.sampled(16)
@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("name", NUMPY)
def test_derivatives(name, wrapped):
    """Of a few turns, against numpy's differences along random directions."""
    ks = KS[:7]
    f = loss(BRANCHES[name], WRAPPED[wrapped])
    for g in (grad(f, argnums=(0, 1)), plait.jit(grad(f, argnums=(0, 1)))):
        dw, dx = map(np.asarray, g(pnp.asarray(W), pnp.asarray(X), pnp.asarray(ks)))
        for seed in range(3):
            r = np.random.RandomState(seed)
            u, v, h = r.randn(N, N), r.randn(N), 1e-6
            ends = [in_numpy(NUMPY[name], W + s * h * u, X + s * h * v, ks) for s in (1, -1)]
            want = (ends[0] - ends[1]) / (2 * h)
            np.testing.assert_allclose((dw * u).sum() + (dx * v).sum(), want, rtol=1e-5, atol=1e-7)


def temporaries(name, wrapped):
    g = plait.jit(grad(loss(BRANCHES[name], WRAPPED[wrapped]), argnums=(0, 1)))
    args = pnp.asarray(W), pnp.asarray(X), pnp.asarray(KS)
    return g.lower(*args).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.sampled(16)
@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("name", BRANCHES)
def test_memory_of_a_scanned_branch(name, wrapped):
    """No copy of the matrix for each turn, and at most four vectors (the carry among them)."""
    assert temporaries(name, wrapped) < 4 * TURNS * ROW + 10 * W.nbytes < TURNS * W.nbytes / 4


def test_memory_does_not_grow_with_branches():
    """Of each turn one branch's residuals are kept, however many branches there are."""

    def memory(n):
        branches = [lambda w, c, k=k: pnp.tanh(w @ c * k) for k in range(1, n + 1)]
        g = plait.jit(grad(loss(branches, lambda f: f)))
        args = pnp.asarray(W), pnp.asarray(X), pnp.asarray(KS)
        return g.lower(*args).compile().memory_analysis().temp_size_in_bytes

    assert memory(8) - memory(2) < TURNS * ROW


def halves(*branches):
    avals = [plait.ShapeDtypeStruct((N, N), np.float64), plait.ShapeDtypeStruct((N,), np.float64)]
    out = []
    for f in branches:
        h = split_program(plait.make_program(f)(*avals), (False, True), (True,))
        out.append((h.known, h.unknown, h.residuals))
    return out


def test_places_are_shared_by_type_and_operands_forwarded():
    """w itself is forwarded; of two vectors in one branch each has a place, which others share."""
    made = pooled(
        halves(
            lambda w, t: w @ t * pnp.sin(w[0]),
            lambda w, t: t * pnp.cos(w[1]) + t.sum() * pnp.exp(w[2]),
            lambda w, t: t * 2.0,
        ),
        0,
    )
    assert made.forwarded == (0,)
    for p in made.firsts:
        assert [a.shape for a in p.out_avals] == [(N,), (N,)]
    for p in made.seconds:
        assert [a.shape for a in p.in_avals] == [(N,), (N,), (N, N), (N,)]


def test_the_linear_function_of_branches():
    """Residuals are used after the branches ran, eagerly and more than once."""
    for k in (0, 1):
        f = lambda w, c, k=k: lax.switch(k_, BRANCHES["tanh, sine"], w, c)  # noqa: E731
        k_ = pnp.asarray(k)
        y, df = linearize(f, pnp.asarray(W), pnp.asarray(X))
        u, v, h = R.randn(N, N), R.randn(N), 1e-6
        g = NUMPY["tanh, sine"][k]
        np.testing.assert_allclose(y, g(W, X), rtol=1e-12)
        want = (g(W + h * u, X + h * v) - g(W - h * u, X - h * v)) / (2 * h)
        for _ in range(2):
            np.testing.assert_allclose(df(u, v), want, rtol=1e-5, atol=1e-8)
        back = vjp(f, pnp.asarray(W), pnp.asarray(X))[1]
        ct = R.randn(N)
        for _ in range(2):
            a, b = back(pnp.asarray(ct))
            np.testing.assert_allclose(
                (np.asarray(a) * u).sum() + b @ v, want @ ct, rtol=1e-5, atol=1e-8
            )


def test_second_derivatives():
    """Forwarded operands have derivatives as others have."""
    f = lambda c, k: lax.cond(k > 0, lambda c: pnp.sin(c) * c, lambda c: c**3, c)  # noqa: E731
    x, k = np.linspace(0.1, 1, 6), np.array([1, 0, 1, 0, 0, 1])
    first = np.where(k > 0, np.cos(x) * x + np.sin(x), 3 * x**2)
    second = np.where(k > 0, 2 * np.cos(x) - x * np.sin(x), 6 * x)
    d, dd = grad(f), grad(grad(f))
    for i in range(6):
        xi, ki = pnp.asarray(x[i]), pnp.asarray(k[i])
        np.testing.assert_allclose(d(xi, ki), first[i], rtol=1e-10)
        np.testing.assert_allclose(plait.jit(dd)(xi, ki), second[i], rtol=1e-10)
        again = grad(grad(checkpoint(f)))
        np.testing.assert_allclose(again(xi, ki), second[i], rtol=1e-10)
