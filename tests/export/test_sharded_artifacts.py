"""Functions of several devices as artifacts: on eight virtual devices, and on others as many.

Values are compared with numpy's, or with the same function on one device.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as pnp
from plait.ext.errors import PlaitError
from plait_export import (
    ArtifactError,
    DisabledSafetyCheck,
    NotExportable,
    check,
    container,
    deserialize,
    export,
    load,
)
from plait_sharding import Mesh, NamedSharding, P, make_mesh, shard_map

F32 = np.float32
RNG = np.random.default_rng(3)
X, W = RNG.normal(size=(8, 16)).astype(F32), RNG.normal(size=(16, 4)).astype(F32)


def close(x, y):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-4, atol=1e-5)


@pytest.fixture
def mesh():
    return make_mesh((4, 2), ("x", "y"))


def by_pieces(mesh):
    """A matrix product whose sum goes over devices, and a sum by hand of another axis."""

    def local(x, w):
        y = lax.psum(pnp.tanh(x) @ w, "y")
        return y, lax.psum(y.sum(), "x")

    return shard_map(local, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=(P("x"), P()))


def by_numpy(x, w):
    y = np.tanh(x) @ w
    return y, y.sum()


def by_compiler(mesh):
    lies = [NamedSharding(mesh, P(*s)) for s in (("x", "y"), ("y",), ("x",))]
    f = lambda x, w: (pnp.tanh(x) @ w, (pnp.tanh(x) @ w).sum())  # noqa: E731
    return plait.jit(f, in_shardings=(lies[0], lies[1]), out_shardings=(lies[2], None))


MADE = {"by hand": by_pieces, "by the compiler": by_compiler}


@pytest.fixture(params=MADE)
def exported(request, mesh):
    return export(MADE[request.param](mesh))(X, W)


@pytest.fixture(params=["here", "read", "isolated"])
def again(request, exported):
    if request.param == "here":
        return exported
    return deserialize(exported.serialize(1), isolated=request.param == "isolated")


@pytest.mark.sampled(10)
def test_it_is_called_on_any_mesh_of_as_many_devices(again, exported):
    assert again.nr_devices == exported.nr_devices == 8
    orders = [np.arange(8), np.arange(8)[::-1], np.array([3, 1, 4, 0, 5, 2, 6, 7])]
    for order in orders:
        for shape, names in (((4, 2), ("x", "y")), ((8,), ("all",)), ((2, 2, 2), ("a", "b", "c"))):
            there = Mesh(order.reshape(shape), names)
            given = plait.device_put(X, NamedSharding(there, P(names[0])))
            y, total = again.call(given, W)
            close(y, by_numpy(X, W)[0])
            close(total, by_numpy(X, W)[1])
            assert y.sharding.place.devices == tuple(order)
            assert {s.data.shape for s in y.addressable_shards} == {(2, 4)}
            first = [s.device.id for s in y.addressable_shards if s.index[0].start in (0, None)]
            assert sorted(first) == sorted(order[:2].tolist()), "the mesh is 4 x 2 in this order"


def test_without_placements_it_runs_on_the_first_devices(again):
    for x in (X, pnp.asarray(X)):
        y, total = again.call(x, W)
        close(y, by_numpy(X, W)[0])
        assert y.sharding.place.devices == tuple(range(8))
        close(total, by_numpy(X, W)[1])


def test_it_is_traced_with_others(again, mesh):
    y, _ = by_numpy(X, W)
    lies = NamedSharding(Mesh(np.arange(8)[::-1].reshape(4, 2), ("x", "y")), P("x"))
    for x in (X, plait.device_put(X, lies)):
        f = plait.jit(lambda x, w: again.call(x * 2, w)[0] * 3)
        close(f(x, W), 3 * np.tanh(2 * X) @ W)
    both = plait.jit(lambda x, w: (again.call(x, w)[0], by_pieces(mesh)(x, w)[0]))(X, W)
    close(both[0], y)
    close(both[1], y)
    call: Any = plait.jit(again.call)
    text = call.lower(X, W).as_text()
    assert text.count("sdy.mesh @") == 1


@pytest.mark.sampled(10)
def test_derivatives(again):
    """Of the saved pullback: against the function on one device."""
    f = lambda x, w: (lambda y: (y * y).sum() + 3 * y.sum())(pnp.tanh(x) @ w)  # noqa: E731
    want = plait.grad(f, (0, 1))(X, W)

    def of_artifact(x, w):
        y, total = again.call(x, w)
        return (y * y).sum() + 3 * total

    for grad in (plait.grad(of_artifact, (0, 1)), plait.jit(plait.grad(of_artifact, (0, 1)))):
        for got, one in zip(grad(X, W), want, strict=True):
            close(got, one)
    back = again.vjp()
    assert back.nr_devices == 8
    ct = np.ones((8, 4), F32)
    over_x, over_w = back.call(X, W, ct, F32(0))
    close(over_x, (1 - np.tanh(X) ** 2) * (ct @ W.T))
    close(over_w, np.tanh(X).T @ ct)


def gradient(exported):
    return plait.grad(lambda x: exported.call(x, W)[1])(X)


def test_what_the_compiler_divides_is_read_back(mesh):
    """What is written for each device: test_sharded_reading.py."""
    again = deserialize(export(by_compiler(mesh))(X, W).serialize())
    names = {e.prim.name for e in again.program().eqns}
    assert {"core.tanh", "core.dot_general", "core.reduce_sum"} == names
    slope = (1 - np.tanh(X) ** 2) * W.sum(1)
    close(gradient(again), slope)
    close(plait.jvp(lambda x: again.call(x, W)[1], (X,), (X,))[1], (slope * X).sum())
    rows = plait.vmap(lambda x: again.call(x, W)[0])(np.stack([X, -X]))
    close(rows, [np.tanh(X) @ W, np.tanh(-X) @ W])


def test_how_arguments_lie(mesh):
    exported = deserialize(export(by_compiler(mesh))(X, W).serialize())
    there = Mesh(np.arange(8)[::-1], ("one",))
    ins = exported.in_shardings_jax(there)
    assert [s.spec for s in ins] == [P("x", "y"), P("y")]
    assert ins[0].mesh.ids == tuple(range(8))[::-1] and ins[0].mesh.axis_sizes == (4, 2)
    outs = exported.out_shardings_jax(mesh.abstract_mesh)
    assert outs == (NamedSharding(mesh, P("x")), None)
    close(exported.call(plait.device_put(X, ins[0]), plait.device_put(W, ins[1]))[0],
          by_numpy(X, W)[0])  # fmt: skip
    one = export(lambda x: x)(X)
    assert (one.nr_devices, one.in_shardings_jax(mesh)) == (1, (None,))
    given = export(by_pieces(mesh))(plait.device_put(X, NamedSharding(mesh, P("y"))), W)
    assert given.in_shardings_jax(mesh) == (NamedSharding(mesh, P("y")), None)


def told(f, *texts, kind=PlaitError):
    with pytest.raises(kind) as e:
        f()
    assert all(t in str(e.value) for t in texts), str(e.value)
    assert e.value.fix and "test_sharded_artifacts.py" in str(e.value)


def test_other_numbers_of_devices_are_refused(again):
    four = Mesh(np.arange(4), ("x",))
    given = plait.device_put(X, NamedSharding(four, P("x")))
    told(lambda: again.call(given, W), "exported for 8 devices", "called on 4")
    call: Any = plait.jit(again.call)
    told(lambda: call(given, W), "exported for 8 devices", "called on 4")
    alone = plait.device_put(X, plait.devices()[3])
    told(lambda: again.call(alone, W), "exported for 8 devices", "called on 1")
    told(lambda: again.in_shardings_jax(four), "exported for 8 devices", "called on 4")
    told(lambda: again.in_shardings_jax("x"), "'x' is not a mesh")
    inside = shard_map(lambda x: again.call(x, W)[0], mesh=four, in_specs=P(), out_specs=P())
    told(lambda: inside(X), "inside shard_map")


def test_a_process_with_fewer_devices(tmp_path, mesh):
    path = tmp_path / "f.plait"
    export(by_pieces(mesh))(X, W).save(path)
    program = """
import sys, numpy as np, plait
f = plait.export.load(sys.argv[1])
try:
    print(f.call(np.ones((8, 16), np.float32), np.ones((16, 4), np.float32))[1])
except plait.errors.PlaitError as e:
    print(e)
"""
    for count, said in (("2", "exported for 8 devices, and here are 2"), ("8", "389.93")):
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            env={**os.environ, "PLAIT_CPU_DEVICES": count}, capture_output=True, text=True,
        )  # fmt: skip
        assert said in done.stdout, done
    assert check(path).nr_devices == 8


def test_weights_and_platforms_and_sizes(mesh):
    f = lambda x: by_pieces(mesh)(x, W)[0]  # noqa: E731
    exported = export(f, weights=1, platforms=["tpu", "cpu"])(X)
    again = deserialize(exported.serialize(1))
    assert list(again.weights) == ["W"]
    close(again.call(X), np.tanh(X) @ W)
    close(again.with_weights({"W": 2 * W}).call(X), np.tanh(X) @ W * 2)
    ct = np.ones((8, 4), F32)
    close(again.vjp().call(X, ct)[0], (1 - np.tanh(X) ** 2) * (ct @ W.T))
    fixed = again.specialize(platform="cpu")
    assert fixed.nr_devices == 8
    close(deserialize(fixed.serialize()).call(X), np.tanh(X) @ W)
    close(again.with_weights_inside().call(X), np.tanh(X) @ W)


def test_keys_lie_on_meshes(mesh):
    lies = NamedSharding(mesh, P("x"))
    f = plait.jit(
        lambda k, x: (plait.vmap(plait.random.fold_in)(k, pnp.arange(8)), x * 2),
        in_shardings=(lies, lies), out_shardings=(lies, None),
    )  # fmt: skip
    keys = plait.random.split(plait.random.key(0), 8)
    again = deserialize(export(f)(keys, X).serialize())
    got = again.call(keys, X)[0]
    want = plait.vmap(plait.random.fold_in)(keys, pnp.arange(8))
    np.testing.assert_array_equal(plait.random.key_data(got), plait.random.key_data(want))


def test_the_same_function_is_the_same_bytes(mesh):
    one, two = (export(by_pieces(mesh))(X, W).serialize(1) for _ in range(2))
    assert one == two and deserialize(one).serialize(1) == one
    manifest, _ = container.unpack(one, (99,))
    assert manifest["requires"] == ["meshes"]
    assert manifest["devices"] == {
        "count": 8, "meshes": [[["x", 4], ["y", 2]]], "inputs": [None, None],
        "outputs": [{"mesh": 0, "spec": [["x"]]}, {"mesh": 0, "spec": []}],
    }  # fmt: skip


JUNK = [
    None, 3, [], {}, {"count": 0}, {"count": 2**70}, {"count": "8"},
    {"meshes": []}, {"meshes": [[["x", 8]]]}, {"meshes": [[["x", 4], ["y", 4]]]},
    {"meshes": [[["x", 4], ["x", 2]]]}, {"meshes": [[["x", -4], ["y", -2]]]}, {"meshes": [[3]]},
    {"meshes": [[["x", 2], ["y", 4]]]}, {"meshes": 3}, {"inputs": []}, {"inputs": [None]},
    {"inputs": [None, 3]}, {"inputs": [None, {"mesh": 1, "spec": []}]},
    {"inputs": [None, {"mesh": 0, "spec": [["z"]]}]},
    {"inputs": [None, {"mesh": 0, "spec": [["x"], ["x"]]}]},
    {"inputs": [None, {"mesh": 0, "spec": [["x"], ["y"], []]}]},
    {"inputs": [None, {"mesh": 0, "spec": [[], ["x", "y"]]}]},
    {"outputs": [None, {"mesh": 0, "spec": [["x"]]}]}, {"inputs": [None, {"spec": [[3]]}]},
]  # fmt: skip


@pytest.mark.parametrize("junk", JUNK, ids=lambda j: json.dumps(j)[:40])
def test_manifests_that_lie_of_devices(mesh, junk):
    manifest, members = container.unpack(export(by_pieces(mesh))(X, W).serialize(), (99,))
    manifest.pop("members")
    devices = {**manifest["devices"], **junk} if junk and isinstance(junk, dict) else junk
    data = container.pack({**manifest, "devices": devices}, members)
    for isolated in (False, True) if junk in (None, JUNK[-1]) else (False,):
        told(lambda: deserialize(data, isolated=isolated).call(X, W), "damaged", kind=ArtifactError)


def test_devices_that_are_no_mesh_are_refused(mesh):
    tiles = plait.sharding.GSPMDSharding(plait.devices()[:8], "{devices=[8,1]<=[8]}")
    f = plait.jit(lambda x: x * 2, in_shardings=tiles)
    told(lambda: export(f)(X), "named axes of a mesh", kind=NotExportable)


def test_the_names_of_jax_export(mesh):
    exported = export(by_pieces(mesh))(X, W)
    assert exported.ordered_effects == exported.unordered_effects == ()
    assert exported.module_kept_var_idx == (0, 1) and not exported.uses_global_constants
    assert exported.disabled_safety_checks == ()
    allow = DisabledSafetyCheck.custom_call("theirs")
    assert allow == DisabledSafetyCheck.custom_call("theirs") and {allow} == {allow}
    assert allow.is_custom_call() == "theirs" and repr(allow) == "custom_call:theirs"
    call = plait.ffi.ffi_call("theirs", plait.ShapeDtypeStruct((3,), F32))
    told(lambda: export(call)(np.ones(3, F32)), "theirs", kind=NotExportable)
    made = export(call, disabled_checks=[allow])(np.ones(3, F32))
    assert made.disabled_safety_checks == (allow,)
    told(DisabledSafetyCheck.platform, "exported for")
    other: Any = ["theirs"]
    told(lambda: export(call, disabled_checks=other), "not a check")


def test_a_mapped_file(tmp_path, mesh):
    export(by_pieces(mesh))(X, W).save(tmp_path / "f")
    close(load(tmp_path / "f").call(X, W)[0], by_numpy(X, W)[0])


GOLDEN = Path(__file__).parents[2] / "packages" / "export" / "tests" / "golden" / "releases"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/meshes.plait")), ids=lambda p: p.parent.name)
def test_what_earlier_releases_wrote(path):
    """With numpy's results beside it."""
    arrays = np.load(path.with_suffix(".npz"))
    args, ct = ([arrays[f"{side}{i}"] for i in range(2)] for side in ("args", "ct"))
    exported = load(path)
    for k, y in enumerate(exported.call(*args)):
        close(y, arrays[f"results{k}"])
    for k, y in enumerate(exported.vjp().call(*args, *ct)):
        close(y, arrays[f"over{k}"])
