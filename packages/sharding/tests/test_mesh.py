"""Meshes and PartitionSpecs are values, and refuse what makes no sense."""

import copy
import pickle

import numpy as np
import pytest

import plait
from plait.ext.errors import AxisError
from plait_sharding import Mesh, P, PartitionSpec, make_mesh


def test_a_mesh_is_what_numpy_reshapes():
    mesh = Mesh(np.array(plait.devices()).reshape(2, 4), ("x", "y"))
    assert mesh.shape == {"x": 2, "y": 4} and list(mesh.shape) == ["x", "y"]
    assert mesh.axis_names == ("x", "y") and mesh.size == 8
    assert mesh.devices.shape == (2, 4) and mesh.devices[1, 2] == plait.devices()[6]
    assert mesh == make_mesh((2, 4), ("x", "y")) == Mesh(np.arange(8).reshape(2, 4), ("x", "y"))
    assert repr(mesh) == "Mesh('x': 2, 'y': 4)"
    np.testing.assert_array_equal(mesh.device_ids, np.arange(8).reshape(2, 4))


def test_order_and_names_tell_meshes_apart():
    base = Mesh([[0, 1], [2, 3]], ("x", "y"))
    others = [
        Mesh([[0, 2], [1, 3]], ("x", "y")),
        Mesh([[0, 1], [2, 3]], ("y", "x")),
        Mesh([[0, 1, 2, 3]], ("x", "y")),
    ]
    assert all(base != m for m in others) and len({base, *others}) == 4
    assert hash(base) == hash(Mesh([[0, 1], [2, 3]], ["x", "y"]))


def test_a_mesh_does_not_change():
    ids = np.arange(4)
    mesh = Mesh(ids, "x")
    ids[0] = 7
    assert mesh.ids == (0, 1, 2, 3)
    with pytest.raises(ValueError):
        mesh.devices[0] = 5
    mesh.shape["x"] = 9
    assert mesh.shape["x"] == 4


def test_one_device_without_axes():
    mesh = Mesh(np.array(plait.devices()[0]), ())
    assert mesh.size == 1 and mesh.shape == {} and mesh.groups(()) == ((0,),)


@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_are_equal(make):
    mesh, spec = make_mesh((2, 2), ("x", "y")), P(None, ("x", "y"))
    assert make(mesh) == mesh and make(spec) == spec


def test_groups_are_rows_and_columns():
    mesh = make_mesh((2, 2, 2), ("a", "b", "c"))
    grid = np.arange(8).reshape(2, 2, 2)
    wanted = {
        ("c",): grid.reshape(4, 2),
        ("a",): grid.transpose(1, 2, 0).reshape(4, 2),
        ("c", "a"): grid.transpose(1, 2, 0).reshape(2, 4),
        ("b", "c"): grid.reshape(2, 4),
        (): grid.reshape(8, 1),
    }
    for names, groups in wanted.items():
        np.testing.assert_array_equal(mesh.groups(names), groups)
    np.testing.assert_array_equal(mesh.coordinates(("b",)), np.indices((2, 2, 2))[1].ravel())
    np.testing.assert_array_equal(mesh.coordinates(("c", "a")), [0, 2, 0, 2, 1, 3, 1, 3])


def test_specs_are_sequences():
    spec = P("x", None, ("y", "z"), P.UNCONSTRAINED)
    assert P is PartitionSpec
    assert list(spec) == ["x", None, ("y", "z"), P.UNCONSTRAINED] and len(spec) == 4
    assert spec[0] == "x" and spec[1:3] == (None, ("y", "z"))
    assert repr(spec) == "PartitionSpec('x', None, ('y', 'z'), UNCONSTRAINED)"
    assert P(("x",)) == P("x") != P("x", None) and hash(P(("x",))) == hash(P("x"))
    assert spec.names == ("x", "y", "z")
    assert plait.tree.leaves([P("x"), P()]) == [P("x"), P()]


def test_errors(told):
    told(lambda: P("x", ("y", "x")), "PartitionSpec('x', ('y', 'x'))", "'x' twice", kind=AxisError)
    told(lambda: P(3), "3 is not an entry", kind=AxisError)
    told(lambda: P("x").full(0), "has 1 entries", kind=AxisError)
    told(lambda: make_mesh((3, 3), ("x", "y")), "needs 9 devices, and there are 8", "cpu_devices")
    told(lambda: make_mesh((2,), "x", devices=plait.devices()[:1]), "needs 2 devices")
    told(lambda: Mesh(plait.devices(), ("x", "y")), "shape (8,)", "('x', 'y')", kind=AxisError)
    told(lambda: Mesh([[0, 1]], ("x", "x")), "different strings")
    told(lambda: Mesh([0, 0], "x"), "each of its devices once")
    for shape in ((0,), (0, 2)):
        names = "xy"[: len(shape)]
        told(lambda s=shape, n=names: Mesh(np.zeros(s), tuple(n)), "has no devices", "one device")
    told(lambda: Mesh(["cpu"], "x"), "'cpu' is not a device")
    told(lambda: make_mesh((2,), "x").check(P("z")), "the axis 'z'", "name axes of the mesh: 'x'")


def test_parts_of_a_mesh_are_not_assigned_to():
    """Tables find it by its hash."""
    mesh = plait.make_mesh((4, 2), ("x", "y"))
    for m in (mesh, mesh.abstract_mesh):
        number, text, table = hash(m), repr(m), {m: 1}
        for name in ("axis_names", "axis_sizes", "axis_types"):
            with pytest.raises(AttributeError, match=f"{name} of .* cannot be changed"):
                setattr(m, name, getattr(m, name)[::-1])
        assert (hash(m), repr(m), table[m]) == (number, text, 1)
    with pytest.raises(AttributeError):
        mesh.devices = mesh.devices[::-1]
    with pytest.raises(ValueError, match="read-only"):
        mesh.devices[0, 0] = None
