"""Programs of interpax.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import interpax
import jax
import jax.numpy as jnp
import numpy as np

X = np.linspace(0, 3, 8)
Y = np.sin(X)
Q = np.linspace(0.1, 2.9, 6)


def readme():
    return interpax.interp1d(Q, X, Y, method="cubic")


def methods():
    names = ("nearest", "linear", "cubic2", "akima", "monotonic", "cardinal", "catmull-rom")
    return [interpax.interp1d(Q, X, Y, method=n) for n in names]


def surfaces():
    f = np.sin(X)[:, None] * np.cos(X)
    g = f[:, :, None] * X
    return interpax.interp2d(Q, Q, X, X, f, method="cubic"), interpax.interp3d(
        Q, Q, Q, X, X, X, g, method="linear"
    )


def derivatives():
    f = lambda q: interpax.interp1d(q, X, Y, method="cubic2")
    return jax.vmap(jax.grad(f))(jnp.asarray(Q)), interpax.interp1d(
        Q, X, Y, method="cubic", derivative=1
    )


def splines():
    s = interpax.CubicSpline(X, Y)
    return (
        s(Q),
        s.derivative()(Q),
        s.integrate(0.5, 2.0),
        interpax.PchipInterpolator(X, Y)(Q),
        interpax.Akima1DInterpolator(X, Y)(Q),
    )


def periods():
    return interpax.interp1d(Q + 5, X, Y, method="cubic", period=3.2), interpax.fft_interp1d(
        jnp.asarray(Y), 12
    )
