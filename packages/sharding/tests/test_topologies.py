"""Topologies without any library that describes them: what is lowered, asked and refused.

Invariant: devices are made up; texts are compared with names that StableHLO and the libraries of
the platforms have.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import plait
from plait.ext.devices import Topology, topology_devices
from plait_sharding import Mesh, NamedSharding, P, SingleDeviceSharding, make_mesh, topologies


def made_up(platform, n, kind="made up"):
    """A topology that nobody can compile for."""
    topology = object.__new__(Topology)
    topology.platform, topology.name, topology.options = platform, "", ()
    topology.devices = tuple(
        [
            SimpleNamespace(id=100 + i, platform=platform, device_kind=kind, process_index=i // 8)
            for i in range(n)
        ]
    )
    return topology


@pytest.fixture
def gpus():
    return topologies.TopologyDescription(topology_devices(made_up("cuda", 64)))


def test_description(gpus):
    assert [d.id for d in gpus.devices] == list(range(64))
    assert gpus.devices[9].process_index == 1 and repr(gpus.devices[9]) == "cuda:9"
    assert "64 devices 'made up' of 8 processes" in repr(gpus)
    here = topologies.get_attached_topology()
    assert here.devices == plait.devices() and len(here.devices) == 8
    assert topologies.make_mesh(here, (2, 4), ("x", "y")) == make_mesh((2, 4), ("x", "y"))


def test_meshes(gpus, told):
    mesh = topologies.make_mesh(gpus, (8, 8), ("x", "y"))
    assert mesh.axis_sizes == (8, 8) and mesh.is_multi_process and mesh.local_devices == []
    assert mesh != Mesh(np.arange(64).reshape(8, 8), ("x", "y"))  # of as many devices elsewhere
    assert mesh.topology is gpus.devices[0].topology
    lies = NamedSharding(mesh, P("x"))
    assert not lies.is_fully_addressable and lies.addressable_devices == set()
    assert lies.device_set == set(gpus.devices) and lies.num_devices == 64
    assert SingleDeviceSharding(gpus.devices[0]) != SingleDeviceSharding(0)
    told(lambda: topologies.make_mesh(gpus, (8, 4), ("x", "y")), "32", "64")
    told(lambda: topologies.make_mesh(mesh, (8, 8), ("x", "y")), "needs a topology")
    mixed = [gpus.devices[1], plait.devices()[0]]
    told(lambda: Mesh(mixed, "x"), "this process", "made up")


@pytest.mark.parametrize("said", ["arguments", "results", "inside", "pieces"])
def test_lowered_for_the_platform(gpus, said):
    """Whoever says where the program runs says for which platform it is lowered."""
    x = plait.ShapeDtypeStruct((8, 4, 4), "float32")
    lies = NamedSharding(topologies.make_mesh(gpus, (64,), ("x",)), P())
    f = plait.numpy.linalg.cholesky
    if said == "arguments":
        f = plait.jit(f, in_shardings=lies)
    elif said == "results":
        f = plait.jit(f, out_shardings=lies)
    elif said == "inside":
        f = plait.jit(
            lambda x: plait.numpy.linalg.cholesky(plait.with_sharding_constraint(x, lies))
        )
    else:
        f = plait.jit(plait.shard_map(f, mesh=lies.mesh, in_specs=P(), out_specs=P()))
    text = f.lower(x).as_text()
    assert "cusolver_potrf_ffi" in text and "lapack" not in text


def test_what_is_not_here(gpus, told):
    mesh = topologies.make_mesh(gpus, (64,), ("x",))
    lies = NamedSharding(mesh, P("x"))
    x = np.ones((64, 2), np.float32)
    told(lambda: plait.device_put(x, lies), "not here", kind=plait.errors.PlacementError)
    told(lambda: plait.device_put(plait.numpy.asarray(x), lies), "not here")
    told(lambda: plait.jit(lambda x: x * 2, in_shardings=lies)(x), "not here")
    told(lambda: plait.jit(lambda x: x * 2, out_shardings=lies)(x), "not here")
    double = plait.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    told(lambda: double(x), "not here")
    there = plait.device_put(x, plait.devices()[1])
    told(lambda: plait.jit(lambda x: x + there, in_shardings=lies).lower(x).compile(), "cannot run")
    shown = plait.jit(lambda x: plait.debug.print("{}", x), in_shardings=lies).lower(x)
    told(shown.compile, "calls Python", kind=plait.PlaitError)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("h1000:8x8", {"platform": "gpu"}, "a100, h100"),
        ("h100:8x", {}, "how many"),
        ("h100", {}, "how many"),
        ("h100:0x8", {}, "how many"),
        ("h100", {"topology": "8x8"}, "partitions"),
        ("any", {"platform": "cpu"}, "cpu_devices"),
        ("any", {"platform": "metal"}, "no plugin"),
        ("", {}, "no name"),
    ],
)
def test_names(name, options, said, told):
    told(lambda: topologies.get_topology_desc(name, **options), said)


def test_star():
    """`from plait.sharding import *` brings what the package has."""
    names: dict = {}
    exec("from plait.sharding import *", names)
    assert names["NamedSharding"] is NamedSharding and names["topologies"] is topologies
    assert "np" not in names
