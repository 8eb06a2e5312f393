"""Integers and booleans do not vary: float0 throughout, and what is said when it is not."""

import re

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait import numpy as jnp
from plait.ext.ir import Primitive
from plait.ext.ops.elementwise import mul
from plait.ext.ops.shape import convert
from plait_autodiff.ext import ZERO, jvp_rules

NONE = np.zeros((), plait.float0)

times = Primitive("integers.times", lambda x, n: x)
"""x times an integer."""
ext.expand_rules.rule(times)(lambda x, n: mul.bind(x, convert(n, x.aval.dtype)))


def is_float0(x, shape=()):
    return x.dtype == plait.float0 and tuple(x.shape) == shape


@pytest.mark.feature("A01")
def test_tangents_and_cotangents_of_integers():
    value, dot = plait.jvp(lambda x: x + 1, (2,), (NONE,))
    assert int(value) == 3 and is_float0(dot)
    y, pull = plait.vjp(lambda x: x.reshape(2, 2), np.zeros((4, 1), np.int32))
    (ct,) = pull(np.zeros((2, 2), plait.float0))
    assert is_float0(ct, (4, 1)) and y.shape == (2, 2)
    out, lin = plait.linearize(lambda x, n: (x * n, n + 1), 2.0, 3)
    dots = lin(1.0, NONE)
    assert float(dots[0]) == 3 and is_float0(dots[1])


seen = []


@jvp_rules.rule(times)
def _(xs, ts):
    seen.append(ts)
    return times.bind(*xs), times.bind(ts[0], xs[1])


@pytest.mark.feature("A02")
def test_rules_are_given_symbolic_zeros_for_integers():
    assert float(plait.jvp(times, (2.0, jnp.asarray(3)), (1.0, NONE))[1]) == 3
    (ts,) = seen
    assert ts[1] is ZERO and ts[0] is not ZERO


@pytest.mark.feature("A03")
def test_float0_goes_into_and_out_of_compiled_and_mapped_functions():
    _, pull = plait.vjp(lambda x: x + 1, 1)
    (ct,) = plait.jit(pull)(NONE)
    value, dot = plait.jit(lambda x, t: plait.jvp(lambda y: y + 1, (x,), (t,)))(1, NONE)
    assert is_float0(ct) and int(value) == 2 and is_float0(dot)
    assert is_float0(np.asarray(ct)) and "float0" in repr(ct)
    product = lambda n: plait.vjp(lambda y, n: y * n, 2.0, n)[1](1.0)  # noqa: E731
    dy, dn = plait.vmap(product)(np.arange(3))
    assert is_float0(dn, (3,)) and np.asarray(dy).tolist() == [0, 1, 2]
    _, kept = lax.scan(lambda c, n: (c, product(n)[1]), 0, np.arange(3))
    assert is_float0(kept, (3,))


@pytest.mark.feature("A04")
def test_conversions():
    zeros = np.zeros((2, 2), np.float32)
    ct, none = plait.vjp(lax.full_like, zeros, 1)[1](np.ones((2, 2), np.float32))
    assert ct.shape == (2, 2) and is_float0(none)
    to_int = lambda x: lax.convert_element_type(x, np.int32)  # noqa: E731
    (ct,) = plait.vjp(to_int, 1.5)[1](NONE)
    assert float(ct) == 0 and is_float0(plait.jvp(to_int, (1.5,), (1.0,))[1])


@pytest.mark.feature("A05")
def test_gradients_by_integers():
    with pytest.raises(TypeError, match="grad is with respect to floating or complex arguments"):
        plait.grad(lambda x: x + 0.0)(1)
    assert is_float0(plait.grad(lambda x: x + 0.0, allow_int=True)(1))
    g = plait.grad(lambda d: d["a"] * d["n"], allow_int=True)({"a": 2.0, "n": 3})
    assert float(g["a"]) == 3 and is_float0(g["n"])
    assert is_float0(plait.jacrev(lambda n: n * np.ones(2), allow_int=True)(1), (2,))


@pytest.mark.feature("A06")
def test_float0_arrays_have_a_shape_and_nothing_else():
    f0 = np.zeros((2, 3), plait.float0)
    assert is_float0(f0.reshape(3, 2), (3, 2)) and is_float0(f0.T, (3, 2))
    for use in (
        lambda: f0 + jnp.zeros(()), lambda: jnp.zeros(()) * f0, lambda: jnp.sin(f0),
        lambda: plait.jit(lambda t: t + 1)(f0), lambda: jnp.add(f0, f0),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="float0 holds no numbers to compute with"):
            use()


RULE = "it has the dtype of the value that it belongs to, or float0 if that is integer or boolean"


@pytest.mark.feature("A07")
def test_messages_about_dtypes():
    identity = lambda x: x  # noqa: E731
    said = re.escape(f"jvp was given a tangent of another type; {RULE}")
    for x, t in ((1, 1), (1.0, NONE), (np.float32(1), np.array(1.0)), (True, 1.0)):
        with pytest.raises(TypeError, match=said):
            plait.jvp(identity, (x,), (t,))
    for x, ct in ((1.0, NONE), (1, 1.0), (np.float32(1), np.array(1.0))):
        with pytest.raises(TypeError, match="a pullback was given a cotangent of another type"):
            plait.vjp(identity, x)[1](ct)


widened = Primitive("integers.widened", lambda x: x)
ext.expand_rules.rule(widened)(lambda x: mul.bind(x, x))
jvp_rules.rule(widened)(lambda xs, ts: (widened.bind(*xs), convert(ts[0], np.float64)))


@pytest.mark.feature("A09")
def test_differentials_are_checked_by_type():
    """A rule that returns a tangent of another type is found where it does so."""
    with pytest.raises(TypeError, match="f64"):
        plait.jvp(widened, (np.float32(1),), (np.float32(1),))


@pytest.mark.feature("A19")
def test_linear_programs_take_tangents_to_tangents():
    def f(x, w):
        return jnp.tanh(x @ w).sum(), x * 2

    x, w = np.ones(3, np.float32), np.ones((3, 2), np.float32)
    program = plait.make_program(plait.linearize(f, x, w)[1])(x, w)
    assert [a.shape for a in program.in_avals] == [(3,), (3, 2)]
    assert [a.shape for a in program.out_avals] == [(), (3,)]
    assert not {"core.tanh"} & {e.prim.name for e in program.eqns}
