"""Explicit axes under derivatives and mapping.

The table was written down from jax 0.10.2 on eight devices: for each program the spec of its
result, or that it is an error.  Values are those of one device.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
import plait_sharding as sharding
from plait import lax
from plait._core.primitive import registered
from plait.errors import AxisError, TypeRule
from plait.ext.rules import expand_rules
from plait_sharding import AxisType, P, auto_axes, make_mesh, reshard, shard_map, use_mesh
from plait_sharding.ext import explicit_rules

PROGRAMS = [
    ('J.grad(lambda a: xp.sin(a).sum())(A((8, 4), "x", "y"))', ("x", "y")),
    ('J.grad(lambda a: (a@A((4, 8), None, "y")).sum())(A((8, 4), "x", None))', ("x", None)),
    ('J.grad(lambda b: (A((8, 4), "x", None)@b).sum())(A((4, 8), None, "y"))', (None, "y")),
    (
        'J.grad(lambda b: xp.einsum("ij, jk->ik", A((8, 4), "x", "y"), b, '
        'out_sharding=P("x", None)).sum())(A((4, 8), "y", None))',
        ("y", None),
    ),
    ('J.grad(lambda b: (A((8, 4), "x", "y")*b).sum())(A((4, ), "y"))', ("y",)),
    ('J.grad(lambda b: (A((8, 4), "x", "y")*b).sum())(A((4, )))', (None,)),
    ('J.grad(lambda b: (A((8, 4), "x", "y")*b).sum())(A((8, 4)))', (None, None)),
    ('J.grad(lambda b: (sh.reshard(b, P("y", None))**2).sum())(A((8, 4), "x", None))', ("x", None)),
    ('J.grad(lambda b: b.max(0).sum())(A((8, 4), "x", "y"))', ("x", "y")),
    ('J.grad(lambda b: J.nn.logsumexp(b, 1).sum())(A((8, 4), "x", "y"))', ("x", "y")),
    ('J.grad(lambda b: lax.concatenate([b, 2*b], 1).sum())(A((8, 4), "x", None))', ("x", None)),
    ('J.grad(lambda b: b[:, 1: 3].sum())(A((8, 4), "x", None))', ("x", None)),
    ('J.grad(lambda b: (lax.reshape(b, (2, 4, 4))**2).sum())(A((8, 4), "x", "y"))', ("x", "y")),
    ('J.grad(lambda b: (lax.cumsum(b, 1)**2).sum())(A((8, 4), "x", None))', ("x", None)),
    (
        "J.grad(lambda b: lax.conv_general_dilated(b, A((4, 2, 3)), (1, ), "
        '"SAME").sum())(A((8, 2, 6), "x", None, None))',
        ("x", None, None),
    ),
    ('J.grad(lambda b: (b[xp.array([0, 2])]**2).sum())(A((8, 4), None, "y"))', (None, "y")),
    ('J.grad(lambda a: J.grad(lambda b: (b**3).sum())(a).sum())(A((8, 4), "x", "y"))', ("x", "y")),
    ('J.value_and_grad(lambda a: (a**2).sum())(A((8, 4), "x", "y"))[1]', ("x", "y")),
    ('J.jvp(xp.sin, (A((8, 4), "x", "y"), ), (A((8, 4), "x", "y"), ))[1]', ("x", "y")),
    (
        'J.jvp(lambda a: a@A((4, 8), None, "y"), (A((8, 4), "x", None), ), (A((8, 4), '
        '"x", None), ))[1]',
        ("x", "y"),
    ),
    ('J.vjp(lambda a: a.sum(0), A((8, 4), "x", "y"))[1](A((4, ), "y"))[0]', ("x", "y")),
    ("J.jacfwd(J.grad(lambda a: (a**3).sum()))(A((4, )))", (None, None)),
    ('J.vmap(lambda a: a*2)(A((8, 4), "x", "y"))', ("x", "y")),
    ('J.vmap(lambda a: seen(a))(A((8, 4), "x", "y"))', ("y",)),
    ('J.vmap(lambda a: a.sum(), 1)(A((8, 4), "x", "y"))', ("y",)),
    ('J.vmap(lambda a, b: a*b)(A((8, 4), "x", "y"), A((8, 4), "x", None))', ("x", "y")),
    ('J.vmap(lambda a, b: a*b)(A((8, 8), "x", None), A((8, 8), "y", None))', "error"),
    ('J.vmap(lambda a, b: a*b, (0, None))(A((8, 4), "x", None), A((4, ), "y"))', ("x", "y")),
    ('J.vmap(lambda a, b: a*b, (0, None))(A((8, 4), "x", None), A((4, ), "x"))', "error"),
    (
        'J.vmap(lambda a, b: a@b)(A((8, 4, 4), "x", None, None), A((8, 4, 4), "x", None, "y"))',
        ("x", None, "y"),
    ),
    (
        'J.vmap(lambda a, b: a@b, (0, None))(A((8, 4, 4), "x", None, None), A((4, 4), None, "y"))',
        ("x", None, "y"),
    ),
    ('J.vmap(lambda a: sh.reshard(a, P("y")))(A((8, 4), "x", None))', ("x", "y")),
    ('J.vmap(lambda a: a*2, out_axes=1)(A((8, 4), "x", "y"))', ("y", "x")),
    ('J.vmap(J.grad(lambda a: (a**2).sum()))(A((8, 4), "x", "y"))', ("x", "y")),
    ('J.grad(lambda a: J.vmap(lambda r: (r**2).sum())(a).sum())(A((8, 4), "x", "y"))', ("x", "y")),
    ('J.vmap(lambda a: lax.cumsum(a, 0))(A((8, 4), "x", None))', ("x", None)),
    ('J.vmap(lambda a: a[1])(A((8, 4), "x", None))', ("x",)),
    ('J.vmap(lambda a: a.sum())(A((8, 4), "x", "y"))', ("x",)),
    (
        "J.grad(lambda a: lax.scan(lambda c, r: (c*r, c), a, A((8, 4), None, "
        '"y"))[0].sum())(A((4, ), "y"))',
        ("y",),
    ),
    (
        'J.grad(lambda b: lax.scan(lambda c, r: (c*r, c), A((4, ), "y"), '
        'b)[0].sum())(A((8, 4), None, "y"))',
        (None, "y"),
    ),
    (
        'J.vmap(lambda a, b: lax.scan(lambda c, r: (c*r, c), a, b)[0])(A((8, 4), "x", '
        '"y"), A((8, 3, 4), "x", None, "y"))',
        ("x", "y"),
    ),
    (
        "J.grad(lambda b: lax.cond(True, lambda a: a*1., lambda a: a*2., b).sum())(A((8, "
        '4), "x", "y"))',
        ("x", "y"),
    ),
    (
        'J.grad(lambda a: J.checkpoint(lambda b: xp.sin(b)*b)(a).sum())(A((8, 4), "x", "y"))',
        ("x", "y"),
    ),
    ('J.jit(J.grad(lambda a: (a@A((4, 8), None, "y")).sum()))(A((8, 4), "x", None))', ("x", None)),
    ('lax.map(lambda r: r*2, A((8, 4), None, "y"))', (None, "y")),
    (
        'J.grad(lambda a: sh.auto_axes(lambda a, b: a@b, out_sharding=P("x", None))(a, '
        'A((4, 8), "y", None)).sum())(A((8, 4), "x", "y"))',
        ("x", "y"),
    ),
]
"""Programs whose results lie as jax says."""

OTHERS = [
    (
        'J.grad(lambda b: (lax.sort(b, dimension=1)**2).sum())(A((8, 4), "x", None))',
        ("x", None),
        "error",
    ),
]
"""Programs that differ: how ours lie, and what jax says."""


@pytest.fixture(scope="module")
def mesh():
    return make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def one_device():
    return use_mesh(make_mesh((1, 1), ("x", "y"), axis_types=AxisType.Explicit))


def host(shape):
    return (np.arange(np.prod(shape)) % 7 + 1).astype(np.float32).reshape(shape)


def lying(shape, *spec):
    return plait.device_put(host(shape), P(*spec))


def entries(sharding, ndim):
    found = tuple(sharding.spec)
    return (*found, *[None] * (ndim - len(found)))


def type_of(x):
    return entries(plait.typeof(x).sharding, x.ndim)


def names(into):
    """What programs speak of; `seen` notes the type of a traced value."""
    return {
        "A": lying, "xp": pnp, "lax": lax, "J": plait, "sh": sharding, "P": P,
        "seen": lambda x: into.append(type_of(x)) or x,
    }  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("source", "spec"), PROGRAMS + [row[:2] for row in OTHERS])
def test_results(source, spec, mesh, close):
    inside = []
    with use_mesh(mesh):
        if spec == "error":
            with pytest.raises((TypeRule, AxisError)) as e:
                eval(source, names(inside))
            assert e.value.fix and e.value.where
            return
        out = eval(source, names(inside))
        assert (inside or [type_of(out)])[0] == spec
        assert inside or entries(out.sharding, out.ndim) == spec  # and so it is
        traced = plait.eval_shape(lambda: eval(source, names([])))
        assert entries(traced.sharding, out.ndim) == type_of(out)
    with one_device():
        close(out, eval(source, names([])))


# ---- what rules do on the way --------------------------------------------------------------


def lies_as(f, mesh, close, *args):
    """f(*args) with arguments that lie so and in one piece; its leaves lie as their first does."""
    with use_mesh(mesh):
        given = [lying(*a) for a in args]
        got = f(*given)
        jitted = plait.jit(f)(*given)
    with one_device():
        want = f(*[lying(*a) for a in args])
    close(got, want)
    close(jitted, want)
    return type_of(got), type_of(jitted), entries(jitted.sharding, jitted.ndim)


@plait.custom_vjp
def doubled(x):
    return 2 * x


doubled.defvjp(lambda x: (2 * x, x), lambda r, ct: (2 * ct + 0 * r,))


@plait.custom_jvp
def cubed(x):
    return x**3


cubed.defjvp(lambda p, t: (p[0] ** 3, 3 * p[0] ** 2 * t[0]))


def by_policy(a):
    """Products are kept, sines are done again."""
    weights = pnp.arange(8.0).reshape(4, 2) / 8
    f = plait.checkpoint(
        lambda b: pnp.sin(b @ weights), policy=plait.checkpoint_policies.dots_saveable
    )
    return f(a).sum()


LOSSES = {
    "attention": lambda a: plait.nn.softmax(a @ pnp.arange(8.0).reshape(4, 2)).sum(),
    "custom_vjp": lambda a: (doubled(a) ** 2).sum(),
    "custom_jvp": lambda a: (cubed(a) ** 2).sum(),
    "sort": lambda a: (pnp.sort(a, 1) * pnp.arange(4.0)).sum(),
    "gather": lambda a: (a[:, pnp.array([0, 2, 2])] ** 2).sum(),
    "scatter": lambda a: (a.at[:, 1].mul(3.0) ** 2).sum(),
    "top_k": lambda a: (lax.top_k(a, 2)[0] ** 2).sum(),
    "variance": lambda a: a.var(0).sum(),
    "norms": lambda a: pnp.sqrt((a**2).sum(1)).sum(),
    "cumprod": lambda a: lax.cumprod(a, 1).sum(),
    "checkpoint": lambda a: plait.checkpoint(lambda b: pnp.sin(b) * b)(a).sum(),
    "policy": by_policy,
    "scan": lambda a: (lax.scan(lambda c, _: (c * a, c), a, None, length=3)[1] ** 2).sum(),
    "while": lambda a: lax.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * a), (0, a), max_steps=4
    )[1].sum(),
    "cond": lambda a: lax.cond(a.sum() > 0, pnp.sin, pnp.cos, a).sum(),
    "reshard": lambda a: (reshard(a, P(None, "x")) ** 2).sum(),
    "auto_axes": lambda a: auto_axes(lambda v: v.T @ v, out_sharding=P())(a).sum(),
    "shard_map": lambda a: shard_map(
        lambda v: v * lax.psum(v.sum(0), "x"), in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )(a).sum(),
    "mapped": lambda a: plait.vmap(lambda r: pnp.sin(r).sum() * r)(a).sum(),
    "mapped scan": lambda a: plait.vmap(
        lambda r: lax.scan(lambda c, v: (c * v, c), 1.0, r)[0]
    )(a).sum(),
}  # fmt: skip


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("spec", [("x",), ("x", None), (("x", "y"),)])
def test_gradients_lie_as_their_arguments(name, spec, mesh, close):
    shape = (8, 4)
    want = (*spec, None)[:2]
    found = lies_as(plait.grad(LOSSES[name]), mesh, close, (shape, *spec))
    assert found == (want,) * 3


def test_gradients_against_finite_differences(mesh):
    x, w = host((8, 4)) / 7, host((4, 8)) / 7

    def loss(a, b):
        return (pnp.tanh(a @ b) ** 2).sum()

    with use_mesh(mesh):
        a, b = plait.device_put((x, w), (P("x"), P(None, "y")))
        da, db = plait.jit(plait.grad(loss, (0, 1)))(a, b)
        assert type_of(da) == ("x", None) and type_of(db) == (None, "y")
    value = lambda a, b: (np.tanh(np.float64(a) @ b) ** 2).sum()  # noqa: E731
    for i in ((0, 0), (5, 2), (7, 3)):
        step = np.zeros_like(x, np.float64)
        step[i] = 1e-5
        slope = (value(x + step, w) - value(x - step, w)) / 2e-5
        np.testing.assert_allclose(np.asarray(da)[i], slope, rtol=1e-3)


def test_tangents_are_brought_to_their_values(mesh, close):
    with use_mesh(mesh):
        x, t = lying((8, 4), "x"), lying((8, 4), None, "y")
        _, out = plait.jvp(pnp.sin, (x,), (t,))
        assert type_of(out) == ("x", None)
        _, pull = plait.vjp(pnp.sin, x)
        assert type_of(pull(t)[0]) == ("x", None)
    close(out, np.cos(host((8, 4))) * host((8, 4)))


def test_the_mapped_axis_is_divided_inside_loops(mesh):
    """What is mapped stays in pieces in a loop: nothing is gathered there."""
    f = plait.jit(plait.vmap(lambda r, c: lax.fori_loop(0, 3, lambda i, v: v * r, c)))
    with use_mesh(mesh):
        text = f.lower(lying((8, 4), "x"), lying((8, 4), "x")).compile().as_text()
    assert "all-gather" not in text and "all-reduce" not in text


def test_maps_in_maps(mesh, close):
    f = plait.vmap(plait.vmap(lambda a, b: a * b + 1), (1, 0), 1)
    found = lies_as(f, mesh, close, ((8, 4), "x", "y"), ((4, 8), "y", "x"))
    assert found == (("x", "y"),) * 3
    g = plait.vmap(plait.vmap(plait.grad(lambda a: a**3)))
    assert lies_as(g, mesh, close, ((8, 4), "x", "y")) == (("x", "y"),) * 3


def test_names_of_a_mapped_axis_must_agree(mesh, told):
    with use_mesh(mesh):
        a, b = lying((8, 8), "x"), lying((8, 8), "y")
        told(lambda: plait.vmap(pnp.add)(a, b), "`x2`", "'x'", "'y'")
        told(lambda: plait.vmap(pnp.add, (0, None))(a, a[0:8].sum(1)), "`x2`", "not mapped")
        told(lambda: plait.vmap(pnp.sin, spmd_axis_name="y")(a), "`x`", "'x'")
        told(lambda: plait.vmap(lambda r: reshard(r, P("x")))(a), "'x'")


def test_random_numbers_of_divided_keys(mesh):
    key = plait.random.key(1)
    want = np.stack([np.asarray(plait.random.normal(k, (4,))) for k in plait.random.split(key, 8)])
    with use_mesh(mesh):
        keys = reshard(plait.random.split(key, 8), P("x"))
        out = plait.vmap(lambda k: plait.random.normal(k, (4,)))(keys)
        assert type_of(out) == ("x", None)
    np.testing.assert_array_equal(out, want)


def test_derivatives_of_derivatives(mesh, close):
    f = lambda a: plait.grad(lambda b: (plait.grad(lambda c: (c**4).sum())(b) ** 2).sum())(a)  # noqa: E731
    assert lies_as(f, mesh, close, ((8, 4), "x", "y")) == (("x", "y"),) * 3


def test_linear_programs(mesh, close):
    def f(a):
        _, g = plait.linearize(lambda v: v @ v.T, a)
        return g(a)

    with use_mesh(mesh):
        x = lying((8, 4), None, None)
        close(f(x), 2 * host((8, 4)) @ host((8, 4)).T)
    f = plait.linear_transpose(lambda v: v.sum(0), plait.ShapeDtypeStruct((8, 4), "float32"))
    close(f(host((4,)))[0], np.broadcast_to(host((4,)), (8, 4)))


def test_every_operation_is_answered():
    """Each first-order operation with operands has a rule, or is said by what it expands to."""
    every = map(registered, plait.testing.coverage("lower"))
    # not of those that tests beside this one define
    ours = ("core", "linalg", "special", "nn", "sharding")
    asked = [p for p in every if p.higher is None and p.namespace in ours]
    left = {
        p.name
        for p in asked
        if explicit_rules.find(p) is None and expand_rules.find(p) is None and p.effect is None
    }
    assert left == {"core.axis_index", "core.dim", "core.iota", "core.platform_index"}


def test_a_spec_without_names_leaves_explicit_axes():
    """Over a mesh without explicit axes it says nothing, so the compiler divides the value."""
    over = make_mesh((2, 4), ("x", "y"), AxisType.Explicit)
    auto = over.abstract_mesh.update_axis_types(dict.fromkeys("xy", AxisType.Auto))
    value = np.arange(32, dtype=np.float32).reshape(8, 4)
    seen = []

    def f(x):
        with sharding.use_abstract_mesh(auto):
            y = reshard(x * 2, P(None, None))
            seen.append(plait.typeof(y).sharding)
            y = pnp.sin(y) @ pnp.sin(y).T
        return reshard(y, P("x"))

    with use_mesh(over):
        x = plait.device_put(value, P("x", "y"))
        for run in (f, plait.jit(f), plait.jit(lambda x: plait.vjp(f, x)[0])):
            out = run(x)
            np.testing.assert_allclose(
                out, np.sin(value * 2) @ np.sin(value * 2).T, rtol=1e-5, atol=1e-5
            )
            assert out.sharding == sharding.NamedSharding(over, P("x"))
        step = plait.jit(plait.grad(lambda x: f(x).sum()))(x)
    assert seen == [None] * len(seen)
    assert step.sharding == x.sharding
    inner = np.cos(value * 2) * 2 * np.sin(value * 2).sum(0) * 2
    np.testing.assert_allclose(step, inner, rtol=1e-5, atol=1e-5)
