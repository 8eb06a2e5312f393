"""Programs with jaxtyping's annotations, checked and unchecked.

Invariant: each returns numbers; which checks fail is among them.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import (
    Array,
    ArrayLike,
    Bool,
    Complex,
    Float,
    Float32,
    Inexact,
    Int,
    Key,
    Num,
    PyTree,
    Scalar,
    Shaped,
    UInt8,
    jaxtyped,
)

_X = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)).astype("float32"))


def _holds(x, *kinds):
    return [int(isinstance(x, kind)) for kind in kinds]


def readme():
    def matrix_multiply(
        x: Float[Array, "dim1 dim2"], y: Float[Array, "dim2 dim3"]
    ) -> Float[Array, "dim1 dim3"]:
        return x @ y

    return matrix_multiply(_X, _X.T)


def dtypes():
    kinds = (Float, Int, Bool, Complex, Num, Inexact, Shaped, Float32, UInt8)
    values = (_X, jnp.arange(3), _X > 0, _X + 1j, _X.astype("bfloat16"), jnp.zeros(2, "uint8"))
    return [_holds(v, *(k[Array, "..."] for k in kinds)) for v in values]


def shapes():
    kinds = ("3 4", "a b", "a a", "...", "*batch 4", "3", "_ 4", "#a b", "a=3 b=4", "a b c")
    return _holds(_X, *(Float[Array, kind] for kind in kinds))


def scalars():
    return _holds(jnp.float32(1.0), Scalar, Float[Array, ""], Int[Array, ""]), _holds(
        1.0, Float[ArrayLike, ""], Float[Array, ""]
    )


def traced():
    seen = []

    @jax.jit
    def f(x):
        seen.extend(_holds(x, Float[Array, "a b"], Float[Array, "a a"], Int[Array, "..."]))
        return x * 2

    return f(_X), seen


def mapped():
    seen = []

    def f(x):
        seen.extend(_holds(x, Float[Array, "4"], Float[Array, "3 4"]))
        return x.sum()

    return jax.vmap(f)(_X), jax.grad(lambda x: jax.vmap(f)(x).sum())(_X), seen


def checked():
    @jaxtyped(typechecker=None)
    def f(x: Float[Array, "n m"], y: Float[Array, " m"]):
        return _holds(y, Float[Array, " m"], Float[Array, " n"]), x @ y

    return f(_X, _X[0])


def trees():
    tree = {"a": _X, "b": [_X, _X]}
    return _holds(tree, PyTree[Float[Array, "..."]], PyTree[Int[Array, "..."]], PyTree)


def keys():
    old, new = jax.random.PRNGKey(0), jax.random.key(0)
    return _holds(new, Key[Array, ""], Float[Array, ""]), _holds(old, Key[Array, ""]), old


def structs():
    @dataclasses.dataclass
    class Layer:
        weight: Float[Array, "out in"]
        bias: Float[Array, " out"]

        def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
            return self.weight @ x + self.bias

    struct = jax.ShapeDtypeStruct((3, 4), jnp.float32)
    return Layer(_X, _X[:, 0])(_X[0]), _holds(struct, Float[jax.ShapeDtypeStruct, "3 4"])
