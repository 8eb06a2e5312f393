"""The address of process 0, exchanged through PMI or PMIx, which MPI's launchers speak.

MPI itself is not initialised, and may be, before or after: both sides allow a process to greet
its launcher twice.  Where MPI is initialised already by mpi4py, its own broadcast is used.

Invariant: nothing waits longer than its limit.  A conversation that was begun is ended when the
process exits, since launchers take a process that leaves without a word for one that failed.
"""

import atexit
import ctypes
import ctypes.util
import os
import random
import re
import select
import shutil
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import Any

from .failures import DistributedError

__all__ = ["head_of_open_mpi", "through_pmi", "through_pmix"]

_KEY = "plait-coordinator"
_PORTS = range(10240, 26624)
"""The ports to choose from: below those that outgoing connections take."""


# ---- this machine's address --------------------------------------------------------------------


def _free_port() -> int:
    for port in random.sample(_PORTS, 64):
        with socket.socket() as sock:
            try:
                sock.bind(("", port))
            except OSError:
                continue
            return port
    return random.choice(_PORTS)


def _towards(host: str | None) -> str | None:
    """Return the address of this machine that packets to a host have; None if there is none."""
    if host is None:
        return None
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as sock:
            sock.connect(address)  # no packet is sent
            return sock.getsockname()[0]
    except OSError:
        return None


def _offered(name: str | None) -> str:
    """Return an address of this machine that other machines can reach, as "host:port"."""
    name = name or socket.gethostname()
    seen = _towards(name)
    # Debian names a machine 127.0.1.1 on itself; others have to look the name up.
    host = name if seen is None or seen.startswith("127.") else seen
    return f"[{host}]:{_free_port()}" if ":" in host else f"{host}:{_free_port()}"


def _through_mpi4py(offered: Callable[[], str]) -> str | None:
    """Broadcast the address by MPI, if mpi4py has initialised it in this process."""
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return None
    world = mpi.COMM_WORLD
    return world.bcast(offered() if world.Get_rank() == 0 else None, root=0)


def _mpi_lives() -> bool:
    """Return whether MPI is initialised in this process and not finalised."""
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if mpi is not None:
        return mpi.Is_initialized() and not mpi.Is_finalized()
    try:
        library, begun, ended = ctypes.CDLL(None), ctypes.c_int(0), ctypes.c_int(0)
        library.MPI_Initialized(ctypes.byref(begun))
        library.MPI_Finalized(ctypes.byref(ended))
    except (AttributeError, OSError, TypeError):  # no library of MPI is loaded for all to see
        return False
    return bool(begun.value) and not ended.value


# ---- PMI ---------------------------------------------------------------------------------------


class _Conversation:
    """The lines of PMI's first version, on the socket that the launcher has opened."""

    def __init__(self, fd: int, seconds: float):
        self.fd, self.seconds, self.rest = fd, seconds, b""
        self.same = os.fstat(fd)[:3]

    def ask(self, line: str) -> dict[str, str]:
        os.write(self.fd, line.encode() + b"\n")
        while b"\n" not in self.rest:
            if not select.select([self.fd], [], [], self.seconds)[0]:
                raise _too_late(self.seconds)
            data = os.read(self.fd, 4096)
            if not data:
                raise OSError("the launcher has closed the connection")
            self.rest += data
        answer, _, self.rest = self.rest.partition(b"\n")
        return dict(w.split("=", 1) for w in answer.decode(errors="replace").split() if "=" in w)

    def end(self) -> None:
        if _mpi_lives():
            return  # MPI still needs the conversation, and ends it itself
        try:
            # MPI may have closed the socket, whose number may be another file's by now.
            if os.fstat(self.fd)[:3] == self.same:
                self.seconds = 5.0
                self.ask("cmd=finalize")
        except (OSError, DistributedError):
            pass


def through_pmi(env: Mapping[str, str], name: str | None, seconds: float) -> str | None:
    """Exchange the address of process 0, whose machine has this name, through PMI.

    Returns None where the launcher speaks another protocol.
    """
    found = _through_mpi4py(lambda: _offered(name))
    if found is not None or not env.get("PMI_FD", "").isdecimal():
        return found
    try:
        line = _Conversation(int(env["PMI_FD"]), seconds)
        if line.ask("cmd=init pmi_version=1 pmi_subversion=1").get("rc") != "0":
            return None
        atexit.register(line.end)
        space = line.ask("cmd=get_my_kvsname")["kvsname"]
        if env["PMI_RANK"].strip() == "0":
            line.ask(f"cmd=put kvsname={space} key={_KEY} value={_offered(name)}")
        line.ask("cmd=barrier_in")
        return line.ask(f"cmd=get kvsname={space} key={_KEY}").get("value")
    except (OSError, KeyError):
        return None


def _too_late(seconds: float) -> DistributedError:
    return DistributedError(
        f"MPI's launcher did not bring the processes together in {seconds:.0f} s",
        fix="call plait.distributed.initialize() in every process that it starts, or give "
        "initialization_timeout",
    )


# ---- PMIx --------------------------------------------------------------------------------------


class _Process(ctypes.Structure):
    _fields_ = (("namespace", ctypes.c_char * 256), ("rank", ctypes.c_uint32))


class _Value(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_uint16),
        ("text", ctypes.c_char_p),
        ("rest", ctypes.c_void_p * 4),
    )


_STRING, _GLOBAL, _NONE = 3, 3, ctypes.c_size_t(0)


def head_of_open_mpi(env: Mapping[str, str]) -> str | None:
    """Return the machine of `mpirun`, where process 0 usually is, too."""
    uri = env.get("OMPI_MCA_orte_hnp_uri") or ""
    found = re.search(r"tcp4?://([^:;,\s]+)[:,]", uri)
    if found is not None:
        return found.group(1)
    found = re.fullmatch(r"prterun-(.+)-\d+@\d+", env.get("PMIX_NAMESPACE", ""))
    return found.group(1) if found else None


def _library() -> Any:
    """Return PMIx's library, that of the installation of Open MPI; None if there is none."""
    runner = shutil.which("mpirun")
    beside = [str(Path(runner).resolve().parents[1] / "lib" / "libpmix.so.2")] if runner else []
    for name in (*beside, "libpmix.so.2", ctypes.util.find_library("pmix")):
        try:
            return ctypes.CDLL(name) if name else None
        except OSError:
            continue
    return None


def through_pmix(number: int | None, head: str | None, port: int, seconds: float) -> str | None:
    """Exchange the address of process 0 through PMIx; return None if it is not there.

    Process 0 offers the address from which it reaches the machine of `mpirun`, `head`.
    """

    def offered() -> str:
        host = _towards(head)
        if host is None or host.startswith("127."):
            return _offered(socket.gethostname())
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    found = _through_mpi4py(offered)
    library = None if found is not None else _library()
    if library is None:
        return found
    got: list[str | None] = []

    def exchange() -> None:
        got.append(_exchanged(library, offered() if number == 0 else None))

    thread = Thread(target=exchange, name="plait PMIx", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise _too_late(seconds)
    return got[0] if got else None


def _exchanged(library: Any, mine: str | None) -> str | None:
    """Give `mine` to all processes, if it is given; return what process 0 gave."""
    me = _Process()
    if library.PMIx_Init(ctypes.byref(me), None, _NONE) != 0:
        return None
    atexit.register(library.PMIx_Finalize, None, _NONE)
    if mine is not None:
        value = _Value(_STRING, mine.encode())
        if library.PMIx_Put(ctypes.c_uint8(_GLOBAL), _KEY.encode(), ctypes.byref(value)) != 0:
            return None
    if library.PMIx_Commit() != 0 or library.PMIx_Fence(None, _NONE, None, _NONE) != 0:
        return None
    first, result = _Process(me.namespace, 0), ctypes.POINTER(_Value)()
    got = library.PMIx_Get(
        ctypes.byref(first), _KEY.encode(), None, _NONE, ctypes.byref(result)
    )  # the library's memory: it is small, and freeing it needs a function that moved
    if got != 0 or result.contents.type != _STRING:
        return None
    return result.contents.text.decode()
