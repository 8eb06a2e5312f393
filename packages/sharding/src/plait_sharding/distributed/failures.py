"""What goes wrong between processes.

Invariant: each error names the processes that it is about, by number and, where that is known, by
machine and process id.
"""

from collections.abc import Iterable

from plait.errors import PlaitError

__all__ = ["LOST_CODE", "DistributedError", "PeerLost", "ProgramsDiffer"]

LOST_CODE = 70
"""The exit code of a process that has lost another one (EX_SOFTWARE of sysexits.h)."""


class DistributedError(PlaitError, RuntimeError):
    """Processes that do not fit together, or can not find each other."""


class ProgramsDiffer(DistributedError):
    """Processes that should do the same do different things."""


class PeerLost(DistributedError):
    """A process of the computation has ended, or says nothing any more.

    Attributes:
      peers: numbers of the processes that are lost; -1 is the coordinator.
      names: what is known of each, in the same order: machine, process id, why it is lost.
    """

    def __init__(
        self, what: str, *, fix: str, peers: Iterable[int] = (), names: Iterable[str] = ()
    ):
        super().__init__(what, fix=fix)
        self.peers, self.names = tuple(peers), tuple(names)
