"""dtypes: promotion, weak types, limits, conversions, bfloat16."""

import jax
import jax.numpy as jnp
import numpy as np


def same(a, b):
    return np.dtype(a) == np.dtype(b)


def main():
    i8, f16 = jnp.ones(2, jnp.int8), jnp.ones(2, jnp.float16)
    bf = jnp.arange(3, dtype=jnp.bfloat16)
    assert same((i8 + 1).dtype, jnp.int8) and same((i8 + 1.0).dtype, jnp.float32)
    assert same((f16 + 1.5).dtype, jnp.float16) and same((f16 + i8).dtype, jnp.float16)
    assert same((bf * f16[0]).dtype, jnp.float32) and same((bf / 2).dtype, jnp.bfloat16)
    assert same(jnp.promote_types(jnp.int16, jnp.uint8), jnp.int16)
    assert same(jnp.result_type(i8, 3.0), jnp.float32) and same(jnp.ones(2).dtype, jnp.float32)
    assert same(jnp.arange(3).dtype, jnp.int32) and jnp.issubdtype(bf.dtype, jnp.floating)
    assert jax.dtypes.issubdtype(np.int8, np.integer)
    assert same(jax.dtypes.canonicalize_dtype(jnp.int16), jnp.int16)
    assert jnp.iinfo(jnp.int8).max == 127 and jnp.finfo(jnp.bfloat16).bits == 16
    assert jnp.isdtype(i8.dtype, "integral") and jnp.float32(1.5).dtype == jnp.float32
    assert jnp.asarray(True).dtype == jnp.bool_ and jax.dtypes.float0 is not None
    return (
        bf.astype(jnp.float32),
        jnp.float32(2.7).astype(jnp.int32),
        jax.lax.bitcast_convert_type(jnp.float32(1.0), jnp.int32),
        jax.lax.convert_element_type(3.9, jnp.int32),
        i8.view(jnp.uint8) * 200,
        jnp.array([300, -1]).astype(jnp.uint8),
        jnp.asarray([1, 2.5]),
        jnp.int32(7) // -2,
        jnp.remainder(-7, 3),
        jnp.left_shift(1, jnp.arange(3)),
        jnp.complex64(1 + 2j) * 1j,
    )
