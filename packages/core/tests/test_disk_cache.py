"""Executables on disk: found by later processes, and never the cause of an error.

Processes are imitated by dropping what is kept in memory, but where two of them must meet.

Invariant: each test has a folder of its own.
"""

import os
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest

import plait
from plait.errors import CacheWarning
from plait.events import counting

pnp = plait.numpy


@pytest.fixture
def folder(tmp_path):
    """An empty folder where executables are kept."""
    with plait.config(cache_dir=tmp_path / "kept"):
        plait.clear_caches()
        yield tmp_path / "kept"
    plait.clear_caches()


def entries(folder):
    return sorted(p for p in folder.iterdir() if p.suffix == ".xla")


def program(k):
    """A function whose code differs for each k."""
    return lambda x: pnp.sin(x) * k + x


X = np.linspace(0, 1, 5, dtype=np.float32)


def run(k=3.0, **options):
    """(compiled, loaded, result) of a program, as in a fresh process."""
    plait.clear_caches()
    x = pnp.asarray(X)
    with counting() as n:
        y = plait.jit(program(k), **options)(x)
    return n["compile"], n["load"], np.asarray(y)


def wanted(k=3.0):
    return np.sin(X) * np.float32(k) + X


# ---- processes -------------------------------------------------------------------------------

SCRIPT = """
    import hashlib, sys
    import numpy as np
    import plait
    import plait.numpy as pnp
    from plait import lax
    from plait.events import counting

    A = np.random.RandomState(0).rand(5, 5).astype("float32")
    with counting() as n:
        a = pnp.asarray(A)
        key = plait.random.key(7)
        donated = plait.jit(lambda x: x * 2 + 1, donate_argnums=0)(pnp.asarray(A))
        out = [
            pnp.linalg.solve(a, a[0]), pnp.linalg.eigh(a + a.T)[0], pnp.linalg.svd(a)[1],
            donated, plait.random.normal(key, (9,)), pnp.fft.fft(a).real, pnp.sort(a),
            plait.jit(lambda x: lax.scan(lambda c, y: (c @ x, y.sum()), x, x))(a)[1],
            plait.jit(lambda x: pnp.linalg.cholesky(x @ x.T + pnp.eye(5)))(a),
        ]
        out = [np.asarray(x) for x in out]
    h = hashlib.sha256(b"".join(x.tobytes() for x in out)).hexdigest()
    print(n["compile"], n["load"], h)
"""


@pytest.fixture
def script(process):
    """`script(program, **environment)`: the words that it prints."""
    return lambda text, **env: process(text, **env).stdout.split()


@pytest.mark.timeout(600)
def test_a_second_process_compiles_nothing(tmp_path, script):
    """LAPACK, donated memory, random numbers, FFT, loops: loaded, with equal bits."""
    env = {"PLAIT_CACHE_DIR": str(tmp_path / "kept")}
    first, second = script(SCRIPT, **env), script(SCRIPT, **env)
    assert int(first[0]) > 10 and first[1] == "0"
    assert second[0] == "0" and second[1] == first[0]
    assert second[2] == first[2]
    off = script(SCRIPT, PLAIT_CACHE_DIR="0")
    assert off == [first[0], "0", first[2]]


@pytest.mark.wide
def test_flags_of_the_environment_are_part_of_the_key(tmp_path, script):
    text = """
        import plait, sys
        from plait.events import counting
        x = plait.numpy.asarray([1.0, 2.0])
        with counting() as n:
            plait.jit(lambda x: x * 3)(x)
        print(n["compile"], n["load"])
    """
    env = {"PLAIT_CACHE_DIR": str(tmp_path / "kept")}
    assert script(text, **env) == ["1", "0"]
    assert script(text, **env) == ["0", "1"]
    flags = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
    assert script(text, **env, **flags) == ["1", "0"]
    assert script(text, **env, **flags) == ["0", "1"]
    dump = {"XLA_FLAGS": f"--xla_dump_to={tmp_path / 'dump'}"}
    for _ in range(2):  # somebody wants to see what the compiler does
        assert script(text, **env, **dump) == ["1", "0"]


def test_two_processes_at_once(tmp_path):
    """They write and evict in one folder; nothing is damaged, and no unfinished file is left."""
    text = """
        import sys
        import numpy as np
        import plait
        x = plait.numpy.asarray(np.arange(4.0))
        for k in range(40):
            if k % 4 == 0:
                plait.clear_caches()
            y = plait.jit(lambda x: x * (k % 20 + 1) + 0.5)(x)
            np.testing.assert_array_equal(y, np.arange(4) * (k % 20 + 1) + 0.5)
    """
    kept = tmp_path / "kept"
    env = {**os.environ, "PLAIT_CACHE_DIR": str(kept), "PLAIT_CACHE_SIZE": "60000"}
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(text)]
    running = [subprocess.Popen(command, env=env, stderr=subprocess.PIPE) for _ in range(2)]
    for process in running:
        _, error = process.communicate(timeout=250)
        assert process.returncode == 0, error.decode()
    assert entries(kept) == sorted(kept.iterdir())
    assert 0 < sum(p.stat().st_size for p in entries(kept)) <= 3 * 60000


def test_importing_plait_imports_nothing_for_the_folder(script):
    """Modules that only the folder needs are imported when it is used."""
    loaded = "print(*[m for m in ('hashlib', 'platform') if m in sys.modules])"
    with_jaxlib = script(f"import sys, numpy, jaxlib.xla_client; {loaded}")
    assert set(script(f"import sys, plait; {loaded}")) <= set(with_jaxlib)


@pytest.mark.skipif(not os.path.exists("/proc/cpuinfo"), reason="a command says more there")
def test_a_first_compilation_starts_no_process(tmp_path, script):
    """What tells processors apart is read from a file: a command takes as long as a compilation."""
    text = """
        import sys
        started = []
        sys.addaudithook(lambda event, _: started.append(event) if "Popen" in event else None)
        import plait
        plait.jit(lambda x: x * 3)(plait.numpy.asarray([1.0, 2.0]))
        from plait._xla.disk_cache import circumstances
        print(len(started), len(circumstances()["processor"]))
    """
    started, told = map(int, script(text, PLAIT_CACHE_DIR=str(tmp_path / "kept")))
    assert started == 0 and told > 3


# ---- what is kept ----------------------------------------------------------------------------


def test_what_is_loaded_is_no_compilation(folder):
    assert run()[:2] == (1, 0)
    compiled, found, y = run()
    assert (compiled, found) == (0, 1)
    np.testing.assert_allclose(y, wanted(), rtol=1e-6)
    assert run(4.0)[:2] == (1, 0)  # other code
    assert len(entries(folder)) == 2


@pytest.mark.parametrize("off", [None, "", "0", False])
def test_nothing_is_kept_where_nothing_is_said(tmp_path, off):
    with plait.config(cache_dir=off):
        assert plait.config.cache_dir is None
        assert [run()[:2] for _ in range(2)] == [(1, 0)] * 2


@pytest.mark.parametrize("bad", [3, b"folder", ["a"], True])
def test_a_folder_that_is_none_is_refused(bad):
    with pytest.raises(plait.PlaitError, match="cache_dir") as e:
        plait.config.cache_dir = bad
    assert "path of a folder" in e.value.fix


@pytest.mark.parametrize("bad", [-1, "much", True, None])
def test_a_size_that_is_none_is_refused(bad):
    with pytest.raises(plait.PlaitError, match="cache_size") as e:
        plait.config.cache_size = bad
    assert "bytes" in e.value.fix


@pytest.mark.wide
def test_the_folder_by_default():
    """By the environment, as the platform has it, and off where there is no home."""
    text = "import plait; print(plait.config.cache_dir)"
    said_here = ("PLAIT_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA")
    kept = {k: v for k, v in os.environ.items() if k not in said_here}

    def said(**more):
        done = subprocess.run(
            [sys.executable, "-c", text], env={**kept, **more}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    if sys.platform == "linux":
        assert said(HOME="/home/me") == "/home/me/.cache/plait"
        assert said(HOME="/home/me", XDG_CACHE_HOME="/there") == "/there/plait"
        assert said(HOME="/home/me", XDG_CACHE_HOME="not/absolute") == "/home/me/.cache/plait"
    assert said(HOME="/home/me", PLAIT_CACHE_DIR="~/mine") == "/home/me/mine"
    assert said(HOME="/home/me", PLAIT_CACHE_DIR="") == "None"


def test_the_name_that_jax_has(folder, tmp_path):
    with plait.config(cache_dir=None):
        plait.config.update("jax_compilation_cache_dir", str(tmp_path))
        assert plait.config.cache_dir == str(tmp_path)
        plait.config.update("jax_compilation_cache_dir", None)
        assert plait.config.cache_dir is None


OPTIONS = [
    {"xla_cpu_enable_fast_math": True},
    {"xla_cpu_enable_fast_math": False},
    {"xla_backend_optimization_level": 1},
    {"xla_backend_optimization_level": 0},
    {"xla_cpu_enable_fast_math": True, "xla_backend_optimization_level": 1},
]


def test_programs_that_compile_fast_need_not_be_kept(folder):
    with plait.config(cache_seconds=1e6):
        assert run()[:2] == (1, 0) and run()[:2] == (1, 0)
        assert entries(folder) == []
    assert run()[:2] == (1, 0) and len(entries(folder)) == 1
    with plait.config(cache_seconds=1e6):
        assert run()[:2] == (0, 1)  # what is kept is loaded
    for bad in (-1.0, "soon", True):
        with pytest.raises(plait.PlaitError, match="cache_seconds"):
            plait.config.cache_seconds = bad


def test_options_are_part_of_the_key(folder):
    for options in [None, *OPTIONS]:
        assert run(compiler_options=options)[:2] == (1, 0), options
    for options in [None, *OPTIONS]:
        assert run(compiler_options=options)[:2] == (0, 1), options
    assert len(entries(folder)) == 6


def test_types_placements_and_donation_are_part_of_the_code(folder):
    f = lambda **options: plait.jit(program(2.0), **options)  # noqa: E731
    calls = [
        lambda: f()(pnp.asarray(X)),
        lambda: f()(pnp.asarray(X.astype(np.float64))),
        lambda: f()(pnp.asarray(X[:3])),
        lambda: f(donate_argnums=0)(pnp.asarray(X)),
    ]
    for expected in ("compile", "load"):
        for call in calls:
            plait.clear_caches()
            with counting() as n:
                call()
            assert n["compile"] + n["load"] == n[expected] >= 1


def test_dumps_are_made_each_time(folder, tmp_path):
    options = {"xla_dump_to": str(tmp_path / "dump")}
    assert [run(compiler_options=options)[:2] for _ in range(2)] == [(1, 0)] * 2
    assert not folder.exists()


def test_callbacks_are_left_out(folder):
    """Equal code may call other functions."""
    for add in (1.0, 2.0, 1.0):

        def host(x, add=add):
            return x + np.float32(add)

        def f(x, host=host):
            return plait.pure_callback(host, plait.ShapeDtypeStruct((), np.float32), x)

        plait.clear_caches()
        x = pnp.asarray(np.float32(1))
        with counting() as n:
            y = plait.jit(f)(x)
        assert y.item() == 1 + add and (n["compile"], n["load"]) == (1, 0)
    assert not folder.exists() or not entries(folder)


def test_what_the_compiler_tells_is_told_of_what_was_loaded(folder):
    """Memory, cost, layouts and the optimised program are those of the executable compiled."""

    def stages():
        plait.clear_caches()
        return plait.jit(lambda x: pnp.sin(x) @ x, donate_argnums=0).lower(pnp.ones((8, 8)))

    a, b = stages().compile(), stages().compile()
    assert entries(folder)
    for attribute in ("temp", "argument", "output", "alias"):
        name = f"{attribute}_size_in_bytes"
        assert getattr(a.memory_analysis(), name) == getattr(b.memory_analysis(), name)
    assert b.memory_analysis().alias_size_in_bytes == 256
    assert a.cost_analysis() == b.cost_analysis()
    assert a.as_text() == b.as_text()
    for layouts in ("get_parameter_layouts", "get_output_layouts"):
        told = [list(map(str, getattr(x.runtime_executable(), layouts)())) for x in (a, b)]
        assert told[0] == told[1] and len(told[0]) == 1


def test_donated_memory_is_gone(folder):
    for _ in range(2):
        plait.clear_caches()
        x = pnp.asarray(X)
        y = plait.jit(program(1.0), donate_argnums=0)(x)
        np.testing.assert_allclose(y, wanted(1.0), rtol=1e-6)
        assert x.is_deleted()


def test_an_error_of_the_compiler_is_one_each_time(folder):
    for _ in range(2):
        with pytest.raises(plait.errors.ArgumentError, match="compiler_options"):
            run(compiler_options={"xla_no_such_flag": True})
    assert not folder.exists() or not entries(folder)


# ---- damage ----------------------------------------------------------------------------------


def _flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


DAMAGE = {
    "empty": lambda d: b"",
    "one byte": lambda d: d[:1],
    "in the head": lambda d: d[:10],
    "after the head": lambda d: d[:19],
    "in the checksum": lambda d: d[:30],
    "after the checksum": lambda d: d[:51],
    "half": lambda d: d[: len(d) // 2],
    "the last byte": lambda d: d[:-1],
    "longer": lambda d: d + b"\0",
    "zeros": lambda d: bytes(len(d)),
    "another file": lambda d: b"#!/bin/sh\n" * 100,
    **{f"bit at {k}/16": lambda d, k=k: _flipped(d, len(d) * k // 16) for k in range(16)},
    "last bit": lambda d: _flipped(d, len(d) - 1),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_entries_are_compiled_anew(folder, damage):
    run()
    (entry,) = entries(folder)
    whole = entry.read_bytes()
    entry.write_bytes(DAMAGE[damage](whole))
    with pytest.warns(CacheWarning, match="compiled anew"):
        compiled, found, y = run()
    assert (compiled, found) == (1, 0)
    np.testing.assert_allclose(y, wanted(), rtol=1e-6)
    assert run()[:2] == (0, 1)  # what was compiled took its place


def test_an_entry_says_what_it_is_of(folder):
    """Whole entries under one another's names are compiled anew, and put right."""
    for k in (1.0, 2.0, 3.0):
        run(k)
    whole = {entry: entry.read_bytes() for entry in entries(folder)}
    names = [*whole]
    for name, other in zip(names, [*names[1:], names[0]], strict=True):
        name.write_bytes(whole[other])
    for k in (1.0, 2.0, 3.0):
        with pytest.warns(CacheWarning, match="of another program"):
            compiled, found, y = run(k)
        assert (compiled, found) == (1, 0)
        np.testing.assert_allclose(y, wanted(k), rtol=1e-6)
        assert run(k)[:2] == (0, 1)


def _sparse(entry, outside):
    with open(entry, "wb") as file:
        file.write(b"plait executable 2\n")
        file.truncate(1 << 42)


ODD = {
    "pipe": lambda entry, outside: os.mkfifo(entry),
    "folder": lambda entry, outside: entry.mkdir(),
    "device": lambda entry, outside: entry.symlink_to("/dev/zero"),
    "loop": lambda entry, outside: entry.symlink_to(entry),
    "link to a pipe": lambda entry, outside: (os.mkfifo(outside), entry.symlink_to(outside)),
    "link to a text": lambda entry, outside: (
        outside.write_text("text"),
        entry.symlink_to(outside),
    ),
    "huge": _sparse,
    "socket": lambda entry, outside: _socket(entry),
}


def _socket(entry):
    import socket

    with socket.socket(socket.AF_UNIX) as made:
        before = os.getcwd()
        os.chdir(entry.parent)  # names of sockets are short
        try:
            made.bind(entry.name[:90])
            os.rename(entry.name[:90], entry.name)
        finally:
            os.chdir(before)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes in folders are a matter of POSIX")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_entry_is_not_waited_for(folder, tmp_path, kind):
    """Nor is it read in whole; what is compiled takes its place, if that can be."""
    run()
    (entry,) = entries(folder)
    entry.unlink()
    ODD[kind](entry, tmp_path / "outside")
    with pytest.warns(CacheWarning):
        compiled, found, y = run()
    assert (compiled, found) == (1, 0)
    np.testing.assert_allclose(y, wanted(), rtol=1e-6)
    if kind != "folder":
        assert run()[:2] == (0, 1)


def test_what_the_runtime_refuses_is_compiled_anew(folder, monkeypatch):
    """An entry whose checksum is right, and which the runtime cannot read."""
    from plait._xla import disk_cache

    run()
    (entry,) = entries(folder)
    disk_cache._write(str(entry), b"no executable")
    with pytest.warns(CacheWarning, match="compiled anew"):
        assert run()[:2] == (1, 0)
    assert run()[:2] == (0, 1)


# ---- folders ---------------------------------------------------------------------------------

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners are a matter of POSIX")
root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files to others"
)


@posix
@pytest.mark.parametrize("mode", [0o777, 0o755, 0o770, 0o702])
def test_a_folder_for_others_is_not_used(folder, mode):
    folder.mkdir()
    folder.chmod(mode)
    with pytest.warns(CacheWarning, match="chmod 700"):
        assert run()[:2] == (1, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert run()[:2] == (1, 0)
    assert not entries(folder)


@root
def test_a_folder_of_others_is_not_used(folder):
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)
    with pytest.warns(CacheWarning, match="others"):
        assert run()[:2] == (1, 0)
    assert not entries(folder)


@posix
def test_a_file_that_others_can_write_is_not_used(folder):
    run()
    (entry,) = entries(folder)
    entry.chmod(0o666)
    with pytest.warns(CacheWarning, match="others may have written"):
        assert run()[:2] == (1, 0)
    assert entry.stat().st_mode & 0o777 == 0o600  # the new one took its place


@root
def test_a_file_of_others_is_not_used(folder):
    run()
    (entry,) = entries(folder)
    os.chown(entry, 12345, -1)
    with pytest.warns(CacheWarning, match="others may have written"):
        assert run()[:2] == (1, 0)


@posix
def test_folders_and_files_are_of_the_user_alone(folder):
    before = os.umask(0)
    try:
        run()
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [p.stat().st_mode & 0o777 for p in entries(folder)] == [0o600]


def test_a_folder_that_can_not_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    for at in ("file", "file/below"):
        with plait.config(cache_dir=tmp_path / at), pytest.warns(CacheWarning, match="cannot"):
            assert run()[:2] == (1, 0)


@pytest.mark.parametrize("failing", ["open", "replace"])
def test_a_folder_that_can_not_be_written(folder, monkeypatch, failing):
    """A full disk, a file system that is read-only."""
    folder.mkdir(mode=0o700)

    def refuse(*args, **kw):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, refuse)
    with pytest.warns(CacheWarning, match="No space left"):
        compiled, _, y = run()
    np.testing.assert_allclose(y, wanted(), rtol=1e-6)
    monkeypatch.undo()
    assert compiled == 1 and not list(folder.iterdir())


def test_the_default_folder_that_nobody_asked_for_fails_in_silence(tmp_path):
    (tmp_path / "home").write_text("a file")
    text = "import plait, plait.numpy as pnp; print(plait.jit(lambda x: x + 1)(1.0).item())"
    env = {k: v for k, v in os.environ.items() if k not in ("PLAIT_CACHE_DIR", "XDG_CACHE_HOME")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text],
        env={**env, "HOME": str(tmp_path / "home")}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "2.0\n"), done.stderr


# ---- bounds ----------------------------------------------------------------------------------


def test_the_folder_is_bounded_and_the_least_used_goes(folder):
    run(1.0)
    (first,) = entries(folder)
    size = first.stat().st_size
    past = time.time() - 1000
    (folder / "of-somebody-else.xla").write_bytes(bytes(20 * size))  # neither counted nor removed
    with plait.config(cache_size=5 * size + size // 2):
        seen = {first}
        for k in range(2, 12):
            assert run(1.0)[:2] == (0, 1)  # used between all others, it stays
            run(float(k))
            ours = [p for p in entries(folder) if "somebody" not in p.name]
            assert sum(p.stat().st_size for p in ours) <= 5 * size + size // 2
            for p in ours:
                if p != first and p not in seen:
                    os.utime(p, (past + k, past + k))
            seen |= {*ours}
        assert run(11.0)[:2] == (0, 1) and run(2.0)[:2] == (1, 0)
    assert (folder / "of-somebody-else.xla").exists()


def test_what_is_larger_than_all_is_not_kept(folder):
    with plait.config(cache_size=100):
        assert [run()[:2] for _ in range(2)] == [(1, 0)] * 2
    assert not entries(folder)


def test_unfinished_files_of_the_dead_are_removed(folder):
    run(1.0)
    (entry,) = entries(folder)
    old, young = (entry.with_name(f"{entry.name}.{k}-abc.tmp") for k in (1, 2))
    for p in (old, young):
        p.write_bytes(b"begun")
    os.utime(old, (time.time() - 10000,) * 2)
    with plait.config(cache_size=10 * entry.stat().st_size):
        run(2.0)
    assert not old.exists() and young.exists()
    assert len(entries(folder)) == 2
