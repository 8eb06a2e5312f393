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
    assert plait.sharding.AbstractMesh((), ()).empty
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
