"""Several hosts on one machine: network namespaces with addresses and names of their own.

As Debian does it, each host gives its own name the address 127.0.1.1, and the others' names their
addresses.

Invariant: no process that was started here outlives `Hosts`, and no namespace.
"""

import contextlib
import functools
import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = Path(__file__).with_name("process_programs.py")
TOLD = "told "
_tags = itertools.count()
_NETWORK = f"10.{64 + os.getpid() % 64}.{os.getpid() // 64 % 256}"


class Hosts:
    """Hosts a1, a2, ... that are connected; used as a context."""

    def __init__(self, count):
        self.tag = f"p{os.getpid() % 100000}{next(_tags)}"  # a deleted namespace lingers
        self.names = [f"a{i + 1}" for i in range(count)]
        self.addresses = {name: f"{_NETWORK}.{i + 1}" for i, name in enumerate(self.names)}
        self.running = []

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="plait-hosts-"))
        try:
            self._ip(f"link add {self.tag} type bridge")
            self._ip(f"link set {self.tag} up")
            for name in self.names:
                self._make(name)
        except BaseException:
            self.__exit__()
            raise
        self.agent = self.folder / "agent"
        self.agent.write_text(
            _AGENT.format(python=sys.executable, folder=self.folder, tag=self.tag)
        )
        self.agent.chmod(0o755)
        return self

    def _ip(self, command):
        subprocess.run(["ip", *command.split()], check=True, capture_output=True, timeout=20)

    def _make(self, name):
        space = f"{self.tag}{name}"
        others = [f"{a} {n}\n" for n, a in self.addresses.items() if n != name]
        text = f"127.0.0.1 localhost\n127.0.1.1 {name}\n" + "".join(others)
        (self.folder / name).write_text(text)
        self._ip(f"netns add {space}")
        self._ip(f"link add {space} type veth peer name eth0 netns {space}")
        self._ip(f"link set {space} master {self.tag} up")
        self._ip(f"-n {space} addr add {self.addresses[name]}/24 dev eth0")
        self._ip(f"-n {space} link set eth0 up")
        self._ip(f"-n {space} link set lo up")

    def __exit__(self, *error):
        for child in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            child.out.close()
        for name in self.names:
            space = f"{self.tag}{name}"
            for pid in self.processes(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", space], capture_output=True, timeout=20)
        subprocess.run(["ip", "link", "del", self.tag], capture_output=True, timeout=20)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name, *command, **env):
        """Start a command on a host."""
        out = tempfile.TemporaryFile("w+")  # noqa: SIM115
        child = subprocess.Popen(
            [str(self.agent), name, shlex.join(map(str, command))],
            env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        child.out = out
        self.running.append(child)
        return child

    def run(self, name, *command, seconds=90.0, **env):
        """Run a command on a host; return its exit code, what was told, and the output."""
        return self.end(self.start(name, *command, **env), seconds)

    def end(self, child, seconds=90.0):
        """Wait for a command; return its exit code, what was told, and the output."""
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            code = child.wait()
        child.out.seek(0)
        text = child.out.read()
        child.out.close()
        self.running.remove(child)
        parts = text.split(TOLD + "{")[1:]  # processes may write into one line
        told = [json.JSONDecoder().raw_decode("{" + part)[0] for part in parts]
        return code, sorted(told, key=lambda t: t.get("index", 0)), text

    def said(self, child):
        """Return the output of a command so far."""
        return os.pread(child.out.fileno(), 1 << 24, 0).decode(errors="replace")

    def processes(self, name):
        """Return the numbers of the processes on a host."""
        command = ["ip", "netns", "pids", f"{self.tag}{name}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        return [int(pid) for pid in done.stdout.split()]

    def runs(self, name, text):
        """Return whether the command of a process on a host has this text."""
        for pid in self.processes(name):
            with contextlib.suppress(OSError):
                if text in Path(f"/proc/{pid}/cmdline").read_text():
                    return True
        return False

    def unplug(self, name):
        """Cut a host off, as if its power had failed."""
        self._ip(f"link set {self.tag}{name} down")


# What `ssh HOST COMMAND` would do, without its options: words are joined for a shell.
_AGENT = """#!{python}
import contextlib, os, sys
with contextlib.suppress(PermissionError):  # it is the first of a session already
    os.setsid()  # as there, a signal to the caller's group ends nothing here
words = sys.argv[1:]
while words[0].startswith("-"):
    del words[0]
host = words.pop(0)
command = "hostname " + host + "; mount --bind {folder}/" + host + " /etc/hosts; " + " ".join(words)
os.execvp("nsenter", ["nsenter", "--net=/run/netns/{tag}" + host, "unshare", "-u", "-m",
                      "sh", "-c", command])
"""


@functools.cache
def missing(*programs):
    """Say what this machine lacks for hosts of its own and these programs; "" if nothing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need Linux and root"
    for program in ("ip", "nsenter", "unshare", *programs):
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            return f"{program} is not installed"
    try:
        with Hosts(1) as hosts:
            code, _, text = hosts.run("a1", "true", seconds=20)
    except (OSError, subprocess.SubprocessError) as e:
        return f"no network namespace can be made: {e}"
    return "" if code == 0 else f"no command runs in a network namespace: {text[-200:]}"


def until(condition, seconds=20.0):
    """Wait until a condition is true; return whether it is."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
