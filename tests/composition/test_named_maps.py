"""xmap inside every transformation, and every transformation inside xmap.

Functions of named axes are compared, laid out in several ways, with the same functions of whole
arrays or with a loop over elements, both written with numpy's names and no mesh.

Invariant: no comparison is with xmap, and every layout has the same values.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax, xmap
from plait.sharding import SerialLoop

MESH = plait.make_mesh((4, 2), ("x", "y"))
LAYOUTS = {
    "lanes": {},
    "devices": {"a": "x"},
    "all devices": {"a": ("y", "x")},
    "both axes": {"a": "x", "b": "y"},
}


def A(*shape):
    return (np.sin(np.arange(np.prod(shape)) * 0.37) + 0.1).astype(np.float32).reshape(shape)


W, X = A(3), A(8, 4, 3)


@pytest.fixture(autouse=True)
def checked():
    with plait.config(checks=True):
        yield


def close(got, want, tolerance=2e-4):
    got, want = plait.tree.leaves(got), plait.tree.leaves(want)
    for a, b in zip(got, want, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape, (a.shape, b.shape)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * (1 + abs(b).max()))


# ---- xmap inside -----------------------------------------------------------------------------


def named(layout):
    """w, x -> (sum over a of sin(x w) - mean over b, along b; everything, along a and b)."""

    def body(w, v):
        y = pnp.sin(v * w)
        z = y - lax.pmean(y, "b")
        return lax.psum(z, "a"), {"all": lax.all_gather(y, "b").sum(0) * v}

    return xmap(
        body,
        in_axes=({}, ["a", "b", ...]),
        out_axes=(["b", ...], {"all": {1: "a", 0: "b"}}),
        axis_resources=layout,
    )


def whole(w, x):
    y = pnp.sin(x * w)
    z = y - y.mean(1, keepdims=True)
    return z.sum(0), {"all": (y.sum(1, keepdims=True) * x).swapaxes(0, 1)}


def loss(f):
    def g(w, x):
        one, two = f(w, x)
        return (one**2).sum() + (two["all"] * pnp.cos(x.swapaxes(0, 1))).sum()

    return g


def tangents(f):
    return lambda w, x: plait.jvp(f, (w, x), (w * 2, pnp.cos(x)))


def linear(f):
    def g(w, x):
        out, lin = plait.linearize(f, w, x)
        return out, lin(w * 3, x), lin(w, pnp.cos(x))

    return g


def scanned(f):
    def g(w, x):
        def step(c, s):
            one, two = f(c * s, x)
            return c + one.sum(0) * 0.1, two["all"].sum()

        return lax.scan(step, w, pnp.arange(1.0, 4.0))

    return g


OUTSIDE = {
    "call": lambda f: f,
    "jit": plait.jit,
    "jit, jit": lambda f: plait.jit(plait.jit(f)),
    "grad": lambda f: plait.grad(loss(f), (0, 1)),
    "value_and_grad, jit": lambda f: plait.jit(plait.value_and_grad(loss(f), (0, 1))),
    "jvp": tangents,
    "linearize": linear,
    "vjp": lambda f: (
        lambda w, x: plait.vjp(f, w, x)[1]((pnp.ones((4, 3)), {"all": pnp.ones((4, 8, 3))}))
    ),
    "jacfwd": lambda f: plait.jacfwd(lambda w, x: f(w, x)[0]),
    "jacrev": lambda f: plait.jacrev(lambda w, x: f(w, x)[0]),
    "hessian": lambda f: plait.hessian(loss(f)),
    "grad, checkpoint": lambda f: plait.grad(loss(plait.checkpoint(f)), (0, 1)),
    "checkpoint, grad, jit": lambda f: plait.jit(plait.checkpoint(plait.grad(loss(f)))),
    "vmap": lambda f: lambda w, x: plait.vmap(f, (0, None))(pnp.stack([w, w * 2]), x),
    "vmap, grad": lambda f: (
        lambda w, x: plait.vmap(plait.grad(loss(f), (0, 1)))(
            pnp.stack([w, w * 2]), pnp.stack([x, -x])
        )
    ),
    "grad, vmap": lambda f: plait.grad(
        lambda w, x: plait.vmap(lambda k: loss(f)(w * k, x))(pnp.arange(1.0, 4.0)).sum(), (0, 1)
    ),
    "vmap, jit, vmap": lambda f: (
        lambda w, x: plait.vmap(plait.jit(plait.vmap(f, (0, None))), (0, None))(
            pnp.stack([w, w * 2])[None], x
        )
    ),
    "scan": scanned,
    "grad, scan": lambda f: plait.grad(lambda w, x: scanned(f)(w, x)[1].sum(), (0, 1)),
    "cond": lambda f: lambda w, x: lax.cond(w.sum() > 0, lambda: f(w, x), lambda: f(w * 2, x)),
    "while": lambda f: (
        lambda w, x: lax.while_loop(
            lambda c: (c**2).sum() < 100, lambda c: c * 2 + f(c, x)[0].sum(0) ** 2, w
        )
    ),
    "remat of scan": lambda f: plait.grad(lambda w, x: plait.checkpoint(scanned(f))(w, x)[0].sum()),
    "eval_shape": lambda f: (
        lambda w, x: plait.tree.map(lambda s: pnp.zeros(s.shape), plait.eval_shape(f, w, x))
    ),
}


@pytest.mark.sampled(15)
@pytest.mark.feature("S16")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("words", OUTSIDE)
def test_inside_transformations(words, layout):
    transformed = OUTSIDE[words]
    with MESH:
        got = transformed(named(LAYOUTS[layout]))(pnp.asarray(W), pnp.asarray(X))
    close(got, transformed(whole)(pnp.asarray(W), pnp.asarray(X)), 2e-3)


def test_derivatives_are_those_of_differences():
    """One layout, with finite differences: what the comparison above rests on."""
    with MESH:
        f = loss(named({"a": "x", "b": "y"}))
        g = plait.grad(lambda w: f(w, X))(W)
        for i in range(3):
            step = np.zeros(3, np.float32)
            step[i] = 1e-2
            slope = (float(f(W + step, X)) - float(f(W - step, X))) / 2e-2
            assert abs(slope - g[i]) < 2e-2 * (1 + abs(slope)), i


# ---- inside xmap -----------------------------------------------------------------------------


@plait.custom_jvp
def square(x):
    return x * x


square.defjvp(lambda primals, tangents: (primals[0] ** 2, 3 * primals[0] * tangents[0]))


@plait.custom_vjp
def cube(x):
    return x**3


cube.defvjp(lambda x: (x**3, x), lambda x, ct: (ct * 7 * x,))

INSIDE = {
    "jit": (
        plait.jit(lambda v: pnp.sin(v) + lax.psum(v, "a")),
        lambda i, x: np.sin(x[i]) + x.sum(0),
    ),
    "grad": (plait.grad(lambda v: pnp.sin(v).sum()), lambda i, x: np.cos(x[i])),
    "grad of a collective": (
        plait.grad(lambda v: (v * lax.stop_gradient(lax.psum(v, "a"))).sum()),
        lambda i, x: x.sum(0),
    ),
    "jvp": (
        lambda v: plait.jvp(lambda u: lax.psum(u**2, "a"), (v,), (v,))[1],
        lambda i, x: 2 * (x**2).sum(0),
    ),
    "linearize": (
        lambda v: plait.linearize(lambda u: lax.psum(u**3, "a"), v)[1](v),
        lambda i, x: 3 * (x**3).sum(0),
    ),
    "vjp": (
        lambda v: plait.vjp(lambda u: u - lax.pmean(u, "a"), v)[1](v)[0],
        lambda i, x: x[i] - x.mean(0),
    ),
    "transposed permutation": (
        lambda v: plait.vjp(
            lambda u: lax.ppermute(u, "a", [(i, (i + 1) % 8) for i in range(8)]), v
        )[1](v)[0],
        lambda i, x: x[(i + 1) % 8],
    ),
    "vmap": (
        lambda v: plait.vmap(lambda u: lax.psum(u, "a") * u, in_axes=1, out_axes=1)(v),
        lambda i, x: x.sum(0) * x[i],
    ),
    "vmap with a name": (
        lambda v: plait.vmap(lambda u: lax.psum(u, ("a", "k")), axis_name="k")(v),
        lambda i, x: np.broadcast_to(x.sum((0, 1)), (4, 3)),
    ),
    "checkpoint": (
        plait.grad(plait.checkpoint(lambda v: (pnp.sin(v) ** 2).sum())),
        lambda i, x: 2 * np.sin(x[i]) * np.cos(x[i]),
    ),
    "scan": (
        lambda v: lax.scan(lambda c, u: (c + lax.psum(u, "a"), c), pnp.zeros(3), v)[0],
        lambda i, x: x.sum((0, 1)),
    ),
    "grad of a scan": (
        plait.grad(lambda v: lax.scan(lambda c, u: (c * u, None), pnp.ones(3), v)[0].sum()),
        lambda i, x: np.stack([np.delete(x[i], k, 0).prod(0) for k in range(4)]),
    ),
    "custom_jvp": (plait.grad(lambda v: square(v).sum()), lambda i, x: 3 * x[i]),
    "custom_vjp": (plait.grad(lambda v: cube(v).sum()), lambda i, x: 7 * x[i]),
    "shard_map": (
        plait.shard_map(
            lambda u: u * lax.psum(u, "y"),
            in_specs=plait.P("y"),
            out_specs=plait.P("y"),
            axis_names={"y"},
        ),
        lambda i, x: x[i] * np.tile(x[i][:2] + x[i][2:], (2, 1)),
    ),
    "constraint": (
        lambda v: lax.with_sharding_constraint(v, plait.P("y")) * 2,
        lambda i, x: x[i] * 2,
    ),
    "xmap": (
        xmap(lambda u: lax.psum(u, "c") + lax.psum(u, "a"), ["c", ...], ["c", ...]),
        lambda i, x: x[i].sum(0) + x.sum(0),
    ),
}

COLLECTIVE = {
    "jit",
    "grad of a collective",
    "jvp",
    "linearize",
    "vjp",
    "transposed permutation",
    "vmap",
    "vmap with a name",
    "scan",
    "xmap",
}
"""Those that speak of the mapped axis, which turns of a loop cannot."""


@pytest.mark.sampled(16)
@pytest.mark.feature("S16")
@pytest.mark.parametrize(
    "layout", [{}, {"a": "x"}, {"a": SerialLoop(2)}], ids=["lanes", "x", "loop"]
)
@pytest.mark.parametrize("name", INSIDE)
def test_transformations_inside(name, layout):
    body, want = INSIDE[name]
    want = np.stack([want(i, X) for i in range(8)])
    with MESH:
        f = xmap(body, ["a", ...], ["a", ...], axis_resources=layout)
        if isinstance(layout.get("a"), SerialLoop) and name in COLLECTIVE:
            with pytest.raises(plait.errors.AxisError, match="'a', which is done in turns"):
                f(X)
            return
        close(f(X), want)
        if not layout:
            close(plait.vmap(f)(np.stack([X, X])), np.stack([want, want]))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("resources", [SerialLoop(4), ("x", SerialLoop(2))])
@pytest.mark.parametrize("words", ["grad", "jvp", "jit", "vmap", "scan", "grad, checkpoint"])
def test_loops_inside_transformations(words, resources):
    def over(layout):
        return xmap(
            lambda w, v: (pnp.sin(v * w).mean(0), {"all": v * w}),
            ({}, ["a", ...]),
            (["a", ...], {"all": {1: "a"}}),
            axis_resources=layout,
        )

    def of_all(w, x):
        return pnp.sin(x * w).mean(1), {"all": (x * w).swapaxes(0, 1)}

    transformed = OUTSIDE[words]
    with MESH:
        got = transformed(over({"a": resources}))(pnp.asarray(W), pnp.asarray(X))
    close(got, transformed(of_all)(pnp.asarray(W), pnp.asarray(X)), 2e-3)
