"""shard_map with static operands under derivatives, and with groups of axes of several maps.

Invariant: the oracle is what the function computes in numpy, and its derivative by hand.
"""

import types

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import P, lax

X = np.arange(8, dtype=np.float32)
STATIC = {
    "an object": (types.SimpleNamespace(k=2.0), lambda x, o: x * o.k),
    "a shape": ((2, 1), lambda x, o: x * 2 + pnp.zeros(o)[0]),
    "a tree": ({"name": "ab", "w": np.float32(2)}, lambda x, o: x * len(o["name"]) * o["w"] / 2),
    "nothing": (None, lambda x, o: x * 2 if o is None else x),
    "a number": (2, lambda x, o: x * 2 if isinstance(o, int) else x),
}


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("around", [lambda f: f, plait.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", STATIC)
def test_derivatives_beside_static_operands(name, around, typed):
    given, f = STATIC[name]
    mesh = plait.make_mesh((4,), ("y",))
    over = plait.shard_map(f, mesh=mesh, in_specs=(P("y"), None), out_specs=P("y"), check_vma=typed)
    grad = plait.grad(lambda x: over(x, given).sum())
    np.testing.assert_array_equal(around(grad)(X), 2 + 0 * X)


def test_groups_of_axes_that_are_not_of_one_mesh():
    mesh = plait.make_mesh((2, 2, 2), ("a", "b", "c"))
    f = lambda v: lax.psum(v, ("i", "a"), axis_index_groups=[[0, 1], [2, 3]])  # noqa: E731
    over = plait.shard_map(plait.vmap(f, axis_name="i"), mesh=mesh, in_specs=P(), out_specs=P())
    with pytest.raises(plait.errors.AxisError, match="axes of one mesh"):
        over(X[:2])
