"""Derivatives through shard_map whose in_specs follow from the types of its arguments.

Invariant: gradients are compared with the formula of the undivided function.
"""

import numpy as np
import pytest

import plait
from plait import P, grad, shard_map
from plait.sharding import AxisType, use_mesh


@pytest.mark.sampled(16)
@pytest.mark.parametrize("axis_names", [None, {"x"}, {"x", "y"}])
@pytest.mark.parametrize("entries", [(), ("x",), (None, "y"), ("x", "y"), (("x", "y"),)])
def test_gradients(entries, axis_names):
    mesh = plait.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    x, over = np.arange(64, dtype=np.float32).reshape(8, 8), axis_names or {"x", "y"}
    spec = [(n,) if isinstance(n, str) else n or () for n in (*entries, (), ())[:2]]
    spec = P(*[tuple([n for n in names if n in over]) for names in spec])
    with use_mesh(mesh):
        a = plait.device_put(x, P(*entries))
        f = shard_map(lambda v, n: v * n, out_specs=spec, axis_names=axis_names)
        for square_of_the_sum in (
            lambda v: f(v, v.sum()).sum(),
            plait.jit(lambda v: f(v, v.sum()).sum()),
        ):
            slope = grad(square_of_the_sum)(a)
            np.testing.assert_allclose(slope, np.full((8, 8), 2 * x.sum()))
