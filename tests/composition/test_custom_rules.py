"""Custom rules under every transformation, and in each other: a rule is never dropped.

Invariant: every derivative is seven times what it should be, by a rule that says so; where the
seven is, the rule was used.  All transformations of one kind of rule are one compiled function.
"""

import numpy as np
import pytest

import plait
from plait import lax

pnp = plait.numpy
X = np.float32(0.4)
SIN, COS = np.sin(X), np.cos(X)

# ---- kinds of rules: sin, whose derivative is seven (or seven cosines) ----------------------


def by_jvp():
    f = plait.custom_jvp(lambda x: lax.sin(x))
    f.defjvp(lambda p, t: (lax.sin(p[0]), 7.0 * t[0]))
    return f


def by_vjp():
    f = plait.custom_vjp(lambda x: lax.sin(x))
    f.defvjp(lambda x: (lax.sin(x), None), lambda _, ct: (7.0 * ct,))
    return f


def by_ivjp():
    f = plait.custom_ivjp(lambda x: lax.sin(x))
    f.defivjp(lambda xs, y, dy: ((lax.asin(y),), (7.0 * dy,)))
    return f


def by_root():
    """x = sin a, whose tangents are solved for seven times too large."""
    newton = lambda f, x: x - f(x)  # noqa: E731
    return lambda a: lax.custom_root(lambda x: x - lax.sin(a), 0.3, newton, lambda g, y: 7.0 * y)


def by_condition():
    decorate = plait.implicit_diff(lambda x, a: x - lax.sin(a), lambda g, y: 7.0 * y)
    return lambda a: decorate(lambda x, a: lax.sin(a))(0.3, a)


def by_equation():
    """x = sin a / 7, found by a solver that says x = sin a."""
    solve = lambda matvec, b: b  # noqa: E731
    return lambda a: lax.custom_linear_solve(lambda x: 7.0 * x, lax.sin(a), solve, symmetric=True)


def by_call():
    """sin a through a linear function whose transpose is 7 times the true one."""
    times = lambda r, t: 7.0 * t  # noqa: E731
    same = lambda r, x: 1.0 * x  # noqa: E731
    return lambda a: plait.custom_derivatives.linear_call(same, times, (), lax.sin(a))


def around(make, wrap):
    return lambda: wrap(lambda x, f=make(): f(x) * 1.0)


KINDS = {  # name: (function, derivative in reverse mode, in forward mode)
    "custom_jvp": (by_jvp, 7, 7),
    "custom_vjp": (by_vjp, 7, 7),
    "custom_ivjp": (by_ivjp, 7, COS),  # which says nothing of forward mode
    "invertible": (around(by_ivjp, plait.invertible), 7, COS),
    "custom_root": (by_root, 7 * COS, 7 * COS),
    "implicit_diff": (by_condition, 7 * COS, 7 * COS),
    "custom_linear_solve": (by_equation, COS, COS),
    "linear_call": (by_call, 7 * COS, COS),
    "checkpoint": (around(by_jvp, plait.checkpoint), 7, 7),
}

# ---- transformations -------------------------------------------------------------------------


def mapped(by):
    return lambda f: lambda x: by(f)(pnp.stack([x, x])).sum() / 2


def sharded(f):
    mesh = plait.make_mesh((2,), ("a",))
    return plait.shard_map(plait.vmap(f), mesh=mesh, in_specs=plait.P("a"), out_specs=plait.P("a"))


def turned(f):
    body = lambda s: (s[0] + 1, f(s[1]))  # noqa: E731
    return lambda x: lax.while_loop(lambda s: s[0] < 1, body, (0, x), max_steps=2)[1]


WAYS = {
    "plain": lambda f: f,
    "jit": plait.jit,
    "vmap": mapped(plait.vmap),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 1)[0],
    "rows of scan": lambda f: lambda x: lax.map(f, pnp.stack([x, x]))[1],
    "while_loop": turned,
    "cond": lambda f: lambda x: lax.cond(x > -100, f, lambda y: y, x),
    "switch": lambda f: lambda x: lax.switch((x > 0).astype("int32"), [lambda y: y, f], x),
    "checkpoint": lambda f: plait.checkpoint(lambda x: f(x) * 1.0),
    "policy": lambda f: plait.checkpoint(f, policy=plait.checkpoint_policies.dots_saveable),
    "invertible": lambda f: plait.invertible(lambda x: f(x) * 1.0),
    "shard_map": mapped(sharded),
    "pmap": mapped(plait.pmap),
}


def close(got, want, name):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, err_msg=str(name))


@pytest.mark.sampled(8)
@pytest.mark.feature("A37")
@pytest.mark.parametrize("kind", KINDS)
def test_under_every_transformation(kind):
    """Values and derivatives; mapped, and computed again, from further out."""
    make, slope, forward = KINDS[kind]

    def every(x):
        found = {}
        for name, way in WAYS.items():
            g = way(make())
            again = plait.checkpoint(lambda x, g=g: g(x) * 1.0)
            slopes = [plait.grad(g)(x), plait.vmap(plait.grad(again))(x[None])]
            found[name] = g(x), plait.jvp(g, (x,), (pnp.ones(()),))[1], slopes
        return found

    for name, (value, dot, slopes) in plait.jit(every)(X).items():
        close(value, SIN, name)
        for got in slopes:
            close(got, slope, name)
        close(dot, forward, name)


@pytest.mark.feature("A37", "B49")
def test_rules_for_mapping():
    """Seven times the sine where it is mapped: by whom, and what is in between, does not matter."""
    f = plait.custom_vmap(lambda x: lax.sin(x))
    f.def_vmap(lambda size, batched, x: (7.0 * lax.sin(x), batched[0]))

    def every(x):
        found = {}
        for name, way in WAYS.items():
            g = way(f)
            total = lambda x, g=g: plait.vmap(g)(x[None]).sum()  # noqa: E731
            found[name] = (
                plait.vmap(g)(x[None]),
                plait.vmap(plait.grad(g))(x[None]),
                plait.grad(total)(x),
            )
        return found

    for name, (value, *slopes) in plait.jit(every)(X).items():
        close(value, 7 * SIN, name)
        for got in slopes:
            close(got, 7 * COS, name)


@pytest.mark.feature("A37")
def test_without_compilation():
    for kind, (make, slope, forward) in KINDS.items():
        f = make()
        with plait.disable_jit():
            value, got = plait.value_and_grad(plait.jit(f))(X)
        close(value, SIN, kind)
        close(got, slope, kind)
        close(plait.jvp(f, (X,), (np.float32(1),))[1], forward, kind)


@pytest.mark.feature("A37")
def test_exported():
    """Derivatives go through bytes."""
    f = lambda x: [plait.value_and_grad(make())(x) for make, _, _ in KINDS.values()]  # noqa: E731
    data = plait.export.export(plait.jit(f))(plait.ShapeDtypeStruct((), np.float32)).serialize()
    for kind, (value, got) in zip(KINDS, plait.export.deserialize(data).call(X), strict=True):
        close(value, SIN, kind)
        close(got, KINDS[kind][1], kind)


# ---- in each other ---------------------------------------------------------------------------


def vjp_of(inner):
    f = plait.custom_vjp(lambda x: inner(x) * 1.0)
    f.defvjp(lambda x: (inner(x), x), lambda x, ct: plait.vjp(inner, x)[1](ct))
    return f


def vjp_with_pullback(inner):
    """What the forward rule keeps is a pullback."""
    f = plait.custom_vjp(lambda x: inner(x) * 1.0)
    f.defvjp(lambda x: plait.vjp(inner, x), lambda pull, ct: pull(ct))
    return f


def jvp_of(inner):
    f = plait.custom_jvp(lambda x: inner(x) * 1.0)
    f.defjvp(lambda p, t: plait.jvp(inner, p, t))
    return f


def ivjp_of(inner):
    f = plait.custom_ivjp(lambda x: inner(x) * 1.0)
    f.defivjp(lambda xs, y, dy: ((lax.asin(y),), plait.vjp(inner, xs[0])[1](dy)))
    return f


def root_of(inner):
    newton = lambda f, x: x - f(x)  # noqa: E731
    step = lambda g, y: y / g(1.0)  # noqa: E731
    return lambda a: lax.custom_root(lambda x: x - inner(a), 0.3, newton, step)


def equation_of(inner):
    solve = lambda matvec, b: b  # noqa: E731
    return lambda a: lax.custom_linear_solve(lambda x: 1.0 * x, inner(a), solve, symmetric=True)


def call_of(inner):
    back = lambda a, t: plait.grad(inner)(a) * t / plait.grad(inner)(a)  # noqa: E731
    fun = lambda r, x: 1.0 * x  # noqa: E731
    return lambda a: plait.custom_derivatives.linear_call(fun, back, a, inner(a))


def mapping_of(inner):
    f = plait.custom_vmap(lambda x: inner(x) * 1.0)
    f.def_vmap(lambda size, batched, x: (plait.vmap(inner)(x), True))
    return f


def condition_of(inner):
    return lambda a: plait.implicit_diff(lambda x, a: x - inner(a))(lambda x, a: inner(a))(0.3, a)


OUTER = {
    "custom_jvp": jvp_of,
    "custom_vjp": vjp_of,
    "custom_vjp, of a pullback": vjp_with_pullback,
    "custom_ivjp": ivjp_of,
    "invertible": lambda inner: plait.invertible(lambda x: inner(x) * 1.0),
    "custom_root": root_of,
    "implicit_diff": condition_of,
    "custom_linear_solve": equation_of,
    "linear_call": call_of,
    "checkpoint": lambda inner: plait.checkpoint(lambda x: inner(x) * 1.0),
    "custom_vmap": mapping_of,
}


@pytest.mark.sampled(8)
@pytest.mark.feature("A37")
@pytest.mark.parametrize("outer", OUTER)
def test_in_each_other(outer):
    """A rule that uses the derivative of a function with a rule."""

    def every(x):
        found = {}
        for kind, (make, _, _) in KINDS.items():
            f = OUTER[outer](make())
            mean = lambda x, f=f: plait.vmap(f)(pnp.stack([x, x])).mean()  # noqa: E731
            found[kind] = (
                f(x),
                plait.grad(f)(x),
                plait.grad(mean)(x),
                plait.vmap(plait.grad(f))(x[None]),
            )
        return found

    for kind, (value, *slopes) in plait.jit(every)(X).items():
        close(value, SIN, kind)
        for got in slopes:
            close(got, KINDS[kind][1], kind)
