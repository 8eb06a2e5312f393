"""Programs of e3nn-jax.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import numpy as np

KEY = jax.random.PRNGKey(0)
X = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")


def readme():
    a = e3nn.IrrepsArray("1o", jnp.array([1.0, 2.0, 3.0]))
    b = e3nn.IrrepsArray("1o", jnp.array([0.5, -1.0, 2.0]))
    return e3nn.tensor_product(a, b).array


def spherical_harmonics():
    y = e3nn.spherical_harmonics("0e + 1o + 2e + 3o", X, normalize=True)
    return y.array, jax.jacrev(lambda v: e3nn.spherical_harmonics("2e", v, True).array)(X[0])


def rotations():
    a, b, c = 0.3, 0.7, -0.2
    D = e3nn.Irreps("1o + 2e").D_from_angles(a, b, c)
    x = e3nn.IrrepsArray("1o", X)
    return D, x.transform_by_angles(a, b, c).array, e3nn.angles_to_matrix(a, b, c)


def clebsch_gordan():
    return e3nn.clebsch_gordan(1, 1, 2), e3nn.generators(2)


def layers():
    x = e3nn.normal("4x0e + 2x1o", KEY, (3,))
    lin = e3nn.flax.Linear("2x0e + 1x1o") if hasattr(e3nn, "flax") else None
    y = e3nn.gate(e3nn.normal("5x0e + 2x1o", KEY, (3,)))
    out = [y.array, e3nn.norm(x).array, e3nn.scalar_activation(x.filter("0e"), [jnp.tanh]).array]
    if lin is not None:
        w = lin.init(KEY, x)
        out.append(lin.apply(w, x).array)
    return out


def equivariance_of_a_mapped_function():
    f = lambda v: e3nn.tensor_square(e3nn.spherical_harmonics("1o + 2e", v, True)).array
    return jax.vmap(f)(X), jax.jit(jax.vmap(jax.grad(lambda v: f(v).sum())))(X)


def scatter_and_radial():
    x = e3nn.IrrepsArray("1o", X)
    summed = e3nn.scatter_sum(x, dst=jnp.array([0, 1, 1, 0]), output_size=2)
    return summed.array, e3nn.soft_one_hot_linspace(
        jnp.linspace(0, 1, 4), start=0.0, end=1.0, number=3, basis="gaussian", cutoff=True
    )
