"""`jax.experimental.ode.odeint`: solutions and their derivatives.

Invariant: solutions are compared with scipy's, derivatives with finite differences of scipy's.
"""

import numpy as np
import pytest
import scipy.integrate

from plait.errors import ShapeError

T = np.linspace(0.0, 2.0, 6)


def pendulum(y, t, a, b):
    return {"angle": y["speed"], "speed": -a * np.sin(1.0) * y["angle"] - b * y["speed"] + t}


def by_scipy(y0, t, a, b):
    def slope(t, y):
        dy = pendulum({"angle": y[0], "speed": y[1]}, t, a, b)
        return [dy["angle"], dy["speed"]]

    found = scipy.integrate.solve_ivp(slope, (t[0], t[-1]), y0, "DOP853", t, rtol=1e-12, atol=1e-12)
    return found.y


@pytest.fixture
def odeint(load):
    return load("jax.experimental.ode").odeint


def test_a_tree_of_solutions(odeint):
    got = odeint(pendulum, {"angle": 1.0, "speed": 0.5}, T, 2.0, 0.3)
    angle, speed = by_scipy([1.0, 0.5], T, 2.0, 0.3)
    np.testing.assert_allclose(got["angle"], angle, atol=1e-7)
    np.testing.assert_allclose(got["speed"], speed, atol=1e-7)


def test_stiffer_and_looser(odeint):
    def decay(y, t, rate):
        return -rate * (y - np.cos(1.0))

    for rate, tol in ((1.0, 1e-3), (200.0, 1e-6)):
        got = odeint(decay, np.ones(3), T, rate, rtol=tol, atol=tol)
        want = np.cos(1.0) + (1 - np.cos(1.0)) * np.exp(-rate * T)
        np.testing.assert_allclose(got, np.stack([want] * 3, 1), atol=10 * tol)


def test_derivatives_by_everything(odeint, load):
    jax = load("jax")

    def loss(speed, t, a, b):
        ys = odeint(pendulum, {"angle": 1.0, "speed": speed}, t, a, b)
        return (ys["angle"] ** 2).sum() + ys["speed"][-1]

    def reference(speed, t, a, b):
        angle, speeds = by_scipy([1.0, speed], t, a, b)
        return (angle**2).sum() + speeds[-1]

    point = (0.5, T, 2.0, 0.3)
    got = jax.jit(jax.grad(loss, (0, 1, 2, 3)))(*point)
    for i in (0, 2, 3):
        up, down = ([v + s * (j == i) for j, v in enumerate(point)] for s in (1e-5, -1e-5))
        want = (reference(*up) - reference(*down)) / 2e-5
        np.testing.assert_allclose(got[i], want, rtol=1e-5)
    for k in range(len(T)):
        up, down = ((0.5, T + s * (np.arange(len(T)) == k), 2.0, 0.3) for s in (1e-5, -1e-5))
        want = (reference(*up) - reference(*down)) / 2e-5
        np.testing.assert_allclose(got[1][k], want, rtol=1e-4, atol=1e-5)


def test_what_the_function_closes_over_and_integers(odeint, load):
    jax = load("jax")

    def loss(rate):
        ys = odeint(lambda y, t, n: -rate * y * n, np.ones(1), T, np.int32(2))
        return ys[-1, 0]

    np.testing.assert_allclose(jax.grad(loss)(0.5), -4.0 * np.exp(-2.0), rtol=1e-6)


def test_rows(odeint, load):
    jax = load("jax")
    rates = np.array([0.1, 1.0, 3.0])
    got = jax.vmap(lambda r: odeint(lambda y, t: -r * y, 1.0, T))(rates)
    np.testing.assert_allclose(got, np.exp(-rates[:, None] * T), atol=1e-7)


def test_a_limit_of_steps_and_times_that_are_no_vector(odeint):
    few = odeint(lambda y, t: -y, 1.0, np.array([0.0, 50.0]), mxstep=1)
    assert abs(few[-1]) > 1e-6
    with pytest.raises(ShapeError, match="t must be a vector"):
        odeint(lambda y, t: -y, 1.0, 2.0)
