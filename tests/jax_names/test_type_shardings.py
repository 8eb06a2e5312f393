"""`jax.typeof`: types whose sharding has a spec and an abstract mesh, whatever divides the value.

What is expected was written down from jax 0.10.2 on eight devices.

Invariant: Plait's own types are as they are without jax.
"""

import pickle

import numpy as np
import pytest

import plait
from plait.ext import Aval

X = np.arange(32.0, dtype=np.float32).reshape(8, 4)


@pytest.fixture
def sharding(jax):
    return jax.sharding


@pytest.fixture
def mesh(jax, sharding):
    """Makes a mesh of two axes of two devices, all of one type."""

    def make(kind):
        return jax.make_mesh((2, 2), ("x", "y"), axis_types=(getattr(sharding.AxisType, kind),) * 2)

    return make


def test_the_mesh_in_context_by_its_older_names(load, mesh):
    for name in ("jax.interpreters.pxla", "jax._src.mesh"):
        env = load(name).thread_resources.env
        for _ in range(2):
            none = env.physical_mesh
            assert none.empty and not none.axis_names and none.devices.shape == ()
            made = mesh("Auto")
            with made:
                assert env.physical_mesh == made and not env.physical_mesh.empty


def test_a_type_without_a_mesh(jax, sharding):
    found = jax.typeof(np.ones((2, 3), np.float32)).sharding
    assert isinstance(found, sharding.NamedSharding)
    assert found.spec == jax.P(None, None) and found.mesh.empty
    assert jax.typeof(1.0).sharding.spec == jax.P()


def test_types_over_auto_axes_divide_nothing(jax, mesh):
    seen = []

    def f(x):
        seen.append(jax.typeof(x).sharding)
        return x * 2

    auto = mesh("Auto")
    with jax.set_mesh(auto):
        jax.jit(f)(jax.device_put(X, jax.P("x", "y")))
    assert seen[0].spec == jax.P(None, None) and seen[0].mesh == auto.abstract_mesh


def test_arrays_have_the_mesh_that_they_lie_on(jax, mesh):
    """Also results, outside of `set_mesh`, over axes of each type."""
    for kind in ("Auto", "Explicit"):
        there = mesh(kind)
        x = jax.device_put(X, jax.sharding.NamedSharding(there, jax.P(None, "x")))
        whole = jax.device_put(X, jax.sharding.NamedSharding(there, jax.P()))
        for y in (x, x * 2, jax.jit(lambda v: v.sum())(x), jax.vmap(lambda v: v + 1)(x), whole):
            found = jax.typeof(y).sharding
            assert found.mesh == there.abstract_mesh and len(found.spec) == y.ndim, (kind, y.shape)
        divided = jax.P(None, "x" if kind == "Explicit" else None)
        assert jax.typeof(x).sharding.spec == divided
        assert jax.typeof(whole).sharding.spec == jax.P(None, None)


def test_types_over_explicit_axes(jax, mesh):
    explicit = mesh("Explicit")
    seen = []

    def f(x):
        seen.append(jax.typeof(x))
        return x * 2

    x = jax.device_put(X, jax.sharding.NamedSharding(explicit, jax.P("x", None)))
    assert jax.jit(f)(x).sharding == x.sharding
    assert seen[0].sharding.spec == jax.P("x", None)
    assert seen[0].sharding.mesh == explicit.abstract_mesh
    assert str(seen[0]) == "float32[8@x,4]"
    both = jax.device_put(X, jax.sharding.NamedSharding(explicit, jax.P(("x", "y"))))
    assert str(jax.typeof(both)) == "float32[8@(x,y),4]"


def test_axes_of_shard_map_are_manual(jax, mesh):
    seen = []

    def f(x):
        seen.append(jax.typeof(x).sharding.mesh)
        return x

    explicit = mesh("Explicit")
    with jax.set_mesh(explicit):
        x = jax.device_put(X, jax.P("x", "y"))
        jax.jit(jax.shard_map(f, out_specs=jax.P("x", "y")))(x)
    assert seen[0].are_all_axes_manual and seen[0].axis_names == ("x", "y")


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_the_sharding_of_a_type_is_taken_where_shardings_are(jax, mesh, kind):
    """It is the division in the type; where there is none it says nothing."""
    jnp, there = jax.numpy, mesh(kind)
    with jax.set_mesh(there):
        x = jax.device_put(X, jax.P("x", None))
        said = jax.typeof(x).sharding
        one = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=said)
        results = {
            "out_sharding": jnp.einsum("ab,cb->ac", x, np.ones((8, 4), np.float32),
                                       out_sharding=said),
            "reshard": jax.sharding.reshard(x, said),
            "constraint": jax.jit(lambda v: jax.lax.with_sharding_constraint(v * 1, said))(x),
            "device_put": jax.device_put(X, said),
            "arguments": jax.jit(lambda v: v * 1, in_shardings=said)(X),
            "results": jax.jit(lambda v: v * 1, out_shardings=said)(X),
        }  # fmt: skip
        assert jax.jit(lambda v: v).lower(one).out_info.shape == X.shape
        made = jax.core.ShapedArray(X.shape, X.dtype, sharding=said)
        assert made == jax.typeof(x)
    np.testing.assert_array_equal(results["out_sharding"], X @ np.ones((4, 8), np.float32))
    for name in results.keys() - {"out_sharding"}:
        np.testing.assert_array_equal(results[name], X, err_msg=name)
        if kind == "Explicit":
            assert results[name].sharding == x.sharding, name


def test_types_are_values(jax, mesh):
    x = jax.device_put(X, jax.sharding.NamedSharding(mesh("Explicit"), jax.P("x")))
    plain, seen = plait.typeof(x), jax.typeof(x)
    assert seen == plain and plain == seen and hash(seen) == hash(plain)
    assert seen is jax.typeof(x) and isinstance(seen, jax.core.ShapedArray)
    assert seen != jax.typeof(X) and pickle.loads(pickle.dumps(seen)) is seen
    assert {seen: 1}[plain] == 1 and repr(seen) == repr(plain)
    for derived in (seen.update(dtype="int32"), seen.with_vma(frozenset()), seen.strong()):
        assert derived.__class__ is Aval
    assert jax.eval_shape(lambda v: v + 1, seen).shape == X.shape
    assert all(t.__class__ is Aval for t in Aval._all.values())


def test_plaits_own_types_say_nothing_of_auto_axes(jax, mesh):
    x = jax.device_put(X, jax.sharding.NamedSharding(mesh("Auto"), jax.P("x")))
    assert plait.typeof(x).sharding is None and x.aval.sharding is None
