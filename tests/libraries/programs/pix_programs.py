"""Programs of dm-pix.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import dm_pix as pix
import jax
import jax.numpy as jnp
import numpy as np

IMAGE = jnp.asarray(np.random.default_rng(0).uniform(size=(8, 10, 3)).astype("float32"))
OTHER = jnp.clip(IMAGE + 0.05, 0, 1)
KEY = jax.random.PRNGKey(0)


def readme():
    return pix.flip_left_right(IMAGE), jax.jit(jax.vmap(pix.flip_left_right))(IMAGE[None])


def colours():
    return [
        pix.adjust_brightness(IMAGE, 0.1),
        pix.adjust_contrast(IMAGE, 1.5),
        pix.adjust_hue(IMAGE, 0.2),
        pix.adjust_saturation(IMAGE, 0.5),
        pix.rgb_to_hsv(IMAGE),
        pix.rgb_to_grayscale(IMAGE),
        pix.solarize(IMAGE, 0.5),
        pix.adjust_gamma(IMAGE, 2.0),
    ]


def geometry():
    m = jnp.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.2], [0.0, 0.0, 1.0]])
    return (
        pix.affine_transform(IMAGE, m),
        pix.rotate(IMAGE, 0.3),
        pix.rot90(IMAGE, 1),
        pix.pad_to_size(IMAGE, 10, 12),
    )


def filters():
    return pix.gaussian_blur(IMAGE, 1.0, 3), pix.depth_to_space(jnp.tile(IMAGE, (1, 1, 4)), 2)


def metrics():
    f = lambda x: pix.psnr(x, OTHER)
    return (
        f(IMAGE),
        pix.ssim(IMAGE, OTHER, filter_size=5),
        pix.mse(IMAGE, OTHER),
        jax.grad(lambda x: pix.ssim(x, OTHER, filter_size=5))(IMAGE),
    )


def random_augmentation():
    return (
        pix.random_crop(KEY, IMAGE, (4, 5, 3)),
        pix.random_brightness(KEY, IMAGE, 0.2),
        pix.random_flip_up_down(KEY, IMAGE),
    )
