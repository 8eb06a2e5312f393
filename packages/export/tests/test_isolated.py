"""Reading in a process of its own, seals, and what is said of a file without using it."""

import dataclasses
import hashlib
import hmac
import io
import json
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import plait
from plait.ext.errors import ArgumentError, PlaitError
from plait_export import (
    ArtifactError,
    Limits,
    check,
    container,
    deserialize,
    export,
    import_jax,
    isolation,
    register_pytree_serialization,
    symbolic_args_specs,
)

GOLDEN = Path(__file__).with_name("golden")
KEY = bytes(range(32))
X = np.arange(6, dtype=np.float32).reshape(2, 3)
TYPES = symbolic_args_specs(X, "b, 3", ["b >= 2"])
EXPORTED = export(lambda x: {"y": x * x.shape[0], "s": x.sum(0)})(TYPES)
SAVED = EXPORTED.serialize()


@plait.tree.register_dataclass
@dataclasses.dataclass
class Pair:
    left: object
    right: object


register_pytree_serialization(Pair, serialized_name="plait.tests.isolated.Pair")


# ---- in a process of its own ---------------------------------------------------------------


@pytest.mark.sampled(10)
@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.plait")), ids=lambda p: p.stem)
def test_what_another_process_read_is_what_is_read_here(path):
    data = path.read_bytes()
    here, there = deserialize(data), deserialize(data, isolated=True)
    assert there.in_tree == here.in_tree and there.out_tree == here.out_tree
    order = check(path).vjp_order
    assert facts(there.serialize(order)) == facts(here.serialize(order))
    assert str(there.mlir_module()) == str(here.mlir_module())
    assert there.paths == here.paths and repr(there) == repr(here)
    for _ in range(order):
        here, there = here.vjp(), there.vjp()
        assert there.in_avals == here.in_avals and there.linear_from == here.linear_from
        assert str(there.mlir_module()) == str(here.mlir_module())


def facts(data):
    """The facts of an artifact, without its programs: jaxlib 0.12 writes the uses of a value
    in an order that depends on how the program was read."""
    manifest = json.loads(zipfile.ZipFile(io.BytesIO(data)).read("manifest.json"))
    return manifest | {"members": sorted(manifest["members"])}


def a_value(aval):
    if not isinstance(aval.dtype, np.dtype):
        return plait.random.key(0)
    shape = [n if isinstance(n, int) else n.substitute({"b": 2, "c": 3}) for n in aval.shape]
    return np.random.default_rng(0).uniform(1, 2, shape).astype(aval.dtype)


@pytest.mark.parametrize("name", ["jax_tree", "jax_sizes", "jax_linalg"])
def test_files_of_jax(name):
    data = (GOLDEN / f"{name}.bin").read_bytes()
    here, there = import_jax(data), import_jax(data, isolated=True)
    assert (there.in_tree, there.out_tree) == (here.in_tree, here.out_tree)
    assert repr(there) == repr(here)
    leaves = [a_value(aval) for aval in here.in_avals]
    args, kwargs = here.in_tree.unflatten(leaves)
    got, want = (plait.tree.leaves(e.call(*args, **kwargs)) for e in (there, here))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


def test_classes_of_users_are_made_here():
    saved = export(lambda p: Pair(p.right, [p.left]))(Pair(X, 1.0)).serialize()
    read = deserialize(saved, isolated=True)
    found = read.call(Pair(X, 2.0))
    assert isinstance(found, Pair) and found.left.item() == 2.0
    np.testing.assert_array_equal(found.right[0], X)
    assert check(saved).classes == ("plait.tests.isolated.Pair",)
    assert read.serialize() == saved


def test_what_is_refused_here_is_refused_in_the_same_words():
    manifest, members = container.unpack(SAVED, (9, 9, 9))
    manifest.pop("members")
    wrong = [
        b"hello",
        SAVED[:-40],
        container.pack({**manifest, "min_reader": 9}, members),
        container.pack({**manifest, "custom_calls": ["nobodys"]}, members),
        container.pack({**manifest, "inputs": {"types": ["f32[b,4]"], "tree": "*"}}, members),
    ]
    for data in wrong:
        said = []
        for isolated in (False, True):
            with pytest.raises(ArtifactError) as e:
                deserialize(data, isolated=isolated).mlir_module_serialized  # noqa: B018
            assert "test_isolated.py" in str(e.value)
            said.append((e.value.what, e.value.fix))
        assert said[0] == said[1]


def test_trees_that_no_process_reads_are_refused_here():
    """What the other process takes for any class has to be one that is registered here."""
    manifest, members = container.unpack(SAVED, (9, 9, 9))
    manifest.pop("members")
    tree = {"node": "nobodys.class", "children": ["*", "*"]}
    outputs = {**manifest["outputs"], "tree": tree}
    with pytest.raises(ArtifactError, match=r"nobodys\.class.*not registered here"):
        deserialize(container.pack({**manifest, "outputs": outputs}, members), isolated=True)


def crashing(monkeypatch, body: str) -> None:
    """The other process does this instead of reading."""
    monkeypatch.setattr(isolation, "_PROGRAM", f"import sys, os\n{body}")


READS = "os.write(1, b'+'); sys.stdin.buffer.read()\n"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (READS + "os.kill(os.getpid(), 11)", "ended the process that read them, by SIGSEGV"),
        (READS + "os._exit(0)", "with the status 0"),
        (READS + "os.write(1, b'{\"bytes\": 9}\\nPK')", "with the status 0"),
        (READS + "os.write(1, b'[[[')", "with the status 0"),
        (READS + "import time; time.sleep(60)", "were not read within 0.5 seconds"),
        (READS + "while True: os.write(2, b'.' * 9999)", "were not read within 0.5 seconds"),
        ("raise OSError('no such thing')", "did not start: OSError: no such thing"),
    ],
)
def test_however_the_other_process_ends(monkeypatch, body, text):
    crashing(monkeypatch, body)
    with pytest.raises(ArtifactError, match=text) as e:
        deserialize(SAVED, isolated=Limits(seconds=0.5))
    assert e.value.fix and "test_isolated.py" in str(e.value)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory is not held to a limit")
def test_memory_is_limited():
    big = export(lambda x: x + np.arange(3e6, dtype=np.float32))(np.zeros(1, np.float32))
    saved = big.serialize()
    assert deserialize(saved, isolated=True).in_avals == big.in_avals
    with pytest.raises(ArtifactError, match="more memory than is allowed|ended the process"):
        deserialize(saved, isolated=Limits(memory=8 << 20))


@pytest.mark.parametrize("wrong", [1, "yes", Limits(seconds=0), Limits(seconds=float("inf")),
                                   Limits(memory=-1), Limits(memory=1.5)])  # fmt: skip
def test_what_are_no_limits(wrong):
    with pytest.raises(ArgumentError, match="isolated is|are not limits"):
        deserialize(SAVED, isolated=wrong)


def test_nothing_that_was_given_is_read_here(monkeypatch):
    """With the other process answering with another artifact, that one is what is read."""
    other = export(lambda x: x.sum(0) * 0)(TYPES).serialize()
    crashing(monkeypatch, f"{READS}os.write(1, b'{{\"bytes\": {len(other)}}}\\n' + {other!r})")
    with pytest.raises(ArtifactError, match="1 outputs in a tree of 2 leaves"):
        deserialize(SAVED, isolated=True)


# ---- seals ---------------------------------------------------------------------------------


def test_sealed_and_read():
    sealed = EXPORTED.serialize(key=KEY)
    assert SAVED in sealed and EXPORTED.serialize(key=KEY) == sealed
    line = sealed[: len(sealed) - len(SAVED) - 32]
    want = hmac.new(KEY, line + SAVED, hashlib.sha256).digest()
    assert sealed == line + want + SAVED
    for isolated in (False, True):
        assert deserialize(sealed, key=bytearray(KEY), isolated=isolated).serialize() == SAVED
    with zipfile.ZipFile(io.BytesIO(sealed)) as archive:  # others can look into it
        assert "manifest.json" in archive.namelist()


def test_what_is_sealed_holds_derivatives():
    pytest.importorskip("plait_autodiff")
    exported = export(lambda x: x * x)(np.float32(1))
    assert check(exported.serialize(2, key=KEY), key=KEY).vjp_order == 2


def test_wrong_missing_and_unexpected_keys():
    sealed = EXPORTED.serialize(key=KEY)
    for read in (deserialize, check):
        with pytest.raises(ArtifactError, match="not by this key"):
            read(sealed, key=bytes(32))
        with pytest.raises(ArtifactError, match="sealed, and no key is given"):
            read(sealed)
        with pytest.raises(ArtifactError, match="has no seal: anybody may have written it"):
            read(SAVED, key=KEY)
    for wrong in ("secret", b"short", 7, object()):
        for act in (lambda k: deserialize(sealed, key=k), lambda k: EXPORTED.serialize(key=k)):
            with pytest.raises(ArgumentError, match="a key is at least 16 bytes"):
                act(wrong)


def test_no_change_of_a_sealed_file_is_parsed(monkeypatch):
    """With each byte changed, and nothing looked at that is not sealed."""
    sealed = EXPORTED.serialize(key=KEY)

    def looked_at(*args):
        raise AssertionError("it was looked at")

    monkeypatch.setattr(container, "unpack", looked_at)
    for i in range(len(sealed)):
        data = bytearray(sealed)
        data[i] ^= 1 << (i % 8)
        with pytest.raises(ArtifactError, match="not by this key|has no seal"):
            deserialize(data, key=KEY)
    for n in range(0, len(sealed), 11):
        with pytest.raises(ArtifactError, match="not by this key|has no seal"):
            deserialize(sealed[:n], key=KEY)


# ---- what is said of a file ----------------------------------------------------------------


def test_facts(tmp_path):
    path = tmp_path / "f.plait"
    path.write_bytes(SAVED)
    facts = check(path)
    assert facts == check(str(path)) == check(SAVED)
    assert facts._replace(producer="") == (
        "lambda", ("f32[b,3]",), ("f32[3]", "f32[b,3]"), ("b >= 2",), 1, ("cpu",),
        ("shape_assertion",), 0, (), 1, "", {"main.mlirbc": "1.9.0"}, False, len(SAVED), (), {},
        1, (),
    )  # fmt: skip
    sealed = check(EXPORTED.serialize(key=KEY), key=KEY)
    assert sealed.sealed and sealed == facts._replace(sealed=True, size=sealed.size)


def test_files_that_can_not_be_opened(tmp_path):
    for source in (tmp_path / "none", tmp_path, os.fspath(tmp_path)):
        with pytest.raises(ArtifactError, match="cannot be read"):
            check(source)
    with pytest.raises(ArtifactError, match="a path or bytes, not int"):
        check(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(PlaitError):
        check(SAVED, limits=Limits(seconds=-1))
