"""Static arguments of custom functions that calls leave to their defaults.

Invariant: derivatives are those that the rules say, by hand.
"""

import functools

import numpy as np
import pytest

import plait


@functools.partial(plait.custom_jvp, nondiff_argnums=(1, 2))
def scaled(x, factor=2.0, name=None):
    return x * factor


@scaled.defjvp
def _(factor, name, primals, tangents):
    return scaled(*primals, factor, name), 10 * factor * tangents[0]


@functools.partial(plait.custom_vjp, nondiff_argnums=(1,))
def powered(x, n=3):
    return x**n


powered.defvjp(lambda x, n: (powered(x, n), x), lambda n, x, ct: (100 * n * ct,))


@pytest.mark.parametrize("way", [lambda f: f, plait.jit], ids=["as it is", "jit"])
def test_they_are_as_if_they_were_given(way):
    x = np.float32(2)
    for f, args, value, slope in (
        (scaled, (), 4, 20),
        (scaled, (3.0,), 6, 30),
        (scaled, (3.0, "a"), 6, 30),
        (powered, (), 8, 300),
        (powered, (2,), 4, 200),
    ):
        g = lambda x, f=f, args=args: f(x, *args)
        assert float(way(g)(x)) == value
        assert float(way(plait.grad(g))(x)) == slope
    assert float(way(plait.grad(lambda x: scaled(x, name="b")))(x)) == 20


@plait.custom_vjp
def shifted(x, by=3.0, flag=None):
    return x + by


shifted.defvjp(lambda x, by, flag: (x + by, by), lambda by, ct: (10 * by * ct, ct, None))


@plait.custom_jvp
def tilted(x, by=3.0):
    return x + by


@tilted.defjvp
def _(primals, tangents):
    (x, by), (t, _) = primals, tangents
    return x + by, 10 * by * t


@pytest.mark.parametrize("way", [lambda f: f, plait.jit], ids=["as it is", "jit"])
def test_rules_take_the_defaults_of_arrays(way):
    x = np.float32(2)
    for f in (shifted, tilted):
        assert float(way(f)(x)) == 5 and float(way(plait.grad(f))(x)) == 30
        assert float(way(plait.grad(lambda x, f=f: f(x, 4.0)))(x)) == 40
        assert float(way(plait.grad(lambda x, f=f: f(x, by=4.0)))(x)) == 40


def test_static_defaults_of_any_kind_are_beside_them():
    f = functools.partial(plait.custom_vjp, nondiff_argnums=(1,))(lambda x, how="a", by=3.0: x + by)
    f.defvjp(lambda x, how, by: (x + by, by), lambda how, by, ct: (10 * by * ct, None))
    for args in ((1.0,), (1.0, "b")):
        assert float(plait.grad(f)(*args)) == 30


def test_a_function_bound_by_a_default_is_no_argument():
    f = plait.custom_jvp(lambda x, g=plait.numpy.sin: g(x))
    f.defjvp(lambda xs, ts: (f(*xs), 7 * ts[0]))
    assert float(plait.grad(f)(1.0)) == 7


@pytest.mark.parametrize("way", [lambda f: f, plait.jit], ids=["as it is", "jit"])
def test_a_rule_without_the_options_of_its_function(way):
    rounded = plait.custom_vjp(plait.numpy.round)  # `decimals` is a part of the program
    rounded.defvjp(lambda x: (plait.numpy.round(x), None), lambda _, ct: (3 * ct,))
    assert float(way(plait.grad(rounded))(1.4)) == 3
    floor = plait.custom_jvp(lambda x, digits=0: plait.numpy.floor(x * 10**digits))
    floor.defjvp(lambda xs, ts: (floor(*xs), 7 * ts[0]))
    assert float(way(plait.grad(floor))(1.4)) == 7
