"""What transformations return has the signature of what they were given.

Invariant: the other side is Python's own signature of the user's function.
"""

import inspect

import pytest

import plait


def f(x, y: int = 3, *, z=None) -> float:
    return x * y


MESH = plait.make_mesh((1,), ("d",))
WAYS = {
    "grad": plait.grad,
    "value_and_grad": plait.value_and_grad,
    "jacfwd": plait.jacfwd,
    "jacrev": plait.jacrev,
    "hessian": plait.hessian,
    "vmap": plait.vmap,
    "checkpoint": plait.checkpoint,
    "custom_jvp": plait.custom_jvp,
    "custom_vjp": plait.custom_vjp,
    "custom_gradient": plait.custom_gradient,
    "custom_vmap": plait.custom_batching.custom_vmap,
    "pmap": plait.pmap,
    "shard_map": lambda f: plait.shard_map(f, mesh=MESH, in_specs=plait.P(), out_specs=plait.P()),
    "xmap": lambda f: plait.xmap(f, in_axes=({},), out_axes={}),
    "grad of jit": lambda f: plait.grad(plait.jit(f)),
    "jit of vmap": lambda f: plait.jit(plait.vmap(f)),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_it_is_that_of_the_function(way):
    g = way(f)
    for follow in (True, False):
        assert inspect.signature(g, follow_wrapped=follow) == inspect.signature(f)
