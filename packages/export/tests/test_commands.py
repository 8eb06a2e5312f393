"""`python -m plait_export` in processes: what it prints, writes and answers, what it refuses."""

import json
import os
import re
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest

import plait
from plait_export import ArtifactError, deserialize, export, load, symbolic_args_specs
from plait_export.commands import main

GOLDEN = Path(__file__).with_name("golden") / "derivatives.plait"
X = np.arange(6, dtype=np.float32).reshape(2, 3)
KEY = bytes(range(32))


def scaled(x, *, scale):
    return {"y": x["data"] * scale.astype(np.float32), "half": x["data"].astype("bfloat16")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("tool")
    types = symbolic_args_specs({"data": X}, "b, 3", ["b >= 2"])
    exported = export(scaled, platforms=["cpu", "cuda"])(types, scale=np.int32(2))
    (found / "f.plait").write_bytes(exported.serialize())
    (found / "sealed.plait").write_bytes(exported.serialize(key=KEY))
    (found / "key").write_bytes(KEY)
    (found / "broken.plait").write_bytes(exported.serialize()[:-9])
    np.savez(found / "in.npz", **{"args[0]['data']": X, "scale": np.int32(3)})
    np.savez(found / "numbered.npz", X, np.int32(3))
    return found


def tool(folder: Path, *words) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "plait_export", *map(str, words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def done(folder: Path, *words) -> str:
    found = tool(folder, *words)
    assert found.returncode == 0 and not found.stderr, found.stderr
    return found.stdout


# ---- what it does --------------------------------------------------------------------------


def test_inspect(folder):
    lines = done(folder, "inspect", "f.plait", "--module").splitlines()
    shown = [re.sub(" +", " ", line) for line in lines]
    for line in (
        "function scaled",
        "argument args[0]['data']: f32[b,3]",
        "argument scale: i32[]",
        "result result['half']: bf16[b,3]",
        "result result['y']: f32[b,3]",
        "sizes b >= 2, at least 1",
        "platforms cpu, cuda",
        "calls shape_assertion",
        "derivatives none",
        "own rules none",
        "module main.mlirbc: StableHLO 1.9.0",
        "seal none",
    ):
        assert line in shown, line
    assert any("func.func public @main" in line for line in lines)
    assert "of order 2" in done(folder, "inspect", GOLDEN)


def test_check_with_and_without_a_seal(folder):
    assert "scaled" in done(folder, "check", "f.plait")
    assert "sealed by this key" in done(folder, "check", "sealed.plait", "--key", "key")


@pytest.mark.parametrize("given", ["in.npz", "numbered.npz"])
def test_run(folder, given):
    done(folder, "run", "f.plait", given, "out.npz")
    with np.load(folder / "out.npz") as found:
        np.testing.assert_array_equal(found["result['y']"], X * 3)
        half = found["result['half']"].view(plait.dtypes.bfloat16)
        np.testing.assert_array_equal(half.astype(np.float32), X)


def test_specialize(folder):
    done(folder, "specialize", "f.plait", "fixed.plait", "b=2", "--platform", "cpu")
    fixed = deserialize((folder / "fixed.plait").read_bytes())
    assert [*map(str, fixed.in_avals)] == ["f32[2,3]", "i32[]"] and fixed.platforms == ("cpu",)
    found = fixed.call({"data": X}, scale=np.int32(3))
    np.testing.assert_array_equal(found["y"], X * 3)
    done(folder, "specialize", GOLDEN, "derived.plait", "b=2")
    derived = deserialize((folder / "derived.plait").read_bytes())
    assert derived.vjp().vjp().in_avals[1].shape == (2, 3)


# ---- as a service --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service(folder):
    command = [sys.executable, "-m", "plait_export", "serve", "f.plait", "--port", "0",
               "--largest", "5000"]  # fmt: skip
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield re.findall(r"scaled is at http://127.0.0.1:(\d+)/", process.stdout.readline())[0]
        finally:
            process.terminate()


def asked(port: str, data: bytes | None, kind: str = "application/json", **headers) -> bytes:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/", data, {"Content-Type": kind, **headers}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def refused(status: int, text: str, *args, **headers) -> None:
    with pytest.raises(urllib.error.HTTPError) as e:
        asked(*args, **headers)
    with e.value:
        said = json.loads(e.value.read())["error"]
    assert e.value.code == status and text in said, said


def test_answers_in_json_and_in_npz(service, folder):
    facts = json.loads(asked(service, None))
    assert facts["inputs"] == ["f32[b,3]", "i32[]"]
    assert facts["arguments"] == ["args[0]['data']", "scale"]
    values = {"args[0]['data']": X.tolist(), "scale": 4}
    found = json.loads(asked(service, json.dumps(values).encode()))
    assert found["result['y']"] == (X * 4).tolist()
    assert found["result['half']"] == X.tolist()
    found = asked(service, (folder / "in.npz").read_bytes(), "application/octet-stream")
    (folder / "answer.npz").write_bytes(found)
    with np.load(folder / "answer.npz") as arrays:
        np.testing.assert_array_equal(arrays["result['y']"], X * 3)


def test_what_the_service_refuses(service, folder):
    pickled = folder / "pickled.npz"
    np.savez(pickled, **{"args[0]['data']": np.array([print], object), "scale": 1})
    bomb = folder / "bomb.npz"
    np.savez_compressed(bomb, **{"args[0]['data']": np.zeros((9999, 3), np.float32)})
    kind = "application/octet-stream"
    refused(400, "not arrays in numpy's npz format", service, pickled.read_bytes(), kind)
    refused(400, "5000 are allowed", service, bomb.read_bytes(), kind)
    refused(400, "not arrays in numpy's npz format", service, b"PK\3\4" + b"x" * 50, kind)
    refused(400, "this is no JSON", service, b"[" * 4000)
    refused(400, "is not an object", service, b"[1]")
    refused(400, "takes args[0]['data'], scale, and is given x", service, b'{"x": 1}')
    wrong = {"args[0]['data']": [[1, 2, 3]], "scale": 1}
    refused(400, "b >= 2", service, json.dumps(wrong).encode())
    refused(400, "can be made", service, b'{"args[0][\'data\']": "x", "scale": 1}')
    refused(413, "5000 bytes at most", service, b"x" * 5001)
    refused(403, "on this machine", service, b"{}", Origin="http://elsewhere.example")
    refused(403, "on this machine", service, b"{}", Host="elsewhere.example")
    assert b"scaled" in asked(service, None)  # it goes on


def test_requests_without_a_length_or_for_other_pages(service):
    for path, headers, status in (("/", {"Content-Length": "-1"}, 411), ("/", {}, 411),
                                  ("/x", {"Content-Length": "0"}, 404)):  # fmt: skip
        connection = HTTPConnection("127.0.0.1", int(service), timeout=60)
        connection.putrequest("POST", path)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        assert connection.getresponse().status == status
        connection.close()


# ---- mistakes ------------------------------------------------------------------------------

MISTAKES = [
    (("check", "none.plait"), "none.plait cannot be read"),
    (("check", "in.npz"), "no manifest.json"),
    (("inspect", "broken.plait"), "the artifact is damaged"),
    (("inspect", "sealed.plait"), "sealed, and no key is given"),
    (("inspect", "sealed.plait", "--key", "in.npz"), "not by this key"),
    (("inspect", "f.plait", "--key", "none"), "No such file"),
    (("check", "f.plait", "--seconds", "-1"), "is no time"),
    (("run", "f.plait", "f.plait", "out.npz"), "takes args[0]['data'], scale"),
    (("run", "f.plait", "key", "out.npz"), "not arrays in numpy's npz format"),
    (("run", "f.plait", "none.npz", "out.npz"), "No such file"),
    (("run", "f.plait", "in.npz", "nowhere/out.npz"), "No such file"),
    (("specialize", "f.plait", "x.plait"), "has the symbolic sizes b"),
    (("specialize", "f.plait", "x.plait", "b"), "'b' is not a size"),
    (("specialize", "f.plait", "x.plait", "b=1"), "cannot be specialised"),
    (("specialize", "f.plait", "x.plait", "b=2", "--platform", "tpu"), "not for 'tpu'"),
    (("serve", "f.plait", "--largest", "0"), "out of range"),
    (("serve", "f.plait", "--port", "99999"), "out of range"),
    (("to-tf", "f.plait", "saved"), "TensorFlow, which is not installed"),
    (("dance", "f.plait"), "invalid choice"),
    ((), "required"),
]


NAMES = [
    (("inspect", "f.plait", "--key", "none"), "'none', which is to hold the key, cannot be read"),
    (("compile", "f.plait", "out", "b=2", "--key", "."), "'.', which is to hold the key"),
    (("run", "f.plait", "none.npz", "out.npz"), "'none.npz', which is to hold the arguments"),
    (("run", "f.plait", ".", "out.npz"), "'.', which is to hold the arguments"),
    *[(("run", "f.plait", "in.npz", out), f"{out!r} cannot be written")
      for out in ("nowhere/out.npz", ".", "/proc/none", "f.plait/x")],
    *[((word, "f.plait", out, "b=2"), f"{out!r} cannot be written")
      for word in ("specialize", "compile") for out in ("nowhere/x", ".")],
    (("specialize", "f.plait", "x", "b=2", "b=3"), "b is 2 and 3"),
    (("specialize", "f.plait", "x", "c=2"), "write b=8 behind the names of the files"),
    (("compile", "f.plait", "x"), "write b=8 behind the names of the files"),
    (("inspect", "."), ". cannot be read: Is a directory"),
]  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize(("words", "text"), NAMES, ids=lambda w: " ".join(w)[:40])
def test_files_that_can_not_be_opened_are_told_with_what_to_write(
    folder, words, text, monkeypatch, capsys
):
    monkeypatch.chdir(folder)
    before = {*folder.iterdir()}
    assert main(words) == 2
    out, said = capsys.readouterr()
    assert text in said and "Errno" not in said and ".tmp" not in said, said
    first, fix = said.splitlines()
    assert not out and first.startswith(f"plait_export {words[0]}: ") and fix.startswith("  ")
    assert {*folder.iterdir()} == before


def test_a_port_that_is_taken(folder, service, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["serve", "f.plait", "--port", service]) == 2
    assert f"nothing can listen at port {service}" in capsys.readouterr().err


def test_names_that_a_terminal_has_no_letters_for(folder):
    made = export(plait.jit(lambda données: données * 2))(données=np.float32(1))
    made.save(folder / "é.plait")
    command = [sys.executable, "-m", "plait_export", "inspect", "é.plait"]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "donn\\xe9es: f32[]" in done.stdout, done


@pytest.mark.parametrize("path", [None, 3, b"\0", "a\0b", "nowhere/f", "."])
def test_files_that_can_not_be_written_are_told_to_python_too(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exported = export(lambda x: x * 2)(X)
    for save in (exported.save, exported.compile().save):
        with pytest.raises(plait.errors.PlaitError) as e:
            save(path)
        assert e.value.fix and "test_commands.py" in str(e.value)
    assert not [*tmp_path.iterdir()]
    if path is not None and path != 3:
        with pytest.raises(OSError, match="cannot be written"):
            exported.save(path)
    with pytest.raises(ArtifactError, match="cannot be read|is the name of none"):
        load(path if path != b"\0" else "\0")


@pytest.mark.parametrize("key", [None, KEY])
def test_pipes_are_written_into(tmp_path, key):
    """And devices, as what there is of them in /dev: no file takes their place."""
    exported = export(lambda x: x * 2)(X)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_bytes)
        exported.save(pipe, key=key)
        assert read.result(60) == exported.serialize(key=key)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and [*tmp_path.iterdir()] == [pipe]


@pytest.mark.sampled(16)
@pytest.mark.parametrize(("words", "text"), MISTAKES, ids=lambda w: " ".join(w)[:30])
def test_mistakes_are_one_message(folder, words, text, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    try:
        status = main(list(map(str, words)))
    except SystemExit as e:  # of a command line that cannot be parsed
        status = e.code
    out, said = capsys.readouterr()
    assert status == 2 and not out
    assert text in said and "Traceback" not in said, said
    assert len(said.splitlines()) < 8


def test_a_mistake_ends_the_process(folder):
    """`main` returns the status, and prints the whole message."""
    for words, text in (MISTAKES[0], MISTAKES[-1]):
        found = tool(folder, *words)
        assert found.returncode == 2 and not found.stdout
        assert text in found.stderr and "Traceback" not in found.stderr, found.stderr
        assert len(found.stderr.splitlines()) < 8
