"""Weights beside the module: by name, mapped, replaced; and what damage does to them.

Values are compared with numpy's, the file with what the library safetensors reads.
"""

import functools
import hashlib
import io
import json
import os
import struct
import subprocess
import sys
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
    files,
    load,
    safetensors,
    symbolic_args_specs,
)
from plait_export.commands import main

F32 = np.float32
KEY = b"sixteen bytes...and more"
RNG = np.random.default_rng(7)
PARAMS = {
    "w1": RNG.normal(size=(8, 16)).astype(F32),
    "b": [pnp.asarray(RNG.normal(size=16).astype(F32))],
    "w2": pnp.asarray(RNG.normal(size=(16, 4)).astype(F32)),
}
X = RNG.normal(size=(3, 8)).astype(F32)
TYPES = symbolic_args_specs(X, "n, 8")
NAMES = ["params['w1']", "params['w2']"]


def model_of(params):
    def model(x):
        return pnp.tanh(x @ params["w1"] + params["b"][0]) @ params["w2"]

    return model


def by_numpy(x, w1, w2):
    return np.tanh(x @ w1 + np.asarray(PARAMS["b"][0])) @ w2


W1, W2 = (np.asarray(PARAMS[n]) for n in ("w1", "w2"))
EXPORTED = export(model_of(PARAMS), weights=256)(TYPES)
SAVED = EXPORTED.serialize()


def close(x, y):
    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def parts(data: bytes) -> tuple[dict, dict[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    return json.loads(members.pop("manifest.json")), members


# ---- what is a weight, and its name --------------------------------------------------------


def test_constants_from_so_many_bytes_on_are_weights():
    assert list(EXPORTED.weights) == NAMES
    assert EXPORTED.weights[NAMES[1]].shape == (16, 4)
    assert EXPORTED.weights[NAMES[1]].dtype == F32
    assert export(model_of(PARAMS))(TYPES).weights == {}
    assert list(export(model_of(PARAMS), weights=64)(TYPES).weights) == [
        NAMES[0], "params['b'][0]", NAMES[1]
    ]  # fmt: skip
    large, small = RNG.random((512, 512), F32), RNG.random((511, 512), F32)
    exported = export(
        lambda x: x + pnp.asarray(large).sum() + pnp.asarray(small)[0], weights="separate"
    )(small[0])
    assert list(exported.weights) == ["large"]
    assert len(exported.mlir_module_serialized) > small.nbytes > len(SAVED)


GLOBAL = {"deep": [np.arange(64, dtype=F32)]}


class Model:
    def __init__(self):
        self.layers = [{"w": np.ones((8, 8), F32)}]

    def __call__(self, x):
        return x @ self.layers[0]["w"]

    def apply(self, x):
        return self(x) + pnp.asarray(GLOBAL["deep"][0])[:8]


def test_weights_are_named_as_the_function_writes_them():
    x = np.ones(8, F32)
    v = np.arange(100, dtype=F32)

    def with_default(x, w=np.full((8, 8), 2, F32)):
        return x @ w

    def helper(x):
        return x * pnp.asarray(v)[:8]

    cases = [
        (Model().apply, ["self.layers[0]['w']", "GLOBAL['deep'][0]"]),
        (functools.partial(lambda w, x: x @ w, np.ones((8, 8), F32)), ["arguments[0]"]),
        (with_default, ["w"]),
        (plait.jit(lambda x: helper(x)), ["v"]),
        (lambda x: x + pnp.asarray(np.arange(80, dtype=F32) * 3)[:8], ["constant_0"]),
    ]
    for f, names in cases:
        exported = export(f, weights=200)(x)
        assert list(exported.weights) == names, names
        close(exported.call(x), np.asarray(f(x)))
        close(deserialize(exported.serialize()).call(x), np.asarray(f(x)))


def test_an_array_that_is_used_twice_is_there_once():
    w = np.arange(256, dtype=F32)
    f = lambda x: x * w + plait.jit(lambda y: y + w)(x)  # noqa: E731
    exported = export(f, weights=1)(w)
    assert list(exported.weights) == ["w"]
    again = deserialize(exported.serialize()).with_weights({"w": w + 1})
    close(again.call(w), w * (w + 1) + w + w + 1)


@pytest.mark.parametrize("asked", ["beside", 0, -1, True, 1.5, None])
def test_what_says_nothing_of_weights_is_refused(asked):
    with pytest.raises(PlaitError, match='"inside", "separate" or a number of bytes'):
        export(lambda x: x, weights=asked)


# ---- the file ------------------------------------------------------------------------------


def test_the_library_safetensors_reads_the_member():
    numpy = pytest.importorskip("safetensors.numpy")
    manifest, members = parts(SAVED)
    found = numpy.load(members["weights.safetensors"])
    assert sorted(found) == sorted(NAMES)
    np.testing.assert_array_equal(found[NAMES[0]], W1)
    np.testing.assert_array_equal(found[NAMES[1]], W2)
    assert manifest["requires"] == ["symbolic-sizes", "separate-weights"]
    assert manifest["weights"] == [
        {"name": NAMES[0], "type": "f32[8,16]"}, {"name": NAMES[1], "type": "f32[16,4]"}
    ]  # fmt: skip


DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "float16", "bfloat16", "float32", "float64", "complex64", "float8_e5m2",
          "float8_e4m3fn"]  # fmt: skip


@pytest.mark.parametrize("dtype", [*DTYPES, "complex128", "int4"])
def test_every_dtype(dtype):
    """Those that the format has no name for stay in the module."""
    w = pnp.asarray(np.arange(67) % 2).astype(dtype)
    exported = export(lambda x: w[::-1] if x is None else (w[::-1], x), weights=1)(F32(1))
    assert bool(exported.weights) == (dtype in DTYPES)
    again = deserialize(exported.serialize())
    found = np.asarray(again.call(F32(1))[0].astype("complex128"))
    np.testing.assert_array_equal(found, (np.arange(67) % 2)[::-1])
    assert again.call(F32(1))[0].dtype.name == dtype


@pytest.mark.parametrize("key", [None, KEY])
def test_a_file_is_written_as_bytes_are_and_mapped(tmp_path, key):
    path = tmp_path / "model.plait"
    EXPORTED.save(path, key=key)
    assert path.read_bytes() == EXPORTED.serialize(key=key)
    assert [p.name for p in tmp_path.iterdir()] == ["model.plait"]
    again = load(path, key=key)
    close(again.call(X), by_numpy(X, W1, W2))
    for weight in again.held:
        there = weight.numpy().ctypes.data
        assert there % 64 == 0, "devices take what is aligned as it lies"
        assert np.asarray(weight.array()).ctypes.data == there, "it is not copied"
        assert not weight.numpy().flags.writeable


def test_equal_functions_are_equal_bytes():
    assert export(model_of(PARAMS), weights=256)(TYPES).serialize() == SAVED
    assert deserialize(SAVED).serialize() == SAVED


# ---- all that artifacts can ----------------------------------------------------------------


def read(how, tmp_path, saved):
    if how == "mapped":
        (tmp_path / "f").write_bytes(saved)
        return load(tmp_path / "f")
    return deserialize(saved, isolated=how == "isolated")


@pytest.mark.parametrize("how", ["mapped", "bytes", "isolated"])
def test_calls(how, tmp_path):
    again = read(how, tmp_path, SAVED)
    for n in (1, 3):
        x = X[:n]
        close(again.call(x), by_numpy(x, W1, W2))
        close(plait.jit(again.call)(x), by_numpy(x, W1, W2))
    rows, _ = plait.lax.scan(lambda c, r: (c + again.call(r[None])[0], None), np.zeros(4, F32), X)
    close(rows, by_numpy(X, W1, W2).sum(0))
    close(again.specialize({"n": 3}).call(X), by_numpy(X, W1, W2))
    program = again.specialize({"n": 3}).program(lose_custom_rules=True)
    close(plait.ext.evaluate(program, [pnp.asarray(X)])[0], by_numpy(X, W1, W2))


@pytest.mark.parametrize("platforms", [["cpu"], ["tpu", "cpu"]])
@pytest.mark.parametrize("types", [X, TYPES])
def test_inside_another_export(platforms, types):
    inner = deserialize(
        export(model_of(PARAMS), weights=256, platforms=platforms)(types).serialize()
    )
    for outer in (
        export(lambda x: inner.call(x) * 2, platforms=platforms)(types),
        export(lambda x: inner.call(x) * 2, platforms=platforms, weights=256)(types),
    ):
        again = deserialize(outer.serialize())
        close(again.call(X), 2 * by_numpy(X, W1, W2))
    assert len(again.weights) == 2


@pytest.mark.parametrize("made", ["here", "read", "isolated"])
def test_weights_are_replaced(made):
    old = EXPORTED
    if made != "here":
        old = deserialize(SAVED, isolated=made == "isolated")
    before = by_numpy(X, W1, W2)
    close(old.call(X), before)
    w1, w2 = np.cos(W1), W2[::-1].copy()
    with counting() as n:
        new = old.with_weights({NAMES[0]: w1, NAMES[1]: pnp.asarray(w2)})
        close(new.call(X), by_numpy(X, w1, w2))
    assert n["compile"] + n["load"] + n["lower"] == 0
    close(old.call(X), before)
    close(old.with_weights({NAMES[0]: w1}).call(X), by_numpy(X, w1, W2))
    again = deserialize(new.serialize())
    close(again.call(X), by_numpy(X, w1, w2))
    close(plait.jit(again.call)(X), by_numpy(X, w1, w2))
    assert [w.name for w in again.held] == NAMES
    inside = new.with_weights_inside()
    assert inside.weights == {} and inside.with_weights_inside() is inside
    close(deserialize(inside.serialize()).call(X), by_numpy(X, w1, w2))


def test_weights_that_do_not_fit_are_refused():
    cases = [
        ({"w": W1}, "model has no weight 'w'", "params"),
        ([W1], "given as a list, and not by name", "dictionary"),
        ({NAMES[0]: W1.T}, r"is f32\[8,16\], and is replaced by f32\[16,8\]", "that shape"),
        ({NAMES[0]: W1.astype(np.float64)}, "is replaced by f64", "astype"),
        ({NAMES[0]: 3.0}, "is replaced by f32", "that shape"),
    ]
    for given, what, fix in cases:
        with pytest.raises(PlaitError, match=what) as e:
            EXPORTED.with_weights(given)
        assert fix in e.value.fix and "test_weights.py" in str(e.value)


def test_the_command_shows_them(tmp_path, capsys):
    path = tmp_path / "model.plait"
    EXPORTED.save(path)
    assert main(["inspect", str(path)]) == 0
    assert "weight      params['w1']: f32[8,16]" in capsys.readouterr().out
    np.savez(tmp_path / "in.npz", X)
    assert main(["run", str(path), str(tmp_path / "in.npz"), str(tmp_path / "out.npz")]) == 0
    close(np.load(tmp_path / "out.npz")["result"], by_numpy(X, W1, W2))
    assert main(["specialize", str(path), str(tmp_path / "s.plait"), "n=3"]) == 0
    close(load(tmp_path / "s.plait").call(X), by_numpy(X, W1, W2))
    assert check(path).weights == {NAMES[0]: "f32[8,16]", NAMES[1]: "f32[16,4]"}


def test_another_process_maps_them(tmp_path):
    """It has as much memory of its own as without the weights, which are 256 MB."""
    resource = pytest.importorskip("resource")
    assert resource
    if not os.path.exists("/proc/self/status"):
        pytest.skip("what a process has of its own is told by Linux")
    program = """
import sys, numpy as np, plait
w = np.ones((1 << 13, 1 << 13), np.float32)
plait.export.export(lambda x: w[0, :2] * x, weights="separate")(np.float32(1)).save(sys.argv[1])
"""
    reading = """
import sys, numpy as np, plait
f = plait.export.load(sys.argv[1])
assert f.call(np.float32(3)).tolist() == [3, 3]
told = dict(l.split(":") for l in open("/proc/self/status").read().splitlines())
print(int(told["RssAnon"].split()[0]))
"""
    path = str(tmp_path / "large.plait")
    subprocess.run([sys.executable, "-c", program, path], check=True)
    done = subprocess.run([sys.executable, "-c", reading, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 220_000, "KiB; with a copy there were 260,000 more"


# ---- damage --------------------------------------------------------------------------------


def refused(data, text):
    for isolated in (False, True):
        with pytest.raises(ArtifactError, match=text) as e:
            deserialize(data, isolated=isolated).mlir_module_serialized  # noqa: B018
        assert e.value.fix and "test_weights.py" in str(e.value)


def test_no_flipped_bit_goes_unnoticed():
    """Or it changes nothing."""
    harmless = 0
    for i in range(0, len(SAVED)):
        data = bytearray(SAVED)
        data[i] ^= 1 << (i % 8)
        try:
            again = deserialize(bytes(data))
        except ArtifactError:
            continue
        assert again.serialize() == SAVED, i
        harmless += 1
    assert harmless < 330  # dates and numbers of systems, and the padding of a header


def test_no_cut_goes_unnoticed():
    for n in range(0, len(SAVED), 11):
        with pytest.raises(ArtifactError):
            deserialize(SAVED[:n])


def with_weights_member(header, data: bytes, **fields) -> bytes:
    """The artifact with another file of weights, and checksums that are right."""
    manifest, members = parts(SAVED)
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    members["weights.safetensors"] = struct.pack("<Q", len(text)) + text + data
    return container.pack({**manifest, **fields}, members)


GOOD = {NAMES[0]: {"dtype": "F32", "shape": [8, 16], "data_offsets": [0, 512]},
        NAMES[1]: {"dtype": "F32", "shape": [16, 4], "data_offsets": [512, 768]}}  # fmt: skip
DATA = W1.tobytes() + W2.tobytes()


def changed(name, **said):
    return {**GOOD, name: {**GOOD[name], **said}}


HEADERS = {
    "offsets out of range": (changed(NAMES[1], data_offsets=[512, 800]), "end at byte 800"),
    "offsets that overlap": (changed(NAMES[1], data_offsets=[256, 512]), "begins at byte 256"),
    "a hole": (changed(NAMES[1], data_offsets=[516, 772]), "begins at byte 516"),
    "an end before the beginning": (changed(NAMES[1], data_offsets=[768, 512]), "before it begins"),
    "offsets below 0": (changed(NAMES[1], data_offsets=[-256, 0]), "where .* is"),
    "offsets that are not numbers": (changed(NAMES[1], data_offsets=["0", None]), "where .* is"),
    "an enormous offset": (changed(NAMES[1], data_offsets=[512, 2**80]), "end at byte"),
    "another dtype": (changed(NAMES[1], dtype="I32"), "no weight .* of type f32"),
    "a dtype of other width": (changed(NAMES[1], dtype="F64"), "has 256 bytes"),
    "an unknown dtype": (changed(NAMES[1], dtype="Q7"), "elements of type 'Q7'"),
    "another shape": (changed(NAMES[1], shape=[4, 16]), "no weight .* of type f32"),
    "another size": (changed(NAMES[1], shape=[16, 5]), "has 256 bytes"),
    "a shape that is none": (changed(NAMES[1], shape="16"), "the shape of"),
    "a huge shape": (changed(NAMES[1], shape=[2**62, 2**62]), "has 256 bytes"),
    "a missing one": ({NAMES[0]: {**GOOD[NAMES[0]]}}, "end at byte 512 of 768"),
    "no object": ([1], "its header is not an object"),
    "no JSON": (b"{", "its header"),
    "nesting": (b"[" * 100_000, "its header"),
    "an entry that is none": ({**GOOD, NAMES[1]: 3}, "where .* is"),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADERS)
def test_headers_that_lie(name):
    header, text = HEADERS[name]
    refused(with_weights_member(header, DATA), text)


def test_members_that_do_not_fit():
    assert deserialize(with_weights_member(GOOD, DATA)).serialize() == SAVED
    manifest, members = parts(SAVED)
    weights = members.pop("weights.safetensors")
    refused(container.pack(manifest, members), "has no weight")
    more = {**GOOD, "extra": {"dtype": "U8", "shape": [4], "data_offsets": [768, 772]}}
    refused(with_weights_member(more, DATA + b"abcd"), "nothing takes its weights extra")
    for cut in (b"", b"\xff" * 8, weights[:20], weights[:-1]):
        held = {**members, "weights.safetensors": cut}
        refused(container.pack(manifest, held), "its weights|is not what")
    entry = [{"name": NAMES[0], "type": "f32[8,16]"}]
    for said in (entry, entry * 3, entry[::-1] + [{"name": "no"}], [3], {}, "x"):
        with pytest.raises(ArtifactError):
            deserialize(with_weights_member(GOOD, DATA, weights=said)).mlir_module()
    swapped = [{"name": NAMES[1], "type": "f32[16,4]"}, {"name": NAMES[0], "type": "f32[8,16]"}]
    refused(with_weights_member(GOOD, DATA, weights=swapped), "its module is not the model")


def test_a_byte_of_a_weight_is_noticed():
    at = SAVED.index(W1.tobytes()) + 100
    damaged = SAVED[:at] + b"?" + SAVED[at + 1 :]
    refused(damaged, "weights.safetensors is not what its checksum says")
    digest = hashlib.sha256(b"").hexdigest()
    manifest, _ = parts(SAVED)
    assert manifest["members"]["weights.safetensors"].keys() == {"bytes", "sha256"} != digest


def test_files_that_can_not_be_read(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ArtifactError, match="these 0 bytes are not an artifact"):
        load(tmp_path / "empty")
    with pytest.raises(ArtifactError, match="cannot be read: No such file"):
        load(tmp_path / "missing")
    with pytest.raises(ArtifactError, match="is the name of none"):
        load(SAVED)  # pyright: ignore[reportArgumentType]
    sealed = tmp_path / "sealed"
    EXPORTED.save(sealed, key=KEY)
    data = bytearray(sealed.read_bytes())
    data[-3] ^= 1
    sealed.write_bytes(data)
    with pytest.raises(ArtifactError, match="the seal of the artifact is not by this key"):
        load(sealed, key=KEY)


def test_a_file_that_can_not_be_written_leaves_nothing(tmp_path):
    class Other:
        pass

    exported = export(lambda x: x, weights=1)(F32(0))
    with pytest.raises(OSError):
        exported.save(tmp_path / "no" / "such")
    with pytest.raises(PlaitError, match="a key is at least"):
        exported.save(tmp_path / "f", key=b"short")
    assert list(tmp_path.iterdir()) == []


# ---- beyond 32 bits ------------------------------------------------------------------------


def test_more_than_four_gibibytes(tmp_path):
    """In a file with holes, whose zeros take no room: offsets that 32 bits cannot hold."""
    count = (1 << 32) // 4 + 1024
    first, last = np.ones(1024, F32), np.full(1024, 2, F32)
    ends = np.cumsum([0, first.nbytes, 4 * count, last.nbytes]).tolist()
    header = {
        name: {"dtype": "F32", "shape": [n], "data_offsets": ends[k : k + 2]}
        for k, (name, n) in enumerate([("first", 1024), ("middle", count), ("last", 1024)])
    }
    text = json.dumps(header).encode()
    path = tmp_path / "weights.safetensors"
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + first.tobytes())
        file.seek(4 * count, os.SEEK_CUR)
        file.write(last.tobytes())
    found = safetensors.read(files.mapped(path))
    assert found["middle"].shape == (count,) and found["middle"][count - 1] == 0
    np.testing.assert_array_equal(found["first"], first)
    np.testing.assert_array_equal(found["last"], last)
    path.unlink()


def test_the_archive_has_room_for_64_bits(tmp_path, monkeypatch):
    """What is written beyond a limit, here a lower one, is read and aligned as below it."""
    path = tmp_path / "model.plait"
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 500)
    EXPORTED.save(path)
    monkeypatch.undo()
    assert path.read_bytes() != SAVED and b"\xff\xff\xff\xff" in path.read_bytes()
    again = load(path)
    close(again.call(X), by_numpy(X, W1, W2))
    assert {w.numpy().ctypes.data % 64 for w in again.held} == {0}
    assert again.serialize() == SAVED
