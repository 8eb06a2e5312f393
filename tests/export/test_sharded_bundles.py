"""Machine code for several devices in files: loaded on any that are as many, compiled elsewhere.

Values are numpy's.
"""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as pnp
from plait.events import counting
from plait_export import deserialize, export, load, load_compiled, machine_code
from plait_sharding import Mesh, NamedSharding, P, make_mesh, shard_map

F32 = np.float32
RNG = np.random.default_rng(3)
X, W = RNG.normal(size=(8, 16)).astype(F32), RNG.normal(size=(16, 4)).astype(F32)
ORDERS = [np.arange(8), np.arange(8)[::-1], np.array([3, 1, 4, 0, 5, 2, 6, 7])]


def mesh():
    return make_mesh((4, 2), ("x", "y"))


def by_hand():
    def local(x, w):
        y = lax.psum(pnp.tanh(x) @ w, "y")
        return y, lax.psum(y.sum(), "x")

    return shard_map(local, mesh=mesh(), in_specs=(P("x", "y"), P("y")), out_specs=(P("x"), P()))


def by_compiler():
    lies = [NamedSharding(mesh(), P(*s)) for s in (("x", "y"), ("y",), ("x",))]
    f = lambda x, w: (pnp.tanh(x) @ w, (pnp.tanh(x) @ w).sum())  # noqa: E731
    return plait.jit(f, in_shardings=(lies[0], lies[1]), out_shardings=(lies[2], None))


def right(out, x=X, w=W):
    y, total = out
    np.testing.assert_allclose(y, np.tanh(x) @ w, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(total, (np.tanh(x) @ w).sum(), rtol=1e-4, atol=1e-4)


@pytest.fixture(params=[by_hand, by_compiler])
def path(request, tmp_path):
    export(request.param())(X, W).compile().save(tmp_path / "f.plait")
    return tmp_path / "f.plait"


def test_what_was_compiled_is_loaded(path):
    with counting() as n, warnings.catch_warnings():
        warnings.simplefilter("error")
        again = load_compiled(path, trusted=True)
        for _ in range(3):
            right(again.call(X, W))
        right(again.call(pnp.asarray(X * 2), pnp.asarray(W)), X * 2)
    assert n["compile"] == n["lower"] == 0 and n["load"] == 1
    y, total = again.call(X, W)
    assert y.sharding.place.devices == total.sharding.place.devices == tuple(range(8))
    assert {s.data.shape for s in y.addressable_shards} == {(2, 4)}
    right(again.exported.call(X, W))


def test_it_runs_on_any_devices_that_are_as_many(path):
    again = load_compiled(path, trusted=True)
    before = {*again.exported.compiled}
    with counting() as n:
        for order in ORDERS:
            for shape, names in (((4, 2), ("x", "y")), ((8,), ("all",))):
                there = Mesh(order.reshape(shape), names)
                y, total = again.call(plait.device_put(X, NamedSharding(there, P(names[0]))), W)
                right((y, total))
                assert y.sharding.place.devices == tuple(order)
                first = [s.device.id for s in y.addressable_shards if s.index[0].start in (0, None)]
                assert sorted(first) == sorted(order[:2].tolist())
    assert n["load"] == 2 and len(before) == 1 and len(again.exported.compiled) == 3


def test_other_numbers_of_devices_are_refused(path):
    again = load_compiled(path, trusted=True)
    four = NamedSharding(Mesh(np.arange(4), ("x",)), P("x"))
    with pytest.raises(plait.errors.PlacementError, match="exported for 8 devices.*on 4") as e:
        again.call(plait.device_put(X, four), W)
    assert e.value.fix


def test_an_argument_is_brought_to_where_the_code_takes_it(path):
    again = load_compiled(path, trusted=True)
    for spec in (P(), P("y", "x"), P(("x", "y")), P("x", "y")):
        given = plait.device_put(X, NamedSharding(mesh(), spec))
        right(again.call(given, W))
    assert len(again.exported.compiled) == 1
    right(again.call(X, W))


def test_large_arguments_lie_as_the_compiler_chose(tmp_path):
    x = RNG.normal(size=(64, 512)).astype(F32)
    w = RNG.normal(size=(512, 4)).astype(F32)
    export(by_hand())(x, w).compile().save(tmp_path / "f")
    again = load_compiled(tmp_path / "f", trusted=True)
    for given in (x, pnp.asarray(x), plait.device_put(x, NamedSharding(mesh(), P("y")))):
        right(again.call(given, w), x, w)


def test_other_machines_compile_the_stablehlo(tmp_path, monkeypatch):
    there = {**machine_code.machine_here(), "processor": "sha256 0"}
    monkeypatch.setattr(machine_code, "machine_here", lambda: there)
    export(by_hand())(X, W).compile().save(tmp_path / "f")
    monkeypatch.undo()
    with pytest.warns(plait.errors.CacheWarning, match="another processor"):
        again = load_compiled(tmp_path / "f", trusted=True)
    right(again.call(X, W))


PROGRAM = """
import sys, warnings, numpy as np, plait
arrays = np.load(sys.argv[2])
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    f = plait.export.load_compiled(sys.argv[1], trusted=True)
print([str(w.message) for w in said])
try:
    print(abs(f.call(arrays["x"], arrays["w"])[0] - arrays["y"]).max() < 1e-4)
except plait.errors.PlaitError as e:
    print(e)
"""


@pytest.mark.parametrize(
    "count, warns, said",
    [(8, "", "True"), (9, "devices 8, and here is 9", "True"),
     (2, "devices 8, and here is 2", "exported for 8 devices, and here are 2")],
)  # fmt: skip
def test_in_other_processes(tmp_path, count, warns, said):
    export(by_hand())(X, W).compile().save(tmp_path / "f")
    np.savez(tmp_path / "in.npz", x=X, w=W, y=np.tanh(X) @ W)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "f"), str(tmp_path / "in.npz")],
        env={**os.environ, "PLAIT_CPU_DEVICES": str(count)}, capture_output=True, text=True,
    )  # fmt: skip
    first, _, rest = done.stdout.partition("\n")
    assert (warns in first and said in rest) and (warns or first == "[]"), done


def test_weights_and_sizes(tmp_path):
    f = lambda x: by_hand()(x, W)  # noqa: E731
    types = plait.export.symbolic_args_specs(X, "8*b, 16")
    made = export(f, weights=1)(types).compile({"b": 1}, {"b": 2})
    made.save(tmp_path / "f")
    for again in (made, load_compiled(tmp_path / "f", trusted=True)):
        with counting() as n:
            for x in (X, np.concatenate([X, 3 * X])):
                right(again.call(x), x)
        assert n["compile"] == 0
        with pytest.raises(plait.errors.PlaitError, match="was compiled for"):
            again.call(np.concatenate([X, X, X]))
        twice = again.exported.with_weights({"W": 2 * W})
        right(twice.call(X), w=2 * W)
        right(again.call(X))


def test_it_is_an_artifact_without_its_machine_code(path):
    again = load(path)
    right(again.call(X, W))
    assert deserialize(again.serialize()).nr_devices == 8
    got = plait.grad(lambda x: again.call(x, W)[1])(X)
    np.testing.assert_allclose(got, (1 - np.tanh(X) ** 2) * W.sum(1), rtol=1e-4, atol=1e-5)
