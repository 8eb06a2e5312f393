"""Several processes: one program, arrays over the devices of all, and what happens when one ends.

Invariant: processes run `process_programs.py` and tell what they got; here it is compared with
numpy, with what is written down, and with how processes were ended.
"""

import functools
import importlib.util
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import plait
from plait.errors import PlaitError
from plait.ext.errors import ArgumentError
from plait_sharding.distributed import DistributedError, PeerLost
from plait_sharding.distributed.coordinator import Coordinator
from plait_sharding.distributed.joining import start_coordinator
from plait_sharding.distributed.membership import initialize
from plait_sharding.distributed.wire import Garbled, Lines, connected, packed

spec = importlib.util.spec_from_file_location("together", Path(__file__).with_name("together.py"))
together = importlib.util.module_from_spec(spec)
spec.loader.exec_module(together)
free_port, run_together = together.free_port, together.run_together

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(os.name != "posix", reason="POSIX only")]


@functools.cache
def ran(program, n=2, devices=2):
    """The processes of a program that ended well, run once for all tests that ask."""
    every = run_together(program, n=n, devices=devices)
    assert [p.code for p in every] == [0] * n, [p.err[-2000:] for p in every]
    return [p.told for p in every]


def three_parts(error, kind, *texts):
    """Whether an error that was told is of this class, says these texts, where, and a remedy."""
    assert error is not None, f"{kind} was expected"
    name, said, where = error
    assert name == kind, error
    assert all(re.search(t, said) for t in texts), said
    assert "process_programs.py:" in where and len(said.splitlines()) >= 3, error


# ---- devices and arrays ------------------------------------------------------------------------


@pytest.mark.sampled(6)
@pytest.mark.feature("S18")
@pytest.mark.parametrize("n", [2, 4])
def test_devices_have_one_number_everywhere(n):
    for i, told in enumerate(ran("everything", n)):
        assert told["index"] == i and told["count"] == n and told["indices"] == list(range(n))
        assert told["all"] == [[k, k // 2] for k in range(2 * n)]
        assert told["local"] == [2 * i, 2 * i + 1]
        assert told["of_last"] == [2 * n - 2, 2 * n - 1]
        assert told["default"] == told["computed"] == 2 * i
        three_parts(told["nobody"], "PlacementError", "no process 99")
        three_parts(told["again"], "DistributedError", "called before")
        assert told["initialized"] is True and told["afterwards"] is False


@pytest.mark.sampled(2)
@pytest.mark.feature("S18")
@pytest.mark.parametrize("n", [2, 4])
def test_each_process_has_its_pieces(n):
    whole = np.arange(4 * n * 3, dtype=np.float32).reshape(4 * n, 3)
    for i, told in enumerate(ran("everything", n)):
        assert told["shape"] == [4 * n, 3]
        for made in told["shards"]:
            assert [s[:4] for s in made] == [[d, 2 * d, 2 * d + 2, 0] for d in (2 * i, 2 * i + 1)]
            for d, (*_, data) in zip((2 * i, 2 * i + 1), made, strict=True):
                np.testing.assert_array_equal(data, whole[2 * d : 2 * d + 2])
        assert told["copies"] == list(range(2 * n))
        assert told["elsewhere"] == [k // 2 != i for k in range(2 * n)]
        assert told["addressable"] == [False, False, True]
        assert told["replicated"] == [False, True] and told["multi"] is True
        assert told["mine"] == told["block"] == told["here"] == [2 * i, 2 * i + 1]
        np.testing.assert_array_equal(told["copy"], whole)
        np.testing.assert_array_equal(told["moved"], whole)
        np.testing.assert_array_equal(told["gathered"], whole)


@pytest.mark.wide
def test_what_is_elsewhere_is_told_how_to_get():
    for i, told in enumerate(ran("everything")):
        three_parts(
            told["read"], "PlacementError", "process_allgather", f"number {i}, has 12 of its 24"
        )
        three_parts(told["other"], "PlacementError", "this process drives none of")
        three_parts(told["uneven"], "AxisError", "4 equal pieces")
        three_parts(told["wrong"], "AxisError", "3 elements.* has 4 of the 8")
        assert told["printed"] == "Array" and "f32[8,3]" in told["shown"]


@pytest.mark.feature("S18")
@pytest.mark.parametrize("n", [2, 4])
def test_collectives(n):
    d = 2 * n
    x = np.arange(d * d, dtype=np.float32).reshape(d, d) ** 2
    z = np.arange(16, dtype=np.float32)
    for i, told in enumerate(ran("everything", n)):
        same = lambda name, want: np.testing.assert_array_equal(told[name], want, name)  # noqa: B023, E731
        same("psum", x.sum(0, keepdims=True))
        same("pmax", x.max(0, keepdims=True))
        np.testing.assert_allclose(told["pmean"], x.mean(0, keepdims=True))
        same("all_gather", np.stack([x * (k + 1) for k in range(d)]))
        same("psum_scatter", x.sum(0))
        same("all_to_all", x.T.reshape(d * d, 1))
        same("ppermute", np.roll(x, 1, axis=0))
        same("axis_index", np.arange(d)[:, None])
        by = z.reshape(n, 2, 16 // d)
        same("between", by.sum(0).ravel())
        same("within", by.sum(1).ravel())
        own = np.arange(4, dtype=np.float32) + i
        same("alone", own[:2] + own[2:])
        same("pmap", [1.0, 1.0])


@pytest.mark.feature("S18")
@pytest.mark.parametrize("n", [2, 4])
def test_programs_that_the_compiler_divides(n):
    d = 2 * n
    a = np.random.default_rng(0).normal(size=(2 * d, 4)).astype(np.float32)
    b = np.random.default_rng(1).normal(size=(4, 2 * d)).astype(np.float32)
    want = {
        "product": a @ b, "chosen": a @ b, "constant": a @ b, "total": 2 * a.sum(),
        "eager": np.sin(a).sum(), "scalar": 3 * a.sum(), "host": (a * a).sum(),
        "fast": 5 * a.sum(), "both": 7 * a.sum(), "ahead": 11 * a.sum(), "loop": 10 * a.sum(),
    }  # fmt: skip
    for told in ran("everything", n):
        for name, value in want.items():
            np.testing.assert_allclose(told[name], value, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.wide
def test_sums_of_one_program_stay_apart():
    """Combined they end a survivor of a process that died, inside of Gloo."""
    assert [told["sums"] for told in ran("everything")] == [2, 2]


@pytest.mark.parametrize("n", [2, 4])
def test_axes_of_which_types_tell(n):
    x = np.arange(64, dtype=np.float32).reshape(16, 4)
    want = {
        "doubled": (2 * x, "f32[16@x,4@y]"),
        "summed": (x.sum(0), "f32[4@y]"),
        "negative": (-x, "f32[16@x,4@y]"),
        "rows": (x, "f32[16@x,4]"),
        "product": (x[:, :3], "f64[16@x,3]"),
        "joined": (x.reshape(n, 16 // n, 4).sum(0), f"f32[{16 // n},4@y]"),
    }
    for told in ran("everything", n):
        for name, (value, kind) in want.items():
            np.testing.assert_array_equal(told["explicit"][name], value, name)
            assert told["types"][name] == kind
        three_parts(told["conflict"], "ShardingTypeError", "'x', 'y'.*'y', 'x'")


@pytest.mark.parametrize("n", [2, 4])
def test_the_default_device_is_any_of_a_process(n):
    for i, told in enumerate(ran("everything", n)):
        assert told["on_last"] == [2 * i + 1] * 2
        three_parts(told["remote"], "PlacementError", "this process drives", "local_devices")


def test_donation():
    a = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    for told in ran("everything"):
        assert told["donated"] == [True, False]
        three_parts(told["gone"], "DeletedArrayError", "donated")
        three_parts(told["twice"], "RuntimeRefusal", "argument 0 is donated, and argument 1")
        np.testing.assert_allclose(told["new"], 0.5 * a, rtol=1e-5)
        np.testing.assert_allclose(told["later"], 0.5 * a - 20 * 0.5 * a, rtol=1e-4, atol=1e-5)


def test_one_device_each():
    for told in ran("everything", 2, 1):
        np.testing.assert_array_equal(told["ppermute"], np.roll([[0, 1], [4, 9]], 1, axis=0))
        np.testing.assert_array_equal(told["psum"], [[4, 10]])


def test_callbacks_run_where_their_piece_is():
    for told in ran("everything"):
        assert told["callbacks"] == [4.0] and told["seen"] == [1.0, 1.0]


# ---- values between processes ------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 4])
def test_values_are_exchanged(n):
    for i, told in enumerate(ran("everything", n)):
        assert told["a"] == [[k, 10 * k] for k in range(n)]
        assert told["b"] == list(range(n)) and told["even"] == [k % 2 == 0 for k in range(n)]
        assert told["c"] == [[float(k)] for k in range(n)]
        assert told["joined"] == [[k, k] for k in range(n)]
        assert told["sent"] == n + 4 and told["first"] == 2**40
        assert told["spread"] == [10 * k + j for k in range(n) for j in range(4)]
        assert told["back"] == [10 * i + j for j in range(4)] and told["size"] == [4]
        assert told["where"] == [2 * i, 2 * i + 1]
        assert told["every"] == [{"of": [k, "é"]} for k in range(n)]
        assert told["deleted"] == [True, False]
        assert told["kept"] == [[1], "d%2Fe", "é"]  # what was deleted is "d", and no folder


def test_what_differs_is_named():
    for told in ran("everything", 4):
        three_parts(
            told["differs"],
            "DistributedError",
            r"params: \['b'\]\[1\] of process 1 and 2 and 3 differs",
        )
        assert "['w']" not in told["differs"][1]
        three_parts(told["kinds"], "DistributedError", "process 1 and 2 and 3 differs")
        three_parts(told["stacked"], "ArgumentError", "tiled=True")
        three_parts(told["sources"], "DistributedError", r"\[0, 1, 2, 3\] say")
        three_parts(told["taken"], "DistributedError", "has a value already")
        three_parts(told["nothing"], "DistributedError", "'nobody'")
        three_parts(told["unsendable"], "ArgumentError", "cannot be sent")
        three_parts(told["stranger"], "ArgumentError", "at the barrier 'b'")


def test_alone_everything_is_the_identity():
    from plait.experimental import multihost_utils as u

    assert not plait.distributed.is_initialized() and plait.process_count() == 1
    assert u.process_allgather(np.arange(2)).tolist() == [[0, 1]]
    assert u.process_allgather(np.arange(2), tiled=True).tolist() == [0, 1]
    assert u.broadcast_one_to_all({"a": 3})["a"].tolist() == 3
    u.assert_equal({"a": 3})
    u.sync_global_devices("here")
    with pytest.raises(DistributedError, match="computes alone"):
        plait.distributed.key_value_set("a", 1)
    with pytest.raises(DistributedError, match="computes alone"):
        plait.distributed.wait_at_barrier("a")


# ---- the same program --------------------------------------------------------------------------


DIVERGENCES = {
    "constant": ["'train_step'", "another program of that name"],
    "function": ["'train_step'", "'evaluate'"],
    "shape": ["'train_step'", "another program of that name"],
    "sync": ["'here'", "'there'"],
    "kind": ["'train_step'", "'saved'"],
    "values": ["its values are others than those of process [01]"],
    "gather": ["process [01]"],
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("how", DIVERGENCES)
def test_processes_that_diverge(how):
    for told in ran("diverging", 2, 1):
        three_parts(told[how], "ProgramsDiffer", *DIVERGENCES[how])


def test_after_a_divergence_work_goes_on():
    assert [told["good"] for told in ran("diverging", 2, 1)] == [4.0, 4.0]


@pytest.mark.wide
def test_what_is_compiled_and_called_in_another_order():
    for p in run_together("crossed", devices=1):
        assert p.code == 70, p
        three_parts(p.told["error"], "ProgramsDiffer", "'train_step'", "'evaluate'", "process 1")


@pytest.mark.wide
def test_a_process_that_has_ended_is_not_waited_for():
    first, second = run_together("absent", devices=1)
    assert second.code == 0 and first.code == 70
    for name in ("met", "run"):
        three_parts(first.told[name], "PeerLost", r"process 1 \(.*pid \d+\): it has ended")


@pytest.mark.wide
def test_a_process_that_does_not_come_is_named():
    first, _ = run_together("late", devices=1, env={"SECONDS": "2"})
    three_parts(
        first.told["late"], "DistributedError", "waited 2 s.*'checkpoint'.*process 1 was last"
    )


# ---- the end of a process ----------------------------------------------------------------------


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    "how, n, victim, devices, code, why",
    [
        ("kill", 4, 1, 2, -9, "its connection closed"),
        ("kill", 3, 0, 1, -9, "its connection closed"),
        ("raise", 3, 1, 1, 1, "it ended by ValueError: a bug in one process"),
        ("uncaught", 2, 0, 1, -9, "its connection closed"),
    ],
)
@pytest.mark.feature("S18")
def test_others_hear_of_the_end_of_one(how, n, victim, devices, code, why):
    every = run_together("training", how, victim, n=n, devices=devices)
    for i, p in enumerate(every):
        if i == victim:
            assert p.code == code, p
            continue
        assert p.code == (1 if how == "uncaught" else 70), p  # not what sys.exit(0) says
        assert p.told["peers"] == [victim] and p.told["kept"] is True
        assert re.match(rf"process {victim} \(.*pid \d+\): {why}", p.told["names"][0])
        assert "process_programs.py:" in p.told["where"] and "checkpoint" in p.told["text"]
        assert p.told["again"] == "PeerLost"
        assert f"plait: lost process {victim} " in p.err
        assert "terminate called" not in p.err
    if how == "raise":
        assert "ValueError: a bug in one process" in every[victim].err


@pytest.mark.sampled(2)
@pytest.mark.parametrize("devices", [1, 2])
def test_one_that_is_frozen(devices, n=3):
    every = run_together(
        "training", "stop", 1, n=n, devices=devices, env={"SILENCE": "4"}, frozen=[1]
    )
    assert every[1].code is None
    for i in {*range(n)} - {1}:
        assert every[i].code == 70, every[i]
        assert every[i].told["peers"] == [1] and every[i].told["kept"] is True
        assert "it has said nothing for" in every[i].told["text"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_survivors_may_end_at_once(how):
    frozen = [1] if how == "stop" else []
    every = run_together(
        "training", how, 1, "exit", n=2, devices=1, env={"SILENCE": "4"}, frozen=frozen
    )
    assert every[0].code == 70 and "plait: lost process 1 " in every[0].err
    assert every[0].told == {}  # nothing was raised


@pytest.mark.wide
def test_one_that_holds_the_lock_of_python_lives():
    every = run_together("holding", devices=1)
    assert [p.code for p in every] == [0, 0], every
    assert every[0].told["held"] > 2.5  # and others bear a silence of one second


def test_a_forked_child_does_not_hide_the_end():
    first, second = run_together("forking", devices=1)
    assert second.code == -9 and first.code == 70
    three_parts(first.told["error"], "PeerLost", "process 1 .*its connection closed")


def test_a_wait_for_a_value_ends_with_a_process():
    first, _ = run_together("unset", devices=1)
    three_parts(first.told["error"], "PeerLost", "process 1 .*its connection closed")


@pytest.mark.wide
def test_the_first_may_end_before_the_others():
    assert ran("first_ends", 3, 1)[1:] == [{"total": 10.0}] * 2


def test_the_end_of_the_coordinator_is_heard():
    address = f"127.0.0.1:{free_port()}"
    every = run_together("without_coordinator", devices=1, address=address)
    for p in every:
        assert p.code == 70, p
        three_parts(p.told["error"], "PeerLost", "the coordinator: its connection closed")


# ---- processes that do not fit -----------------------------------------------------------------


def refused(*each, n=2, texts, settings=None, **more):
    """Processes none of which may join; each error says these texts."""
    every = run_together("joining", *(settings or ()), n=n, devices=1, each=each or None, **more)
    for p, said in zip(every, texts, strict=True):
        if said is not None:
            assert "error" in p.told, p
            three_parts(p.told["error"], "DistributedError", *said)
    return every


def test_the_first_process_starts_the_coordinator():
    every = run_together("joining", devices=1, address=f"127.0.0.1:{free_port()}")
    assert [(p.code, p.told) for p in every] == [(0, {"error": None})] * 2, every


def test_nobody_at_the_address():
    port = free_port()
    mine = {"PLAIT_PROCESS_ID": "1", "SECONDS": "2"}
    refused(mine, n=1, address=f"127.0.0.1:{port}", env={"PLAIT_NUM_PROCESSES": "2"},
            texts=[[rf"process 1 found no coordinator at 127.0.0.1:{port} in 2 s"]])  # fmt: skip


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused(n=1, address=f"127.0.0.1:{port}", texts=[[rf"port {port} of 127.0.0.1.* taken"]])


@pytest.mark.wide
def test_a_process_that_is_missing():
    env = {"SECONDS": "3", "PLAIT_NUM_PROCESSES": "3"}
    said = ["number 2\\)? did not"]
    refused(address=f"127.0.0.1:{free_port()}", env=env, texts=[said, said])


@pytest.mark.wide
def test_two_of_one_number():
    env = {"SECONDS": "4", "PLAIT_NUM_PROCESSES": "3"}
    each = [{"PLAIT_PROCESS_ID": "0"}, {"PLAIT_PROCESS_ID": "1"}, {"PLAIT_PROCESS_ID": "1"}]
    every = refused(*each, n=3, address=f"127.0.0.1:{free_port()}", env=env, texts=[None] * 3)
    errors = [p.told["error"][1] for p in every]
    assert sum("there was already process 1" in e for e in errors) >= 2, errors
    assert any(re.search("number 2 did not come; process 1 .* already", e) for e in errors), errors


@pytest.mark.wide
def test_different_numbers_of_processes():
    every = refused(
        {"PLAIT_NUM_PROCESSES": "2"}, {"PLAIT_NUM_PROCESSES": "5"}, env={"SECONDS": "4"},
        address=f"127.0.0.1:{free_port()}",
        texts=[["number 1 did not come; process 1 .* started for 5 processes, and process 0 for 2"],
               [r"process 1 \(.*\) was started for 5 processes"]],
    )  # fmt: skip
    assert all(p.code == 0 for p in every)  # the error was caught


@pytest.mark.wide
def test_different_settings():
    each = [{"PLAIT_DEFAULT_FLOAT": "float32"}, {"PLAIT_DEFAULT_FLOAT": "float64"}]
    every = refused(
        *each, env={"SECONDS": "4"}, address=f"127.0.0.1:{free_port()}", texts=[None] * 2
    )
    errors = [p.told["error"][1] for p in every]
    assert any(
        re.search(r"differ in default_float \('float\d\d' and 'float\d\d'\)", e) for e in errors
    )


def test_devices_that_exist_already():
    (told,) = [p.told for p in run_together("too_late", n=1, devices=1)]
    three_parts(told["error"], "DistributedError", "exist already")


@pytest.mark.parametrize(
    "given, kind, text",
    [
        (("10.0.0.1", 2, 0), ArgumentError, "coordinator_address"),
        (("host:port", 2, 0), ArgumentError, "coordinator_address"),
        (("host:99999", 2, 0), ArgumentError, "coordinator_address"),
        (("host:1", 0, 0), ArgumentError, "num_processes is 0"),
        (("host:1", 2, 2), ArgumentError, "process_id is 2, and there are 2"),
        (("host:1", 2, -1), ArgumentError, "process_id is -1"),
        (("host:1", 2, True), ArgumentError, "process_id is True"),
        (("host:1", None, 0), DistributedError, "num_processes .*not given"),
        (
            (None, None, None),
            DistributedError,
            "coordinator_address, num_processes, process_id were not given",
        ),
    ],
)
def test_arguments_that_make_no_sense(given, kind, text, monkeypatch):
    for name in (
        "SLURM_PROCID",
        "OMPI_COMM_WORLD_RANK",
        "PMI_RANK",
        "JOB_COMPLETION_INDEX",
        "RANK",
    ):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(kind, match=text) as e:
        initialize(*given)
    assert isinstance(e.value, PlaitError) and e.value.fix and "test_processes.py" in e.value.where
    with pytest.raises(ArgumentError, match="on_loss"):
        initialize("host:1", 2, 0, on_loss="ignore")
    with pytest.raises(ArgumentError, match="initialization_timeout is -1"):
        initialize("host:1", 2, 0, initialization_timeout=-1)


# ---- the command that starts all -------------------------------------------------------------


def command(*arguments, **env):
    told = [sys.executable, "-m", "plait_sharding.launch", *map(str, arguments)]
    told = [str(together.PROGRAMS) if a == "PROGRAMS" else a for a in told]
    variables = {**os.environ, **env}
    return subprocess.run(told, capture_output=True, text=True, timeout=120, env=variables)


def test_the_command_that_starts_all():
    done = command("-n", 2, "--devices", 1, "--tag", "PROGRAMS", "joining")
    assert done.returncode == 0, done.stderr
    for i in range(2):
        assert re.search(rf'\[{i}\].*told {{"error": null}}', done.stdout), done.stdout


@pytest.mark.wide
def test_the_command_ends_with_the_code_of_who_failed_first():
    done = command("-n", 2, "--devices", 1, "PROGRAMS", "training", "raise", 1)
    assert done.returncode == 1 and "a bug in one process" in done.stderr
    assert command("-n", 0, "PROGRAMS").returncode == 2


def test_a_system_that_passes_no_sockets_is_told(monkeypatch):
    monkeypatch.setattr("plait_sharding.distributed.failures.os", SimpleNamespace(name="nt"))
    for start in (lambda: initialize("host:1", 2, 0), lambda: start_coordinator(None, 2, 1.0)):
        with pytest.raises(DistributedError, match="POSIX"):
            start()


# ---- messages ----------------------------------------------------------------------------------


def test_messages_arrive_whole_however_they_are_cut():
    sent = [{"a": 1}, {"text": "é\n{}"}, {"n": [1.5, None, True]}]
    data = b"".join(map(packed, sent))
    for size in (1, 3, 7, len(data)):
        lines, got = Lines(), []
        for k in range(0, len(data), size):
            got += lines.messages(data[k : k + size])
        assert got == sent


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"[1]\n", b"\xff\xfe\n", b"x" * (1 << 17)]
)
def test_what_is_no_message_is_refused(data):
    with pytest.raises(Garbled):
        Lines().messages(data)


def test_a_connection_with_oneself_is_nobody():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(OSError):
        for _ in range(3):
            connected("127.0.0.1", port, 1.0)


def test_strangers_do_not_disturb():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = Coordinator(listener, 1, 60.0, 1)
        strangers = [socket.create_connection(listener.getsockname()) for _ in range(3)]
        strangers[0].sendall(b"GET / HTTP/1.1\r\n\r\n")
        strangers[1].sendall(b'{"where": 0, "id": 1}\n')
        strangers[2].sendall(b'{"hello": "zero"}\n')
        for s in strangers:
            s.settimeout(10)
        for _ in range(20):
            for key, _ in served.selector.select(0.1):
                served._accept() if key.data is None else served._read(key.data, 0.0)
        assert [s.recv(100) for s in strangers] == [b""] * 3
        assert not served.members
        for s in strangers:
            s.close()


def test_errors_name_peers():
    e = PeerLost("gone", fix="start again", peers=[2], names=["process 2"])
    assert e.peers == (2,) and e.names == ("process 2",) and isinstance(e, RuntimeError)
