"""What shardings and meshes say of themselves.

Invariant: what is expected is written out, or counted from the devices that there are.
"""

import copy
import pickle

import numpy as np
import pytest

import plait

P = plait.P


def mesh():
    n = plait.device_count()
    k = 2 if n % 2 == 0 else 1
    return plait.make_mesh((k, n // k), ("x", "y"))


def shardings():
    m = mesh()
    yield plait.SingleDeviceSharding(plait.devices()[-1]), 1
    yield plait.NamedSharding(m, P()), m.size
    yield plait.NamedSharding(m, P("x", None)), m.size
    yield plait.device_put(np.ones(4), plait.NamedSharding(m, P("x"))).sharding, m.size


def test_shardings():
    for s, n in shardings():
        assert s.num_devices == n == len(s.device_set)
        assert s.addressable_devices == s.device_set
        assert s.is_fully_addressable
        shape = (4, 6)
        assert s.addressable_devices_indices_map(shape) == s.devices_indices_map(shape)
        kinds = {d.default_memory().kind for d in s.device_set}
        assert {s.memory_kind} == kinds
        assert s.with_memory_kind(None) == s == s.with_memory_kind(s.memory_kind)
        with pytest.raises(plait.errors.PlacementError, match="unknown kind"):
            s.with_memory_kind("unknown kind")
        for back in (pickle.loads(pickle.dumps(s)), copy.copy(s), copy.deepcopy(s)):
            assert back == s
            assert hash(back) == hash(s)


def test_specs_are_sequences():
    spec = P("x", None, ("y", "z")) + ("w",)
    assert tuple(spec) == ("x", None, ("y", "z"), "w") and len(spec) == 4
    assert (None,) + P("x") == P(None, "x") and P("x") + P("y") == P("x", "y")
    assert spec.index(("y", "z")) == 2 and spec.count(None) == 1 and spec[-1] == "w"
    with pytest.raises(plait.errors.AxisError):
        P("x") + P("x")
    with pytest.raises(TypeError):
        P("x") + 3


def test_what_fits():
    for s, _ in shardings():
        assert s.has_addressable_devices
        s.check_compatible_aval((16, 16))
    s = plait.NamedSharding(mesh(), P("x"))
    assert s.update(spec=P(None, "y")) == plait.NamedSharding(mesh(), P(None, "y"))
    other = plait.make_mesh((1,), ("x",))
    assert s.update(mesh=other) == plait.NamedSharding(other, P("x"))
    if mesh().shape["x"] > 1:
        with pytest.raises(plait.errors.AxisError):
            s.check_compatible_aval((3,))
    with pytest.raises(plait.errors.AxisError):
        s.check_compatible_aval(())


def test_meshes():
    m = mesh()
    assert m.shape_tuple == (("x", m.shape["x"]), ("y", m.shape["y"]))
    assert m.axis_types == (plait.sharding.AxisType.Auto,) * 2
    assert not m.empty
    assert not m.is_multi_process
    assert m.local_mesh is m
    assert m.local_devices == plait.devices()
    assert plait.Mesh([0], ("x",)).local_devices == [0]
    turned = m.update(axis_names=("a", "b"))
    assert turned.axis_names == ("a", "b")
    assert turned.ids == m.ids
    assert m.update() == m
    small = m.update(devices=m.devices[:1, :1])
    assert small.shape_tuple == (("x", 1), ("y", 1))
    for back in (pickle.loads(pickle.dumps(m)), copy.copy(m), copy.deepcopy(m)):
        assert back == m
    assert pickle.loads(pickle.dumps(P("x", None, ("a", "b")))) == P("x", None, ("a", "b"))


def test_axes_without_devices():
    a = mesh().abstract_mesh
    assert a == plait.sharding.AbstractMesh(mesh().axis_sizes, ("x", "y"))
    assert hash(a) == hash(mesh().abstract_mesh)
    assert a != plait.sharding.AbstractMesh(mesh().axis_sizes, ("x", "z"))
    assert (a.size, dict(a.shape), a.shape_tuple) == (
        mesh().size,
        dict(mesh().shape),
        mesh().shape_tuple,
    )
    assert a.axis_types == mesh().axis_types
    assert not a.empty
    explicit = a.update_axis_types({"y": plait.sharding.AxisType.Explicit})
    assert explicit.axis_types == (a.axis_types[0], plait.sharding.AxisType.Explicit)
    assert explicit.axis_names == a.axis_names and explicit.axis_sizes == a.axis_sizes
    assert explicit.update_axis_types(dict(zip(a.axis_names, a.axis_types))) == a
    assert a.update(axis_names=("v", "w")).axis_names == ("v", "w") and a.update() == a
    with pytest.raises(plait.errors.AxisError, match="no axis 'z'"):
        a.update_axis_types({"z": plait.sharding.AxisType.Explicit})
    for none in (plait.sharding.AbstractMesh((), ()), plait.sharding.AbstractMesh((0,), ("x",))):
        assert none.empty and none.size == 0
    assert pickle.loads(pickle.dumps(a)) == a
    for sizes, names in (((1,), ("x", "y")), ((1, 2), ("x", "x"))):
        with pytest.raises(plait.errors.AxisError):
            plait.sharding.AbstractMesh(sizes, names)


def test_executables():
    """Where their operands and results lie, and in which order of axes."""
    held = plait.numpy.arange(4.0)
    m = mesh()
    over = plait.NamedSharding(m, P("x"))
    one = plait.SingleDeviceSharding(0)
    k = 2 * m.shape["x"]
    for place, x in ((one, np.ones((k, 3))), (over, plait.device_put(np.ones((k, 3)), over))):
        f = plait.jit(lambda x, y: {"s": x.sum(1) + held[0], "t": x * y})
        compiled = f.lower(x, y=2.0).compile()
        assert compiled.input_shardings[0] == (place,)
        assert compiled.output_shardings["t"] == place
        assert compiled.out_info["t"].sharding == (None if place is one else place)
        assert compiled.out_info["s"].shape == (k,)
        out = compiled(x, y=2.0)
        assert plait.tree.map(lambda v: v.sharding, out) == compiled.output_shardings
        # in row-major order the first axis is that of the longest steps
        assert compiled.input_formats[0] == (plait.stages.Format((0, 1), place),)
        assert compiled.input_formats[1]["y"].major_to_minor == ()
        assert compiled.output_formats["s"].major_to_minor == (0,)
        assert compiled.output_formats["t"].sharding == place


def test_the_shape_of_an_array_has_its_sharding():
    over = plait.NamedSharding(mesh(), P("x"))
    x = plait.device_put(np.ones((4, 3)), over)
    spec = plait.ShapeDtypeStruct.like(x)
    assert (spec.shape, spec.dtype, spec.sharding) == ((4, 3), x.dtype, over)
    assert plait.ShapeDtypeStruct.like(plait.numpy.ones(3)).sharding is None


def test_functions_that_say_how_their_results_lie():
    """As jax has it: `out_sharding`, of eager calls and of traced ones, and None of all."""
    over = plait.NamedSharding(mesh(), P("x"))
    k = 4 * mesh().shape["x"]
    jnp, key = plait.numpy, plait.random.key(0)
    x = np.arange(float(k), dtype=np.float32)
    calls = {
        "zeros": lambda **o: jnp.zeros(k, **o),
        "ones": lambda **o: jnp.ones(k, **o),
        "full": lambda **o: jnp.full(k, 2.0, **o),
        "empty": lambda **o: jnp.empty(k, **o),
        "arange": lambda **o: jnp.arange(k, **o),
        "asarray": lambda **o: jnp.asarray(x, **o),
        "zeros_like": lambda **o: jnp.zeros_like(x, **o),
        "reshape": lambda **o: jnp.reshape(x, (k, 1), **o),
        "method": lambda **o: jnp.asarray(x).reshape(k, 1, **o),
        "ravel": lambda **o: jnp.asarray(x).ravel(**o),
        "broadcast_to": lambda **o: jnp.broadcast_to(1.0, (k,), **o),
        "dot": lambda **o: jnp.dot(np.ones((k, 2)), np.ones(2), **o),
        "matmul": lambda **o: jnp.matmul(np.ones((k, 2)), np.ones(2), **o),
        "einsum": lambda **o: jnp.einsum("ij->i", np.ones((k, 2)), **o),
        "repeat": lambda **o: jnp.repeat(x, 2, **o),
        "get": lambda **o: jnp.asarray(x).at[: k // 2].get(**o),
        "set": lambda **o: jnp.asarray(x).at[0].set(1.0, **o),
        "normal": lambda **o: plait.random.normal(key, (k,), **o),
        "randint": lambda **o: plait.random.randint(key, (k,), 0, 9, **o),
    }
    for name, call in calls.items():
        plain = call()
        for got in (call(out_sharding=None), call(out_sharding=over)):
            np.testing.assert_array_equal(got, plain, err_msg=name)
        assert call(out_sharding=over).sharding == over, name
        assert plait.jit(lambda call=call: call(out_sharding=over))().sharding == over, name
    with pytest.raises(plait.errors.ArgumentError, match="device and out_sharding"):
        jnp.zeros(k, device=plait.devices()[0], out_sharding=over)
    with pytest.raises(TypeError, match="unexpected keyword"):
        jnp.sum(x, out_sharding=None)


def test_operands_without_a_place_lie_where_the_program_runs():
    """The shardings that a compiled function has for its arguments are those it can be called
    with: here, one argument was a numpy array."""
    mesh = plait.make_mesh((2, 4), ("x", "y"))
    lie = plait.NamedSharding(mesh, plait.P("x"))
    a, b = np.arange(8, dtype=np.float32), np.ones((2, 3), np.float32)
    there = plait.jit(lambda v, w: (v * 2, w.T)).lower(plait.device_put(a, lie), b).compile()
    (first, second), rest = there.input_shardings
    assert (first, second, rest) == (lie, plait.NamedSharding(mesh, plait.P()), {})
    assert [f.sharding for f in there.input_formats[0]] == [first, second]
    for given in (b, plait.device_put(b, second)):
        out = there(plait.device_put(a, first), given)
        np.testing.assert_array_equal(out[1], b.T)
    alone = plait.jit(lambda v: v).lower(a).compile()
    assert alone.input_shardings[0] == (plait.sharding.SingleDeviceSharding(0),)
    np.testing.assert_array_equal(alone(plait.device_put(a, alone.input_shardings[0][0])), a)
    for executable, given in ((alone, (a,)), (there, (plait.device_put(a, lie), b))):
        with pytest.raises(plait.PlaitError, match="is for"):
            executable(*given[:-1], plait.device_put(given[-1], plait.devices()[5]))
