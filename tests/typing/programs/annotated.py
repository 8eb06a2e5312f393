"""A function of an annotated array, with the members of arrays.

Invariant: checkers accept each line without the comment "wrong".
"""

import numpy as np

import plait
import plait.numpy as pnp


def f(x: plait.Array) -> plait.Array:
    reveal_type(x.shape)  # tuple[int, ...]
    reveal_type(x.dtype)  # dtype[Any]
    reveal_type(x.ndim + x.size)  # int
    reveal_type(x.sum())  # Array
    reveal_type(x.sum(axis=0, keepdims=True))  # Array
    reveal_type(x + 1)  # Array
    reveal_type(1 - x)  # Array
    reveal_type(x @ x)  # Array
    reveal_type(x / np.float32(2))  # Array
    reveal_type(divmod(x, 2))  # tuple[Array, Array]
    reveal_type(-x)  # Array
    reveal_type(abs(x))  # Array
    reveal_type(x > 0)  # Array
    reveal_type(x == 0)  # Array
    reveal_type(x[0])  # Array
    reveal_type(x[..., None, ::2])  # Array
    reveal_type(x.at[0].set(1))  # Array
    reveal_type(x.at[1:].add(x[1:], mode="drop"))  # Array
    reveal_type(x.T)  # Array
    reveal_type(x.astype("float32"))  # Array
    reveal_type(x.astype(pnp.float32))  # Array
    reveal_type(x.reshape(2, -1))  # Array
    reveal_type(x.reshape((2, -1)).transpose(1, 0))  # Array
    reveal_type(x.mean(0).real)  # Array
    reveal_type(x.block_until_ready())  # Array
    reveal_type(len(x))  # int
    reveal_type(float(x[0]))  # float
    np.asarray(x)
    for row in x:
        reveal_type(row)  # Array
    x.foo  # wrong
    x.sum(axes=0)  # wrong
    x.at[0].put(1)  # wrong
    x[0] = 1
    return pnp.sin(x) @ x


def g(x: plait.Array) -> np.ndarray:
    return pnp.sin(x)  # wrong


f(pnp.ones(3))
f(1.0)  # wrong
plait.jit(f)(pnp.ones(3))
plait.jit(f)(2.0)  # wrong
