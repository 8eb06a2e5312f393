"""Programs compiled for 64 H100s and 64 TPUs, on a machine that has neither.

The steps are those of `tests/sharding/test_scale.py`; what devices send, and which of them exchange
it, follows from the shapes of weights and data, and is worked out here by hand.

Invariant: what runs needs the libraries of the platforms alone (`nox -s topologies`); nothing that
is compiled here is called.
"""

import importlib.util
import math
import pickle
import re

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import P
from plait.sharding import topologies

from ..sharding import test_scale as steps

NEEDED = {"h100:8x8": "jax_plugins", "v5e:8x8": "libtpu"}
BATCH, LENGTH, WIDTH, HIDDEN = 128, 64, 128, 256
LARGER = {steps.BATCH: BATCH, steps.LENGTH: WIDTH, steps.HIDDEN: HIDDEN}


@pytest.fixture(params=NEEDED)
def topology(request):
    if importlib.util.find_spec(NEEDED[request.param]) is None:
        pytest.skip("run by `nox -s topologies`")
    return topologies.get_topology_desc(request.param)


@pytest.fixture
def gpus():
    if importlib.util.find_spec(NEEDED["h100:8x8"]) is None:
        pytest.skip("run by `nox -s topologies`")
    return topologies.get_topology_desc("h100:8x8")


def arguments(mesh, specs):
    """Types of weights and data that 64 devices can divide; sequences are as long as rows are
    wide.  The batch is divided over the first axis of the mesh, the weights as is said."""

    def larger(x, spec):
        sizes = [LARGER.get(n, n) for n in x.shape]
        return plait.ShapeDtypeStruct(sizes, x.dtype, sharding=plait.NamedSharding(mesh, spec))

    data = larger(steps.TOKENS, P("data"))
    return plait.tree.map(larger, steps.DENSE, specs), data, data


def compiled(way, specs, mesh):
    """A step on all devices: its mesh is longer along its first axis."""
    return plait.jit(way(lambda shape, names: mesh)).lower(*arguments(mesh, specs)).compile()


def bytes_of(texts):
    """Of shapes as texts, "f32[4,8]", how many bytes they are."""
    sizes = [re.findall(r"\d+", t.partition("[")[2]) for t in texts]
    return [4 * math.prod(map(int, s)) for s in sizes if s or texts]


def test_fully_sharded(topology):
    """Each device has 1/64 of every weight: gradients are sums over all devices."""
    mesh = topologies.make_mesh(topology, (64,), ("data",))
    step = compiled(steps.fsdp, steps.FULLY, mesh)
    sent = step.collectives()
    weights = plait.tree.leaves(arguments(mesh, steps.FULLY)[0])
    for c in sent:
        assert c.groups == (tuple(range(64)),), c
    own = sum(4 * math.prod(w.shape) for w in weights) // 64
    data = 2 * 4 * BATCH * WIDTH // 64  # tokens and targets
    assert step.memory_analysis().argument_size_in_bytes >= own + data
    if topology.devices[0].platform == "gpu":  # on TPUs they are padded to tiles of 8 by 128
        assert step.memory_analysis().argument_size_in_bytes == own + data
    ops = {c.op for c in sent}
    assert ops <= {"all-gather", "reduce-scatter", "all-reduce"}
    # the layers' weights are completed in the forward and in the backward loop, and their
    # gradients summed in one: of one layer at a time, all weights of it
    layer = sum(4 * math.prod(w.shape[1:]) for w in weights if w.ndim > 2)
    if "all-gather" in ops:
        gathered = [c for c in sent if c.op == "all-gather"]
        assert all(sum(bytes_of(c.results)) == 64 * c.bytes for c in gathered)
        assert sum(c.bytes == layer // 64 for c in gathered) >= 2
        assert any(c.bytes == layer for c in sent if c.op == "reduce-scatter")
    else:  # the compiler for TPUs makes sums of pieces between zeros of them
        assert sum(c.bytes == layer for c in sent) == 3
    assert all(c.where for c in sent if c.op == "all-gather")


def test_tensors(topology):
    """Four devices share a layer; sums over these are of what a sixteenth of the batch has."""
    mesh = topologies.make_mesh(topology, (16, 4), ("data", "model"))
    step = compiled(steps.tensor_by_jit, steps.TENSOR, mesh)
    sent = step.collectives()
    beside = tuple([tuple(range(i, i + 4)) for i in range(0, 64, 4)])
    across = tuple([tuple(range(i, 64, 4)) for i in range(4)])
    assert {c.op for c in sent} == {"all-reduce"}
    assert {c.groups for c in sent} == {beside, across}
    activations = 4 * (BATCH // 16) * WIDTH * WIDTH
    # after attention and after the hidden layer, in the forward loop, and when the layer is done
    # again; of the gradient after the hidden layer and before attention
    assert 4 <= len([c for c in sent if c.groups == beside]) <= 6
    assert {c.bytes for c in sent if c.groups == beside} == {activations}
    cost = step.cost_analysis()
    assert cost["flops"] > 0 and step.memory_analysis().temp_size_in_bytes >= activations


def test_shardings(topology):
    mesh = topologies.make_mesh(topology, (8, 8), ("x", "y"))
    lies = plait.NamedSharding(mesh, P("x", "y"))
    whole = plait.NamedSharding(mesh, P())
    x = plait.ShapeDtypeStruct((64, 32), "float32", sharding=lies)
    step = plait.jit(lambda x: (x * 2, x.sum(0)), out_shardings=(None, whole)).lower(x).compile()
    assert step.input_shardings == ((lies,), {})
    assert step.output_shardings == (lies, whole)
    assert pickle.loads(pickle.dumps(lies)) == lies
    assert lies.shard_shape((64, 32)) == (8, 4) and not lies.is_fully_addressable
    assert mesh.is_multi_process and mesh.local_devices == [] and not lies.addressable_devices
    assert lies != plait.NamedSharding(
        plait.Mesh(np.arange(64).reshape(8, 8), ("x", "y")), lies.spec
    )


def test_what_is_not_here(topology):
    mesh = topologies.make_mesh(topology, (64,), ("x",))
    lies = plait.NamedSharding(mesh, P("x"))
    x = np.ones((64, 4), np.float32)
    double = plait.jit(lambda x: x * 2, in_shardings=lies)
    step = double.lower(x).compile()
    for call in (
        lambda: step(x),
        lambda: double(x),
        lambda: plait.device_put(x, lies),
        lambda: plait.device_put(pnp.asarray(x), lies),
        lambda: plait.jit(lambda x: x + 1, out_shardings=lies)(x),
        lambda: plait.shard_map(lambda x: x, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x),
    ):
        with pytest.raises(plait.errors.PlacementError, match="not here") as e:
            call()
        assert e.value.fix and __file__ in e.value.where
    with pytest.raises(plait.PlaitError, match="Python|callback"):
        plait.jit(lambda x: plait.debug.print("{}", x), in_shardings=lies).lower(x).compile()
    with pytest.raises(plait.PlaitError, match="xla_no_such_flag"):
        double.lower(x).compile({"xla_no_such_flag": 1})
    with pytest.raises(plait.errors.AxisError, match="several|this process"):
        plait.Mesh([topology.devices[0], plait.devices()[0]], "x")
    with pytest.raises(plait.errors.AxisError, match="64"):
        topologies.make_mesh(topology, (4, 8), ("x", "y"))


def test_libraries_of_gpus(gpus):
    """Rules are those of the platform that is compiled for, not of the one that compiles."""
    there = plait.SingleDeviceSharding(gpus.devices[0])
    x = plait.ShapeDtypeStruct((16, 16), "float32")
    calls = {
        pnp.linalg.cholesky: "cusolver_potrf_ffi",
        pnp.linalg.qr: "cusolver_geqrf_ffi",
        pnp.linalg.eigh: "cusolver_syevd_ffi",
    }
    for f, name in calls.items():
        assert name in plait.jit(f, in_shardings=there).lower(x).compile().as_text()


def test_names(topology):
    for name, said in {
        "v5e:3x3": "not divisible",
        "v99:2x2": "v99",
        "nonsense": "nonsense",
        "h100:x": "how many",
        "h100": "how many",
    }.items():
        with pytest.raises(plait.errors.ArgumentError, match=said) as e:
            topologies.get_topology_desc(name)
        assert e.value.fix
