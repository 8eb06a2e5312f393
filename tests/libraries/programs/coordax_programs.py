"""Programs of coordax.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import coordax as cx
import jax
import jax.numpy as jnp

X, Y = cx.SizedAxis("x", 3), cx.LabeledAxis("y", jnp.arange(2.0).__array__())


def readme():
    field = cx.field(jnp.arange(6.0).reshape(3, 2), X, Y)
    return (field + 1).data, field.unwrap(X, Y)


def broadcasting():
    a, b = cx.field(jnp.arange(3.0), X), cx.field(jnp.ones(2), Y)
    return (a * b).order_as("x", "y").data


def maps():
    field = cx.field(jnp.arange(6.0).reshape(3, 2), X, Y)
    f = cx.cmap(lambda v: v / v.sum())
    return f(field.untag("x")).tag("x").order_as("x", "y").data


def derivatives():
    field = cx.field(jnp.arange(6.0).reshape(3, 2), X, Y)
    return jax.grad(lambda f: (f * f).data.sum())(field).data, jax.jit(lambda f: f * 2)(field).data
