"""Units follow numbers through every transformation, and what does not fit is an error."""

from fractions import Fraction

import numpy as np
import pytest
from plait_units import ONE, Quantity, base, kilogram, metre, second, with_units

import plait
import plait.numpy as pnp
from plait import lax

X = np.array([1.0, 4.0, 9.0], np.float32)
T = np.array([2.0, 2.0, 3.0], np.float32)


def number(q):
    return q.value if isinstance(q, Quantity) else q


def measured(got, want, unit):
    assert (got.unit if isinstance(got, Quantity) else None) == unit
    np.testing.assert_allclose(number(got), want, rtol=1e-5)


def stacked(x):
    return lax.scan(lambda c, row: (c + row, c * row), x[0] * 0, x)[1]


def counted(x):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + x), (0, x))[1]


def chosen(x, t):
    return lax.cond(t[0] > t[1] * 3, lambda: x, lambda: x / 2)


FUNCTIONS = {  # name: (f, the same in numpy, unit of the result for metres and seconds)
    "quotient": (lambda x, t: x / t, lambda x, t: x / t, metre / second),
    "square": (lambda x, t: (x / t) ** 2, lambda x, t: (x / t) ** 2, (metre / second) ** 2),
    "root": (lambda x, t: pnp.sqrt(x), lambda x, t: np.sqrt(x), metre ** Fraction(1, 2)),
    "dot": (lambda x, t: x @ t, lambda x, t: x @ t, metre * second),
    "mean": (lambda x, t: x.mean() + x.max(), lambda x, t: x.mean() + x.max(), metre),
    "std": (lambda x, t: pnp.std(x), lambda x, t: np.std(x), metre),
    "ratio": (lambda x, t: pnp.exp(x / x[0]), lambda x, t: np.exp(x / x[0]), ONE),
    "compare": (lambda x, t: x > x[1], lambda x, t: x > x[1], None),
    "where": (lambda x, t: pnp.where(x > x[0], x, 0), lambda x, t: np.where(x > 1, x, 0), metre),
    "sorted": (lambda x, t: pnp.sort(-x), lambda x, t: np.sort(-x), metre),
    "place": (lambda x, t: pnp.argmax(x), lambda x, t: np.argmax(x), None),
    "plain": (lambda x, t: x + 1.0, lambda x, t: x + 1, metre),
    "scan": (lambda x, t: stacked(x), lambda x, t: np.array([0, 4, 45]), metre**2),
    "while": (lambda x, t: counted(x), lambda x, t: 4 * x, metre),
    "cond": (lambda x, t: chosen(x, t), lambda x, t: x / 2, metre),
    "jit": (plait.jit(lambda x, t: x * t), lambda x, t: x * t, metre * second),
    "vmap": (plait.vmap(lambda x, t: x / t), lambda x, t: x / t, metre / second),
    "grad": (plait.grad(lambda x, t: (x * x * t).sum()), lambda x, t: 2 * x * t, metre * second),
    "checkpoint": (plait.checkpoint(lambda x, t: x * x), lambda x, t: x * x, metre**2),
    "jvp": (
        lambda x, t: plait.jvp(lambda v: v * v * v, (x,), (x,))[1], lambda x, t: 3 * x**3, metre**3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("compiled", [False, True])
def test_values_and_units(name, compiled):
    f, reference, unit = FUNCTIONS[name]
    run = with_units(f)
    got = (plait.jit(run) if compiled else run)(Quantity(X, metre), Quantity(T, second))
    measured(got, reference(X, T), unit)


def test_under_and_over_everything():
    api = lambda f: lambda x: number(with_units(f)(Quantity(x, metre)))
    plait.testing.transform_suite(api, lambda f: f, [X], at_least=50)


def test_from_outside():
    square = with_units(lambda x: x * x)
    q = Quantity(X, metre)
    measured(plait.vmap(square)(q), X * X, metre**2)
    measured(plait.jit(plait.vmap(plait.jit(square)))(q), X * X, metre**2)
    area = lambda x: square(Quantity(x, metre)).value.sum()
    np.testing.assert_allclose(plait.grad(area)(X), 2 * X)
    np.testing.assert_allclose(plait.checkpoint(plait.grad(area))(X), 2 * X)
    last, _ = lax.scan(
        lambda c, x: (with_units(lambda a, b: a + b)(c, x), None), Quantity(0.0, metre), q
    )
    measured(last, X.sum(), metre)


def test_on_eight_devices(rows):
    mesh, cut = rows
    x = np.arange(16, dtype=np.float32)
    total = lambda x: lax.psum((x * x).sum(), "d")
    inside = with_units(plait.shard_map(total, mesh=mesh, in_specs=cut, out_specs=plait.P()))
    measured(inside(Quantity(x, metre)), (x * x).sum(), metre**2)
    outside = plait.shard_map(with_units(total), mesh=mesh, in_specs=cut, out_specs=plait.P())
    measured(outside(Quantity(x, metre)), (x * x).sum(), metre**2)


def test_exported():
    f = plait.jit(lambda x: with_units(lambda s: s * s)(Quantity(x, metre)).value)
    file = plait.export.export(f)(X).serialize()
    np.testing.assert_allclose(plait.export.deserialize(file).call(X), X * X)


def test_units_are_multiplied_out():
    newton = kilogram * metre / second**2
    assert newton * second**2 / metre == kilogram and metre / metre == ONE and metre**0 == ONE
    assert repr(newton) == "kg m s^-2" and repr(ONE) == "no unit"
    assert base("m") == metre and hash(base("m")) == hash(metre)


def added(x, t):
    y = x * 2
    return y + t  # the line that errors name


LINE = added.__code__.co_firstlineno + 2


@pytest.mark.parametrize("wrapped", [added, plait.jit(added), plait.checkpoint(added)])
def test_metres_and_seconds_do_not_add_up(wrapped, told):
    told(lambda: with_units(wrapped)(Quantity(X, metre), Quantity(T, second)), "m and s", line=LINE)


def test_what_does_not_fit_is_told(told):
    on = lambda f: lambda: with_units(f)(Quantity(X, metre), Quantity(T, second))
    told(on(lambda x, t: pnp.exp(x)), "exp", "in m")
    told(on(lambda x, t: x < t), "lt", "m and s")
    told(on(lambda x, t: pnp.concatenate([x, t])), "m and s")
    told(on(lambda x, t: x / x + t), "no unit and s")
    told(on(lambda x, t: lax.cond(True, lambda: x, lambda: t)), "m and s")
    told(on(lambda x, t: lax.fori_loop(0, 3, lambda i, c: c * x, x)), "m and m^2")
    told(on(lambda x, t: pnp.prod(x)), "reduce_prod")
    told(on(lambda x, t: pnp.linalg.cholesky(x[:, None] * x)), "units_rules.rule(cholesky_)")


def test_custom_rules_are_kept():
    """The gradients are numbers, whatever units the function has."""
    square = plait.custom_jvp(lambda x: x * x)
    square.defjvp(lambda p, t: (square(*p), 3.0 * p[0] * t[0]))
    same = plait.custom_vjp(lambda x: x * 1.0)
    same.defvjp(lambda x: (same(x), None), lambda _, ct: (ct * 5.0,))
    cube = plait.custom_vjp(lambda x: x * x * x)
    cube.defvjp(lambda x: (cube(x), x), lambda x, ct: (7.0 * x * x * ct,))
    for f, unit, slope in (square, metre**2, 3 * X), (same, metre, 5), (cube, metre**3, 7 * X * X):
        for around in (lambda f: f, plait.jit):
            run = with_units(around(f))
            assert run(Quantity(X, metre)).unit == unit
            grad = plait.grad(lambda x, run=run: run(Quantity(x, metre)).value.sum())
            np.testing.assert_allclose(grad(X), slope + 0 * X, rtol=1e-6)
            np.testing.assert_allclose(plait.jit(grad)(X), slope + 0 * X, rtol=1e-6)
    doubled = plait.custom_vmap(lambda x: x * 2.0)
    doubled.def_vmap(lambda size, stacked, x: (x * 5.0, True))
    measured(plait.vmap(with_units(doubled))(Quantity(X, metre)), 5 * X, metre)


@pytest.mark.parametrize("ordered", [False, True])
def test_prints_show_the_number(ordered, capfd):
    def f(x):
        plait.debug.print("x = {}", x, ordered=ordered)
        return x * 2.0

    loop = lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x)
    assert with_units(f)(Quantity(1.0, metre)).value == 2
    assert plait.jit(with_units(plait.jit(loop)))(Quantity(1.0, metre)).value == 4
    plait.effects_barrier()
    assert capfd.readouterr().out.split("\n")[:3] == ["x = 1.0", "x = 1.0", "x = 2.0"]
