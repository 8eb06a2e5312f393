"""scipy.optimize, sparse solvers, signals, images, integration, interpolation."""

import jax
import jax.numpy as jnp
from jax.scipy import integrate, interpolate, ndimage, signal
from jax.scipy.optimize import minimize
from jax.scipy.sparse.linalg import bicgstab, cg, gmres


@jax.jit
def main():
    a = jnp.array([[4.0, 1.0], [1.0, 3.0]])
    b = jnp.array([1.0, 2.0])
    found = minimize(lambda x: jnp.sum((x - b) ** 2 * (1 + x**2)), jnp.zeros(2), method="BFGS")
    image = jnp.arange(20.0).reshape(4, 5)
    grid = interpolate.RegularGridInterpolator((jnp.arange(4.0), jnp.arange(5.0)), image)
    return (
        jnp.round(found.x, 3),
        found.success,
        cg(lambda v: a @ v, b)[0],
        gmres(a, b)[0],
        bicgstab(a, b)[0],
        jax.grad(lambda b: cg(a.dot, b)[0].sum())(b),
        signal.convolve(image, jnp.ones((2, 2)), mode="valid"),
        signal.correlate2d(image, jnp.eye(2), mode="same"),
        signal.detrend(image),
        ndimage.map_coordinates(image, [jnp.array([0.5, 2.0]), jnp.array([1.5, 3.0])], order=1),
        integrate.trapezoid(image, dx=0.5),
        grid(jnp.array([[0.5, 1.5], [2.0, 3.3]])),
        jax.image.resize(image, (2, 3), method="bilinear"),
    )
