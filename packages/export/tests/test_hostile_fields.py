"""Artifacts of every kind with one field of their manifest changed, by every reader of files.

Invariant: whatever a manifest says under checksums that are right, its readers return a function
that can be used, or raise an error of Plait's in three parts, without long waits or large memory.
"""

import io
import json
import random
import warnings
import zipfile

import numpy as np
import pytest

import plait
from plait.ext.errors import PlaitError
from plait_export import container, deserialize, export, load_compiled, symbolic_args_specs
from plait_export.facts import facts_of

X = np.arange(6, dtype=np.float32).reshape(2, 3)
SIZES = symbolic_args_specs(X, "b, 3", ["b >= 2"])
W = np.ones((3, 3), np.float32)
JUNK = [
    "", None, 0, -1, 1e308, 2**63, 10**400, True, [], {}, "*", "f32[b]", "f32[99999999999999]",
    "f32[b**16**16]", "f32[" + "(" * 500 + "b" + ")" * 500 + "]", "b*" * 300 + "b", "mod(b,0)==0",
    "x" * 10_000, {"tuple": ["*"]}, {"node": "os.system"}, [[[[[]]]]], "../../etc", "\x00",
    "f32[-1]", "f32[0]", "key<fry>[]", "b >= 99999999999999999999999", ["b >= 1"] * 3,
    2**20, 1 << 30, "b,,", {"float": "0x1p0"}, {"float": "é"}, "é", "\ud800", ["x"],
    [["x", 1 << 20], ["y", 1 << 20]], [[["x", 1 << 20], ["y", 1 << 20]]],
]  # fmt: skip


def parts(data: bytes) -> tuple[dict, dict[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    return json.loads(members.pop("manifest.json")), members


def places(x, path=()):
    """Every place in what JSON holds."""
    yield path
    for k, v in x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ():
        yield from places(v, (*path, k))


def with_at(x, path, value):
    """A copy with another value at a place."""
    if not path:
        return value
    copy = dict(x) if isinstance(x, dict) else list(x)
    copy[path[0]] = with_at(copy[path[0]], path[1:], value)
    return copy


def over_a_mesh(f):
    mesh = plait.make_mesh((1,), ("x",))
    return export(f)(plait.device_put(X, plait.NamedSharding(mesh, plait.P("x"))))


def compiled(exported, path, sizes=()):
    exported.compile(*sizes).save(path)
    return path.read_bytes()


KINDS = {
    "sizes": lambda path: export(lambda x: {"y": x * x.shape[0], "s": x.sum(0)})(SIZES).serialize(),
    "derivative": lambda path: export(lambda x: x * x)(SIZES).serialize(vjp_order=1),
    "weights": lambda path: export(lambda x: x @ W, weights=1)(SIZES).serialize(),
    "mesh": lambda path: over_a_mesh(lambda x: x * 2).serialize(),
    "executable": lambda path: compiled(export(lambda x: x * 2)(SIZES), path, [{"b": 2}]),
    "executable of a mesh": lambda path: compiled(over_a_mesh(lambda x: x + 2), path),
}


def used(exported):
    exported.call(X)
    repr(exported)
    plait.jit(exported.call).lower(X).as_text()
    exported.program(lose_custom_rules=True)
    exported.serialize()
    if exported.has_vjp():
        repr(exported.vjp())


def loaded(path):
    found = load_compiled(path, trusted=True)
    repr(found)
    found.call(X)


def outcomes(data, path):
    """Return the errors of every reader; anything but a PlaitError is not caught."""
    path.write_bytes(data)
    readers = [lambda: used(deserialize(data)), lambda: repr(facts_of(data, len(data), False))]
    if "executables" in parts(data)[0]:
        readers.append(lambda: loaded(path))
    found = []
    for read in readers:
        try:
            read()
        except PlaitError as e:
            found.append(e)
    return found


def changed_by(rng, blob, most):
    """Yield (place, value, artifact) for every place of a manifest and `most` values."""
    manifest, members = parts(blob)
    manifest.pop("members")
    for place in [p for p in places(manifest) if p]:
        for value in rng.sample(JUNK, most):
            yield place, value, container.pack(with_at(manifest, place, value), members)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_every_field(kind, tmp_path):
    if kind == "derivative":
        pytest.importorskip("plait_autodiff")
    if "mesh" in kind:
        pytest.importorskip("plait_sharding")
    blob, most = KINDS[kind](tmp_path / "f"), 12 if kind == "sizes" else 3
    assert not outcomes(blob, tmp_path / "f")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", plait.errors.CacheWarning)
        for place, value, data in changed_by(random.Random(0), blob, most):
            for e in outcomes(data, tmp_path / "f"):
                assert e.fix and "test_hostile_fields.py" in str(e), (place, value, e)


def test_more_devices_than_there_can_be():
    """Every number of devices that a file says, all of them in agreement."""
    pytest.importorskip("plait_sharding")
    manifest, members = parts(KINDS["mesh"](None))
    for power in (1, 4, 20, 21, 60, 4000):
        axes = [[f"a{i}", 2] for i in range(power)]
        said = {"count": 2**power, "meshes": [axes], "inputs": [None], "outputs": [None]}
        with pytest.raises(PlaitError, match=r"devices|its module is not") as e:
            deserialize(container.pack({**manifest, "devices": said}, members)).call(X)
        assert e.value.fix


def test_code_of_another_function(tmp_path):
    """Compile what a file describes, if its machine code is for other types or layouts."""
    pytest.importorskip("plait_sharding")
    manifest, members = parts(KINDS["executable of a mesh"](tmp_path / "f"))
    said = {**manifest["devices"], "inputs": [None]}
    (tmp_path / "f").write_bytes(container.pack({**manifest, "devices": said}, members))
    with pytest.warns(plait.errors.CacheWarning, match="made with another function"):
        found = load_compiled(tmp_path / "f", trusted=True)
    np.testing.assert_array_equal(found.call(X), X + 2)
