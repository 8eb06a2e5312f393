"""Errors between processes.

Invariant: each error names the processes that it is about: by number and, if known, by machine and
process id.
"""

import os
import sys
from collections.abc import Iterable

from plait.errors import PlaitError

__all__ = ["LOST_CODE", "DistributedError", "PeerLost", "ProgramsDiffer", "expect_posix"]

LOST_CODE = 70
"""The exit code of a process that has lost another one (EX_SOFTWARE of sysexits.h)."""


class DistributedError(PlaitError, RuntimeError):
    """Processes that do not fit together, or that cannot reach each other."""


class ProgramsDiffer(DistributedError):
    """Processes that run different programs where they should run the same."""


class PeerLost(DistributedError):
    """The loss of a process of the computation, which has ended or no longer responds.

    Attributes:
      peers: numbers of the lost processes; -1 is the coordinator.
      names: a description of each, in the same order: machine, process id, cause of the loss.
    """

    peers: tuple[int, ...]
    names: tuple[str, ...]

    def __init__(
        self, what: str, *, fix: str, peers: Iterable[int] = (), names: Iterable[str] = ()
    ):
        super().__init__(what, fix=fix)
        self.peers, self.names = tuple(peers), tuple(names)


def expect_posix() -> None:
    """Raise DistributedError on a system that cannot pass sockets to child processes."""
    if os.name != "posix":
        raise DistributedError(
            f"several processes need a system of POSIX's kind, and this is {sys.platform}",
            fix="compute in one process here; it drives several devices, too",
        )
