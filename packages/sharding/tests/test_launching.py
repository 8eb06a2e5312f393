"""The command `launch` with wrong input: each mistake has words, and an end.

Invariant: nothing here waits longer than the limit of the test, and no process is left.
"""

import os
import re
import sys

import pytest

from plait.ext.errors import ArgumentError
from plait_sharding import launch
from plait_sharding.distributed import DistributedError, on_ray

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(os.name != "posix", reason="POSIX only")]
ENDS = [sys.executable, "-c", "pass"]


@pytest.mark.parametrize(
    "words, text",
    [
        (["script.py"], "give -n, the number of processes, or --hosts"),
        (["-n", "2", "--hosts", " , ", "script.py"], "names no machine"),
        (["--hosts", "", "-n", "2", "script.py"], "names no machine"),
        (["--hosts", "a,b,a", "script.py"], "hosts names a more than once: .*-n 3"),
        (["--hosts", "a,b", "-n", "3", "script.py"], "processes is 3, and there are 2 hosts"),
        (["--hosts", "a,b", "--ssh", "", "script.py"], "got nothing"),
        (["--hosts", "a,b", "--ssh", "/no/ssh", "script.py"], "/no/ssh cannot be run here"),
        (["-n", "0", __file__], "processes is 0"),
        (["-n", "2", "--devices", "0", __file__], "devices is 0"),
        (["-n", "2", "/no/script.py"], "/no/script.py: this script does not exist here"),
        (["-n", "two", "script.py"], "invalid int value: 'two'"),
        (["-n", "2"], "required: program"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_words_that_cannot_be_meant(words, text, capsys):
    with pytest.raises(SystemExit) as e:
        launch.main(words)
    assert e.value.code == 2
    told = capsys.readouterr().err
    assert re.search(text, told), told


@pytest.mark.parametrize(
    "call",
    [
        lambda: launch.run_processes([], 2),
        lambda: launch.run_processes(ENDS, 2.5),
        lambda: launch.run_on_hosts(ENDS, "ab"),
        lambda: launch.run_on_hosts(ENDS, []),
        lambda: launch.run_on_hosts(ENDS, ["a", "b"], 1),
        lambda: launch.run_on_hosts(ENDS, ["a", "b"], 3),
    ],
)
def test_arguments_of_the_functions(call):
    with pytest.raises(ArgumentError) as e:
        call()
    assert e.value.fix


@pytest.mark.parametrize(
    "given, text",
    [
        ({"workers": 0}, "workers is 0"),
        ({"min_workers": 3}, "min_workers is 3, and workers is 2"),
        ({"resources": {"GPU": "all"}}, r"resources\['GPU'\] is 'all'"),
        ({"resources": {"GPU": -1}}, r"resources\['GPU'\] is -1"),
        ({"max_failures": 1.5}, "max_failures is 1.5"),
        ({"start_timeout": 0}, "start_timeout is 0"),
        ({"placement_strategy": "NEAR"}, "placement_strategy is 'NEAR'"),
        ({"function": 3}, "function must be a function .*got 3"),
    ],
)
def test_arguments_are_judged_before_ray_is_asked(given, text):
    """Also where Ray is not installed, or no cluster runs."""
    given = {"function": print, "workers": 2, **given}
    with pytest.raises(ArgumentError, match=text) as e:
        on_ray(given.pop("function"), **given)
    assert e.value.fix


def test_a_program_that_is_not_there():
    with pytest.raises(DistributedError, match="/no/python cannot be run here"):
        launch.run_processes(["/no/python"], 2)


def test_processes_that_do_not_join_are_told(capfd):
    assert launch.run_processes(ENDS, 2) == 0
    assert "all 2 processes ended, and they did not join" in capfd.readouterr().err
    assert launch.run_processes(ENDS, 1) == 0
    assert "did not join" not in capfd.readouterr().err


def test_a_host_that_cannot_be_reached(capfd, tmp_path):
    """A stand-in for ssh fails as ssh does; the process on the other host is ended."""
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\n[ "$1" = b ] && exit 255\nshift\nexec sh -c "$*"\n')
    agent.chmod(0o755)
    waits = [sys.executable, "-c", "import time; time.sleep(100)"]
    assert launch.run_on_hosts(waits, ["a", "b"], grace=0.5, remote=[str(agent)]) == 255
    assert "process 1 on b ended first, with code 255" in capfd.readouterr().err


PART = """
import plait, numpy as np
from plait.experimental import multihost_utils
plait.distributed.initialize(initialization_timeout=SECONDS)
"""


def test_a_process_that_ends_before_it_joins(capfd, tmp_path):
    """Another program in one place: the others hear who did not come, and do not hang."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\nif os.environ['PLAIT_PROCESS_ID'] == '0': sys.exit(0)\n"
        + PART.replace("SECONDS", "2")
    )
    assert launch.run_processes([sys.executable, str(script)], 2, devices=1, grace=1.0) == 1
    assert "number 0 did not come" in capfd.readouterr().err


def test_two_programs(capfd, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        PART.replace("SECONDS", "60")
        + "multihost_utils.sync_global_devices(f'program {plait.process_index()}')\n"
    )
    assert launch.run_processes([sys.executable, str(script)], 2, devices=1, grace=10.0) == 1
    told = capfd.readouterr().err
    assert "process 0 is at the point 'program 0'" in told and "process 1 at the point" in told
