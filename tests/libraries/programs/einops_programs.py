"""Programs of einops on arrays of jax: the README's, reductions, repeats, packing, layers' kernels.

Invariant: each returns numbers.
"""

import einops
import jax
import jax.numpy as jnp
import numpy as np

_X = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, 4, 6)).astype("float32"))


def readme():
    out = einops.rearrange(_X, "t b c d -> b c d t")
    small = einops.reduce(_X, "b t (h 2) (w 2) -> b t h w", "max")
    copies = einops.repeat(_X[0, 0], "h w -> (c h) w", c=3)
    return out, small, copies


def reductions():
    kinds = ("min", "max", "sum", "mean", "prod")
    return [einops.reduce(_X, "a b c d -> c a", kind) for kind in kinds]


def jitted():
    f = jax.jit(lambda x: einops.rearrange(x, "a b (c e) d -> (a c) (b e d)", e=2) * 2)
    return f(_X)


def gradients():
    f = lambda x: (einops.reduce(x, "a b c d -> a d", "mean") ** 2).sum()
    return jax.grad(f)(_X), jax.jit(jax.grad(f))(_X)


def mapped():
    return jax.vmap(lambda x: einops.rearrange(x, "b c d -> d (b c)"))(_X)


def contractions():
    y = einops.einsum(_X, _X[0], "a b c d, b c e -> a d e")
    return y, jax.jit(lambda x: einops.einsum(x, x, "a b c d, a b c e -> d e"))(_X)


def packing():
    packed, shapes = einops.pack([_X[0, 0], _X[1]], "* c d")
    parts = einops.unpack(packed, shapes, "* c d")
    return packed, parts


def shapes():
    found = einops.parse_shape(_X, "a _ c d")
    return found, einops.rearrange(_X, "... d -> d ...").shape


def lists():
    return einops.rearrange(list(_X), "a b c d -> (a b) c d"), einops.asnumpy(_X[0, 0])


def attention():
    q = einops.rearrange(_X, "b s n (h d) -> b n h s d", h=2)
    k = einops.repeat(q[:, :1], "b 1 h s d -> b n h s d", n=4)
    scores = einops.einsum(q, k, "b n h i d, b n h j d -> b n h i j")
    return einops.rearrange(jax.nn.softmax(scores), "b n h i j -> b i (n h j)")
