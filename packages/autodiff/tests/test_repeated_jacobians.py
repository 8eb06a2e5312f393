"""Jacobians outside of jit: a second call lowers nothing, and Python reads what is not mapped.

Invariant: expected values are written in numpy.
"""

import numpy as np
import pytest

import plait
from plait import events, lax
from plait.errors import ConcretizationError

pnp = plait.numpy
X = np.linspace(0.5, 1.5, 3).astype(np.float32)
jitted = plait.jit(lambda x: lax.sin(x) * x)
total = plait.jit(lambda x: (x * x * x).sum())


def slope(x):
    return np.cos(x) * x + np.sin(x)


CALLS = {
    "jacfwd": (lambda: plait.jacfwd(jitted), lambda x: np.diag(slope(x))),
    "jacrev": (lambda: plait.jacrev(jitted), lambda x: np.diag(slope(x))),
    "hessian": (lambda: plait.hessian(total), lambda x: np.diag(6 * x)),
    "jacfwd of grad": (lambda: plait.jacfwd(plait.grad(total)), lambda x: np.diag(6 * x)),
    "jacfwd of jacfwd": (lambda: plait.jacfwd(plait.jacfwd(total)), lambda x: np.diag(6 * x)),
    "plain": (lambda: plait.jacrev(lambda x: x * x), lambda x: np.diag(2 * x)),
    "map_axes": (lambda: plait.map_axes(lambda x: x * 2.0), lambda x: 2 * x),
}


@pytest.mark.parametrize("call", CALLS)
def test_nothing_is_lowered_again(call):
    """Neither for other values, nor for a function that is made anew."""
    make, want = CALLS[call]
    for x in (X, X + 1):
        make()(x)
    with events.counting() as n:
        for x in (X + 2, X + 3):
            np.testing.assert_allclose(make()(x), want(x), rtol=2e-5, atol=1e-6)
    assert n["lower"] == n["compile"] == 0


def test_numbers_and_arrays_that_differ():
    """Functions of one structure do not get each other's numbers, signs of zero and arrays."""
    for w in (2.0, 3.0, np.float32([1, 2, 3]), np.float32([4, 5, 6])):
        np.testing.assert_array_equal(plait.jacfwd(lambda x, w=w: x * w)(X), np.eye(3) * w)
    for zero in (0.0, -0.0):
        got = plait.jacfwd(lambda x, z=zero: lax.mul(x, z))(np.float32(1)).numpy()
        assert np.signbit(got) == np.signbit(zero)
    for n in (1, 2):
        got = plait.jacrev(lambda x, n=n: lax.integer_pow(x, n + 1))(X)
        np.testing.assert_allclose(got, np.diag((n + 1) * X**n), rtol=1e-6)


def test_effects_happen_at_each_call(capfd):
    """A function with effects is staged and run as it is, each time."""
    for _ in range(2):
        plait.map_axes(lambda x: plait.debug.print("seen {}", x) or x)(np.float32([1, 2]))
    plait.effects_barrier()
    assert capfd.readouterr().out.count("seen") == 4


COUNTED = {
    "operation": lambda x: float(pnp.log(3.0)),
    "loop": lambda x: float(
        plait.lax.scan(lambda c, _: ((c[0] + 1, c[1] * x), None), (0.0, x), None, length=3)[0][0]
    ),
    "branch": lambda x: float(
        plait.lax.cond(True, lambda a, b: (a, b * 2), lambda a, b: (a + 1, b), pnp.ones(()), x)[0]
    ),
    "call": lambda x: pnp.sum(plait.jit(lambda a, b: (a + 1, b * 2))(pnp.ones(3), x)[0]).item(),
}


@pytest.mark.parametrize("name", COUNTED)
def test_python_reads_what_is_not_differentiated(name):
    count, x = COUNTED[name], np.array([1.0, 2.0])
    want = {"operation": np.log(np.float32(3)), "loop": 3.0, "branch": 1.0, "call": 6.0}[name]
    f = lambda x: x * count(x)  # noqa: E731
    for jacobian in (plait.jacfwd, plait.jacrev):
        np.testing.assert_allclose(jacobian(f)(x), want * np.eye(2), rtol=1e-6)
    got = plait.hessian(lambda x: (f(x) * x).sum())(x)
    np.testing.assert_allclose(got, 2 * want * np.eye(2), rtol=1e-6)


def test_python_does_not_read_what_is_differentiated():
    x = np.array([1.0, 2.0])
    for f in (lambda x: x * float(x.sum()), lambda x: x * float((x * 0).sum())):
        with pytest.raises(ConcretizationError, match=r"float\(\) of <JVP f64\[\]>"):
            plait.jacfwd(f)(x)
    with pytest.raises(ConcretizationError, match=r"<Stage bool\[\]> has a type but no value"):
        plait.map_axes(lambda r: r if r > 0 else -r)(x)


def test_a_value_that_python_read_is_read_again():
    scale = [2.0]
    f = lambda r: r * float(pnp.asarray(scale[0]) * 2)  # noqa: E731
    for scale[0] in (2.0, 5.0):
        got = plait.map_axes(f)(np.array([1.0, 3.0]))
        np.testing.assert_allclose(got, np.array([2.0, 6.0]) * scale[0])
