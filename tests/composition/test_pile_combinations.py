"""What nobody would write in one place: piles in loops and branches, under rules, policies and
derivatives of derivatives, and the same inside of an example with a derivative around.

Invariant: the other side is a loop over examples in Python.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Pile, lax, nn, random, vmap
from plait import pile_axis as ragged
from plait.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(1)
X = [pnp.asarray(RNG.standard_normal((n, 4))) for n in (3, 0, 5, 1)]
Y = [pnp.asarray(RNG.standard_normal((n, 4))) for n in (2, 4, 0, 1)]
P, Q = Pile.from_list(X), Pile.from_list(Y)
W, K = (pnp.asarray(RNG.standard_normal((4, 4))) for _ in range(2))
KEY = random.key(0)
policies = plait.checkpoint_policies


@pytest.fixture(autouse=True)
def quickly():
    with plait.config(tier="fast"):
        yield


def f(x, w):
    return pnp.tanh(x @ w)


def twice(x, w):
    return f(f(x, w), w)


def times(p, w):
    return vmap(f, (ragged, None), ragged)(p, w)


def squares(p):
    return vmap(lambda x: (x**2).sum(), ragged)(p).sum()


def halved(p):
    return vmap(lambda x: x * 0.5, ragged, ragged)(p)


def turns_until(least):
    """How often all rows are halved until their squares sum to this or less."""
    turns, total = 0, float((np.concatenate(X) ** 2).sum())
    while total > least:
        turns, total = turns + 1, total / 4
    return turns


def each(g):
    return [g(x) for x in X]


def stacked(g):
    return np.stack(each(g))


def slope(g):
    """The gradient of a loop over examples with respect to what they share."""
    return plait.grad(lambda w: sum(g(x, w) for x in X))(W)


def mapped_slope(g):
    """The same, of the map over the pile."""
    return plait.jit(plait.grad(lambda w: vmap(lambda x: g(x, w), ragged)(P).sum()))(W)


@plait.custom_vjp
def ruled(p, w):
    return squares(times(p, w))


def _back(kept, ct):
    p, w = kept
    return vmap(lambda x: x * ct, ragged, ragged)(p), w * ct


ruled.defvjp(lambda p, w: (ruled(p, w), (p, w)), _back)


@plait.custom_vjp
def sines(p):
    return vmap(pnp.sin, ragged, ragged)(p)


sines.defvjp(
    lambda p: (sines(p), p),
    lambda p, cts: (vmap(lambda x, c: 3 * pnp.cos(x) * c, ragged, ragged)(p, cts),),
)


@plait.custom_jvp
def waves(p):
    return vmap(pnp.sin, ragged, ragged)(p)


@waves.defjvp
def _(primals, tangents):
    along = lambda x, t: 2 * pnp.cos(x) * t
    return waves(*primals), vmap(along, ragged, ragged)(*primals, *tangents)


def shapes_seen(p):
    """In the order of the examples, each once."""
    seen = []

    def note(v):
        seen.append(v.shape[0])

    def one(x):
        plait.io_callback(note, None, x, ordered=True)
        return x.sum()

    plait.block_until_ready(plait.jit(vmap(one, ragged))(p))
    return np.asarray(seen)


AROUND = {
    "linearize": (
        lambda: plait.linearize(lambda w: vmap(lambda x: f(x, w).sum(0), ragged)(P), W)[1](K),
        lambda: stacked(lambda x: plait.jvp(lambda w: f(x, w).sum(0), (W,), (K,))[1]),
    ),
    "transpose to what is shared": (
        lambda: plait.linear_transpose(
            lambda w: vmap(lambda x: (x @ w).sum(0), ragged)(P), W
        )(K)[0],
        lambda: sum(x.sum(0)[:, None] * k for x, k in zip(X, K)),
    ),
    "transpose to a pile": (
        lambda: plait.linear_transpose(lambda p: vmap(lambda x: x @ W, ragged, ragged)(p), P)(P)[0],
        lambda: each(lambda x: x @ W.T),
    ),
    "hessian": (
        lambda: plait.hessian(
            lambda k: vmap(lambda x: pnp.tanh(x @ k).sum() ** 2, ragged)(P).sum()
        )(K[0]),
        lambda: sum(each(lambda x: plait.hessian(lambda k: pnp.tanh(x @ k).sum() ** 2)(K[0]))),
    ),
    "derivative of a derivative": (
        lambda: plait.jvp(plait.grad(lambda w: squares(times(P, w))), (W,), (K,))[1],
        lambda: plait.jvp(
            plait.grad(lambda w: sum((f(x, w) ** 2).sum() for x in X)), (W,), (K,)
        )[1],
    ),
    "of two piles": (
        lambda: plait.grad(
            lambda p, q: vmap(lambda x, y: pnp.sin(x @ y.T).sum(), (ragged, ragged))(p, q).sum(),
            (0, 1),
        )(P, Q),
        lambda: tuple(
            [plait.grad(lambda x, y: pnp.sin(x @ y.T).sum(), i)(x, y) for x, y in zip(X, Y)]
            for i in (0, 1)
        ),
    ),
    "map along other axes": (
        lambda: vmap(
            lambda w: vmap(lambda x: f(x, w).sum(0), ragged, 1)(P), in_axes=2, out_axes=-1
        )(pnp.stack([W, 2 * W], 2)),
        lambda: np.stack(
            [np.stack([f(x, k * W).sum(0) for x in X], 1) for k in (1, 2)], -1
        ),
    ),
    "carried, to what is shared": (
        lambda: plait.grad(
            lambda w: squares(lax.scan(lambda c, _: (times(c, w), None), P, None, length=2)[0])
        )(W),
        lambda: slope(lambda x, w: (twice(x, w) ** 2).sum()),
    ),
    "carried, to the pile": (
        lambda: plait.grad(
            lambda p: squares(lax.scan(lambda c, _: (times(c, W), None), p, None, length=2)[0])
        )(P),
        lambda: each(plait.grad(lambda x: (twice(x, W) ** 2).sum())),
    ),
    "carried until": (
        lambda: plait.jit(lambda p: lax.while_loop(lambda c: squares(c) > 0.5, halved, p))(P),
        lambda: each(lambda x: x * 0.5 ** turns_until(0.5)),
    ),
    "a branch": (
        lambda: plait.jit(
            lambda p, k: lax.cond(
                p.data.sum() > 0, lambda p: vmap(pnp.multiply, (ragged, 0), ragged)(p, k), halved, p
            )
        )(P, K),
        lambda: [x * k if np.concatenate(X).sum() > 0 else x * 0.5 for x, k in zip(X, K)],
    ),
    "a rule for reverse mode": (lambda: plait.grad(ruled, (0, 1))(P, W), lambda: (X, W)),
    "a rule that returns a pile": (
        lambda: plait.jit(plait.grad(lambda p: squares(sines(p))))(P),
        lambda: each(lambda x: 2 * pnp.sin(x) * 3 * pnp.cos(x)),
    ),
    "a rule for forward mode": (
        lambda: plait.grad(lambda p: squares(waves(p)))(P),
        lambda: each(lambda x: 2 * pnp.sin(x) * 2 * pnp.cos(x)),
    ),
    "a policy": (
        lambda: plait.grad(
            plait.checkpoint(
                lambda p, w: squares(times(times(p, w), w)), policy=policies.dots_saveable
            ), (0, 1),
        )(P, W),
        lambda: (
            each(plait.grad(lambda x: (twice(x, W) ** 2).sum())),
            slope(lambda x, w: (twice(x, w) ** 2).sum()),
        ),
    ),
    "random numbers of steps": (
        lambda: plait.jit(
            lambda k: lax.scan(
                lambda c, k: (c, vmap(
                    lambda x, k: random.normal(k, (x.shape[0],)).sum(), (ragged, 0)
                )(P, random.split(k, 4))), 0.0, random.split(k, 3),
            )[1]
        )(KEY),
        lambda: np.stack([
            np.stack([random.normal(k, (len(x),)).sum() for x, k in zip(X, random.split(ks, 4))])
            for ks in random.split(KEY, 3)
        ]),
    ),
    "gathered examples": (
        lambda: vmap(lambda x: lax.all_gather(x.sum(0), "i"), ragged, axis_name="i")(P),
        lambda: np.stack([stacked(lambda x: x.sum(0))] * 4),
    ),
    "passed on": (
        lambda: vmap(
            lambda x: lax.ppermute(x.sum(0), "i", [(0, 1), (1, 2), (2, 3), (3, 0)]), ragged,
            axis_name="i",
        )(P),
        lambda: np.roll(stacked(lambda x: x.sum(0)), 1, 0),
    ),
    "what acts": (lambda: shapes_seen(P), lambda: np.asarray([len(x) for x in X])),
}  # fmt: skip


def agree(got, want):
    if isinstance(got, tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            agree(g, w)
    elif isinstance(got, Pile):
        for g, w in zip(got.to_list(), want, strict=True):
            assert np.shape(g) == np.shape(w)
            np.testing.assert_allclose(g, np.asarray(w), 1e-8, 1e-8)
    else:
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), 1e-6, 1e-8)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", AROUND)
def test_around(name):
    got, want = AROUND[name]
    agree(got(), want())


INSIDE = {  # of x and of what all share, whose gradient is one product of all rows
    "checkpoint": lambda x, w: (plait.checkpoint(twice)(x, w) ** 2).sum(),
    "jit": lambda x, w: (plait.jit(twice)(x, w) ** 2).sum(),
    "scan": lambda x, w: (
        lax.scan(lambda c, _: (f(c, w), c), x, None, length=2)[0] ** 2
    ).sum(),
    "scan of rows": lambda x, w: (
        lax.scan(lambda c, r: (pnp.tanh(w @ c + r), c), pnp.zeros(4, x.dtype), x)[1] ** 2
    ).sum(),
    "cond": lambda x, w: lax.cond(
        x.sum() > 0, lambda v: (f(v, w) ** 2).sum(), lambda v: (v @ w).sum(), x
    ),
    "bounded while": lambda x, w: (
        lax.while_loop(
            lambda c: (c * c).sum() < 5, lambda c: f(c, w) + 0.5, x, max_steps=4
        ) ** 2
    ).sum(),
    "map": lambda x, w: (lax.map(lambda r: pnp.tanh(r @ w), x) ** 2).sum(),
    "vmap": lambda x, w: (vmap(lambda r: pnp.tanh(w @ r))(x) ** 2).sum(),
    "custom rule": lambda x, w: (nn.relu(x @ w) ** 2).sum(),
    "associative scan": lambda x, w: (
        lax.associative_scan(pnp.add, x @ w, reverse=True) ** 2
    ).sum(),
    "scan in checkpoint": lambda x, w: plait.checkpoint(
        lambda x, w: (lax.scan(lambda c, r: (c + r @ w, c * r), x.sum(0), x)[1] ** 2).sum()
    )(x, w),
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", INSIDE)
def test_inside(name):
    g = INSIDE[name]
    agree(mapped_slope(g), slope(g))


@pytest.mark.parametrize("wrap", [lambda g: g, plait.jit], ids=["as it is", "jit"])
def test_inner_piles_meet(wrap):
    inner = [Pile.from_list([[1.0, 2.0], [3.0]]), Pile.from_list([[4.0], [5.0, 6.0], [7.0]])]
    other = [Pile.from_list([[1.0], [3.0]]), Pile.from_list([[4.0], [5.0, 6.0], [7.0]])]
    products = lambda p, q: vmap(lambda x, y: x @ y, ragged)(p, q)
    g = wrap(lambda a, b: vmap(products, ragged, ragged)(a, b))
    a, b, c = (Pile.from_list(p) for p in (inner, inner, other))
    for got, want in zip(g(a, b).to_list(), ([5, 9], [16, 61, 49])):
        np.testing.assert_allclose(got, want)
    with pytest.raises(ShapeError, match=r"must be equal in every example, and are \[2 1\]"):
        plait.block_until_ready(g(a, c))


GROWING = {
    "scan": lambda x: lax.scan(lambda c, _: (pnp.concatenate([c, c]), None), x, None, length=2),
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c[1:], x),
    "fori": lambda x: lax.fori_loop(0, 2, lambda i, c: c[: c.shape[0] // 2], x),
}


@pytest.mark.parametrize("name", GROWING)
def test_a_carry_of_another_size(name):
    with pytest.raises(ArgumentError, match="must keep its type: .* goes out as f64") as e:
        vmap(GROWING[name], ragged, ragged)(P)
    assert "an array of that shape" in e.value.fix and "astype" not in e.value.fix


def test_integers_of_any_width_are_sizes():
    for kind in ("int8", "int64", "uint16"):
        n = np.asarray([3, 0, 35], kind)
        got = vmap(lambda n: pnp.eye(n) @ pnp.ones((n, 2)), out_axes=ragged)(n)
        agree(got, [np.ones((k, 2)) for k in n])


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_call_python_once_for_each_example(order, jitted):
    """Also where some of what is known follows from what all examples share."""
    seen = []

    def one(w, x):
        plait.debug.callback(lambda v: seen.append(v.shape), x * w)
        return (pnp.sin(x * w) * 2).sum() * pnp.cos(w)

    rows = [np.linspace(0.1, 1, 2 * n).reshape(n, 2) for n in (3, 0, 4, 1)]
    pile = plait.Pile.from_list(rows)

    def total(w):
        return plait.vmap(one, (None, plait.pile_axis))(w, pile).sum()

    slope = plait.grad(total)
    f = slope if order == 1 else plait.grad(lambda w: slope(w) ** 2)
    got = (plait.jit(f) if jitted else f)(np.float64(1.1))
    assert seen == [(3, 2), (0, 2), (4, 2), (1, 2)]

    def by_hand(w):  # of sum(2 sin(x w)) cos(w), and of the square of its slope
        x = np.concatenate(rows)
        s, c, d = np.sin(x * w).sum(), (x * np.cos(x * w)).sum(), -(x**2 * np.sin(x * w)).sum()
        first = 2 * (c * np.cos(w) - s * np.sin(w))
        second = 2 * (d * np.cos(w) - 2 * c * np.sin(w) - s * np.cos(w))
        return first if order == 1 else 2 * first * second

    np.testing.assert_allclose(got, by_hand(1.1), 1e-10)
