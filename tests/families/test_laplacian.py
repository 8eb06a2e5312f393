"""Forward Laplacians: traces of Hessians made by central differences of gradients."""

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as jnp
from plait_autodiff.taylor.laws import numerically

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 2))
W = RNG.normal(size=(2, 4))


def network(x):
    h = jnp.tanh(x @ W)

    def step(c, r):
        return jnp.sin(c + r.sum()), c * r

    c, ys = lax.scan(step, h.sum() / 10, h)
    y = plait.jit(lambda a: a * jnp.exp(-a * a))(ys)
    z = lax.cond(c > -5, lambda a: a * a, lambda a: a, c)
    turn = lambda s: (s[0] + 1, s[1] * c + 1)  # noqa: E731
    z = lax.while_loop(lambda s: s[0] < 2, turn, (0, z), max_steps=2)[1]
    return z * jnp.log(1 + (y**2).sum()) + jnp.max(h) + jnp.sort(h, 0)[0, 1] / (2 + c)


def reference(f, x, step=1e-5):
    """(gradient, Laplacian) by differences of values and of gradients."""
    slope = plait.jit(plait.grad(f))
    total = 0.0
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = step
        total += (np.asarray(slope(x + e))[i] - np.asarray(slope(x - e))[i]) / (2 * step)
    return np.asarray(slope(x)), total


def test_value_gradient_and_laplacian():
    slope, total = reference(network, X)
    of = plait.fwd_laplacian(network)
    for found in (numerically(of, X), plait.jit(of)(X)):
        value, jacobian, laplacian = found
        np.testing.assert_allclose(value, numerically(network, X), rtol=1e-12)
        np.testing.assert_allclose(jacobian, slope, rtol=1e-10)
        np.testing.assert_allclose(laplacian, total, rtol=1e-6)


def test_of_trees_and_several_arguments():
    """Of a b^2 + c^3 by a and b, and by c alone."""
    f = lambda d, c: {"o": jnp.stack([d["a"] * d["b"] ** 2 + c**3, c])}  # noqa: E731
    d, c = {"a": 2.0, "b": 3.0}, 5.0
    value, jacobian, laplacian = plait.fwd_laplacian(f)(d, c)
    assert np.asarray(value["o"]).tolist() == [143, 5]
    assert np.asarray(jacobian["o"]["b"]).tolist() == [12, 0]
    assert np.asarray(laplacian["o"]).tolist() == [4, 0]
    both = plait.fwd_laplacian(f, argnums=(0, 1))(d, c)
    assert np.asarray(both[2]["o"]).tolist() == [34, 0]
    assert np.asarray(both[1]["o"][1]).tolist() == [75, 1]


def test_composition_with_other_transformations():
    f = lambda x: plait.fwd_laplacian(lambda y: (y**4).sum())(x)[2]  # noqa: E731
    x = X[:, 0]
    np.testing.assert_allclose(plait.grad(f)(x), 24 * x, rtol=1e-10)
    np.testing.assert_allclose(plait.vmap(f)(X), (12 * X**2).sum(1), rtol=1e-10)


def test_eigenfunctions():
    """Of a harmonic function it is zero, of a plane wave the square of its wave vector."""
    harmonic = lambda p: lax.atan2(p[1], p[0])  # noqa: E731
    assert abs(float(plait.fwd_laplacian(harmonic)(np.float64([0.3, 0.8]))[2])) < 1e-12
    k = np.float64([1.0, 2.0, -0.5])
    wave = lambda p: jnp.cos(p @ k)  # noqa: E731
    value, _, laplacian = plait.fwd_laplacian(wave)(X[:, 0])
    np.testing.assert_allclose(laplacian, -(k @ k) * value, rtol=1e-12)


def test_integers_are_refused():
    with pytest.raises(TypeError, match="fwd_laplacian is with respect to floating"):
        plait.fwd_laplacian(lambda x: x)(1)
