"""Programs of s2fft.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import numpy as np
import s2fft
from s2fft.precompute_transforms import construct, spherical

L = 8
rng = np.random.default_rng(0)
FLM = s2fft.utils.signal_generator.generate_flm(rng, L)
REAL = s2fft.utils.signal_generator.generate_flm(rng, L, reality=True)


def readme():
    f = s2fft.inverse_jax(FLM, L)
    return f, s2fft.forward_jax(f, L)


def samplings():
    return [s2fft.inverse_jax(FLM, L, sampling=s) for s in ("mwss", "dh", "gl")]


def spins_and_reality():
    return s2fft.inverse_jax(FLM, L, spin=2), s2fft.inverse_jax(REAL, L, reality=True)


def precomputed():
    kernel = construct.spin_spherical_kernel_jax(L=L, forward=False)
    return spherical.inverse(FLM, L, 0, kernel, "mw", False, "jax")


def wigner():
    flmn = s2fft.utils.signal_generator.generate_flmn(rng, L, 2)
    f = s2fft.wigner.inverse_jax(flmn, L, 2)
    return f[0, :2, :3], s2fft.wigner.forward_jax(f, L, 2)[:, 2]


def derivatives():
    loss = lambda x: jnp.sum(jnp.abs(s2fft.inverse_jax(x, L)) ** 2)
    return jax.grad(loss)(jnp.asarray(FLM))


def healpix():
    f = s2fft.inverse_jax(FLM, L, nside=4, sampling="healpix")
    return f, s2fft.forward_jax(f, L, nside=4, sampling="healpix")
