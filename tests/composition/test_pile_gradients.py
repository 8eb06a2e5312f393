"""Derivatives with respect to piles, against those of the loop over elements.

Invariant: lengths have no derivatives, and are those of the pile.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import OperandTypeError, TreeMismatch

axis = plait.pile_axis
ELEMENTS = [np.arange(n) * 0.3 + 1 for n in (3, 0, 2, 5)]


def pile(scale=1.0):
    return plait.Pile.from_list([x * scale for x in ELEMENTS])


def each(x):
    return (pnp.sin(x) * x.sum()).sum()


def loss(p):
    return (plait.vmap(each, axis)(p) ** 2).sum()


def scaled(p):
    return plait.vmap(lambda x: pnp.sin(x) * x.sum(), axis, axis)(p)


def agree(got, want, rtol=1e-9):
    for g, w in zip(got.to_list(), want, strict=True):
        assert g.shape == w.shape
        np.testing.assert_allclose(g, w, rtol=rtol, atol=1e-12)


WAYS = {
    "grad": plait.grad(loss),
    "jit of grad": plait.jit(plait.grad(loss)),
    "grad of jit": plait.grad(plait.jit(loss)),
    "value_and_grad": lambda p: plait.value_and_grad(loss)(p)[1],
    "checkpoint": plait.grad(plait.checkpoint(loss)),
    "jacrev": plait.jacrev(loss),
    "vjp": lambda p: plait.vjp(loss, p)[1](1.0)[0],
    "allow_int": plait.grad(loss, allow_int=True),
    "in a tree": lambda p: plait.grad(lambda t: loss(t["p"]) + t["c"])({"p": p, "c": 1.0})["p"],
    "of a sum of two": lambda p: plait.grad(lambda a, b: (loss(a) + loss(b)) / 2, (0, 1))(p, p)[1],
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("way", WAYS)
def test_gradients(way):
    of_one = plait.grad(lambda x: each(x) ** 2)
    of_one = of_one if way != "of a sum of two" else plait.grad(lambda x: each(x) ** 2 / 2)
    agree(WAYS[way](pile()), [of_one(pnp.asarray(x)) for x in ELEMENTS])


@pytest.mark.parametrize("wrapped", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_tangents_and_cotangents_are_piles(wrapped):
    f = lambda x: pnp.sin(x) * x.sum()
    dots = [np.cos(x) * 0.1 for x in ELEMENTS]

    def both(p):
        t = plait.vmap(lambda x: pnp.cos(x) * 0.1, axis, axis)(p)
        _, dot = plait.jvp(scaled, (p,), (t,))
        _, pull = plait.vjp(scaled, p)
        _, along = plait.linearize(scaled, p)
        return dot, pull(t)[0], along(t)

    dot, pulled, along = wrapped(both)(pile())
    pairs = [(pnp.asarray(x), pnp.asarray(t)) for x, t in zip(ELEMENTS, dots)]
    want = [plait.jvp(f, (x,), (t,))[1] for x, t in pairs]
    agree(dot, want)
    agree(along, want)
    agree(pulled, [plait.vjp(f, x)[1](t)[0] for x, t in pairs])


def test_inside_and_outside():
    inner = plait.vmap(plait.grad(lambda x: (x**3).sum()), axis, axis)
    agree(plait.grad(lambda p: inner(p).data.sum())(pile()), [6 * x for x in ELEMENTS])


def test_of_several_lengths():
    xs = [(np.ones((n, m)) * (n + m)) for n, m in ((2, 3), (0, 1), (4, 2))]
    two = plait.Pile.from_list(xs, axis=(0, 1))
    got = plait.grad(lambda p: plait.vmap(lambda x: (x**2).sum(), axis)(p).sum())(two)
    agree(got, [2 * x for x in xs])


def test_wrong_tangents_and_piles_of_integers():
    other = plait.Pile.from_list([x[::-1] for x in ELEMENTS[::-1]])
    with pytest.raises(TreeMismatch, match=r"lengths \[3 0 2 5\]\S* .*against.*\[5 2 0 3\]"):
        plait.jvp(scaled, (pile(),), (other,))
    with pytest.raises(TreeMismatch, match="traced"):
        plait.jit(lambda p, t: plait.jvp(scaled, (p,), (t,)))(pile(), other)
    with pytest.raises(OperandTypeError, match=r"i\d\d\["):
        plait.grad(lambda p: 1.0)(plait.Pile.from_list([[1, 2], [3]]))


@pytest.mark.parametrize("tier", ["full", "fast"])
@pytest.mark.parametrize("way", ["max", "min"])
def test_extremes_of_what_a_compiler_computes_twice(way, tier):
    """A product and a sum may be rounded once where the extreme is found, and twice where its row
    is; the row has its derivative nevertheless."""
    draw = np.random.RandomState(0).randn
    rows = [draw(n, 4).astype("float32") for n in (13, 1, 20, 6)]
    corner = draw(1, 1).astype("float32")

    def of_one(x, c):
        y = (x * 1.3).swapaxes(0, 1).swapaxes(0, 1) + 0.7 * c
        return getattr(pnp, way)(y, 0, initial=-50.0 if way == "max" else 50.0).sum()

    def total(p, c):
        return plait.vmap(of_one, (plait.pile_axis, None))(p, c).sum()

    slope, of_corner = plait.jit(plait.grad(total, (0, 1)), tier=tier)(
        plait.Pile.from_list(rows), corner
    )
    for x, got in zip(rows, slope.to_list(), strict=True):
        want = np.zeros_like(x)
        want[getattr(x, "arg" + way)(0), np.arange(4)] = 1.3
        np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(of_corner, [[0.7 * 16]], rtol=1e-5)


@pytest.mark.parametrize("wrapped", [lambda f: f, plait.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("closed", [False, True], ids=["argument", "closed over"])
def test_what_devices_with_examples_of_their_own_share(closed, wrapped):
    """It is summed over examples, then over devices, once each."""
    mesh = plait.make_mesh((2,), ("d",))
    part, whole = plait.sharding.PartitionSpec("d"), plait.sharding.PartitionSpec()
    lengths = np.array([3, 2, 4, 1], "int32")
    x = np.random.RandomState(0).randn(4, 4, 3)
    k = np.array([0.5, -1.0, 2.0])

    def mine(x, n, k):
        p = plait.Pile.from_padded(x, n)
        if closed:
            return plait.vmap(lambda x: (pnp.sin(x) * k).sum(), plait.pile_axis)(p)
        return plait.vmap(lambda x, k: (pnp.sin(x) * k).sum(), (plait.pile_axis, None))(p, k)

    def total(x, k):
        specs = {"in_specs": (part, part, whole), "out_specs": part}
        return plait.shard_map(mine, mesh=mesh, **specs)(x, lengths, k).sum()

    there = (np.arange(4) < lengths[:, None])[..., None]
    of_x, of_k = wrapped(plait.grad(total, (0, 1)))(x, k)
    np.testing.assert_allclose(of_k, (np.sin(x) * there).sum((0, 1)), rtol=1e-9)
    np.testing.assert_allclose(of_x, np.cos(x) * k * there, rtol=1e-9)
