"""The functions of jax.nn and its initialisers."""

import jax
import jax.numpy as jnp
from jax import nn, random
from jax.nn import initializers as init


@jax.jit
def main():
    x = jnp.linspace(-3.0, 3.0, 7)
    plain = [
        "relu",
        "relu6",
        "sigmoid",
        "softplus",
        "soft_sign",
        "silu",
        "swish",
        "log_sigmoid",
        "leaky_relu",
        "hard_sigmoid",
        "hard_silu",
        "hard_tanh",
        "elu",
        "celu",
        "selu",
        "gelu",
        "mish",
        "squareplus",
        "softmax",
        "log_softmax",
        "standardize",
        "sparse_plus",
        "sparse_sigmoid",
        "hard_swish",
        "identity",
        "tanh",
    ]
    key = random.key(0)
    starts = {
        "normal": init.normal(0.1),
        "uniform": init.uniform(),
        "lecun": init.lecun_normal(),
        "xavier": init.xavier_normal(in_axis=0, out_axis=1),
        "kaiming": init.kaiming_uniform(),
        "truncated": init.truncated_normal(stddev=0.5),
        "scaling": init.variance_scaling(2.0, "fan_avg", "uniform"),
        "delta": init.delta_orthogonal(),
    }
    shape = {"delta": (3, 3, 3, 4)}
    return (
        {name: getattr(nn, name)(x) for name in plain},
        {n: getattr(nn, n)(x) for n in ("glu",)} if x.size % 2 == 0 else nn.glu(x[:6]),
        nn.gelu(x, approximate=False),
        nn.logsumexp(x, b=jnp.abs(x)),
        nn.one_hot(jnp.array([0, 2, 5]), 4, dtype=jnp.float32),
        nn.softmax(jnp.stack([x, -x]), axis=0, where=jnp.stack([x > -2, x < 2])),
        jax.vmap(jax.grad(nn.silu))(x),
        {n: jnp.abs(f(key, shape.get(n, (6, 4)))).sum(0) for n, f in starts.items()},
        init.constant(3.0)(key, (2,)),
        init.zeros(key, (2,), jnp.float32),
        init.orthogonal()(key, (3, 3)) @ init.orthogonal()(key, (3, 3)).T,
    )
