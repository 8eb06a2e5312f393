"""Axes that do not divide evenly: constraints in programs have them, arrays do not.

Invariant: values are numpy's, and pieces of values in a program are read in what was compiled.
"""

import numpy as np
import pytest

import plait
from plait.errors import AxisError
from plait_sharding import NamedSharding, P, device_put, make_mesh, with_sharding_constraint

HOST = np.arange(13 * 6, dtype=np.float32).reshape(13, 6)


@pytest.fixture
def uneven():
    return NamedSharding(make_mesh((8,), ("x",)), P("x"))


def test_constraints_in_programs(uneven):
    """In the middle, at the end, in loops; the compiler pads the pieces."""

    def middle(x):
        return plait.numpy.sin(with_sharding_constraint(x * 2, uneven)) + 1

    def end(x):
        return with_sharding_constraint(x * 2, uneven)

    def loop(x):
        return plait.lax.fori_loop(0, 3, lambda i, v: with_sharding_constraint(v + 1, uneven), x)

    np.testing.assert_allclose(plait.jit(middle)(HOST), np.sin(HOST * 2) + 1, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(plait.jit(end)(HOST), HOST * 2)
    np.testing.assert_array_equal(plait.jit(loop)(HOST), HOST + 3)
    np.testing.assert_array_equal(plait.jit(lambda x: end(x).sum(0))(HOST), HOST.sum(0) * 2)
    assert "f32[2,6]" in plait.jit(middle).lower(HOST).compile().as_text()  # of 13, in 8 pieces


def test_results_can_be_used_further(uneven):
    y = plait.jit(lambda x: with_sharding_constraint(x + 1, uneven))(HOST)
    assert len(y.addressable_shards) == 8
    for shard in y.addressable_shards:
        np.testing.assert_array_equal(shard.data, HOST[shard.index] + 1)
    np.testing.assert_array_equal(y + 1, HOST + 2)


@pytest.mark.parametrize(
    "bring",
    [
        lambda s: device_put(HOST, s),
        lambda s: device_put(plait.numpy.asarray(HOST), s),
        lambda s: plait.jit(lambda x: device_put(x, s))(HOST),
        lambda s: plait.jit(lambda x: x, out_shardings=s)(HOST),
        lambda s: plait.jit(lambda x: x, in_shardings=s)(HOST),
        lambda s: with_sharding_constraint(HOST, s),
    ],
    ids=["numpy", "array", "traced", "results", "arguments", "eager"],
)
def test_arrays_are_divided_evenly(uneven, bring, told):
    told(lambda: bring(uneven), "axis 0", "13", "8 equal pieces", "'x'", kind=AxisError)


def test_too_many_axes_are_refused_in_programs(uneven, told):
    wide = NamedSharding(uneven.mesh, P(None, None, "x"))
    told(lambda: plait.jit(lambda x: with_sharding_constraint(x, wide))(HOST), "2 axes")
