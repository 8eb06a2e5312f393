"""Programs of sympy2jax.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import sympy
import sympy2jax

x, y = sympy.symbols("x y")


def readme():
    mod = sympy2jax.SymbolicModule([2.0 * sympy.cos(x), sympy.sin(x) ** 2])
    return mod(x=jnp.array(0.3)), jax.jit(lambda v: mod(x=v))(jnp.array([0.3, 0.4]))


def functions():
    exprs = [
        sympy.exp(-(x**2)) * sympy.tanh(y), sympy.Max(x, y), sympy.Abs(x - y), sympy.sqrt(x + y),
        sympy.log(x) / y, sympy.atan2(x, y),
    ]  # fmt: skip
    return sympy2jax.SymbolicModule(exprs)(x=jnp.array(0.7), y=jnp.array(1.3))


def derivatives():
    mod = sympy2jax.SymbolicModule(sympy.sin(x * y) + x**3)
    return jax.grad(lambda v: mod(x=v, y=0.5))(0.7), jax.hessian(lambda v: mod(x=v[0], y=v[1]))(
        jnp.array([0.7, 0.5])
    )


def parameters():
    mod = sympy2jax.SymbolicModule(1.5 * x + 2.5)
    return jax.vmap(lambda v: mod(x=v))(jnp.arange(3.0)), [str(mod.sympy())]


def own_functions():
    f = sympy.Function("f")
    mod = sympy2jax.SymbolicModule(f(x, y), extra_funcs={f: lambda a, b: a**b})
    return mod(x=jnp.array(2.0), y=jnp.array(3.0))
