"""pure_callback, io_callback, debug.print and debug.callback."""

import contextlib
import io

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback


@jax.jit
def looked(x):
    jax.debug.print("x = {x} and {}", x.sum(), x=x, ordered=True)
    return x * 2


def main():
    seen, order = [], []
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        doubled = looked(jnp.arange(2))
        jax.effects_barrier()
    shape = jax.ShapeDtypeStruct((3,), np.float32)
    sorted_on_host = jax.jit(lambda x: jax.pure_callback(np.sort, shape, x))

    @jax.jit
    def counted(x):
        jax.debug.callback(lambda v: seen.append(float(v)), x)
        io_callback(lambda v: order.append(int(v)), None, 1, ordered=True)
        io_callback(lambda v: order.append(int(v)), None, 2, ordered=True)
        return x + 1

    counted(1.5)
    jax.effects_barrier()
    mapped = jax.vmap(
        lambda x: jax.pure_callback(
            lambda v: np.sin(v), jax.ShapeDtypeStruct((), np.float32), x, vmap_method="sequential"
        )
    )
    grown = jax.vmap(
        lambda x: jax.pure_callback(
            np.cos, jax.ShapeDtypeStruct((), np.float32), x, vmap_method="expand_dims"
        )
    )
    assert text.getvalue() == "x = [0 1] and 1\n", text.getvalue()
    return (
        doubled,
        sorted_on_host(jnp.array([3.0, 1.0, 2.0])),
        seen,
        order,
        mapped(jnp.arange(3.0)),
        grown(jnp.arange(3.0)),
    )
