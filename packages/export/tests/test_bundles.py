"""Bundles: machine code in files, loaded where it was made, and compiled anew elsewhere."""

import json
import os
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest

import plait
from plait import numpy as pnp
from plait.events import counting
from plait.ext.errors import PlaitError
from plait_export import (
    ArtifactError,
    check,
    container,
    deserialize,
    export,
    load,
    load_compiled,
    machine_code,
    symbolic_args_specs,
)
from plait_export.commands import main

F32 = np.float32
X = np.linspace(-1, 1, 12, dtype=F32).reshape(4, 3)
W = np.linspace(0, 1, 6, dtype=F32).reshape(3, 2)
TYPES = symbolic_args_specs((X, {"w": W}), ("b, 3", None))
KEY = b"sixteen bytes long key"


def model(x, p):
    return {"y": pnp.tanh(x @ p["w"]), "n": x.sum(0)}


def right(out, x=X):
    np.testing.assert_allclose(out["y"], np.tanh(x @ W), rtol=1e-5)
    np.testing.assert_allclose(out["n"], x.sum(0), rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def exported():
    return export(model)(*TYPES)


@pytest.fixture
def path(tmp_path, exported):
    exported.compile({"b": 4}, {"b": 1}).save(tmp_path / "model.plait")
    return tmp_path / "model.plait"


def test_what_was_compiled_is_loaded(path):
    with counting() as n, warnings.catch_warnings():
        warnings.simplefilter("error")
        again = load_compiled(path, trusted=True)
        right(again.call(X, {"w": W}))
        right(again.call(X[:1], {"w": W}), X[:1])
        right(again.call(pnp.asarray(X), {"w": pnp.asarray(W)}))
    assert n["compile"] == n["lower"] == 0 and n["load"] == 2
    assert repr(again) == ("<CompiledArtifact model(f32[4,3], f32[3,2]; f32[1,3], f32[3,2])>")
    right(again.exported.call(X[:2], {"w": W}), X[:2])


@pytest.mark.parametrize("entry", ["is there", "is gone", "is damaged"])
def test_what_was_loaded_from_disk_is_saved_whole(tmp_path, entry):
    """The runtime writes an executable without its machine code if it was loaded itself."""
    kept, path = tmp_path / "kept", tmp_path / "model.plait"
    f = lambda x, i: pnp.take(x, i, axis=0, mode="clip") + pnp.clip(i, 0, 3).sum()  # noqa: E731
    at = np.array([1, 7], np.int32)
    with plait.config(cache_dir=kept):
        export(f)(X, at).compile()
        plait.clear_caches()
        again = export(f)(X, at)
        with counting() as n:
            again.compile()
        assert (n["compile"], n["load"]) == (0, 1)
        for file in kept.glob("*.xla"):
            if entry == "is gone":
                file.unlink()
            elif entry == "is damaged":
                file.write_bytes(file.read_bytes()[:-1] + b"!")
        again.compile().save(path)
        plait.clear_caches()
        loaded = load_compiled(path, trusted=True)
        with counting() as n:
            got = loaded.call(X, at)
        assert n["compile"] == 0
    np.testing.assert_allclose(got, X[[1, 3]] + 4, rtol=1e-6)
    plait.clear_caches()


def test_other_sizes_are_refused(path, exported):
    for made in (load_compiled(path, trusted=True), exported.compile({"b": 4})):
        right(made.call(X, {"w": W}))
        with pytest.raises(PlaitError, match=r"is called with f32\[3,3\]") as e:
            made.call(X[:3], {"w": W})
        assert "compiled for f32[4,3]" in e.value.what and "exported" in str(e.value.fix)
        assert "test_bundles.py" in str(e.value)
        with pytest.raises(PlaitError, match="argument `x` .*is f64"):
            made.call(X.astype(np.float64), {"w": W})
        with pytest.raises(plait.errors.TreeMismatch):
            made.call(X, W)
        with pytest.raises(PlaitError, match="cannot be transformed"):
            plait.jit(made.call)(X, {"w": W})


@pytest.mark.parametrize("trusted", [False, None, 1, "yes"])
def test_strangers_are_not_trusted(path, trusted):
    with pytest.raises(PlaitError, match="holds machine code: whoever wrote it") as e:
        load_compiled(path, trusted=trusted)
    assert "trusted=True" in str(e.value.fix) and "isolated=True" in str(e.value.fix)
    with pytest.raises(PlaitError, match="holds machine code"):
        load_compiled(path)


def test_it_is_an_artifact_whose_machine_code_need_not_be_touched(path, exported):
    for isolated in (False, True):
        again = load(path, isolated=isolated)
        right(again.call(X, {"w": W}))
        assert again.serialize() == exported.serialize() or isolated
    facts = check(path)
    assert facts.executables == ("f32[4,3], f32[3,2]", "f32[1,3], f32[3,2]")
    assert facts.stablehlo.keys() == {"main.mlirbc"}
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("manifest.json"))["requires"][-1] == "executables"


def loaded_with_a_warning(path, *texts):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        again = load_compiled(path, trusted=True)
        right(again.call(X, {"w": W}))
        right(again.call(X, {"w": W}))
    assert [w.category for w in said] == [plait.errors.CacheWarning]
    assert all(t in str(said[0].message) for t in texts), said[0].message
    assert said[0].filename.endswith("test_bundles.py")


CHANGES = {
    "jaxlib": ('"0.9.1"', 'jaxlib "0.9.1", and here is'),
    "platform": ('"cuda"', 'platform "cuda", and here is "cpu"'),
    "processor": ("sha256 0", "another processor"),
    "XLA_FLAGS": ('"--xla_cpu_enable_fast_math"', "XLA_FLAGS"),
    "threads": ("64", "threads 64, and here is"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_elsewhere_the_stablehlo_is_compiled(tmp_path, exported, monkeypatch, name):
    """What another machine would have written."""
    value, text = CHANGES[name]
    there = {**machine_code.machine_here(), name: value}
    monkeypatch.setattr(machine_code, "machine_here", lambda: there)
    exported.compile({"b": 4}).save(tmp_path / "f")
    monkeypatch.undo()
    loaded_with_a_warning(tmp_path / "f", "its StableHLO is compiled", text)


def rewritten(path, change):
    """The file with other contents, and checksums that are right."""
    manifest, members = container.unpack(path.read_bytes(), (99,))
    manifest.pop("members")
    change(manifest, members)
    path.write_bytes(container.pack(manifest, members))


@pytest.mark.parametrize("data", [b"", b"no executable", b"\0" * 4000])
def test_what_the_runtime_refuses_is_compiled(path, data):
    rewritten(path, lambda manifest, members: members.update({"executable0.xla": data}))
    loaded_with_a_warning(path, "the runtime refuses this executable")


def test_a_cut_executable(path):
    """With a checksum that is right."""

    def cut(manifest, members):
        members["executable0.xla"] = members["executable0.xla"][:-100]

    rewritten(path, cut)
    loaded_with_a_warning(path, "the runtime refuses this executable")


def test_damage_is_told(path):
    data = path.read_bytes()
    for n in range(0, len(data), 997):
        path.write_bytes(data[:n])
        with pytest.raises(ArtifactError):
            load_compiled(path, trusted=True)
    for i in range(40, len(data), 499):
        changed = bytearray(data)
        changed[i] ^= 16
        path.write_bytes(changed)
        try:
            right(load_compiled(path, trusted=True).call(X, {"w": W}))
        except ArtifactError:
            pass
    path.write_bytes(data)
    for junk in (3, {}, {"each": 3, "made_where": {}}, {"each": [3], "made_where": {}},
                 {"each": [{"member": "x", "inputs": []}], "made_where": {}},
                 {"each": [{"member": "executable0.xla", "inputs": ["f32[4"]}],
                  "made_where": {}}):  # fmt: skip
        rewritten(path, lambda m, _, junk=junk: m.update(executables=junk))
        with pytest.raises(ArtifactError):
            load_compiled(path, trusted=True)
        path.write_bytes(data)


def test_an_artifact_without_executables(tmp_path, exported):
    exported.save(tmp_path / "f")
    with pytest.raises(ArtifactError, match="is an artifact without executables") as e:
        load_compiled(tmp_path / "f", trusted=True)
    assert "compile" in str(e.value.fix)


def test_sizes_must_be_given(exported):
    with pytest.raises(PlaitError, match="is compiled for no sizes"):
        exported.compile()
    with pytest.raises(PlaitError, match="has the symbolic sizes b"):
        exported.compile({"c": 3})
    fixed = export(lambda x: x + 1)(X).compile()
    np.testing.assert_array_equal(fixed.call(X), X + 1)
    with pytest.raises(PlaitError, match="exported for tpu"):
        export(lambda x: x + 1, platforms=["tpu"])(X).compile()


def test_weights_and_seals(tmp_path):
    made = export(lambda x: x @ W, weights=1)(X)
    made.compile().save(tmp_path / "f", key=KEY)
    again = load_compiled(tmp_path / "f", trusted=True, key=KEY)
    np.testing.assert_allclose(again.call(X), X @ W, rtol=1e-6)
    (weight,) = again.exported.held
    assert np.asarray(weight.array()).ctypes.data == weight.numpy().ctypes.data
    with pytest.raises(ArtifactError, match="the seal of the artifact is not by this key"):
        load_compiled(tmp_path / "f", trusted=True, key=KEY[::-1])


def test_linear_algebra_is_called_again(tmp_path):
    """In a process that has called no library before."""
    made = export(lambda x: pnp.linalg.cholesky(x))(np.eye(3, dtype=F32))
    made.compile().save(tmp_path / "f")
    program = """
import sys, numpy as np, plait
f = plait.export.load_compiled(sys.argv[1], trusted=True)
print(f.call(np.diag(np.float32([1, 4, 9]))).tolist())
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program, str(tmp_path / "f")],
                          env={**os.environ, "PLAIT_CPU_DEVICES": str(len(plait.devices()))},
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout == "[[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]\n", done


def test_the_command_compiles(tmp_path, exported):
    exported.save(tmp_path / "model.plait")
    out = tmp_path / "compiled.plait"
    assert main(["compile", str(tmp_path / "model.plait"), str(out), "b=4"]) == 0
    right(load_compiled(out, trusted=True).call(X, {"w": W}))
    assert main(["inspect", str(out)]) == 0
    assert main(["compile", str(tmp_path / "model.plait"), str(out)]) == 2


def test_earlier_readers_refuse_it_by_name(path, monkeypatch):
    known = container.FEATURES - {"executables"}
    monkeypatch.setattr(container, "FEATURES", known)
    with pytest.raises(ArtifactError, match="requires what this reader does not know: executables"):
        deserialize(path.read_bytes())
