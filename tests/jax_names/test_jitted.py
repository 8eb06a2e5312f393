"""`jax.experimental.pjit`: placements by position, and None in the context of a mesh.

Invariant: results are compared with numpy's.
"""

import numpy as np
import pytest

X = np.arange(8.0, dtype=np.float32)


@pytest.fixture
def pjit(jax):
    from jax.experimental.pjit import pjit

    return pjit


def test_placements_by_position(pjit):
    np.testing.assert_array_equal(pjit(lambda x: x + 1, (None,), None)(X), X + 1)
    f = pjit(lambda x, n: x * n, static_argnums=1)
    np.testing.assert_array_equal(f(X, 3), 3 * X)


def test_none_is_a_copy_on_each_device_of_the_mesh(jax, pjit):
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    with mesh:
        out = pjit(lambda x: x + 1, in_shardings=jax.P("x"), out_shardings=None)(X)
        tree = pjit(lambda x: {"a": x, "b": x}, out_shardings={"a": None, "b": jax.P("x")})(X)
    np.testing.assert_array_equal(out, X + 1)
    assert out.sharding.is_fully_replicated and tree["a"].sharding.is_fully_replicated
    assert out.sharding.device_set == tree["b"].sharding.device_set == set(jax.devices())


def test_a_mesh_decorates(jax):
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))

    @mesh
    def f(v):
        return jax.sharding.get_abstract_mesh().axis_names, v

    assert f(3) == (("x",), 3) and f.__name__ == "f"
    assert jax.sharding.get_abstract_mesh().empty
