"""Functions of annotated arrays, and what transformations make of them.

Invariant: checkers accept each line without the comment "wrong".
"""

from functools import partial

import numpy as np

import plait
import plait.numpy as pnp
from plait import lax, random


def loss(w: plait.Array, x: plait.Array) -> plait.Array:
    return pnp.sum((x @ w) ** 2)


reveal_type(plait.vmap(loss, in_axes=(None, 0))(pnp.ones(3), pnp.ones((2, 3))))  # Array
reveal_type(plait.jit(loss)(pnp.ones(3), x=pnp.ones((2, 3))))  # Array
reveal_type(plait.value_and_grad(loss)(pnp.ones(3), pnp.ones((2, 3)))[0])  # Array
reveal_type(plait.checkpoint(loss)(pnp.ones(3), pnp.ones((2, 3))))  # Array
reveal_type(pnp.sum(pnp.ones(3)))  # Array
reveal_type(pnp.ones(3))  # Array
reveal_type(pnp.ones(3) + 1)  # Array
reveal_type(1.0 - pnp.ones(3))  # Array
reveal_type(pnp.ones(3) @ pnp.ones(3))  # Array
reveal_type(pnp.ones(3).T)  # Array
reveal_type(pnp.ones(3)[0])  # Array
reveal_type(pnp.ones(3).at[0].set(1.0))  # Array
reveal_type(pnp.ones(3) > 0)  # Array
reveal_type(random.key(0))  # Array
reveal_type(random.split(random.key(0)))  # Array
reveal_type(random.normal(random.key(0), (3,)))  # Array
reveal_type(plait.nn.gelu(pnp.ones(3)))  # Array
reveal_type(pnp.linalg.inv(pnp.eye(3)))  # Array
reveal_type(lax.scan(lambda c, x: (c, x), pnp.ones(3), None, length=2)[0])  # Array
reveal_type(lax.fori_loop(0, 3, lambda i, c: c + pnp.ones(3), 0.0))  # Array
reveal_type(lax.scan(lambda c, x: (c + x, c), 0.0, pnp.ones(3))[0])  # Array
reveal_type(lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0))  # Array
reveal_type(lax.cond(pnp.ones(()) > 0, lambda x: pnp.sin(x), lambda x: -x, pnp.ones(3)))  # Array
reveal_type(lax.psum(pnp.ones(3), "i"))  # Array
reveal_type(pnp.where(pnp.ones(3) > 0, pnp.ones(3), 0))  # Array
reveal_type(pnp.linspace(0, 1, 5))  # Array
reveal_type(pnp.unique(pnp.ones(3), size=3))  # Array
reveal_type(pnp.linalg.svd(pnp.eye(3)).S)  # Array
reveal_type(plait.make_mesh((1,), ("d",)))  # Mesh
reveal_type(plait.P("d"))  # PartitionSpec
plait.grad(loss)(pnp.ones(3), pnp.ones((2, 3)))
plait.grad(loss)(pnp.ones(3))  # wrong
plait.vmap(loss)(pnp.ones(3), y=pnp.ones(3))  # wrong


@plait.jit
def step(w: plait.Array, n: int) -> plait.Array:
    return w * n


reveal_type(step(pnp.ones(3), 2))  # Array
step("oops")  # wrong


@partial(plait.jit, static_argnames=("n",))
def static(w: plait.Array, n: int) -> plait.Array:
    return w * n


static(pnp.ones(3), n=2)


@plait.custom_vjp
def f(x: plait.Array) -> plait.Array:
    return x


f.defvjp(lambda x: (x, None), lambda r, c: (c,))
reveal_type(f(pnp.ones(3)))  # Array
a, b = random.split(random.key(0))
pnp.summ(a)  # wrong
pnp.sum(a, axes=0)  # wrong
plait.vmpa(loss)  # wrong
y: np.ndarray = pnp.ones(3)  # wrong
