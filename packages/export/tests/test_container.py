"""The file format: what it looks like, and that damaged or foreign bytes are refused in words."""

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest

import plait
from plait.events import counting
from plait.ext.errors import PlaitError
from plait.ext.lower import lock, mlir
from plait_export import (
    ArtifactError,
    Exported,
    check,
    container,
    deserialize,
    export,
    symbolic_args_specs,
)
from plait_export.portable import artifact_of

X = np.arange(6, dtype=np.float32).reshape(2, 3)
TYPES = symbolic_args_specs(X, "b, 3", ["b >= 2"])
EXPORTED = export(lambda x: {"y": x * x.shape[0], "s": x.sum(0)})(TYPES)
SAVED = EXPORTED.serialize()


def parts(data: bytes = SAVED) -> tuple[dict, dict[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    return json.loads(members.pop("manifest.json")), members


def changed(members: dict | None = None, **fields) -> bytes:
    """The artifact with fields of its manifest changed, and checksums that are right."""
    manifest, held = parts()
    return container.pack({**manifest, **fields}, held if members is None else members)


def rewritten(manifest: dict, members: dict[str, bytes], **how) -> bytes:
    """An archive as somebody else would write it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", **how) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def used(data) -> bytes:
    """The module of an artifact: it is verified when it is first asked for."""
    return deserialize(data).mlir_module_serialized


def refused(data, text: str, fix: str = "") -> None:
    with pytest.raises(ArtifactError, match=text) as e:
        used(data)
    assert fix in (e.value.fix or "")
    assert "test_container.py" in str(e.value)


def same(a: Exported, b: Exported) -> bool:
    """Whether two are the same in all that counts."""
    return a.serialize() == b.serialize()


# ---- what it looks like --------------------------------------------------------------------


def test_anybody_can_look_into_it():
    manifest, members = parts()
    (data,) = members.values()
    assert list(members) == ["main.mlirbc"] and data.startswith(b"ML\xefR")
    assert manifest.pop("members") == {
        "main.mlirbc": {
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "stablehlo": "1.9.0",
        }
    }
    assert manifest.pop("producer").startswith("plait-core ")
    assert manifest == {
        "format": 1,
        "min_reader": 1,
        "requires": ["symbolic-sizes"],
        "name": "lambda",
        "platforms": ["cpu"],
        "custom_calls": ["shape_assertion"],
        "custom_rules": [],
        "sizes": {"constraints": ["b >= 2"], "least": 1},
        "inputs": {"types": ["f32[b,3]"], "tree": {"tuple": [{"tuple": ["*"]}, {"dict": []}]}},
        "parameters": ["x"],
        "outputs": {"types": ["f32[3]", "f32[b,3]"], "tree": {"dict": [["s", "*"], ["y", "*"]]}},
    }


def test_nothing_in_it_tells_the_time_or_the_place():
    with zipfile.ZipFile(io.BytesIO(SAVED)) as archive:
        assert {i.date_time for i in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    for word in (b"test_container", b"packages", __file__.encode()):
        assert word not in SAVED


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_are_read(kind):
    assert same(deserialize(kind(SAVED)), EXPORTED)


def test_what_is_unknown_and_not_required_does_no_harm():
    manifest, members = parts()
    data = rewritten({**manifest, "mood": "sunny", "format": 7}, members)
    assert same(deserialize(data), EXPORTED)


# ---- damage --------------------------------------------------------------------------------


def test_no_flipped_bit_goes_unnoticed():
    """Or it changes nothing, as a bit of a date of the archive does."""
    harmless = 0
    for i in range(len(SAVED)):
        data = bytearray(SAVED)
        data[i] ^= 1 << (i % 8)
        try:
            again = deserialize(bytes(data))
        except ArtifactError:
            continue
        assert same(again, EXPORTED), i
        harmless += 1
    assert harmless < 120  # dates, system numbers, comments: the envelope of two members


def test_no_cut_goes_unnoticed():
    for n in range(0, len(SAVED), 7):
        with pytest.raises(ArtifactError):
            deserialize(SAVED[:n])


def test_noise_is_refused():
    rng = np.random.default_rng(0)
    for n in (0, 1, 22, 500):
        with pytest.raises(ArtifactError):
            deserialize(rng.bytes(n))
        with pytest.raises(ArtifactError):
            deserialize(b"PK\x03\x04" + rng.bytes(n))
    for _ in range(300):  # bytes overwritten anywhere
        data = bytearray(SAVED)
        for i in rng.integers(0, len(data), 5):
            data[i] = rng.integers(0, 256)
        try:
            again = deserialize(bytes(data))
        except PlaitError:
            continue
        assert same(again, EXPORTED)


def test_what_is_no_artifact():
    refused(b"hello", "these 5 bytes are not an artifact: they start with b'hello'", "serialize")
    refused(rewritten({}, {})[:0] + zip_of({"a": b"b"}), "it has no manifest.json")
    with pytest.raises(ArtifactError, match="an artifact is bytes, not str") as e:
        deserialize("path")
    assert '"rb"' in e.value.fix


def zip_of(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def test_members_that_are_not_as_described():
    manifest, members = parts()
    (data,) = members.values()
    again = "save it again"
    refused(rewritten(manifest, {"main.mlirbc": data + b"\0"}), "main.mlirbc is not what", again)
    refused(rewritten(manifest, {}), "it holds \\[\\] and its manifest names", again)
    refused(rewritten(manifest, {**members, "extra": b""}), "'extra'", again)
    refused(rewritten(manifest, members, compression=zipfile.ZIP_DEFLATED), "is not stored", again)
    refused(zip_of({"manifest.json": b"{"}), "manifest.json: ", again)
    refused(zip_of({"manifest.json": b"[" * 100_000}), "manifest.json", again)
    refused(zip_of({"manifest.json": b"[]"}), "manifest.json is not an object", again)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name():
    manifest, members = parts()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for _ in range(2):
            archive.writestr("main.mlirbc", members["main.mlirbc"])
    refused(out.getvalue(), "'main.mlirbc' is not stored as it is, once")


@pytest.mark.parametrize(
    "name", ["format", "min_reader", "requires", "name", "platforms", "custom_calls", "inputs"]
)
@pytest.mark.parametrize("value", [None, 1.5, "x", {"a": 1}, [1]])
def test_fields_of_the_wrong_kind(name, value):
    if (name, value) == ("name", "x"):
        assert deserialize(changed(name="x")).fun_name == "x"
        return
    with pytest.raises(ArtifactError):
        deserialize(changed(**{name: value}))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (dict(sizes={"constraints": ["b >="], "least": 1}), "its constraints: cannot read sizes"),
        (dict(sizes={"constraints": ["b >= 2", "b <= 1"], "least": 1}), "no sizes satisfy"),
        (dict(sizes={"constraints": [], "least": 5}), "a lower bound is 0 or 1"),
        (dict(sizes=[]), "no proper field"),
        (dict(inputs={"types": ["f32[b,3"], "tree": "*"}), "is not a type"),
        (dict(inputs={"types": ["f31[b,3]"], "tree": "*"}), "is not a type that this reader knows"),
        (dict(inputs={"types": ["f32[b,]]"], "tree": "*"}), "is not a type"),
        (dict(inputs={"types": [3], "tree": "*"}), "is not a type"),
        (dict(inputs={"types": ["f32[b,3]"], "tree": {"tuple": []}}), "in a tree of 0 leaves"),
        (dict(inputs={"types": ["f32[b,4]"], "tree": "*"}), "its module is not the lambda"),
        (dict(custom_calls=[]), "its module is not the lambda"),
        (dict(outputs={"types": ["f32[3]", "f32[b,2]"], "tree": {"list": ["*", "*"]}}),
         "its module is not the lambda"),
    ],
)  # fmt: skip
def test_manifests_that_do_not_describe_the_module(fields, text):
    refused(changed(**fields), text)


@pytest.mark.parametrize("broken", [b"", b"garbage", b"\xff" * 400])
def test_modules_that_can_not_be_read(broken):
    """With every checksum right."""
    (data,) = parts()[1].values()
    header = data[: data.index(b"\0", 4) + 1]
    refused(changed({"main.mlirbc": header + broken}), "cannot be read|has no function main")
    middle = len(data) // 2
    for cut in (data[:middle], data[:middle] + broken + data[middle:]):
        try:
            used(changed({"main.mlirbc": cut}))
        except ArtifactError as e:
            assert "cannot be read" in e.what or "its module is not" in e.what


USES = {
    "called": lambda e: e.call(X),
    "traced": lambda e: plait.jit(e.call).lower(X).as_text(),
    "shown": lambda e: e.mlir_module(),
    "read back": lambda e: e.program(lose_custom_rules=True),
    "specialised": lambda e: e.specialize({"b": 2}),
    "compiled": lambda e: e.compile({"b": 2}),
    "saved": lambda e: e.serialize(),
    "exported": lambda e: export(e.call)(X),
}


def lying() -> bytes:
    """An artifact whose module is not the one that it describes."""
    (data,) = parts()[1].values()
    return container.pack(
        {k: v for k, v in parts()[0].items() if k != "members"},
        {"main.mlirbc": data.replace(b"shape_assertion", b"shape_asserti0n")},
    )


@pytest.mark.parametrize("use", USES)
def test_a_module_that_lies_is_refused_where_it_is_first_used(use):
    """It is not parsed before; what was verified once is not asked again."""
    exported = deserialize(lying())
    for _ in range(2):
        with pytest.raises(ArtifactError, match="its module is not the lambda it describes") as e:
            USES[use](exported)
        assert "test_container.py" in str(e.value)


@pytest.mark.parametrize("at_once", [check, lambda b: deserialize(b, isolated=True)])
def test_a_module_that_lies_is_refused_by_those_who_parse_it_at_once(at_once):
    with pytest.raises(ArtifactError, match="its module is not the lambda it describes"):
        at_once(lying())


def test_a_member_that_is_no_stablehlo():
    manifest, _ = parts()
    fake = {"main.mlirbc": {"bytes": 3, "sha256": hashlib.sha256(b"abc").hexdigest(),
                            "stablehlo": "1.0.0"}}  # fmt: skip
    refused(rewritten({**manifest, "members": fake}, {"main.mlirbc": b"abc"}),
            "it holds no portable StableHLO")  # fmt: skip


# ---- other versions ------------------------------------------------------------------------


def test_newer_formats_are_refused():
    data = changed(format=4, min_reader=3, producer="plait-core 9.9")
    refused(data, "written by plait-core 9.9, needs a reader of format 3, and this one reads up to "
                  "format 2", "--upgrade plait-export")  # fmt: skip


def test_unknown_features_are_refused():
    refused(changed(requires=["symbolic-sizes", "telepathy", "vjp-1"]), "telepathy, vjp-1",
            "--upgrade plait-export")  # fmt: skip


def test_newer_stablehlo_is_refused():
    (data,) = parts()[1].values()
    newer = data.replace(b"StableHLO_v1.9.0", b"StableHLO_v9.9.0")
    assert newer != data
    refused(changed({"main.mlirbc": newer}), "main.mlirbc is StableHLO 9.9.0, newer than",
            "--upgrade jaxlib")  # fmt: skip


def test_custom_calls_must_be_known():
    (data,) = parts()[1].values()
    other = data.replace(b"shape_assertion", b"shape_asserti0n")
    refused(changed({"main.mlirbc": other}), "its module is not the lambda it describes")
    refused(
        changed({"main.mlirbc": other}, custom_calls=["shape_asserti0n"]),
        "lambda calls functions outside StableHLO: shape_asserti0n",
        "if you trust it",
    )


# ---- what strangers write ------------------------------------------------------------------

DEEP = 20_000


def outcome(data: bytes):
    """Read, called, inspected and traced: our error, or None; anything else is not caught."""
    try:
        exported = deserialize(data)
        exported.call(X)
        exported.mlir_module()
        plait.jit(exported.call).lower(X).as_text()
    except PlaitError as e:
        return e


DEPTHS = {
    "a type": dict(inputs={"types": ["f32[" + "(" * DEEP + "b" + ")" * DEEP + ",3]"], "tree": "*"}),
    "a constraint": dict(sizes={"constraints": ["(" * DEEP + "b" + ")" * DEEP + " >= 1"],
                                "least": 1}),
    "a sum": dict(sizes={"constraints": ["+".join(["b"] * DEEP) + " >= 1"], "least": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", DEPTHS)
def test_nothing_is_too_deep_to_be_refused(name):
    error = outcome(changed(**DEPTHS[name]))
    assert error is None or isinstance(error, ArtifactError) and error.fix


@pytest.mark.parametrize("keys", [["a", 1], ["a", "a"], ["a", None], [{"list": []}, {"list": [1]}]])
def test_keys_that_no_dictionary_has(keys):
    tree = {"dict": [[keys[0], "*"], [keys[1], "*"]]}
    refused(changed(outputs={"types": ["f32[3]", "f32[b,3]"], "tree": tree}), "describes no tree")


def hostile(text: str, calls: list[str]) -> bytes:
    """An artifact of a module that somebody else wrote: f32[3] to f32[3]."""
    with lock:
        code = mlir.bytecode(mlir.parse(text.encode()))
    side = {"types": ["f32[3]"], "tree": {"tuple": [{"tuple": ["*"]}, {"dict": []}]}}
    manifest = {"format": 1, "min_reader": 1, "producer": "nobody", "requires": [], "name": "f",
                "platforms": ["cpu"], "custom_calls": calls, "sizes": None, "inputs": side,
                "outputs": {"types": ["f32[3]"], "tree": "*"}}  # fmt: skip
    return container.pack(manifest, {"main.mlirbc": artifact_of(code, False)})


MODULES = {
    "a library called with what it does not take": (
        """%0 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {api_version = 4 : i32,
           backend_config = {}} : (tensor<3xf32>) -> tensor<3xf32>""",
        ["lapack_spotrf_ffi"],
    ),
    "a library of another platform": (
        """%0 = stablehlo.custom_call @cusolver_potrf_ffi(%x) {api_version = 4 : i32,
           backend_config = {}} : (tensor<3xf32>) -> tensor<3xf32>""",
        ["cusolver_potrf_ffi"],
    ),
    "a question about platforms that cannot be read": (
        """%1 = stablehlo.custom_call @plait.platform_index() {api_version = 4 : i32,
           backend_config = {}} : () -> tensor<i32>
           %2 = stablehlo.convert %1 : (tensor<i32>) -> tensor<f32>
           %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<3xf32>
           %0 = stablehlo.add %x, %3 : tensor<3xf32>""",
        ["plait.platform_index"],
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_that_can_not_be_run(name):
    body, calls = MODULES[name]
    data = hostile(
        f"""module {{ func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
        {body}
        return %0 : tensor<3xf32> }} }}""",
        calls,
    )
    x = np.ones(3, np.float32)
    with pytest.raises(PlaitError) as e:
        deserialize(data).call(x)
    assert e.value.fix and "test_container.py" in str(e.value)
    with pytest.raises(PlaitError):
        plait.jit(deserialize(data).call)(x)


def test_functions_that_call_themselves_are_refused():
    text = """module { func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
        %0 = func.call @g(%x) : (tensor<3xf32>) -> tensor<3xf32>
        return %0 : tensor<3xf32> }
      func.func private @g(%x: tensor<3xf32>) -> tensor<3xf32> {
        %0 = func.call @CALLED(%x) : (tensor<3xf32>) -> tensor<3xf32>
        return %0 : tensor<3xf32> }
      func.func private @h(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> } }"""
    for called in ("main", "g"):
        refused(hostile(text.replace("CALLED", called), []), "its module is not the f it describes")
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(deserialize(hostile(text.replace("CALLED", "h"), [])).call(x), x)


# ---- read twice ----------------------------------------------------------------------------


@pytest.mark.parametrize("platforms", [["cpu"], ["cuda", "cpu"]])
@pytest.mark.parametrize("types", [X, TYPES])
def test_what_is_read_twice_is_compiled_once(types, platforms):
    f = lambda x: x * 3.0 - len(platforms) - x.ndim  # noqa: E731
    saved = export(f, platforms=platforms)(types).serialize()
    x = np.ones((2, 3), np.float32)
    with counting() as n:
        for _ in range(3):
            np.testing.assert_array_equal(deserialize(saved).call(x), f(x))
    assert n["compile"] + n["load"] <= 1
