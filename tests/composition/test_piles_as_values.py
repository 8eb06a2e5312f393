"""Piles where values are expected: functions of all leaves, Jacobians, maps, stacks of batches.

Invariant: the reference is the loop over elements; every result that is a pile can be taken apart
by each of its methods, and its lengths are those of the argument.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Pile, pile_axis, vmap
from plait.errors import OperandTypeError, ShapeError

SIZES = (3, 0, 2, 5)


def rows(*tail):
    r = np.random.default_rng(len(tail))
    return [r.standard_normal((n, *tail)) for n in SIZES]


def two_axes():
    r = np.random.default_rng(9)
    return [r.standard_normal(shape) for shape in ((2, 3), (0, 4), (40, 1))]


PILES = {
    "vectors": lambda: Pile.from_list(rows()),
    "matrices": lambda: Pile.from_list(rows(2)),
    "last axis": lambda: Pile.from_list([x.T for x in rows(2)], axis=1),
    "two axes": lambda: Pile.from_list(two_axes(), axis=(0, 1)),
    "trees": lambda: Pile.from_list([{"u": a, "v": b} for a, b in zip(rows(), rows(2))]),
    "one shape": lambda: vmap(lambda x: x.sum(0), pile_axis, pile_axis)(Pile.from_list(rows(2))),
}
WRAPS = {"eager": lambda f: f, "jit": plait.jit}


def same(got, want):
    """Compare a pile with the list of its elements, by every method."""
    assert len(got) == len(want)
    found = got.to_list()
    for b, (x, y) in enumerate(zip(found, want, strict=True)):
        leaves, expected = plait.tree.leaves(x), plait.tree.leaves(y)
        for v, w in zip(leaves, expected, strict=True):
            assert v.shape == w.shape
            np.testing.assert_allclose(v, w, rtol=1e-6, atol=1e-9)
        for v, w in zip(plait.tree.leaves(got[b]), expected, strict=True):
            np.testing.assert_allclose(v, w, rtol=1e-6, atol=1e-9)
    assert repr(got) and got.aval is not None
    for whole in (got.data, got.to_padded()):
        assert all(np.isfinite(x).all() for x in plait.tree.leaves(whole))


def each(p, f):
    return [plait.tree.map(f, x) for x in p.to_list()]


# ---- functions of all leaves ---------------------------------------------------------------------


@pytest.mark.sampled(6)
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", PILES)
def test_functions_of_all_leaves(name, wrap):
    """They are derivatives by the rows: lengths stay."""
    p = PILES[name]()
    wrap = WRAPS[wrap]
    same(wrap(lambda p: plait.tree.map(lambda a: a * 0.5, p))(p), each(p, lambda a: a * 0.5))
    same(wrap(lambda p: plait.tree.map(pnp.zeros_like, p))(p), each(p, np.zeros_like))
    step = lambda p, g: plait.tree.map(lambda a, b: a - 0.1 * b, p, g)
    same(wrap(lambda p: step(p, step(p, p)))(p), each(p, lambda a: a - 0.1 * (0.9 * a)))
    with_paths = lambda p: plait.tree_util.tree_map_with_path(lambda path, a: -a, p)
    same(wrap(with_paths)(p), each(p, np.negative))


@pytest.mark.parametrize("wrap", WRAPS)
def test_steps_of_momentum(wrap):
    """As optimisers write them, with a pile among the parameters."""
    p, w = PILES["matrices"](), np.float64(0.5)

    def loss(params):
        return vmap(lambda x: ((x * params["w"]) ** 2).sum(), pile_axis)(params["p"]).sum()

    @WRAPS[wrap]
    def trained(params):
        velocity = plait.tree.map(pnp.zeros_like, params)
        for _ in range(3):
            g = plait.grad(loss)(params)
            velocity = plait.tree.map(lambda v, g: 0.9 * v + g, velocity, g)
            params = plait.tree.map(lambda a, v: a - 0.1 * v, params, velocity)
        return params

    xs, vs, u = [x.copy() for x in p.to_list()], [np.zeros_like(x) for x in p.to_list()], 0.0
    for _ in range(3):
        u = 0.9 * u + sum(2 * w * (x**2).sum() for x in xs)
        vs = [0.9 * v + 2 * w**2 * x for v, x in zip(vs, xs)]
        w, xs = w - 0.1 * u, [x - 0.1 * v for x, v in zip(xs, vs)]
    got = trained({"p": p, "w": np.float64(0.5)})
    same(got["p"], xs)
    np.testing.assert_allclose(got["w"], w)


def test_other_lengths_are_not_combined_row_by_row():
    p, q = Pile(np.ones(5), [3, 2]), Pile(np.ones(5), [2, 3])
    add = lambda p, q: plait.tree.map(lambda a, b: a + b, p, q)
    with pytest.raises(ShapeError, match=r"equal lengths.*\[3 2\] and \[2 3\]"):
        add(p, q)
    with pytest.raises(Exception, match=r"equal lengths.*\[3 2\] and \[2 3\]"):
        plait.block_until_ready(plait.jit(add)(p, q))
    same(plait.jit(add)(p, Pile(np.ones(5), [3, 2])), [2 * np.ones(3), 2 * np.ones(2)])


# ---- derivatives ---------------------------------------------------------------------------------


def squares(p):
    return vmap(lambda x: sum((v**3).sum() for v in plait.tree.leaves(x)), pile_axis)(p)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("jacobian", [plait.jacrev, plait.jacfwd], ids=["rev", "fwd"])
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", PILES)
def test_jacobians(name, wrap, jacobian):
    """Each element has the axes of the result in front."""
    p = PILES[name]()

    def block(b, x):
        out = np.zeros((len(p), *x.shape))
        out[b] = 3 * x**2
        return out

    want = [plait.tree.map(lambda x, b=b: block(b, x), e) for b, e in enumerate(p.to_list())]
    same(WRAPS[wrap](jacobian(squares))(p), want)


@pytest.mark.parametrize("wrap", WRAPS)
def test_second_derivatives(wrap):
    """A pile of piles: a block for each two elements."""
    xs = rows(2)
    p = Pile.from_list(xs)
    got = WRAPS[wrap](plait.hessian(lambda p: squares(p).sum() * p.data.sum()))(p)
    total, size = sum(x.sum() for x in xs), [x.size for x in xs]
    for b, x in enumerate(xs):
        for c, y in enumerate(xs):
            cubes = 3 * x.ravel()[:, None] ** 2 + 3 * y.ravel() ** 2
            if b == c:
                cubes = cubes + np.diag(6 * x.ravel() * total)
            assert got[b][c].shape == (*x.shape, *y.shape)
            np.testing.assert_allclose(got[b][c].reshape(size[b], size[c]), cubes, rtol=1e-9)
    assert repr(got) and got.data[0].shape == (sum(SIZES), 2, SIZES[0], 2)
    assert got.to_padded()[1].shape == (len(xs), max(SIZES), 2, SIZES[1], 2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["matrices", "two axes", "trees"])
def test_against_differences(name):
    """Arguments and results may be piles, to the second order."""
    p = PILES[name]()
    scaled = lambda p: vmap(
        lambda x: plait.tree.map(lambda v: pnp.sin(v) * v.sum(), x), pile_axis, pile_axis
    )(p)
    plait.check_grads(squares, (p,), order=2)
    plait.check_grads(scaled, (p,), order=2)
    wrong = plait.custom_jvp(squares)
    wrong.defjvp(lambda primals, tangents: (squares(*primals), 2 * squares(*tangents)))
    with pytest.raises(AssertionError):
        plait.check_grads(wrong, (p,), order=1)


KEY = plait.random.key(0)
BESIDE = {
    "integers": lambda n: np.arange(n),
    "booleans": lambda n: np.arange(n) % 2 > 0,
    "keys": lambda n: plait.random.split(KEY, n),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("allow_int", [False, True])
@pytest.mark.parametrize("kind", BESIDE)
def test_integers_and_keys_beside_numbers(kind, allow_int):
    """The pile is differentiated with respect to its numbers; the others have no derivative."""
    make = BESIDE[kind]
    p = Pile.from_list([{"i": make(n), "x": x} for n, x in zip(SIZES, rows())])

    def loss(p):
        def of_one(e):
            i = vmap(plait.random.normal)(e["i"]) if kind == "keys" else e["i"]
            return (e["x"] ** 2 * i).sum()

        return vmap(of_one, pile_axis)(p).sum()

    def weights(n):
        i = make(n)
        return np.asarray(vmap(plait.random.normal)(i) if kind == "keys" and n else i)[:n] * 1.0

    want = [2 * x * (weights(n) if n else 0) for n, x in zip(SIZES, rows())]
    g = plait.grad(loss, allow_int=allow_int)(p)
    for b, w in enumerate(want):
        for element in (g[b], g.to_list()[b]):
            np.testing.assert_allclose(element["x"], w, rtol=1e-5, atol=1e-7)
            assert element["i"].dtype == plait.float0 and element["i"].shape == w.shape
    assert g.data["i"].shape == (sum(SIZES),) and g.to_padded()["i"].shape == (4, max(SIZES))
    stepped = plait.jit(lambda p, g: plait.tree.map(lambda a, b: a - 0.1 * b, p, g))(p, g)
    for b, x in enumerate(rows()):
        np.testing.assert_allclose(stepped[b]["x"], x - 0.1 * want[b], rtol=1e-5, atol=1e-7)
        assert stepped[b]["i"].dtype == p[b]["i"].dtype
    blocks = plait.jacrev(lambda p: vmap(lambda e: (e["x"] ** 2).sum(), pile_axis)(p))(p)
    assert blocks[3]["x"].shape == (4, 5) and blocks[3]["i"].shape == (4, 5)
    assert plait.hessian(loss)(p)[0]["x"][3]["x"].shape == (3, 5)


def test_integers_alone_have_no_derivative():
    with pytest.raises(OperandTypeError, match=r"i\d\d\["):
        plait.grad(lambda p: 1.0)(Pile.from_list([{"i": [1, 2]}, {"i": [3]}]))


# ---- maps and stacks -----------------------------------------------------------------------------


@pytest.mark.sampled(6)
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize("name", PILES)
def test_an_axis_of_results(name, chunk, wrap):
    """vmap(out_axes=0) of a pile gives each element that axis."""
    p, ws = PILES[name](), np.arange(1.0, 6.0)

    def scaled(w):
        return plait.tree.map(lambda v: v * w, p)

    got = WRAPS[wrap](vmap(scaled, chunk=chunk))(ws)
    same(got, each(p, lambda x: ws.reshape(-1, *(1,) * x.ndim) * x))
    total = vmap(lambda x: sum(v.sum() for v in plait.tree.leaves(x)), pile_axis)
    flat = [sum(v.sum() for v in plait.tree.leaves(e)) * ws.sum() for e in p.to_list()]
    np.testing.assert_allclose(total(got), flat)


def test_stacks_of_batches():
    """As scan takes and returns them."""
    xs = rows(2)
    p, q = Pile.from_list(xs), Pile.from_list(xs[::-1])
    stack = plait.tree.map(lambda *a: pnp.stack(a), p, q)
    sums = lambda p: vmap(lambda x: x.sum(), pile_axis)(p)
    want = [[x.sum() for x in xs], [x.sum() for x in xs[::-1]]]
    np.testing.assert_allclose(plait.lax.scan(lambda c, p: (c, sums(p)), 0, stack)[1], want)
    again = plait.lax.scan(lambda c, p: (c, plait.tree.map(lambda a: 2 * a, p)), 0, stack)[1]
    for got in (again, plait.tree.map(lambda a: 2 * a, stack)):
        assert len(got) == 2 and repr(got)
        same(got[0], [2 * x for x in xs])
        same(list(got)[1], [2 * x for x in xs[::-1]])
        assert got.lengths.tolist() == [list(SIZES), list(SIZES[::-1])]
        with pytest.raises(ShapeError, match="2 batches of 4 elements"):
            _ = got.data


# ---- keys ----------------------------------------------------------------------------------------


def test_piles_of_keys():
    keys = [plait.random.split(plait.random.key(n), n) for n in (3, 1, 2)]
    p = Pile.from_list(keys)
    words = lambda k: np.asarray(plait.random.key_data(k)).tolist()
    for q in (p, plait.jit(lambda p: p)(p), Pile(pnp.concatenate(keys), [3, 1, 2])):
        assert [words(k) for k in q.to_list()] == [words(k) for k in keys]
        assert words(q[1]) == words(keys[1]) and repr(q)
    drawn = vmap(vmap(plait.random.normal), pile_axis, pile_axis)(p)
    same(drawn, [np.asarray(vmap(plait.random.normal)(k)) for k in keys])
    with pytest.raises(OperandTypeError, match="one dtype"):
        Pile.from_list([keys[0], np.ones(2)])
