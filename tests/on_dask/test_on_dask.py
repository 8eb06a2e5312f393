"""The way by Dask that the page on clusters shows, over hosts of this machine.

The script is the page's own text; only the scheduler's address and the command are put in.

Invariant: a test loses a process or a host of the computation, never the scheduler's.
"""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "clusters.md"


def loaded(path):
    """Return the module of a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hosts_module = loaded(ROOT / "packages" / "sharding" / "tests" / "hosts.py")
Hosts, missing, until, PROGRAMS = (
    hosts_module.Hosts, hosts_module.missing, hosts_module.until, hosts_module.PROGRAMS
)  # fmt: skip
pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(missing()), reason=missing() or "hosts can be made"),
]
DASK = (sys.executable, "-m", "dask")
ENV = {"PLAIT_CPU_DEVICES": "1", "SECONDS": "60", "PYTHONUNBUFFERED": "1"}


def script(address, *command):
    """Return the page's script, for a scheduler and a command."""
    text = PAGE.read_text(encoding="utf-8").split("## Dask", 1)[1]
    (code,) = re.findall(r"```\n(import os\n.*?)```", text, re.DOTALL)
    for old, new in (
        ('"scheduler:8786"', repr(address)),
        ('"train.py", "/shared/run", "100000"', ", ".join(repr(str(word)) for word in command)),
    ):
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    return code


class Workers:
    """A scheduler on the first host, and one worker on each."""

    def __init__(self, hosts, **env):
        self.hosts, self.env = hosts, ENV | env
        self.address = f"{hosts.addresses['a1']}:8786"
        here = ("--interface", "eth0", "--no-dashboard")
        self.scheduler = hosts.start("a1", *DASK, "scheduler", *here, **self.env)
        assert until(lambda: "Scheduler at" in hosts.said(self.scheduler), 60.0)
        joins = (*DASK, "worker", self.address, "--nthreads", 1, *here)
        self.running = [hosts.start(name, *joins, **self.env) for name in hosts.names]
        joined = lambda child: "Registered to" in hosts.said(child)
        assert until(lambda: all(map(joined, self.running)), 90.0), self.said()

    def said(self):
        """Return the output of all workers so far, which has that of their processes."""
        return "".join(map(self.hosts.said, self.running))

    def start(self, *command):
        """Start the page's script on the first host."""
        path = self.hosts.folder / "start.py"
        path.write_text(script(self.address, *command))
        return self.hosts.start("a1", sys.executable, path, **self.env)


# The first attempt trains; the second tells its place and a sum.
PROGRAM = """
import os, sys
first = os.environ["PLAIT_COORDINATOR_ADDRESS"].endswith(":12345")
program, how = sys.argv[1:]
arguments = ["training", how, "1"] if first and how != "found" else ["found"]
os.execv(sys.executable, [sys.executable, program, *arguments])
"""
LOSSES = {
    "nothing": ("found", ""),
    "process": ("kill", "its connection closed"),
    "frozen": ("stop", "it has said nothing for"),
    "host": ("goes on", "it has said nothing for"),
}
"""For each kind of loss, the act of process 1 and the text of the others' errors."""


@pytest.mark.parametrize("what", LOSSES)
def test_all_begin_again(what):
    """The others have PeerLost, and the script begins again where workers are left."""
    how, why = LOSSES[what]
    # a worker that is cut off must be silent for 30 s before the script leaves it out
    silence = {"SILENCE": "25" if what == "host" else "10"}
    with Hosts(3) as hosts:
        workers = Workers(hosts, **silence)
        program = hosts.folder / "program.py"
        program.write_text(PROGRAM)
        driver = workers.start(program, PROGRAMS, how)
        if what == "host":
            assert until(lambda: workers.said().count('"going"') == 3, 90.0), workers.said()
            hosts.unplug("a3")
        code, _, text = hosts.end(driver, 200.0)
        assert code == 0, text + workers.said()
        told = [t for child in workers.running for t in hosts.end(child, 1.0)[1]]
    left = ["a1", "a2"] if what == "host" else ["a1", "a2", "a3"]
    found = [t for t in told if "sum" in t]
    total = sum(range(1, len(left) + 1))
    assert [(t["index"], t["host"], t["sum"]) for t in found] == [
        (i, host, total) for i, host in enumerate(left)
    ], told
    assert not any(t["own"].startswith("127.") for t in found)
    gone = {"nothing": None, "host": 2}.get(what, 1)
    lost = [t for t in told if "peers" in t and t["index"] != gone]
    assert len(lost) == (0 if gone is None else 2) and all(t["peers"] == [gone] for t in lost), told
    assert all(why in t["text"] for t in lost), told
    assert text.count("attempt 1 with 3 workers") == (gone is not None), text
    print(what, [round(t["waited"], 1) for t in lost], text.splitlines()[:1])
