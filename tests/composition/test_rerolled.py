"""Equal layers rolled into a scan, inside and outside of every transformation.

The oracle is the function itself, untransformed: its values, and its derivatives by finite
differences of double precision.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4))
WS = [{"w": RNG.normal(size=(4, 4)) / 2, "b": RNG.normal(size=4)} for _ in range(6)]


def net(x, ws):
    for i, p in enumerate(ws):
        x = pnp.tanh(x @ p["w"] + p["b"]) * (0.5 + i) + x
    return x


def loss(x, ws):
    return (net(x, ws) ** 2).mean()


rolled = plait.reroll(loss, size=3)


@pytest.fixture(autouse=True)
def double():
    with plait.enable_x64(True):
        yield


def numerical(f, x, v, h=1e-5):
    return (np.asarray(f(x + h * v)) - np.asarray(f(x - h * v))) / (2 * h)


def scans(f, *args):
    def of(program):
        for e in program.eqns:
            if e.prim.name == "core.scan":
                yield e.params["length"]
            for x in e.params.values():
                for q in x if isinstance(x, tuple) else (x,):
                    if isinstance(q, type(program)):
                        yield from of(q)

    return list(of(plait.make_program(f)(*args)))


def test_gradients_are_rolled_and_right():
    g = plait.grad(rolled, (0, 1))
    assert scans(g, X, WS) == [6, 6]  # there and back
    v = RNG.normal(size=X.shape)
    want = numerical(lambda x: loss(x, WS), X, v)
    for dx, dws in (g(X, WS), plait.jit(g)(X, WS)):
        np.testing.assert_allclose((np.asarray(dx) * v).sum(), want, rtol=1e-6)
        for i, name in ((0, "w"), (4, "b")):
            u = RNG.normal(size=WS[i][name].shape)

            def along(t, i=i, name=name, u=u):
                ws = [dict(p) for p in WS]
                ws[i][name] = ws[i][name] + t * u
                return loss(X, ws)

            want_w = numerical(along, 0.0, 1.0)
            np.testing.assert_allclose((np.asarray(dws[i][name]) * u).sum(), want_w, rtol=1e-6)


WAYS = {
    "jit": lambda f: plait.jit(f),
    "grad": lambda f: plait.grad(f),
    "hessian": lambda f: plait.hessian(f),
    "jvp": lambda f: lambda x: plait.jvp(f, (x,), (x * 0.5,))[1],
    "vmap": lambda f: lambda x: plait.vmap(f)(x[:, None]),
    "checkpoint": lambda f: plait.grad(plait.checkpoint(f)),
    "vmap of grad": lambda f: lambda x: plait.vmap(plait.grad(f))(x[:, None]),
    "scan": lambda f: lambda x: plait.lax.scan(lambda c, _: (c + f(x * c), c), 0.5, None, 3),
    "cond": lambda f: lambda x: plait.lax.cond(x[0, 0] > 0, f, lambda x: f(-x), x),
    "remat of grad of vmap": lambda f: plait.grad(
        lambda x: plait.checkpoint(plait.vmap(f))(x[:, None]).sum()
    ),
    "linearize": lambda f: lambda x: plait.linearize(f, x)[1](x),
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("outer", WAYS)
def test_inside_every_transformation(outer):
    want = WAYS[outer](lambda x: loss(x, WS))(X)
    got = WAYS[outer](lambda x: rolled(x, WS))(X)
    for a, b in zip(plait.tree.leaves(got), plait.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


LAYERS = {
    "grad": lambda x, w: plait.grad(lambda x: (pnp.sin(x @ w) * x).sum())(x),
    "vmap": lambda x, w: plait.vmap(lambda r: pnp.tanh(r @ w) + r)(x),
    "scan": lambda x, w: plait.lax.scan(lambda c, r: (c * 0.5 + r @ w, c), x[0], x)[1] + x,
    "cond": lambda x, w: plait.lax.cond(x[0, 0] > 0, lambda x: x @ w, lambda x: x * 2, x) + x,
    "checkpoint": lambda x, w: plait.checkpoint(lambda x: pnp.tanh(x @ w) * 2 + x)(x),
    "jvp": lambda x, w: plait.jvp(lambda x: pnp.sin(x @ w), (x,), (x,))[1] + x,
    "while": lambda x, w: plait.lax.fori_loop(0, 2, lambda i, x: pnp.tanh(x @ w) + x, x),
}


@pytest.mark.parametrize("inner", LAYERS)
def test_layers_that_transform(inner):
    def f(x, ws):
        for p in ws:
            x = LAYERS[inner](x, p["w"]) * 0.5
        return x

    mine = plait.reroll(f, size=2)
    assert 6 in scans(mine, X, WS)
    np.testing.assert_allclose(mine(X, WS), f(X, WS), rtol=1e-9)
    v = RNG.normal(size=X.shape)
    t = plait.jit(lambda x, ws: plait.jvp(lambda x: mine(x, ws), (x,), (v,))[1])(X, WS)
    np.testing.assert_allclose(t, numerical(lambda x: f(x, WS), X, v), rtol=1e-5, atol=1e-7)


def test_collectives_by_the_name_of_a_mapped_axis():
    def f(x):
        for _ in range(5):
            x = pnp.sin(x) + plait.lax.pmean(x, "i") * 0.5
        return x

    want = plait.vmap(f, axis_name="i")(X)
    got = plait.vmap(plait.reroll(f, size=2), axis_name="i")(X)
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_exported_by_the_name_of_a_size():
    x = plait.ShapeDtypeStruct((plait.symbolic_dims("b")[0], 4), X.dtype)
    e = plait.export.export(plait.jit(plait.reroll(net, size=3)))(x, WS)
    for n in (1, 5):
        at = RNG.normal(size=(n, 4))
        np.testing.assert_allclose(e.call(at, WS), net(at, WS), rtol=1e-12)
