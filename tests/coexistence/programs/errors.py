"""What programs catch: errors of tracers by JAX's names."""

import jax
import jax.numpy as jnp
import numpy as np


def caught(kind, f, *args):
    try:
        jax.jit(f)(*args)
    except kind:
        return 1
    return 0


def leaked():
    kept = []

    @jax.jit
    def f(x):
        kept.append(x)
        return x

    f(1.0)
    kept[0] + 1


def main():
    e = jax.errors
    x = jnp.arange(3)
    deleted = jnp.ones(2)
    deleted.delete()
    return (
        caught(e.TracerBoolConversionError, lambda x: 1 if x > 0 else 2, 1.0),
        caught(e.ConcretizationTypeError, lambda x: 1 if x > 0 else 2, 1.0),
        caught(e.TracerArrayConversionError, lambda x: np.sin(x), 1.0),
        caught(e.TracerIntegerConversionError, lambda i: [1, 2, 3][i], 1),
        caught(TypeError, lambda i: jnp.zeros(i), 2),
        caught(e.NonConcreteBooleanIndexError, lambda x: x[x > 1], x),
        caught(IndexError, lambda x: x[x > 1], x),
        caught(e.UnexpectedTracerError, lambda _: leaked(), 1.0),
        caught(TypeError, lambda x: jnp.dot(x, jnp.ones(4)), jnp.ones(3)),
        caught(TypeError, lambda x: x, "text"),
        caught(RuntimeError, lambda x: x, deleted),
        caught(TypeError, lambda x: x.reshape(2, 2), jnp.ones(3)),
    )
