"""eval_shape, lowering, compiling, jaxprs (only counted), closed-over shapes."""

import jax
import jax.numpy as jnp


def f(x, y):
    return {"sum": x + y, "dot": jnp.dot(x, y)}


def main():
    spec = jax.ShapeDtypeStruct((3,), jnp.float32)
    shapes = jax.eval_shape(f, spec, spec)
    assert shapes["sum"].shape == (3,) and shapes["dot"].dtype == jnp.float32
    assert shapes["dot"].ndim == 0 and shapes["sum"].size == 3
    jaxpr = jax.make_jaxpr(f)(jnp.ones(3), jnp.ones(3))
    assert len(jaxpr.eqns) == 2 and len(jaxpr.in_avals) == 2 and len(jaxpr.out_avals) == 2
    static = jax.make_jaxpr(lambda n, x: x * n, static_argnums=0)(3, 2.0)
    assert len(static.eqns) == 1
    _, out = jax.make_jaxpr(f, return_shape=True)(spec, spec)
    assert out["dot"].shape == ()
    lowered = jax.jit(f).lower(spec, spec)
    assert "stablehlo" in lowered.as_text() or "mhlo" in lowered.as_text()
    compiled = lowered.compile()
    assert isinstance(compiled.cost_analysis(), dict)
    assert jax.jit(f).eval_shape(spec, spec)["sum"].shape == (3,)
    assert jax.typeof(jnp.ones((2, 3))).shape == (2, 3)
    return compiled(jnp.arange(3.0), jnp.ones(3)), jax.eval_shape(lambda: jnp.ones(4)).shape
