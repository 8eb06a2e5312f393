"""Classes as trees: by decorator, by function, dataclasses, named tuples."""

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import register_dataclass, register_pytree_node, register_pytree_node_class


@register_pytree_node_class
class Point:
    def __init__(self, x, y, name):
        self.x, self.y, self.name = x, y, name

    def tree_flatten(self):
        return (self.x, self.y), self.name

    @classmethod
    def tree_unflatten(cls, name, children):
        return cls(*children, name)


class Box:
    def __init__(self, value):
        self.value = value


register_pytree_node(Box, lambda b: ((b.value,), None), lambda _, c: Box(*c))


@partial(register_dataclass, data_fields=["w"], meta_fields=["power"])
@dataclass
class Model:
    w: jax.Array
    power: int = 2

    @jax.jit
    def __call__(self, x):
        return jnp.sum(self.w * x**self.power)


@register_dataclass
@dataclass
class State:
    count: jax.Array
    label: str = field(default="s", metadata={"static": True})


class Moments(NamedTuple):
    mean: jax.Array
    var: jax.Array


@jax.jit
def moments(x):
    return Moments(x.mean(), x.var())


def main():
    p = Point(jnp.ones(2), 2.0, "p")
    doubled = jax.jit(lambda p: jax.tree.map(lambda v: v * 2, p))(p)
    model = Model(jnp.array([1.0, 2.0]), 3)
    grads = jax.grad(lambda m: m(jnp.array([2.0, 3.0])))(model)
    carried, _ = jax.lax.scan(
        lambda s, _: (State(s.count + 1, s.label), None), State(jnp.zeros(())), None, length=3
    )
    return (
        (doubled.x, doubled.y, doubled.name == "p"),
        jax.vmap(lambda b: Box(b.value + 1))(Box(jnp.arange(3))).value,
        (grads.w, grads.power, model(jnp.ones(2))),
        carried.count,
        moments(jnp.arange(5.0))._asdict(),
    )
