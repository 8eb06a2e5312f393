"""Fourier transforms, real and complex, along chosen axes."""

import jax
import jax.numpy as jnp


@jax.jit
def main():
    x = jnp.sin(jnp.arange(24.0)).reshape(4, 6)
    smooth = lambda x: jnp.fft.irfft(jnp.fft.rfft(x)[..., :2], n=x.shape[-1])  # noqa: E731
    return (
        jnp.fft.fft(x, axis=0),
        jnp.fft.ifft2(jnp.fft.fft2(x)).real,
        jnp.fft.rfftn(x, axes=(0, 1)),
        jnp.fft.fftshift(jnp.fft.fftfreq(6)),
        jnp.fft.rfftfreq(6, d=0.5),
        jax.jit(smooth)(x),
        jax.grad(lambda x: (smooth(x) ** 2).sum())(x),
        jnp.fft.fft(x, n=8, norm="ortho"),
        jnp.convolve(x[0], x[1, :3], mode="same"),
    )
