"""Mathematical functions of lax and numpy on grids, in one go."""

import jax
import jax.numpy as jnp
from jax import lax

LAX = [
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "atanh",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "logistic",
    "sqrt",
    "rsqrt",
    "cbrt",
    "square",
    "abs",
    "neg",
    "sign",
    "floor",
    "ceil",
    "round",
    "erf",
    "erfc",
    "erf_inv",
    "lgamma",
    "digamma",
    "bessel_i0e",
    "bessel_i1e",
    "is_finite",
    "integer_pow",
]
NUMPY = [
    "absolute",
    "sinc",
    "deg2rad",
    "rad2deg",
    "trunc",
    "rint",
    "positive",
    "reciprocal",
    "signbit",
    "spacing",
    "i0",
    "exp2",
    "log2",
    "log10",
    "isnan",
    "isinf",
    "angle",
    "conj",
    "real",
    "imag",
    "fabs",
]
TWO = [
    "add",
    "subtract",
    "multiply",
    "true_divide",
    "floor_divide",
    "power",
    "fmod",
    "arctan2",
    "hypot",
    "maximum",
    "fmin",
    "copysign",
    "nextafter",
    "logaddexp2",
    "ldexp",
    "float_power",
]


@jax.jit
def main():
    x = jnp.array([0.1, 0.35, 0.9])
    y = jnp.array([1.5, -2.0, 3.0])
    i, j = jnp.array([12, 7, -9]), jnp.array([5, 3, 2])
    more = {"integer_pow": (3,)}
    second = {"ldexp": jnp.array([1, 2, 3]), "float_power": jnp.array([2.0, 1.0, 0.5])}
    return (
        {n: getattr(lax, n)(x, *more.get(n, ())) for n in LAX},
        {n: getattr(jnp, n)(x) for n in NUMPY},
        {n: getattr(jnp, n)(x, second.get(n, y)) for n in TWO},
        (jnp.gcd(i, j), jnp.lcm(i, j), i & j, i | j, i ^ j, i << 1, i >> 1, jnp.bitwise_count(i)),
        (lax.population_count(j), lax.clz(j), lax.rem(i, j), lax.div(i, j), lax.shift_left(i, j)),
        (jnp.modf(y), jnp.frexp(y), jnp.divmod(i, j), jnp.unwrap(y * 4)),
        jax.vmap(jax.grad(lambda v: jnp.power(v, 1.7) + lax.atan2(v, 0.3)))(x),
    )
