"""Complex numbers: one convention, compared with finite differences.

A tangent of z = x + iy is dx + i dy, and the pairing of cotangents with tangents is bilinear: the
gradient of a real function is df/dx - i df/dy, that of a holomorphic one is its derivative.
"""

import numpy as np
import pytest

import plait
from plait import numpy as jnp

Z = np.array([0.6 - 0.8j, -1.1 + 0.4j, 0.3 + 1.2j])
T = np.array([0.5 + 0.25j, -1.0j, 2.0 - 0.5j])
M = np.array([[1, 2j, 0.5], [0.3, 1 - 1j, 2], [1j, 0.1, -1]])
STEP = 1e-6

REAL = {
    "square of the modulus": lambda z: (z * z.conj()).real.sum(),
    "modulus": lambda z: jnp.abs(z).sum(),
    "angle": lambda z: jnp.angle(z).sum(),
    "parts": lambda z: (z.real**3 * jnp.exp(z.imag)).sum(),
    "of holomorphic ones": lambda z: (jnp.sin(z) * jnp.log(z) / (z + 3)).imag.sum(),
    "powers": lambda z: (z**3 + z**-2 + jnp.sqrt(z)).real.sum(),
    "contraction": lambda z: jnp.abs(M @ z).sum(),
    "sign": lambda z: (z / jnp.abs(z)).real.sum(),
}
HOLOMORPHIC = {
    "products": lambda z: (jnp.exp(z) * jnp.tanh(z)).sum(),
    "quotients": lambda z: (1 / (z * z + 2j)).sum(),
    "powers": lambda z: (jnp.sqrt(z) * z**3).prod(),
}


def along(f, z, direction):
    return (np.asarray(f(z + STEP * direction)) - np.asarray(f(z - STEP * direction))) / (2 * STEP)


def each(f, z, unit):
    rows = [along(f, z, unit * e) for e in np.eye(len(z))]
    return np.array(rows)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", REAL)
def test_real_functions(name):
    f = plait.jit(REAL[name])
    want = each(f, Z, 1) - 1j * each(f, Z, 1j)
    np.testing.assert_allclose(plait.grad(f)(Z), want, rtol=1e-6, atol=1e-7)
    value, dot = plait.jvp(f, (Z,), (T,))
    np.testing.assert_allclose(dot, along(f, Z, T), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(float(dot), np.real(np.asarray(plait.grad(f)(Z)) @ T), rtol=1e-9)


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic_functions(name):
    f = plait.jit(HOLOMORPHIC[name])
    want = each(f, Z, 1)
    np.testing.assert_allclose(each(f, Z, 1j), 1j * want, rtol=1e-6, atol=1e-6)
    for g in (plait.grad, plait.jacfwd, plait.jacrev):
        np.testing.assert_allclose(g(f, holomorphic=True)(Z), want, rtol=1e-6, atol=1e-7)
    second = each(lambda z: plait.grad(f, holomorphic=True)(z), Z, 1)
    got = plait.hessian(f, holomorphic=True)(Z)
    np.testing.assert_allclose(got, second, rtol=1e-5, atol=1e-6)


def test_pullbacks_are_bilinear():
    f = lambda z: z * z * 1j  # noqa: E731
    _, pull = plait.vjp(f, Z)
    np.testing.assert_allclose(pull(T)[0], 2j * Z * T, rtol=1e-12)


def test_what_is_refused():
    with pytest.raises(TypeError, match="grad is of functions with a real result"):
        plait.grad(lambda z: z * z)(1j)
    with pytest.raises(TypeError, match="holomorphic=True is for complex arguments"):
        plait.grad(lambda x: x * x, holomorphic=True)(1.0)
    with pytest.raises(TypeError, match="jacfwd of complex inputs needs holomorphic=True"):
        plait.jacfwd(abs)(1j)
    for f, x in ((lambda z: z * z, 1j), (lambda x: x * 1j, 1.0)):
        with pytest.raises(TypeError, match="jacrev is of real results"):
            plait.jacrev(f)(x)
    for jacobian in (plait.jacfwd, plait.jacrev):  # |z| has no complex derivative
        with pytest.raises(TypeError, match="is of complex results"):
            jacobian(abs, holomorphic=True)(1j)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", REAL)
def test_rows_of_real_results(name):
    """Several real functions of complex numbers: each row is the gradient of one."""
    f = REAL[name]
    both = plait.jacrev(lambda z: plait.numpy.stack([f(z), 3 * f(z)]))(Z)
    want = each(f, Z, 1) - 1j * each(f, Z, 1j)
    np.testing.assert_allclose(both, [want, 3 * want], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(plait.jacrev(plait.jit(f))(Z), want, rtol=1e-6, atol=1e-7)
