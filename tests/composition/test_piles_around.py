"""What is around maps over piles, and what is inside of them: other transformations, control flow,
custom rules, named axes, random numbers, piles again.

Invariant: the other side is a loop over examples in Python.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax, nn, vmap
from plait import pile_axis as ragged
from plait.errors import MissingRule, ShapeError

RNG = np.random.default_rng(0)
X = [pnp.asarray(RNG.standard_normal((n, 4))) for n in (3, 0, 5, 1)]
P = plait.Pile.from_list(X)
W = pnp.asarray(RNG.standard_normal((4, 4)))
WS = pnp.asarray(RNG.standard_normal((3, 4, 4)))
KEYS = plait.random.split(plait.random.key(0), 4)


def f(x, w):
    return pnp.tanh(x @ w).sum(0)


def over(w, p=P):
    return vmap(f, (ragged, None))(p, w)


def times(p, w):
    return vmap(pnp.matmul, (ragged, None), ragged)(p, w)


def positive(x):
    return x @ x.T + pnp.eye(x.shape[0])


def padded(x, n=5):
    return np.pad(np.asarray(x), ((0, n - len(x)), (0, 0)))


def agree(got, want):
    got = got.to_list() if isinstance(got, plait.Pile) else list(np.asarray(got))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert np.shape(g) == np.shape(w)
        np.testing.assert_allclose(g, np.asarray(w), 1e-8, 1e-8)


@plait.custom_jvp
def doubled(x):
    return pnp.sin(x)


doubled.defjvp(lambda xs, ts: (doubled(xs[0]), 2 * pnp.cos(xs[0]) * ts[0]))


@plait.custom_vjp
def tripled(x):
    return pnp.sin(x).sum(0)


tripled.defvjp(lambda x: (tripled(x), x), lambda x, ct: (3 * pnp.cos(x) * ct,))

GROUPS = [[3, 1], [0], [], [2, 2, 1]]
ROWS = [RNG.standard_normal((sum(g), 2)) for g in GROUPS]


def of_groups(rows, lengths):
    """A pile in an example."""
    inner = plait.Pile(rows, lengths)
    return vmap(lambda x: pnp.sin(x).sum(0) + x.shape[0], ragged)(inner)


def by_groups(rows, lengths):
    cuts = np.split(rows, np.cumsum(lengths)[:-1]) if len(lengths) else []
    return np.stack([np.sin(x).sum(0) + len(x) for x in cuts]) if cuts else np.zeros((0, 2))


def of_lengths(rows, lengths):
    return vmap(lambda x: (x**2).sum(0), ragged)(plait.Pile.from_padded(rows, lengths))


STACK = pnp.stack([P.to_padded(), 2 * P.to_padded()])
LENGTHS = pnp.asarray([[3, 0, 5, 1], [1, 2, 0, 5]])


def each_length(rows, lengths):
    return [[(x[:n] ** 2).sum(0) for x, n in zip(xs, ns)] for xs, ns in zip(rows, lengths)]


def curved(x):
    return (pnp.sin(x).sum(0) ** 2).sum()


AROUND = {
    "vmap": (lambda: vmap(over)(WS), lambda: [[f(x, w) for x in X] for w in WS]),
    "vmap of ragged results": (
        lambda: vmap(lambda w: vmap(pnp.matmul, (ragged, None), ragged)(P, w).to_padded())(WS),
        lambda: [[padded(x @ w) for x in X] for w in WS],
    ),
    "vmap of tiles": (
        lambda: vmap(
            lambda w: vmap(lambda x: nn.softmax(x @ w @ x.T) @ x, ragged, ragged)(P).to_padded()
        )(WS),
        lambda: [[padded(nn.softmax(x @ w @ x.T) @ x) for x in X] for w in WS],
    ),
    "vmap of lengths": (
        lambda: vmap(of_lengths)(STACK, LENGTHS), lambda: each_length(STACK, np.asarray(LENGTHS))
    ),
    "gradient of vmap of lengths": (
        lambda: plait.grad(lambda s: (vmap(of_lengths)(s, LENGTHS) ** 2).sum())(STACK),
        lambda: plait.grad(
            lambda s: sum((v**2).sum() for vs in each_length(s, np.asarray(LENGTHS)) for v in vs)
        )(STACK),
    ),
    "piles in piles": (
        lambda: vmap(of_groups, (ragged, ragged), ragged)(
            plait.Pile.from_list(ROWS),
            plait.Pile.from_list([np.asarray(g, np.int32) for g in GROUPS]),
        ),
        lambda: [by_groups(r, g) for r, g in zip(ROWS, GROUPS)],
    ),
    "jvp": (
        lambda: plait.jvp(over, (W,), (W,))[1],
        lambda: [plait.jvp(lambda w: f(x, w), (W,), (W,))[1] for x in X],  # noqa: B023
    ),
    "jacfwd": (lambda: plait.jacfwd(over)(W), lambda: [plait.jacfwd(f, 1)(x, W) for x in X]),
    "jacrev": (lambda: plait.jacrev(over)(W), lambda: [plait.jacrev(f, 1)(x, W) for x in X]),
    "hessian inside": (
        lambda: vmap(plait.hessian(curved), ragged, ragged)(P),
        lambda: [plait.hessian(curved)(x) for x in X],
    ),
    "scan": (
        lambda: lax.scan(lambda c, w: (c + over(w), over(w)), pnp.zeros((4, 4), W.dtype), WS)[1],
        lambda: [[f(x, w) for x in X] for w in WS],
    ),
    "a pile carried": (
        lambda: lax.scan(lambda q, w: (times(q, w), None), P, WS)[0],
        lambda: [x @ WS[0] @ WS[1] @ WS[2] for x in X],
    ),
    "checkpoint": (
        lambda: plait.grad(plait.checkpoint(lambda w: over(w).sum()))(W),
        lambda: plait.grad(lambda w: sum(f(x, w).sum() for x in X))(W),
    ),
    "jit of a pile": (lambda: plait.jit(lambda p: p)(P), lambda: X),
    "a pile put on a device": (lambda: plait.device_put(P), lambda: X),
    "custom_jvp": (
        lambda: vmap(plait.grad(lambda x: doubled(x).sum()), ragged, ragged)(P),
        lambda: [2 * pnp.cos(x) for x in X],
    ),
    "custom_vjp": (
        lambda: vmap(plait.grad(lambda x: tripled(x).sum()), ragged, ragged)(P),
        lambda: [3 * pnp.cos(x) for x in X],
    ),
    "custom_vjp, shared": (
        lambda: plait.grad(
            lambda w: vmap(lambda x: tripled(x @ w).sum(), ragged)(P).sum()
        )(W),
        lambda: sum(x.T @ (3 * pnp.cos(x @ W)) for x in X),
    ),
    "named axis": (
        lambda: vmap(lambda x: x.sum(0) / lax.psum(x.sum(), "i"), ragged, axis_name="i")(P),
        lambda: [x.sum(0) / sum(y.sum() for y in X) for x in X],
    ),
    "number of the example": (
        lambda: vmap(lambda x: x + lax.axis_index("i"), ragged, ragged, axis_name="i")(P),
        lambda: [x + i for i, x in enumerate(X)],
    ),
    "random": (
        lambda: vmap(lambda x, k: plait.random.normal(k, (2, x.shape[0])), (ragged, 0), ragged)(
            P, KEYS
        ),
        lambda: [plait.random.normal(k, (2, x.shape[0])) for x, k in zip(X, KEYS)],
    ),
    "cholesky": (
        lambda: vmap(lambda x: pnp.linalg.cholesky(positive(x)), ragged, ragged)(P),
        lambda: [np.linalg.cholesky(np.asarray(x @ x.T) + np.eye(len(x))) for x in X],
    ),
    "solve": (
        lambda: vmap(
            lambda x: pnp.linalg.solve(x @ x.T + pnp.eye(x.shape[0]), x), ragged, ragged
        )(P),
        lambda: [np.linalg.solve(np.asarray(x @ x.T) + np.eye(len(x)), x) for x in X],
    ),
    "eigenvalues": (
        lambda: vmap(lambda x: pnp.linalg.eigvalsh(x @ x.T), ragged, ragged)(P),
        lambda: [np.linalg.eigvalsh(np.asarray(x @ x.T)) for x in X],
    ),
    "fft": (
        lambda: vmap(
            lambda x: abs(pnp.fft.fft(pnp.concatenate([x, x + 1, WS[0]]), axis=0)), ragged, ragged
        )(P),
        lambda: [
            abs(np.fft.fft(np.concatenate([x, x + 1, WS[0]]), axis=0)) for x in map(np.asarray, X)
        ],
    ),
    "rfft and back": (
        lambda: vmap(
            lambda x: pnp.fft.irfft(pnp.fft.rfft(pnp.concatenate([x, WS[0]]), axis=0) ** 2,
                                    x.shape[0] + 4, axis=0), ragged, ragged)(P),
        lambda: [
            np.fft.irfft(np.fft.rfft(np.concatenate([x, WS[0]]), axis=0) ** 2, len(x) + 4, axis=0)
            for x in map(np.asarray, X)
        ],
    ),
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", AROUND)
def test_around(name):
    got, want = AROUND[name]
    agree(got(), want())


@pytest.mark.feature("B34")
def test_traced_lengths_are_compared_when_the_program_runs():
    g = plait.jit(lambda a, b: vmap(lambda x, y: (x * y).sum(), (ragged, ragged))(a, b))
    agree(g(P, plait.Pile.from_list(X)), [(x * x).sum() for x in X])
    with pytest.raises(ShapeError, match=r"\[3 0 5 1\] and \[1 5 0 3\]"):
        plait.block_until_ready(g(P, plait.Pile.from_list(X[::-1])))


COMPILED = {
    "one size": (lambda x: nn.softmax(x).sum(), 1000, 12),
    "two sizes": (lambda x: pnp.sin(x[:, None] * x).sum(), 300, 24),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", COMPILED)
def test_few_programs_for_many_batches(name):
    """A thousand random batches are few programs, and not many traces; a value with two ragged axes
    takes time to compute, and has fewer batches here."""
    f, batches, most = COMPILED[name]
    g = plait.jit(vmap(f, ragged), tier="fast")
    rng = np.random.default_rng(1)
    with plait.events.counting() as n:
        for _ in range(batches):
            lengths = np.clip(np.exp(rng.normal(3.7, 1.0, 64)), 1, 512).astype(np.int32)
            g(plait.Pile(np.zeros(lengths.sum(), np.float32), lengths))
    assert 0 < n["compile"] <= most and n["trace"] <= 30


def test_a_collective_of_ragged_values_is_refused_for_what_it_is():
    """Lengths are known, and no rule could help: rows of examples have no partners."""
    with pytest.raises(MissingRule, match="over 'i' of what differs in size") as e:
        vmap(lambda x: lax.psum(x, "i"), ragged, ragged, axis_name="i")(P)
    assert "reduce it over that axis" in e.value.fix and "outside of jit" not in e.value.fix
