"""Derivatives of shard_map: against the explicit matrix of what is linear, and against the same
function without devices."""

import io

import numpy as np
import pytest

import plait
from plait._ops.callbacks import debug_print
from plait._ops.collective import all_gather, all_to_all, axis_index, ppermute, psum, psum_scatter
from plait.ext.ops.elementwise import exp, sin
from plait.lax import pmax, pmin
from plait_sharding import P, device_put, make_mesh, shard_map, with_sharding_constraint
from plait_sharding.ext import shard_map_p

R = np.random.default_rng(0)
A = R.normal(size=(8, 8)).astype(np.float32)
B = R.normal(size=(8, 8)).astype(np.float32)

LINEAR = {
    "psum": (lambda v: psum(v, "y"), P("x")),
    "psum of both": (lambda v: psum(v, ("x", "y")), P()),
    "all_gather": (lambda v: all_gather(v, "y", axis=1, tiled=True), P("x")),
    "all_gather, stacked": (lambda v: all_gather(v, "x"), P(None, None, "y")),
    "all_gather to all": (lambda v: all_gather(v, "y", axis=1, tiled=True, to="invarying"), P("x")),
    "all_gather to all, stacked": (
        lambda v: all_gather(v, ("x", "y"), axis=1, to="invarying"),
        P(),
    ),
    "ppermute": (lambda v: ppermute(v, "y", [(0, 1), (1, 2), (3, 0)]), P("x", "y")),
    "psum_scatter": (lambda v: psum_scatter(v, "y", tiled=True), P(("x", "y"))),
    "all_to_all, tiled": (lambda v: all_to_all(v, "y", 0, 1, tiled=True), P(("x", "y"))),
    "all_to_all": (lambda v: all_to_all(v, "y", 0, 1), P("x", ("y"))),
    "times a place": (lambda v: v * (1 + axis_index("y")) + psum(v, "x"), P("x", "y")),
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", LINEAR)
def test_the_matrix_of_a_linear_collective(mesh, lies, close, name):
    f, outs = LINEAR[name]
    m = plait.jit(shard_map(f, mesh=mesh, in_specs=P("x", "y"), out_specs=outs))
    basis = np.eye(64, dtype=np.float32).reshape(64, 8, 8)
    matrix = np.stack([np.asarray(m(e)).ravel() for e in basis])
    ct = R.normal(size=m(A).shape).astype(np.float32)
    want = (matrix @ ct.ravel()).reshape(8, 8)
    g = plait.jit(plait.grad(lambda a: (m(a) * ct).sum()))
    close(g(A), want)
    close(g(device_put(A, lies("y"))), want)
    close(plait.grad(lambda a: (m(a) * ct).sum())(A), want)
    out, dot = plait.jvp(m, (A,), (B,))
    close(out, (A.ravel() @ matrix).reshape(out.shape))
    close(dot, (B.ravel() @ matrix).reshape(out.shape))
    transposed = plait.linear_transpose(m, A)(ct)
    close(transposed[0], want)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("tiled", [True, False])
def test_what_is_gathered_for_all_counts_once(mesh, close, axis, tiled):
    """Inside of the map its gradient is that of the function without devices; that of a result that
    varies is counted by each device."""
    names = ("x", "y")

    def inside(to, how):
        def loss(v):
            return (how(all_gather(v, names, axis=axis, tiled=tiled, to=to)) ** 2).sum()

        return shard_map(plait.grad(loss), mesh=mesh, in_specs=P(names), out_specs=P(names))

    close(inside("invarying", lambda v: v)(A), 2 * A)
    close(inside("varying", lambda v: v)(A), 8 * 2 * A)
    gathered = shard_map(
        lambda v: all_gather(v > 0, names, tiled=True, to="invarying"),
        mesh=mesh, in_specs=P(names), out_specs=P(),
    )  # fmt: skip
    assert gathered(A).dtype == bool
    np.testing.assert_array_equal(gathered(A), A > 0)
    with pytest.raises(plait.errors.ArgumentError, match="axis_index_groups"):
        shard_map(
            lambda v: all_gather(v, "y", axis_index_groups=[[0, 1], [2, 3]], to="invarying"),
            mesh=mesh, in_specs=P(names), out_specs=P(),
        )(A)  # fmt: skip


@pytest.mark.parametrize("extreme", [pmax, pmin])
@pytest.mark.parametrize("shape", [(8, 5, 17), (8, 64, 64)])
def test_extremes_of_what_a_compiler_computes_twice(extreme, shape):
    """The fast tier rounds a product and a sum in one loop once and in another twice: whoever has
    the extreme is found by what was sent."""
    x = R.normal(size=shape).astype(np.float32)
    line = make_mesh((8,), ("d",))
    f = shard_map(
        lambda v: extreme(v[0] * 1.7 + 0.3, "d"), mesh=line, in_specs=P("d"), out_specs=P()
    )
    best = x.max(0) if extreme is pmax else x.min(0)
    got = plait.jit(plait.grad(lambda v: f(v).sum()), tier="fast")(x)
    np.testing.assert_allclose(got, 1.7 * (x == best), rtol=1e-6)


@pytest.mark.parametrize("extreme", [pmax, pmin])
def test_extremes(close, extreme):
    mesh = make_mesh((4,), "i")
    m = shard_map(lambda v: extreme(v, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
    x = R.permutation(32).reshape(4, 8).astype(np.float32)
    choose = x.argmax(0) if extreme is pmax else x.argmin(0)
    ct = R.normal(size=(1, 8)).astype(np.float32)
    want = np.where(np.arange(4)[:, None] == choose, ct, 0)
    close(plait.grad(lambda v: (m(v) * ct).sum())(x), want)
    close(plait.jvp(m, (x,), (x * x,))[1], np.take_along_axis(x * x, choose[None], 0))


def test_operands_that_are_not_divided(mesh, close):
    """The gradient of a copied operand is the sum over its copies, wherever it comes from."""
    f = shard_map(
        lambda a, k: a * k + axis_index("y"),
        mesh=mesh,
        in_specs=(P("x", "y"), P()),
        out_specs=P("x", "y"),
    )
    k = device_put(np.float32(2))
    close(plait.jit(plait.grad(lambda k: (f(A, k) * B).sum()))(k), (A * B).sum())
    rows = shard_map(
        lambda a, w: a * w, mesh=mesh, in_specs=(P("x", "y"), P("x")), out_specs=P("x", "y")
    )
    w = A[:, :1]
    close(plait.grad(lambda w: (rows(A, w) * B).sum())(w), (A * B).sum(1, keepdims=True))

    def closed(k):
        m = shard_map(lambda a: a * k, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        return (m(A) * B).sum()

    close(plait.grad(closed)(k), (A * B).sum())
    close(plait.jit(plait.grad(closed))(k), (A * B).sum())


def test_results_that_are_not_divided(mesh, close):
    """They are means of equal copies, through which a derivative passes once."""
    f = shard_map(
        lambda a: sin(psum(a, ("x", "y"))), mesh=mesh, in_specs=P("x", "y"), out_specs=P()
    )
    blocks = A.reshape(2, 4, 4, 2).sum((0, 2))
    want = np.tile(np.cos(blocks), (2, 4))
    close(plait.grad(lambda a: f(a).sum())(A), want)
    keep = shard_map(lambda a: a * 3, mesh=mesh, in_specs=P(), out_specs=P())
    close(plait.grad(lambda a: (keep(a) * B).sum())(A), 3 * B)


def test_orders(mesh, close):
    """Derivatives of sums of exp(a * s_i), with s a column summed over devices."""
    f = shard_map(
        lambda a: psum(exp(a * psum(a, "y") * 0.1).sum(), ("x", "y")),
        mesh=mesh,
        in_specs=P("x", "y"),
        out_specs=P(),
    )

    def plain(a):
        s = a.reshape(8, 4, 2).sum(1)
        s = plait._ops.shape.concatenate([s] * 4, 1)
        return exp(a * s * 0.1).sum()

    def third(h):
        return plait.grad(
            lambda a: (plait.grad(lambda a: (plait.grad(h)(a) * B).sum())(a) * A).sum()
        )

    close(plait.jit(plait.grad(f))(A), plait.jit(plait.grad(plain))(A))
    step = np.zeros_like(A)
    step[2, 3] = 1e-2
    slope = (float(plain(A + step)) - float(plain(A - step))) / 2e-2
    assert abs(float(plait.grad(f)(A)[2, 3]) - slope) < 1e-2 * (1 + abs(slope))
    second = lambda h: plait.jit(plait.grad(lambda a: (plait.grad(h)(a) * B).sum()))  # noqa: E731
    close(second(f)(A), second(plain)(A))
    close(plait.jit(third(f))(A), plait.jit(third(plain))(A))
    over = lambda h: plait.jit(lambda a: plait.jvp(plait.grad(h), (a,), (B,))[1])  # noqa: E731
    close(over(f)(A), second(plain)(A))
    kept = plait.checkpoint(f)
    close(plait.jit(plait.grad(kept))(A), plait.jit(plait.grad(plain))(A))
    close(second(kept)(A), second(plain)(A))


def test_linearize_and_pull_twice(mesh, close):
    f = shard_map(lambda a: sin(a) * psum(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    total = A.reshape(2, 4, 8).sum(0)
    out, push = plait.linearize(f, A)

    def dot(t):
        s = np.tile(total, (2, 1))
        return np.cos(A) * t * s + np.sin(A) * np.tile(t.reshape(2, 4, 8).sum(0), (2, 1))

    close(out, np.sin(A) * np.tile(total, (2, 1)))
    for t in (B, A):
        close(push(t), dot(t))
    _, pull = plait.vjp(f, A)
    for ct in (B, A):
        assert abs((np.asarray(pull(ct)[0]) * A).sum() - (dot(A) * ct).sum()) < 1e-2


def test_custom_rules_and_checkpoints_inside(mesh, close):
    @plait.custom_jvp
    def cube(x):
        return x**3

    cube.defjvp(lambda xs, ts: (cube(xs[0]), 30 * ts[0]))

    @plait.custom_vjp
    def line(x):
        return x * 2

    line.defvjp(lambda x: (line(x), psum(x, "x")), lambda s, ct: (ct * s,))

    def grads(g, want):
        m = shard_map(g, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        close(plait.jit(plait.grad(lambda a: (m(a) * B).sum()))(A), want)
        close(plait.grad(lambda a: (m(a) * B).sum())(A), want)

    grads(cube, 30 * B)
    grads(line, B * np.tile(A.reshape(2, 4, 8).sum(0), (2, 1)))
    grads(plait.checkpoint(lambda v: sin(sin(v))), B * np.cos(np.sin(A)) * np.cos(A))


def test_derivatives_inside(mesh, close):
    f = shard_map(plait.grad(lambda v: (v**2).sum()), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    close(f(A), 2 * A)
    close(plait.grad(lambda a: (f(a) * B).sum())(A), 2 * B)
    w, specs = np.float32(1.5), {"mesh": mesh, "in_specs": (P(), P("x", "y")), "out_specs": P()}
    local = plait.grad(lambda w, a: (a * w * w).sum())
    close(shard_map(local, **specs)(w, A), 3 * A.sum())  # of one value that all devices use
    own = lambda w, a: psum(local(w, a), ("x", "y"))  # noqa: E731
    close(shard_map(own, **specs, check_vma=False)(w, A), 3 * A.sum())  # of one device's program


def test_some_axes_by_hand(mesh, lies, close):
    f = shard_map(
        lambda v: sin(psum(v, "y")) * psum(v * axis_index("y"), "y"),
        mesh=mesh,
        in_specs=P(None, "y"),
        out_specs=P(),
        axis_names={"y"},
    )

    def plain(a):
        parts = a.reshape(8, 4, 2)
        return sin(parts.sum(1)) * (parts * np.arange(4.0, dtype=np.float32)[:, None]).sum(1)

    first = lambda f: plait.grad(lambda a: f(a).sum())  # noqa: E731
    second = lambda f: plait.grad(lambda a: (first(f)(a) * B).sum())  # noqa: E731
    for h in (first, second):
        want = plait.jit(h(plain))(A)
        close(plait.jit(h(f))(A), want)
        close(plait.jit(h(f))(device_put(A, lies("x", "y"))), want)


def test_constraints(lies, close):
    f = lambda a: (sin(with_sharding_constraint(a, lies("x", "y"))) * B).sum()  # noqa: E731
    for wrap in (lambda g: g, plait.jit):
        g = wrap(plait.grad(f))(A)
        close(g, np.cos(A) * B)
        assert g.sharding == lies("x", "y")
    second = plait.jit(plait.grad(lambda a: (plait.grad(f)(a) * A).sum()))
    close(second(A), -np.sin(A) * A * B)
    close(plait.grad(lambda a: (plait.device_put(a, lies("y")) * B).sum())(A), B)


def test_what_prints_prints_once_per_piece(mesh, close):
    out = io.StringIO()

    def local(v):
        debug_print("{:.2f}", v[0, 0], file=out)
        return v * v

    f = shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
    close(plait.jit(plait.grad(lambda a: f(a).sum()))(A), 2 * A)
    assert len(out.getvalue().split()) == 8


def test_residuals_that_are_operands_stay_operands(mesh):
    """Nothing is kept twice: what the second half reads of the arguments it takes from there."""
    f = shard_map(
        lambda a, w: psum(sin(a) @ w, "y"),
        mesh=mesh,
        in_specs=(P("x", "y"), P("y")),
        out_specs=P("x"),
    )
    p = plait.make_program(lambda a, w: plait.linearize(lambda a: f(a, w), a)[1](a))(A, B)
    first, second = [e for e in p.eqns if e.prim is shard_map_p][:2]
    pieces = [s for s in first.params["out_specs"] if s and s[0] == ("x", "y")]
    assert len(pieces) == 1  # cos(a), and not w
    assert any(a is b for a in first.inputs for b in second.inputs)
