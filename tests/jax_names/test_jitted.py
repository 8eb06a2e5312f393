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


def test_arrays_that_were_placed_nowhere_go_to_the_mesh(jax, pjit):
    """Compare with results that were written down from jax 0.10.2."""
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    first = jax.devices()[0]
    given = jax.device_put(X, jax.sharding.NamedSharding(mesh, jax.P("x")))
    with mesh:
        for x in (X, jax.numpy.arange(8.0), jax.numpy.float32(3)):
            out = pjit(lambda v: v + 1)(x)
            np.testing.assert_array_equal(out, np.asarray(x) + 1)
            assert out.devices() == set(jax.devices())
        both = pjit(lambda a, b: {"sum": a + b, "given": a})(given, X)
        np.testing.assert_array_equal(both["sum"], 2 * X)
        assert both["given"].sharding == given.sharding
        made = pjit(lambda: 1)()
        assert made == 1 and made.sharding == jax.sharding.NamedSharding(mesh, jax.P())
        with pytest.raises(ValueError, match="devices of the mesh in context"):
            pjit(lambda v: v)(jax.device_put(X, first))
        assert jax.jit(pjit(lambda v: v * 2))(X).tolist() == (2 * X).tolist()
        f = pjit(lambda v, n: v * n, static_argnums=1, donate_argnums=0)
        assert f(X, 3).tolist() == (3 * X).tolist()
    assert pjit(lambda v: v)(jax.device_put(X, first)).devices() == {first}
    assert pjit(lambda v: v * 2).lower(X).compile()(X).tolist() == (2 * X).tolist()


def test_a_device_beside_shardings_is_refused(jax, pjit):
    where = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    for more in ({"in_shardings": where}, {"out_shardings": where}):
        with pytest.raises(ValueError, match="given device, and"):
            pjit(lambda v: v, device=jax.devices()[0], **more)
